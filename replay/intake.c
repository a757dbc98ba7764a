// SPDX-License-Identifier: GPL-2.0-or-later
/* Events in, checked one by one; units.c makes units and points of them. */
#include "intake_priv.h"

#include <string.h>

#define MAX_EVENTS (UINT32_MAX / 4)

struct intake *intake_new(u32 dev, u64 bytes, bool write_cache)
{
	struct intake *a = xzalloc(sizeof(*a));
	struct trace *t = xzalloc(sizeof(*t));

	t->dev = dev;
	t->bytes = bytes;
	t->write_cache = write_cache;
	t->first_gap_seq = SEQ_NEVER;
	t->base = base_image_new(bytes);
	t->arena = arena_new();
	a->t = t;
	return a;
}

void intake_free(struct intake *a)
{
	if (!a)
		return;
	trace_free(a->t);
	free(a->events);
	free(a->write_of);
	free(a->fates);
	free(a);
}

struct trace *intake_trace(struct intake *a)
{
	return a->t;
}

int intake_base(struct intake *a, const struct rec_base *b,
		  struct errmsg *em)
{
	void *data = arena_copy(a->t->arena, b->data, b->bytes);

	return base_image_add(a->t->base, b->offset_bytes, data, b->bytes, em);
}

void intake_base_end(struct intake *a)
{
	a->t->has_base = true;
	a->base_end = true;
	/* events before it: it may hold of them what it likes */
	a->base_end_seq = a->n_events ? a->t->end_seq : 0;
}

void intake_base_quiet(struct intake *a)
{
	a->t->has_base = true;
	a->base_quiet = true;
}

static int next_seq(struct intake *a, u64 seq, struct errmsg *em)
{
	if (seq <= a->t->end_seq || seq == SEQ_NEVER)
		return errmsg_set(em, EBADMSG,
				  "event %llu does not follow event %llu",
				  (unsigned long long)seq,
				  (unsigned long long)a->t->end_seq);
	a->t->end_seq = seq;
	return 0;
}

static int add_event(struct intake *a, const struct model_event *e, u32 write,
		     struct errmsg *em)
{
	u32 cap = a->cap_events;

	if (a->n_events >= MAX_EVENTS)
		return errmsg_set(em, EFBIG, "more block events than can be"
				  " held (%u)", MAX_EVENTS);
	GROW(a->write_of, a->n_events, cap);
	GROW(a->events, a->n_events, a->cap_events);
	a->write_of[a->n_events] = write;
	a->events[a->n_events++] = *e;
	return 0;
}

/* Bytes of the request whose content is not known. */
static u64 unreadable_bytes(const struct rec_issue *i)
{
	u64 all = (u64)i->sectors * SECTOR_SIZE, n = 0;

	if (i->op != BLK_WRITE)
		return 0;
	for (u32 p = 0; p < i->n_pages; p++)
		if (i->pages[p].flags & PAGE_UNREADABLE)
			n += i->pages[p].bytes;
	if (!i->data || (!n && (i->flags & BLK_PAYLOAD_MISSING)))
		return all;
	return n;
}

static int check_issue(const struct intake *a, u64 seq,
		       const struct rec_issue *i, struct errmsg *em)
{
	u64 device = a->t->bytes / SECTOR_SIZE, pages = 0;

	if (i->sector > device || i->sectors > device - i->sector)
		return errmsg_set(em, EBADMSG, "request %llu: %u sectors at"
				  " %llu end past the device's %llu",
				  (unsigned long long)seq, i->sectors,
				  (unsigned long long)i->sector,
				  (unsigned long long)device);
	if (i->op != BLK_WRITE)
		return 0;
	if (i->data && i->data_bytes != (u64)i->sectors * SECTOR_SIZE)
		return errmsg_set(em, EBADMSG, "request %llu: %u bytes of data"
				  " for %u sectors", (unsigned long long)seq,
				  i->data_bytes, i->sectors);
	for (u32 p = 0; p < i->n_pages; p++)
		pages += i->pages[p].bytes;
	if (pages > (u64)i->sectors * SECTOR_SIZE)
		return errmsg_set(em, EBADMSG, "request %llu: pages of %llu"
				  " bytes for %u sectors",
				  (unsigned long long)seq,
				  (unsigned long long)pages, i->sectors);
	return 0;
}

/* Adds to trace.writes, which takes over the pages; returns its index. */
static u32 add_write(struct intake *a, u64 seq, u64 time_ns,
		     struct rec_issue *issue)
{
	struct trace *t = a->t;
	struct trace_write *w;

	GROW(t->writes, t->n_writes, a->cap_writes);
	w = &t->writes[t->n_writes];
	*w = (struct trace_write){
		.time_ns = time_ns,
		.issue = *issue,
		.issue_seq = seq,
	};
	if (issue->op == BLK_WRITE && issue->data) {
		w->issue.data = arena_copy(t->arena, issue->data,
					   issue->data_bytes);
	} else {
		w->issue.data = NULL;
		w->issue.data_bytes = 0;
	}
	w->unreadable_bytes = unreadable_bytes(&w->issue);
	t->unreadable_bytes += w->unreadable_bytes;
	return t->n_writes++;
}

/* What such a request did to the disk nobody knows: as good as lost. */
static void count_other(struct trace *t, u64 seq)
{
	t->n_other++;
	t->lost_events++;
	t->first_gap_seq = MIN(t->first_gap_seq, seq);
}

int intake_issue(struct intake *a, u64 seq, u64 time_ns,
		   struct rec_issue *issue, struct errmsg *em)
{
	struct model_event e = {
		.seq = seq,
		.kind = MODEL_ISSUE,
		.op = issue->op,
		.flags = issue->flags,
		.sectors = issue->sectors,
	};
	u32 write = WRITE_NONE;
	int err;

	err = next_seq(a, seq, em);
	if (!err && model_is_write(issue->op) && issue->sectors) {
		err = check_issue(a, seq, issue, em);
		if (!err)
			write = add_write(a, seq, time_ns, issue);
	} else if (!err && issue->op == BLK_OTHER) {
		count_other(a->t, seq);
	}
	if (write == WRITE_NONE)
		rec_issue_done(issue);
	*issue = (struct rec_issue){ 0 };
	return err ? err : add_event(a, &e, write, em);
}

int intake_complete(struct intake *a, u64 seq,
		      const struct rec_complete *c, struct errmsg *em)
{
	const struct model_event e = {
		.seq = seq,
		.kind = MODEL_COMPLETE,
		.issue_seq = c->issue_seq,
		.error = c->error,
		.bytes = c->bytes,
	};
	int err = next_seq(a, seq, em);

	return err ? err : add_event(a, &e, WRITE_NONE, em);
}

int intake_requeue(struct intake *a, u64 seq, const struct rec_requeue *q,
		     struct errmsg *em)
{
	const struct model_event e = {
		.seq = seq,
		.kind = MODEL_REQUEUE,
		.issue_seq = q->issue_seq,
	};
	int err = next_seq(a, seq, em);

	return err ? err : add_event(a, &e, WRITE_NONE, em);
}

/* Does the operation belong to the file system recorded, or may it? */
static bool op_is_ours(const struct trace *t, u32 dev,
		       const struct rec_file_op *op)
{
	if (op->op == OP_SYNC)
		return true;
	if (!dev && (op->path || op->path2 || op->file_path))
		return true;
	return t->fs_dev && (dev == t->fs_dev || op->dir_dev == t->fs_dev ||
			     op->dir2_dev == t->fs_dev);
}

int intake_file_op(struct intake *a, u64 seq, u64 time_ns, u32 dev,
		     struct rec_file_op *op, struct errmsg *em)
{
	struct trace *t = a->t;
	struct rec_file_op mine = *op;
	int err = next_seq(a, seq, em);

	*op = (struct rec_file_op){ 0 };
	if (err || !op_is_ours(t, dev, &mine)) {
		rec_file_op_done(&mine);
		return err;
	}
	if (mine.data)
		mine.data = arena_copy(t->arena, mine.data, mine.data_bytes);
	GROW(t->ops, t->n_ops, a->cap_ops);
	t->ops[t->n_ops++] = (struct trace_op){
		.seq = seq,
		.time_ns = time_ns,
		.dev = dev,
		.op = mine,
	};
	return 0;
}

int intake_mark(struct intake *a, u64 seq, const struct rec_mark *m,
		  struct errmsg *em)
{
	struct trace *t = a->t;
	int err = next_seq(a, seq, em);

	if (err)
		return err;
	GROW(t->marks, t->n_marks, a->cap_marks);
	t->marks[t->n_marks++] = (struct trace_mark){
		.seq = seq,
		.pid = m->pid,
		.text = xstrdup(m->text),
	};
	return 0;
}

bool op_promises_durability(const struct rec_file_op *op)
{
	if (op->ret < 0)
		return false;
	switch (op->op) {
	case OP_FSYNC:
	case OP_FDATASYNC:
	case OP_SYNC:
	case OP_SYNCFS:
	case OP_MSYNC:
		return true;
	case OP_CLOSE:
		return false;
	default:
		return op->flags & (FOP_SYNC_WRITE | FOP_DSYNC_WRITE);
	}
}
