// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bodies of records, each as it is written and as it is read. Fields stand in
 * the order of the code below; integers are little-endian. A string is u32
 * length and bytes, length 0xffffffff for one that is not there; a comm is 16
 * bytes, the last 0. What follows the fields known here is ignored: records
 * grow at their end.
 */
#include <string.h>

#include "recording_layout.h"

struct cursor record_body(const struct record *r, u16 type)
{
	struct cursor c = cursor_of(r->body, r->body_bytes);

	c.bad = r->type != type;
	return c;
}

static int done(const struct cursor *c)
{
	return c->bad ? -EBADMSG : 0;
}

static void put_comm(struct buf *b, const char comm[16])
{
	char clean[16] = "";

	memcpy(clean, comm, strnlen(comm, 15));
	buf_put(b, clean, sizeof(clean));
}

static void get_comm(struct cursor *c, char ret[16])
{
	const char *p = cur_bytes(c, 16);

	if (!p || p[15]) {
		c->bad = true;
		memset(ret, 0, 16);
		return;
	}
	memcpy(ret, p, 16);
}

static void put_str(struct buf *b, const char *s)
{
	if (s)
		buf_put_str(b, s);
	else
		buf_put_u32(b, STR_NONE);
}

static char *get_str(struct cursor *c)
{
	struct cursor peek = *c;

	if (cur_u32(&peek) == STR_NONE) {
		*c = peek;
		return NULL;
	}
	return cur_str(c);
}

/* ---- block requests ------------------------------------------------------ */

#define PAGE_BYTES 28U

/* Lengths agree with each other, and the extent does not wrap. */
static bool issue_ok(const struct rec_issue *i)
{
	u64 bytes = (u64)i->sectors << SECTOR_SHIFT;
	u64 sum = 0;

	if (i->op < BLK_WRITE || i->op > BLK_OTHER)
		return false;
	if (i->sectors &&
	    i->sector > ((u64)INT64_MAX >> SECTOR_SHIFT) - i->sectors)
		return false;
	if (i->data_bytes && i->data_bytes != bytes)
		return false;
	for (u32 n = 0; n < i->n_pages; n++)
		sum += i->pages[n].bytes;
	return !i->n_pages || sum == bytes;
}

int rec_put_issue(struct rec_writer *w, u64 seq, u64 time_ns, u32 dev,
		  const struct rec_issue *i)
{
	struct record hdr = { .type = REC_ISSUE, .dev = dev, .seq = seq,
			      .time_ns = time_ns };
	struct buf *b;

	if (!issue_ok(i) ||
	    !record_parts_ok(i->parts, i->n_parts, i->data_bytes))
		return -EINVAL;
	b = record_begin(w, &hdr,
			 49 + (u64)i->n_pages * PAGE_BYTES + i->data_bytes);
	if (!b)
		return record_end(w);
	buf_put_u8(b, i->op);
	buf_put_u32(b, i->flags);
	buf_put_u32(b, i->raw_flags);
	buf_put_u64(b, i->sector);
	buf_put_u32(b, i->sectors);
	buf_put_u32(b, i->pid);
	put_comm(b, i->comm);
	buf_put_u32(b, i->n_pages);
	buf_put_u32(b, i->data_bytes);
	for (u32 n = 0; n < i->n_pages; n++) {
		const struct rec_page *p = &i->pages[n];

		buf_put_u32(b, p->bytes);
		buf_put_u32(b, p->flags);
		buf_put_u32(b, p->fs_dev);
		buf_put_u64(b, p->ino);
		buf_put_u64(b, p->file_offset);
	}
	record_put_data(b, i->data, i->data_bytes, i->parts, i->n_parts);
	return record_end(w);
}

static void get_pages(struct cursor *c, struct rec_issue *i)
{
	if (i->n_pages > cur_left(c) / PAGE_BYTES) {
		i->n_pages = 0;
		c->bad = true;
	}
	if (!i->n_pages)
		return;
	i->pages = xreallocarray(NULL, i->n_pages, sizeof(*i->pages));
	for (u32 n = 0; n < i->n_pages; n++) {
		struct rec_page *p = &i->pages[n];

		p->bytes = cur_u32(c);
		p->flags = cur_u32(c);
		p->fs_dev = cur_u32(c);
		p->ino = cur_u64(c);
		p->file_offset = cur_u64(c);
	}
}

int rec_get_issue(const struct record *r, struct rec_issue *ret)
{
	struct cursor c = record_body(r, REC_ISSUE);
	struct rec_issue i = { .op = cur_u8(&c) };

	i.flags = cur_u32(&c);
	i.raw_flags = cur_u32(&c);
	i.sector = cur_u64(&c);
	i.sectors = cur_u32(&c);
	i.pid = cur_u32(&c);
	get_comm(&c, i.comm);
	i.n_pages = cur_u32(&c);
	i.data_bytes = cur_u32(&c);
	get_pages(&c, &i);
	i.data = cur_bytes(&c, i.data_bytes);
	if (!i.data_bytes)
		i.data = NULL;
	if (done(&c) < 0 || !issue_ok(&i)) {
		rec_issue_done(&i);
		return -EBADMSG;
	}
	*ret = i;
	return 0;
}

void rec_issue_done(struct rec_issue *i)
{
	free(i->pages);
	*i = (struct rec_issue){ 0 };
}

int rec_put_complete(struct rec_writer *w, u64 seq, u64 time_ns, u32 dev,
		     const struct rec_complete *c)
{
	struct record hdr = { .type = REC_COMPLETE, .dev = dev, .seq = seq,
			      .time_ns = time_ns };
	struct buf *b = record_begin(w, &hdr, 20);

	if (b) {
		buf_put_u64(b, c->issue_seq);
		buf_put_u64(b, c->error);
		buf_put_u32(b, c->bytes);
	}
	return record_end(w);
}

int rec_get_complete(const struct record *r, struct rec_complete *ret)
{
	struct cursor c = record_body(r, REC_COMPLETE);
	struct rec_complete v = { .issue_seq = cur_u64(&c) };

	v.error = (s64)cur_u64(&c);
	v.bytes = cur_u32(&c);
	if (done(&c) < 0)
		return -EBADMSG;
	*ret = v;
	return 0;
}

int rec_put_requeue(struct rec_writer *w, u64 seq, u64 time_ns, u32 dev,
		    const struct rec_requeue *q)
{
	struct record hdr = { .type = REC_REQUEUE, .dev = dev, .seq = seq,
			      .time_ns = time_ns };
	struct buf *b = record_begin(w, &hdr, 8);

	if (b)
		buf_put_u64(b, q->issue_seq);
	return record_end(w);
}

int rec_get_requeue(const struct record *r, struct rec_requeue *ret)
{
	struct cursor c = record_body(r, REC_REQUEUE);
	struct rec_requeue v = { .issue_seq = cur_u64(&c) };

	if (done(&c) < 0)
		return -EBADMSG;
	*ret = v;
	return 0;
}

/* ---- file operations ----------------------------------------------------- */

/* Data past the result was not written, and is not kept. */
static u32 data_of_ret(const struct rec_file_op *op)
{
	u64 done_bytes = op->ret > 0 ? op->ret : 0;

	return MIN((u64)op->data_bytes, done_bytes);
}

static void put_file_op_fixed(struct buf *b, const struct rec_file_op *op)
{
	buf_put_u8(b, op->op);
	buf_put_u32(b, op->flags);
	buf_put_u32(b, op->syscall);
	buf_put_u64(b, op->start_seq);
	buf_put_u64(b, op->start_ns);
	buf_put_u32(b, op->pid);
	buf_put_u32(b, op->tid);
	put_comm(b, op->comm);
	buf_put_u64(b, op->ret);
	buf_put_u32(b, op->fd);
	buf_put_u32(b, op->open_flags);
	buf_put_u32(b, op->mode);
	buf_put_u64(b, op->off);
	buf_put_u64(b, op->len);
	buf_put_u64(b, op->ino);
	buf_put_u64(b, op->size);
	buf_put_u32(b, op->nlink);
	buf_put_u32(b, op->file_mode);
	buf_put_u32(b, op->dir_dev);
	buf_put_u32(b, op->dir2_dev);
	buf_put_u64(b, op->dir_ino);
	buf_put_u64(b, op->dir2_ino);
	buf_put_u32(b, op->src_dev);
	buf_put_u64(b, op->src_ino);
	buf_put_u64(b, op->src_off);
}

static void get_file_op_fixed(struct cursor *c, struct rec_file_op *op)
{
	op->op = cur_u8(c);
	op->flags = cur_u32(c);
	op->syscall = cur_u32(c);
	op->start_seq = cur_u64(c);
	op->start_ns = cur_u64(c);
	op->pid = cur_u32(c);
	op->tid = cur_u32(c);
	get_comm(c, op->comm);
	op->ret = (s64)cur_u64(c);
	op->fd = (s32)cur_u32(c);
	op->open_flags = cur_u32(c);
	op->mode = cur_u32(c);
	op->off = cur_u64(c);
	op->len = cur_u64(c);
	op->ino = cur_u64(c);
	op->size = cur_u64(c);
	op->nlink = cur_u32(c);
	op->file_mode = cur_u32(c);
	op->dir_dev = cur_u32(c);
	op->dir2_dev = cur_u32(c);
	op->dir_ino = cur_u64(c);
	op->dir2_ino = cur_u64(c);
	op->src_dev = cur_u32(c);
	op->src_ino = cur_u64(c);
	op->src_off = cur_u64(c);
}

int rec_put_file_op(struct rec_writer *w, u64 seq, u64 time_ns, u32 dev,
		    const struct rec_file_op *op)
{
	struct record hdr = { .type = REC_FILE_OP, .dev = dev, .seq = seq,
			      .time_ns = time_ns };
	u32 data_bytes = data_of_ret(op);
	struct buf *b;

	if (!op->op || op->op >= OP_MAX ||
	    !record_parts_ok(op->parts, op->n_parts, op->data_bytes))
		return -EINVAL;
	b = record_begin(w, &hdr, 200 + (u64)op->n_stack * 8 + data_bytes);
	if (!b)
		return record_end(w);
	put_file_op_fixed(b, op);
	put_str(b, op->file_path);
	put_str(b, op->dir_path);
	put_str(b, op->path);
	put_str(b, op->dir2_path);
	put_str(b, op->path2);
	buf_put_u32(b, op->n_stack);
	for (u32 i = 0; i < op->n_stack; i++)
		buf_put_u64(b, op->stack[i]);
	buf_put_u32(b, data_bytes);
	record_put_data(b, op->data, data_bytes, op->parts, op->n_parts);
	return record_end(w);
}

static void get_stack(struct cursor *c, struct rec_file_op *op)
{
	u32 n = cur_u32(c);

	if (n > cur_left(c) / 8) {
		c->bad = true;
		return;
	}
	if (!n)
		return;
	op->stack = xreallocarray(NULL, n, sizeof(*op->stack));
	op->n_stack = n;
	for (u32 i = 0; i < n; i++)
		op->stack[i] = cur_u64(c);
}

int rec_get_file_op(const struct record *r, struct rec_file_op *ret)
{
	struct cursor c = record_body(r, REC_FILE_OP);
	struct rec_file_op op = { 0 };

	get_file_op_fixed(&c, &op);
	op.file_path = get_str(&c);
	op.dir_path = get_str(&c);
	op.path = get_str(&c);
	op.dir2_path = get_str(&c);
	op.path2 = get_str(&c);
	get_stack(&c, &op);
	op.data_bytes = cur_u32(&c);
	op.data = cur_bytes(&c, op.data_bytes);
	if (!op.data_bytes)
		op.data = NULL;
	if (done(&c) < 0 || !op.op || op.op >= OP_MAX ||
	    op.data_bytes != data_of_ret(&op)) {
		rec_file_op_done(&op);
		return -EBADMSG;
	}
	*ret = op;
	return 0;
}

void rec_file_op_done(struct rec_file_op *op)
{
	free(op->file_path);
	free(op->dir_path);
	free(op->path);
	free(op->dir2_path);
	free(op->path2);
	free(op->stack);
	*op = (struct rec_file_op){ 0 };
}

/* ---- marks, processes, gaps, the end ------------------------------------- */

int rec_put_mark(struct rec_writer *w, u64 seq, u64 time_ns,
		 const struct rec_mark *m)
{
	struct record hdr = { .type = REC_MARK, .seq = seq,
			      .time_ns = time_ns };
	struct buf *b = record_begin(w, &hdr, 9);

	if (b) {
		buf_put_u32(b, m->pid);
		buf_put_str(b, m->text);
		buf_put_u8(b, 0);	/* text is used in place */
	}
	return record_end(w);
}

int rec_get_mark(const struct record *r, struct rec_mark *ret)
{
	struct cursor c = record_body(r, REC_MARK);
	struct rec_mark m = { .pid = cur_u32(&c) };
	u32 len = cur_u32(&c);

	m.text = cur_bytes(&c, len);
	if (cur_u8(&c) || done(&c) < 0 || memchr(m.text, 0, len))
		return -EBADMSG;
	*ret = m;
	return 0;
}

int rec_put_proc(struct rec_writer *w, u64 seq, u64 time_ns,
		 const struct rec_proc *p)
{
	struct record hdr = { .type = REC_PROC, .seq = seq,
			      .time_ns = time_ns };
	struct buf *b = record_begin(w, &hdr, 29);

	if (b) {
		buf_put_u8(b, p->event);
		buf_put_u32(b, p->pid);
		buf_put_u32(b, p->parent);
		buf_put_u32(b, p->status);
		put_comm(b, p->comm);
	}
	return record_end(w);
}

int rec_get_proc(const struct record *r, struct rec_proc *ret)
{
	struct cursor c = record_body(r, REC_PROC);
	struct rec_proc p = { .event = cur_u8(&c) };

	p.pid = cur_u32(&c);
	p.parent = cur_u32(&c);
	p.status = (s32)cur_u32(&c);
	get_comm(&c, p.comm);
	if (done(&c) < 0)
		return -EBADMSG;
	*ret = p;
	return 0;
}

int rec_put_gap(struct rec_writer *w, u64 seq, u64 time_ns, u32 dev,
		const struct rec_gap *g)
{
	struct record hdr = { .type = REC_GAP, .dev = dev, .seq = seq,
			      .time_ns = time_ns };
	struct buf *b;
	int err;

	if (!g->reason || g->last_seq < seq || g->last_seq == UINT64_MAX)
		return -EINVAL;
	b = record_begin(w, &hdr, 26);
	if (b) {
		buf_put_u8(b, g->reason);
		buf_put_u8(b, g->lost_type);
		buf_put_u64(b, g->events);
		buf_put_u64(b, g->bytes);
		buf_put_u64(b, g->last_seq);
	}
	err = record_end(w);
	if (err == 0)
		writer_count_gap(w, g);
	return err;
}

int rec_get_gap(const struct record *r, struct rec_gap *ret)
{
	struct cursor c = record_body(r, REC_GAP);
	struct rec_gap g = { .reason = cur_u8(&c) };

	g.lost_type = cur_u8(&c);
	g.events = cur_u64(&c);
	g.bytes = cur_u64(&c);
	g.last_seq = cur_u64(&c);
	if (done(&c) < 0 || !g.reason || g.last_seq < r->seq ||
	    g.last_seq == UINT64_MAX)
		return -EBADMSG;
	*ret = g;
	return 0;
}

int rec_get_end(const struct record *r, struct rec_end *ret)
{
	struct cursor c = record_body(r, REC_END);
	struct rec_end e = { .events = cur_u64(&c) };

	e.gaps = cur_u64(&c);
	e.lost_events = cur_u64(&c);
	e.lost_bytes = cur_u64(&c);
	if (done(&c) < 0)
		return -EBADMSG;
	*ret = e;
	return 0;
}
