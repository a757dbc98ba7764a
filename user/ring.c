// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The layout is the kernel's (kernel/bpf/ringbuf.c): a page with the consumer's
 * position, which is ours to write; a page with the producer's; the data,
 * mapped twice so that a record never is in two parts. A record is 8 bytes of
 * header, its first 4 the length and two flags, and is padded to 8 bytes.
 *
 * Invariants:
 *  1. consumer <= at <= producer; the kernel writes neither to what lies
 *     between consumer and at, nor past consumer + bytes.
 *  2. The header is read before the record, with acquire, as the producer
 *     releases it last; the consumer's position is stored with release.
 */
#include "ring.h"

#include <bpf/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

int ring_open(int map_fd, struct ring *ret)
{
	struct bpf_map_info info = { 0 };
	u32 len = sizeof(info);
	long page = sysconf(_SC_PAGESIZE);
	struct ring r = { .fd = map_fd };
	void *p;

	if (bpf_obj_get_info_by_fd(map_fd, &info, &len) < 0)
		return -errno;
	r.bytes = info.max_entries;
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	r.consumer = p;
	p = mmap(NULL, page + 2 * r.bytes, PROT_READ, MAP_SHARED, map_fd, page);
	if (p == MAP_FAILED) {
		munmap(r.consumer, page);
		return -errno;
	}
	r.producer = p;
	r.data = (const u8 *)p + page;
	r.at = __atomic_load_n(r.consumer, __ATOMIC_ACQUIRE);
	*ret = r;
	return 0;
}

void ring_close(struct ring *r)
{
	long page = sysconf(_SC_PAGESIZE);

	if (!r->consumer)
		return;
	munmap(r->consumer, page);
	munmap((void *)r->producer, page + 2 * r->bytes);
	*r = (struct ring){ 0 };
}

int ring_next(struct ring *r, const void **ret_record, u32 *ret_bytes)
{
	for (;;) {
		u64 end = __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
		const u8 *p = r->data + (r->at & (r->bytes - 1));
		u32 head, bytes;

		if (r->at >= end)
			return 0;
		head = __atomic_load_n((const u32 *)p, __ATOMIC_ACQUIRE);
		if (head & BPF_RINGBUF_BUSY_BIT)
			return 0;
		bytes = head & ~BPF_RINGBUF_DISCARD_BIT;
		if (bytes > r->bytes - BPF_RINGBUF_HDR_SZ)
			return -EBADMSG;
		r->at += (BPF_RINGBUF_HDR_SZ + (u64)bytes + 7) & ~7ULL;
		if (head & BPF_RINGBUF_DISCARD_BIT)
			continue;
		*ret_record = p + BPF_RINGBUF_HDR_SZ;
		*ret_bytes = bytes;
		return 1;
	}
}

u64 ring_unread(const struct ring *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE) - r->at;
}

void ring_release(struct ring *r)
{
	__atomic_store_n(r->consumer, r->at, __ATOMIC_RELEASE);
}
