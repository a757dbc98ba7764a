// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a page's bytes are. struct page and the direct map are both linear in
 * the page's number, so that one page with its address tells all others:
 *
 *	address = page * (4096 / sizeof(struct page)) + constant  (mod 2^64)
 *
 * Two sources, user space takes the first that proves right: the kernel's own
 * vmemmap_base and page_offset_base, where it shows its data symbols, and any
 * dirtied buffer, which has both its page and its address.
 */
#include "common.bpf.h"

#define PAGE_BYTES 4096

extern const void vmemmap_base __ksym __weak;
extern const void page_offset_base __ksym __weak;

/* Run once by user space (BPF_PROG_TEST_RUN), attached to nothing. */
SEC("raw_tp/block_dirty_buffer")
int calibrate_ksyms(void *ctx)
{
	u64 v = 0;

	if (!&vmemmap_base || !&page_offset_base)
		return 0;
	if (!bpf_probe_read_kernel(&v, sizeof(v), &vmemmap_base))
		counters.vmemmap_base = v;
	if (!bpf_probe_read_kernel(&v, sizeof(v), &page_offset_base))
		counters.page_offset_base = v;
	return 0;
}

static __always_inline int on_dirty_buffer(struct buffer_head *bh)
{
	struct page *page, *next;
	u64 address;

	if (counters.buffer_address || !config.page_bytes)
		return 0;
	page = BPF_CORE_READ(bh, b_page);
	address = (u64)BPF_CORE_READ(bh, b_data);
	if (!page || !address)
		return 0;
	/* In a page of several the buffer need not be in the first. */
	next = (void *)((u64)page + config.page_bytes);
	if (BPF_CORE_READ(next, compound_head) == ((u64)page | 1))
		return 0;
	counters.buffer_page = (u64)page;
	counters.buffer_address = address & ~(PAGE_BYTES - 1UL);
	return 0;
}

SEC("tp_btf/block_dirty_buffer")
int BPF_PROG(calibrate_buffer_btf, struct buffer_head *bh)
{
	return on_dirty_buffer(bh);
}

SEC("raw_tp/block_dirty_buffer")
int BPF_PROG(calibrate_buffer_raw, struct buffer_head *bh)
{
	return on_dirty_buffer(bh);
}

char LICENSE[] SEC("license") = "GPL";
