// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The page-address constant (bpf/calibrate.bpf.c says what it is).
 *
 * Invariants:
 *  1. A constant is used only after a random pattern, written to a scratch loop
 *     device over memory, came back through the very programs that record.
 *  2. The scratch device is gone, and out of scope, before anybody's recording
 *     begins.
 */
#include "calibrate.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "../replay/loop.h"
#include "attach.h"
#include "drain.h"

#define SCRATCH_BYTES (1U << 20)
#define PATTERN_BYTES (16U << 10)	/* fits the smallest ring */
#define PATTERN_AT (128U << 10)
#define PAGE_BYTES 4096

static const struct attach_event buffer_events[] = {
	{ "block_dirty_buffer", true, {
		{ ATTACH_TP_BTF, { "calibrate_buffer_btf" }, { NULL } },
		{ ATTACH_RAW_TP, { "calibrate_buffer_raw" }, { NULL } },
	} },
	{ 0 },
};

/* What the programs say went to the scratch device. */
struct proof {
	u8 seen[SCRATCH_BYTES];
	u64 bytes;
};

static void on_issue(void *ctx, const struct rec_issue *i)
{
	struct proof *p = ctx;
	u64 at = i->sector << SECTOR_SHIFT;

	if (at > sizeof(p->seen) || i->data_bytes > sizeof(p->seen) - at)
		return;
	for (u32 n = 0; n < i->n_parts; n++) {
		const struct rec_bytes *part = &i->parts[n];

		if (part->data)
			memcpy(p->seen + at, part->data, part->bytes);
		else
			memset(p->seen + at, 0, part->bytes);
		at += part->bytes;
	}
	p->bytes += i->data_bytes;
}

/* 1: the pattern came back, 0: it did not. */
static int write_and_compare(struct programs *p, const struct kernel_info *k,
			     const struct loop *l, struct errmsg *em)
{
	struct proof *proof = xzalloc(sizeof(*proof));
	struct drain_opts opts = {
		.ring_fd = p->ring_fd,
		.notices_fd = p->notices_fd,
		.devs_fd = p->devs_fd,
		.file_systems_fd = p->file_systems_fd,
		.counters = p->counters,
		.sink = { .kernel = k, .issue = on_issue, .ctx = proof },
	};
	struct drain *d = NULL;
	u8 pattern[PATTERN_BYTES];
	int err;

	if (getrandom(pattern, sizeof(pattern), GRND_NONBLOCK) !=
	    sizeof(pattern))
		for (size_t i = 0; i < sizeof(pattern); i++)
			pattern[i] = (i * 2654435761U + now_ns()) >> 8;
	err = drain_new(&opts, &d, em);
	if (err < 0)
		goto out;
	p->config->enabled = 1;
	err = pwrite_full(l->fd, pattern, sizeof(pattern), PATTERN_AT);
	if (!err && fsync(l->fd) < 0)
		err = -errno;
	p->config->enabled = 0;
	if (!err)
		err = drain_fence(d);
	if (err < 0)
		errmsg_set(em, err, "writing a pattern to the scratch device "
			   "%s", l->path);
	else
		err = !memcmp(proof->seen + PATTERN_AT, pattern,
			      sizeof(pattern));
out:
	drain_free(d);
	free(proof);
	return err;
}

static int prove(struct programs *p, const struct kernel_info *k,
		 const struct loop *l, u64 constant, struct errmsg *em)
{
	int err;

	p->config->page_constant = constant;
	p->config->payload = 1;
	err = programs_scope(p->devs_fd, l->dev);
	if (err < 0)
		return errmsg_set(em, err, "watching the scratch device");
	err = write_and_compare(p, k, l, em);
	bpf_map_delete_elem(p->devs_fd, &l->dev);
	if (err <= 0)
		p->config->payload = 0;
	return err;
}

static bool constant_from_ksyms(struct programs *p, u64 factor, u64 *ret)
{
	u64 unused[2] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = unused,
		    .ctx_size_in = sizeof(unused));

	if (p->calibrate_fd < 0 ||
	    bpf_prog_test_run_opts(p->calibrate_fd, &run) < 0 ||
	    !p->counters->vmemmap_base || !p->counters->page_offset_base)
		return false;
	*ret = p->counters->page_offset_base -
	       p->counters->vmemmap_base * factor;
	return true;
}

/* A buffered write of one sector dirties a buffer of the scratch device. */
static bool constant_from_buffer(struct programs *p, const struct loop *l,
				 u64 factor, u64 *ret)
{
	struct attach_set set = { 0 };
	u8 sector[SECTOR_SIZE] = { 1 };
	bool found = false;

	if (!attach_events(p->obj, buffer_events, &set, NULL)) {
		(void)!pwrite(l->fd, sector, sizeof(sector), 0);
		fsync(l->fd);
		found = p->counters->buffer_address != 0;
		*ret = p->counters->buffer_address -
		       p->counters->buffer_page * factor;
	}
	attach_set_done(&set);
	return found;
}

static int find_and_prove(struct programs *p, const struct kernel_info *k,
			  const struct loop *l, const char **ret_source,
			  struct errmsg *em)
{
	u64 factor = PAGE_BYTES / k->page_bytes, constant;
	bool tried = false;
	int err;

	if (constant_from_ksyms(p, factor, &constant)) {
		tried = true;
		err = prove(p, k, l, constant, em);
		if (err)
			goto out;
	}
	if (constant_from_buffer(p, l, factor, &constant)) {
		err = prove(p, k, l, constant, em);
		if (err) {
			tried = false;
			goto out;
		}
		tried = true;
	}
	return errmsg_set(em, EOPNOTSUPP,
			  tried ? "proving where pages lie in memory: a "
				  "pattern did not come back, so data of writes "
				  "cannot be recorded on this kernel" :
				  "finding where pages lie in memory: neither "
				  "vmemmap_base nor a dirtied buffer could be "
				  "seen, so data of writes cannot be recorded "
				  "on this kernel");
out:
	if (ret_source)
		*ret_source = tried ? "vmemmap_base" : "block_dirty_buffer";
	return err < 0 ? err : 0;
}

int calibrate(struct programs *p, const struct kernel_info *k,
	      const char **ret_source, struct errmsg *em)
{
	_cleanup_close_ int mem = -1;
	struct loop l;
	int err;

	if (PAGE_BYTES % k->page_bytes || sysconf(_SC_PAGESIZE) != PAGE_BYTES)
		return errmsg_set(em, EOPNOTSUPP, "finding where pages lie in "
				  "memory: struct page has %u bytes, a page %ld",
				  k->page_bytes, sysconf(_SC_PAGESIZE));
	mem = memfd_new("blkbox-calibrate", SCRATCH_BYTES, em);
	if (mem < 0)
		return mem;
	err = loop_attach(mem, false, &l, em);
	if (err < 0)
		return errmsg_wrap(em, err, "making a scratch loop device");
	p->config->page_bytes = k->page_bytes;
	p->config->self_tgid = getpid();
	p->config->op_mask = k->op_mask;
	p->config->op_read = kernel_op(k, "REQ_OP_READ");
	p->config->op_write = kernel_op(k, "REQ_OP_WRITE");
	p->config->op_drv_in = kernel_op(k, "REQ_OP_DRV_IN");
	err = find_and_prove(p, k, &l, ret_source, em);
	loop_detach(&l);
	return err;
}
