/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The data of a write, from the process's memory into the ring.
 *
 * Invariants:
 *  1. Pieces follow the iovecs; none is longer than EV_PIECE_BYTES and none
 *     crosses from one iovec into the next.
 *  2. A piece that cannot be read is tried again by pages, so that one absent
 *     page costs the bytes on it only.
 *  3. What was written is sent, or counted: lost, unreadable or too large.
 */
#ifndef BLKBOX_FILEOPS_DATA_H
#define BLKBOX_FILEOPS_DATA_H

#include "fileops_put.h"

#define UIO_MAXIOV 1024
#define RWF_DSYNC 2
#define RWF_SYNC 4
#define RWF_APPEND 16
#define RWF_NOAPPEND 32

/* Every piece may be cut in two by a page boundary, every iovec ends one. */
#define MAX_DATA_STEPS                                                         \
	(2 * (u32)(MAX_DATA_BYTES / EV_PIECE_BYTES) + 4 * UIO_MAXIOV)

static __always_inline void advance(struct walk_data *w, u64 n)
{
	w->addr += n;
	w->here -= n;
	w->left -= n;
	w->offset += n;
}

/* The piece of n bytes could not be read. */
static __always_inline void put_unreadable(struct scratch *s, u32 n)
{
	struct walk_data *w = &s->data;
	struct ev_data *d = &s->piece.h;

	d->type = EV_DATA;
	d->bytes = sizeof(*d);
	d->seq = w->seq;
	d->offset = w->offset;
	d->len = n;
	d->unreadable = 1;
	s->ev.data_unreadable += n;
	if (!bpf_ringbuf_output(&ring, d, sizeof(*d), 0))
		s->ev.data_pieces++;
}

/* 0, or negative when it could not be read. */
static __always_inline long put_full_piece(struct scratch *s)
{
	struct walk_data *w = &s->data;
	struct data_piece *p = NULL;

	if (ring_has_room(sizeof(*p)))
		p = bpf_ringbuf_reserve(&ring, sizeof(*p), 0);
	if (!p) {
		s->ev.data_lost += EV_PIECE_BYTES;
		return 0;
	}
	if (bpf_probe_read_user(p->data, EV_PIECE_BYTES,
				(const void *)w->addr)) {
		bpf_ringbuf_discard(p, 0);
		return -1;
	}
	p->h.type = EV_DATA;
	p->h.bytes = sizeof(*p);
	p->h.seq = w->seq;
	p->h.offset = w->offset;
	p->h.len = EV_PIECE_BYTES;
	p->h.unreadable = 0;
	s->ev.data_pieces++;
	bpf_ringbuf_submit(p, 0);
	return 0;
}

static __always_inline long put_short_piece(struct scratch *s, u32 n)
{
	struct walk_data *w = &s->data;
	struct data_piece *p = &s->piece;

	if (n > EV_PIECE_BYTES)
		n = EV_PIECE_BYTES;
	if (bpf_probe_read_user(p->data, n, (const void *)w->addr))
		return -1;
	p->h.type = EV_DATA;
	p->h.bytes = sizeof(p->h) + n;
	p->h.seq = w->seq;
	p->h.offset = w->offset;
	p->h.len = n;
	p->h.unreadable = 0;
	if (!ring_has_room(sizeof(p->h) + n) ||
	    bpf_ringbuf_output(&ring, p, sizeof(p->h) + n, 0))
		s->ev.data_lost += n;
	else
		s->ev.data_pieces++;
	return 0;
}

/* The call's iovec number i. */
static __always_inline bool get_iovec(struct scratch *s, u32 i, struct iovec *v)
{
	if (s->call.flags & CALL_SAVED) {
		if (i >= MAX_SAVED_IOVS)
			return false;
		*v = s->uring.iov[i];
		return true;
	}
	return !bpf_probe_read_user(v, sizeof(*v),
				    (const void *)(s->call.addr +
						   i * sizeof(*v)));
}

static __always_inline bool next_iovec(struct scratch *s)
{
	struct walk_data *w = &s->data;
	struct iovec v = {};

	if (w->next >= w->iovs || !get_iovec(s, w->next, &v))
		return false;
	w->next++;
	w->addr = (u64)v.iov_base;
	w->here = v.iov_len < w->left ? v.iov_len : w->left;
	w->page_wise = 0;
	return true;
}

static long data_step(u32 i, void *ctx)
{
	struct scratch *s = get_scratch();
	struct walk_data *w;
	u64 n, to_page;
	long err;

	if (!s)
		return 1;
	w = &s->data;
	if (!w->left)
		return 1;
	if (!w->here)
		return next_iovec(s) ? 0 : 1;
	to_page = EV_PIECE_BYTES - (w->addr & (EV_PIECE_BYTES - 1));
	n = w->here;
	if (n > EV_PIECE_BYTES)
		n = EV_PIECE_BYTES;
	if (w->page_wise && n > to_page)
		n = to_page;
	if (n == EV_PIECE_BYTES)
		err = put_full_piece(s);
	else
		err = put_short_piece(s, n);
	if (err && n > to_page) {
		/* One of two pages is absent: find out which. */
		w->page_wise = 1;
		return 0;
	}
	if (err)
		put_unreadable(s, n);
	advance(w, n);
	return 0;
}

/* Sends the first bytes bytes of the call's data. */
static __noinline int put_data(struct scratch *s, u64 bytes)
{
	struct walk_data *w;

	if (!s)
		return 0;
	w = &s->data;
	__builtin_memset(w, 0, sizeof(*w));
	w->seq = s->ev.h.seq;
	w->left = bytes;
	if (bytes > MAX_DATA_BYTES) {
		w->left = MAX_DATA_BYTES;
		s->ev.data_too_large = bytes - MAX_DATA_BYTES;
	}
	if (s->call.flags & CALL_VEC) {
		w->iovs = s->call.iovs;
	} else {
		w->addr = s->call.addr;
		w->here = w->left;
	}
	bpf_loop(MAX_DATA_STEPS, data_step, NULL, 0);
	s->ev.data_unreadable += w->left;
	return 0;
}

/* ---- a write ---------------------------------------------------------------- */

static long sum_step(u32 i, void *ctx)
{
	struct scratch *s = get_scratch();
	struct iovec v = {};

	if (!s || i >= s->call.iovs)
		return 1;
	if (!get_iovec(s, i, &v))
		return 1;
	s->call.len += v.iov_len;
	return 0;
}

static __always_inline u32 sync_flags(struct call *c)
{
	if (c->open_flags & O_SYNC_ONLY || c->rwf & RWF_SYNC)
		return BFOP_SYNC_WRITE;
	if (c->open_flags & O_DSYNC || c->rwf & RWF_DSYNC)
		return BFOP_DSYNC_WRITE;
	return 0;
}

/* Where the write went that returned ret. */
static __always_inline u64 wrote_at(struct call *c, s64 ret)
{
	struct file *f = (struct file *)c->file;
	struct inode *inode = (struct inode *)c->inode;
	u64 done = ret > 0 ? ret : 0;
	bool appends = (c->open_flags & O_APPEND && !(c->rwf & RWF_NOAPPEND)) ||
		       c->rwf & RWF_APPEND;

	if (c->flags & CALL_OFF && !appends)
		return c->off;
	if (c->flags & CALL_OFF || !done)
		return appends ? BPF_CORE_READ(inode, i_size) - done
			       : BPF_CORE_READ(f, f_pos);
	return BPF_CORE_READ(f, f_pos) - done;
}

static __noinline int put_write(struct scratch *s, s64 ret, void *ctx)
{
	struct call *c;

	if (!s)
		return 0;
	c = &s->call;
	c->off = wrote_at(c, ret);
	c->event_flags |= sync_flags(c);
	if (c->flags & CALL_VEC) {
		c->len = 0;
		bpf_loop(UIO_MAXIOV, sum_step, NULL, 0);
	}
	if (ret > 0 && call_file_stands(c))
		note_written((struct file *)c->file, false);
	op_begin(s, ret, c->dev);
	op_inode(s, (struct inode *)c->inode);
	if (ret > 0 && !(c->event_flags & BFOP_DATA_UNKNOWN))
		put_data(s, ret);
	put_stack(s, ctx);
	op_end(s);
	return 0;
}

#endif
