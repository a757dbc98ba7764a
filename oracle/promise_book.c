// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Invariants:
 *  1. A promise is narrowed or ended, never widened. An operation ends what it
 *     may have changed at its own start; the rest goes on as a promise of its
 *     own, made by the same call.
 *  2. What an operation that was under way before the promise changes ends
 *     before it begins, which is to say that it was never promised.
 *  3. live lists name every promise that an operation still to come may end.
 */
#include "promise_book.h"

#include <string.h>

/* ---- ranges -------------------------------------------------------------- */

void ranges_add(struct ranges *r, u64 off, u64 end)
{
	if (off >= end)
		return;
	GROW(r->r, r->n, r->cap);
	r->r[r->n++] = (struct range){ off, end };
}

void ranges_subtract(struct ranges *r, u64 off, u64 end)
{
	u32 n = r->n;

	for (u32 i = 0; i < n; i++) {
		struct range old = r->r[i];

		if (off >= old.end || end <= old.off)
			continue;
		/* what is left behind it becomes a range of its own */
		r->r[i].end = MAX(old.off, MIN(off, old.end));
		ranges_add(r, MIN(end, old.end), old.end);
	}
	for (u32 i = 0; i < r->n;) {
		if (r->r[i].off < r->r[i].end)
			i++;
		else
			r->r[i] = r->r[--r->n];
	}
}

static int by_off(const void *a, const void *b)
{
	const struct range *p = a, *q = b;

	return p->off < q->off ? -1 : p->off > q->off;
}

void ranges_subtract_all(struct ranges *r, struct ranges *take)
{
	struct ranges left = { 0 };

	if (take->n)
		qsort(take->r, take->n, sizeof(*take->r), by_off);
	for (u32 i = 0; i < r->n; i++) {
		u64 at = r->r[i].off, end = r->r[i].end;

		for (u32 k = 0; k < take->n && take->r[k].off < end; k++) {
			ranges_add(&left, at, take->r[k].off);
			at = MAX(at, take->r[k].end);
		}
		ranges_add(&left, at, end);
	}
	free(r->r);
	*r = left;
}

/* ---- the book ------------------------------------------------------------ */

struct inode_book *book_inode(struct book *b, const struct fs_inode *i)
{
	u32 n = b->n_inodes;

	if (i->id >= n) {
		b->n_inodes = MAX(i->id + 1, n * 2);
		b->inodes = xreallocarray(b->inodes, b->n_inodes,
					  sizeof(*b->inodes));
		memset(b->inodes + n, 0,
		       (b->n_inodes - n) * sizeof(*b->inodes));
	}
	return &b->inodes[i->id];
}

static void make_live(struct inode_book *ib, u32 promise)
{
	GROW(ib->live, ib->n_live, ib->cap_live);
	ib->live[ib->n_live++] = promise;
}

struct promise *book_add(struct book *b, const struct fs_inode *i,
			 const struct promise *p)
{
	GROW(b->p, b->n, b->cap);
	b->p[b->n] = *p;
	b->p[b->n].path = xstrdup(p->path ?: "");
	make_live(book_inode(b, i), b->n);
	return &b->p[b->n++];
}

/* The part [off, end) of promise number as a promise of its own. */
static void split_off(struct book *b, const struct fs_inode *i, u32 number,
		      u64 off, u64 end)
{
	struct promise part = b->p[number];

	if (off >= end)
		return;
	part.off = off;
	part.len = end - off;
	part.content = content_ref(part.content);
	book_add(b, i, &part);
}

static void take_back_bytes(struct book *b, const struct fs_change *c,
			    u32 number, u64 off, u64 end, u64 start)
{
	struct promise *p = &b->p[number];
	u64 p_end = p->off + p->len, p_off = p->off;

	off = MAX(off, p_off);
	end = MIN(end, p_end);
	if (off >= end)
		return;
	split_off(b, c->inode, number, p_off, off);
	split_off(b, c->inode, number, end, p_end);
	p = &b->p[number];
	p->off = off;
	p->len = end - off;
	p->until_seq = start;
}

/* Cut below what was promised, the file is still there, if shorter. */
static void take_back_size(struct book *b, const struct fs_change *c,
			   u32 number, u64 start)
{
	struct promise shorter = b->p[number];

	if (c->end >= shorter.len)
		return;
	shorter.len = c->end;
	b->p[number].until_seq = start;
	book_add(b, c->inode, &shorter);
}

static bool is_named(const struct promise *p, const char *name)
{
	const char *slash = strrchr(p->path, '/');

	return !strcmp(slash ? slash + 1 : p->path, name);
}

static void take_back(struct book *b, const struct fs_change *c, u32 number,
		      u64 start)
{
	struct promise *p = &b->p[number];
	bool of_name = p->kind == PROMISE_NAME || p->kind == PROMISE_NO_NAME;

	switch (c->kind) {
	case FS_CHANGE_BYTES:
	case FS_CHANGE_MAPPED:
		if (p->kind == PROMISE_BYTES)
			take_back_bytes(b, c, number, c->off, c->end, start);
		break;
	case FS_CHANGE_SIZE:
		if (p->kind == PROMISE_BYTES)
			take_back_bytes(b, c, number, c->end, UINT64_MAX,
					start);
		else if (p->kind == PROMISE_SIZE)
			take_back_size(b, c, number, start);
		break;
	case FS_CHANGE_GONE:
		p->until_seq = start;
		break;
	case FS_CHANGE_NAME:
		if (of_name && is_named(p, c->name))
			p->until_seq = start;
		break;
	case FS_CHANGE_ANY:
		break;
	}
}

static void note_mapping(struct inode_book *ib, const struct fs_change *c)
{
	if (ib->map_off == ib->map_end)
		ib->map_off = c->off;
	ib->map_off = MIN(ib->map_off, c->off);
	ib->map_end = MAX(ib->map_end, c->end);
}

static void note_name(struct inode_book *ib, const char *name)
{
	GROW(ib->pending, ib->n_pending, ib->cap_pending);
	ib->pending[ib->n_pending++] = xstrdup(name);
}

void book_take_back(struct book *b, const struct fs_change *c, u64 start,
		    u64 least_start)
{
	struct inode_book *ib;
	u32 n, kept = 0;

	if (!c->inode)
		return;
	ib = book_inode(b, c->inode);
	n = ib->n_live;
	for (u32 i = 0; i < n; i++) {
		u32 number = ib->live[i];

		if (b->p[number].until_seq > start)
			take_back(b, c, number, start);
	}
	for (u32 i = 0; i < ib->n_live; i++)
		if (b->p[ib->live[i]].until_seq > least_start)
			ib->live[kept++] = ib->live[i];
	ib->n_live = kept;
	if (c->kind == FS_CHANGE_MAPPED)
		note_mapping(ib, c);
	if (c->kind == FS_CHANGE_NAME)
		note_name(ib, c->name);
}

void book_take_back_all(struct book *b, u64 start)
{
	for (u32 i = 0; i < b->n; i++)
		b->p[i].until_seq = MIN(b->p[i].until_seq, start);
}

void book_log(struct book *b, u64 seq, const struct fs_change *c)
{
	GROW(b->log, b->n_log, b->cap_log);
	b->log[b->n_log++] = (struct logged){
		.seq = seq, .kind = c->kind, .inode = c->inode,
		.off = c->off, .end = c->end,
		.name = c->name ? xstrdup(c->name) : NULL,
	};
}

static int by_time(const void *a, const void *b)
{
	const struct promise *p = a, *q = b;

	if (p->from_seq != q->from_seq)
		return p->from_seq < q->from_seq ? -1 : 1;
	if (p->kind != q->kind)
		return p->kind < q->kind ? -1 : 1;
	if (p->ino != q->ino)
		return p->ino < q->ino ? -1 : 1;
	if (p->off != q->off)
		return p->off < q->off ? -1 : 1;
	return strcmp(p->path, q->path);
}

void book_close(struct book *b, struct promises *ret)
{
	ret->p = b->p;
	for (u32 i = 0; i < b->n; i++) {
		if (b->p[i].until_seq > b->p[i].from_seq) {
			ret->p[ret->n++] = b->p[i];
			continue;
		}
		free(b->p[i].path);
		content_unref(b->store, b->p[i].content);
	}
	if (ret->n)
		qsort(ret->p, ret->n, sizeof(*ret->p), by_time);
	for (u32 i = 0; i < b->n_inodes; i++) {
		for (u32 j = 0; j < b->inodes[i].n_pending; j++)
			free(b->inodes[i].pending[j]);
		free(b->inodes[i].pending);
		free(b->inodes[i].live);
	}
	free(b->inodes);
	for (u32 i = 0; i < b->n_log; i++)
		free(b->log[i].name);
	free(b->log);
	*b = (struct book){ 0 };
}
