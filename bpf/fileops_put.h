/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Putting a file operation into the ring: op_begin(), its strings (of names,
 * fileops_names.h) and data (fileops_data.h), op_end(). Static functions, in
 * each object that uses them.
 */
#ifndef BLKBOX_FILEOPS_PUT_H
#define BLKBOX_FILEOPS_PUT_H

#include "fileops.h"

#define PATH_UNREADABLE 1
#define PATH_CUT 2

static __always_inline void op_begin(struct scratch *s, s64 ret, u32 dev)
{
	struct ev_file_op *e = &s->ev;
	struct call *c = &s->call;

	__builtin_memset(e, 0, sizeof(*e));
	fill_hdr(&e->h, EV_FILE_OP, sizeof(*e), next_seq(), dev);
	e->op = c->op;
	e->flags = c->event_flags;
	e->syscall = c->nr;
	e->open_flags = c->open_flags;
	e->start_seq = c->start_seq;
	e->start_ns = c->start_ns;
	e->ret = ret;
	e->off = c->off;
	e->len = c->len;
	e->ino = c->ino;
	e->fd = c->fd;
	e->mode = c->mode;
	if (c->event_flags & BFOP_IO_URING) {
		e->h.tgid = s->uring.tgid_tid >> 32;
		e->h.tid = (u32)s->uring.tgid_tid;
		__builtin_memcpy(e->h.comm, s->uring.comm, EV_COMM_BYTES);
	}
}

/* Fills in the object as it is now, if it still is that object. */
static __always_inline void op_inode(struct scratch *s, struct inode *inode)
{
	struct ev_file_op *e = &s->ev;

	if (!inode || BPF_CORE_READ(inode, i_ino) != e->ino)
		return;
	e->size = BPF_CORE_READ(inode, i_size);
	e->nlink = BPF_CORE_READ(inode, i_nlink);
	e->file_mode = BPF_CORE_READ(inode, i_mode);
}

static __always_inline bool stops(struct ev_file_op *e)
{
	if (e->op > 31 || !(config.stop_ops & 1U << e->op) || e->ret < 0)
		return false;
	if (e->op == BOP_OPEN)
		return e->flags & BFOP_CREATED || e->open_flags & O_TRUNC;
	if (e->op == BOP_CLOSE)
		return (e->flags & (BFOP_LAST_CLOSE | BFOP_WRITTEN |
				    BFOP_AT_EXIT)) ==
		       (BFOP_LAST_CLOSE | BFOP_WRITTEN);
	return true;
}

static __always_inline void op_end(struct scratch *s)
{
	struct ev_file_op *e = &s->ev;

	if (e->data_unreadable)
		e->flags |= BFOP_DATA_UNREADABLE;
	if (stops(e))
		e->flags |= BFOP_STOPPED;
	if (bpf_ringbuf_output(&ring, e, sizeof(*e), 0)) {
		put_lost(e->h.seq, e->h.dev, EV_FILE_OP,
			 e->op == BOP_WRITE && e->ret > 0 ? e->ret : 0);
		return;
	}
	if (e->flags & BFOP_STOPPED)
		bpf_send_signal(SIGSTOP);
}

/* ---- strings --------------------------------------------------------------- */

/* Sends the first len bytes of s->path.text; all of them are set. */
static __always_inline void put_path(struct scratch *s, u32 kind, u32 len,
				     u32 flags)
{
	struct ev_path *p = &s->path.h;
	u64 bytes;

	if (len > sizeof(s->path.text))
		len = sizeof(s->path.text);
	bytes = sizeof(*p) + len;
	p->type = EV_PATH;
	p->bytes = bytes;
	p->seq = s->ev.h.seq;
	p->kind = kind;
	p->len = len;
	p->flags = flags;
	p->pad = 0;
	if (bpf_ringbuf_output(&ring, p, bytes, 0))
		s->ev.paths_lost++;
	else
		s->ev.paths++;
}

/* ---- user stack ------------------------------------------------------------- */

#define MAX_STACK_BYTES (64 * 8)

static __always_inline void put_stack(struct scratch *s, void *ctx)
{
	long n;

	if (!config.stacks || s->call.event_flags & BFOP_IO_URING)
		return;
	n = bpf_get_stack(ctx, s->path.text, MAX_STACK_BYTES, BPF_F_USER_STACK);
	if (n <= 0 || n > MAX_STACK_BYTES)
		return;
	s->ev.n_stack = (u64)n / sizeof(u64);
	put_path(s, EV_PATH_STACK, n, 0);
}

#endif
