// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Units and crash points from checked events.
 *
 * A crash point stands after the first event within bounds, after each event
 * that changes what the disk may hold (a unit is issued) or must hold (a unit
 * becomes durable), after each file operation that promised durability, and
 * after each mark. A crash after any other event leaves the same disks as one
 * after the event before it.
 */
#include "intake_priv.h"

#include <string.h>

#define MAX_UNITS (UINT32_MAX / 4)

static bool discard_is_kept(const struct trace *t, u8 op)
{
	return t->discard == DISCARD_KEEP &&
	       (op == BLK_DISCARD || op == BLK_SECURE_ERASE);
}

/* The size of the parts a request is cut into, in sectors. */
static u64 part_sectors(const struct trace_opts *opts,
			const struct rec_issue *i, u32 sectors)
{
	u64 part = opts->torn_bytes / SECTOR_SIZE;

	if (!part)
		return UINT64_MAX;
	if (i->op != BLK_WRITE)
		while (sectors / part >= TORN_MAX_PARTS - 1)
			part *= 2;
	return part;
}

static int add_units(struct trace *t, const struct trace_opts *opts, u32 write,
		     const struct model_fate *f, u32 *cap, struct errmsg *em)
{
	const struct trace_write *w = &t->writes[write];
	u64 part = part_sectors(opts, &w->issue, f->sectors);
	u64 pos = w->issue.sector, end = pos + f->sectors;

	while (pos < end) {
		u64 left = part == UINT64_MAX ? end - pos : part - pos % part;
		u64 skip = (pos - w->issue.sector) * SECTOR_SIZE;
		const u8 *data = w->issue.data;

		left = MIN(left, end - pos);
		if (t->n_units >= MAX_UNITS)
			return errmsg_set(em, EFBIG, "more writes than can be"
					  " held (%u); a larger --torn makes"
					  " fewer", MAX_UNITS);
		GROW(t->units, t->n_units, *cap);
		t->units[t->n_units++] = (struct unit){
			.issue_seq = w->issue_seq,
			.complete_seq = f->complete_seq,
			.durable_seq = f->durable_seq,
			.sector = pos,
			.sectors = left,
			.op = w->issue.op,
			.flags = w->issue.flags,
			.write = write,
			.data = data ? data + skip : NULL,
		};
		pos += left;
	}
	return 0;
}

static const struct trace_mark *find_mark(const struct trace *t,
					  const char *text, u64 after)
{
	for (u32 i = 0; i < t->n_marks; i++)
		if (t->marks[i].seq > after && !strcmp(t->marks[i].text, text))
			return &t->marks[i];
	return NULL;
}

/* The first flush that completed after event seq. */
static u64 first_flush_after(const struct intake *a, u64 seq)
{
	u64 first = SEQ_NEVER;

	for (u32 i = 0; i < a->n_events; i++) {
		const struct model_event *e = &a->events[i];
		const struct model_fate *f = &a->fates[i];

		if (e->kind != MODEL_ISSUE || f->failed || f->requeued ||
		    (e->op != BLK_FLUSH && !(e->flags & BLK_PREFLUSH)))
			continue;
		if (f->complete_seq > seq)
			first = MIN(first, f->complete_seq);
	}
	return first;
}

/*
 * From where on crash points can be trusted. A base copied from a disk in use
 * leaves what was pending before it without known older content, until the
 * first flush has completed. MARK_BEGIN after the base is the word of whoever
 * made the recording that nothing was pending.
 */
static void find_bounds(struct intake *a)
{
	struct trace *t = a->t;
	const struct trace_mark *begin = find_mark(t, MARK_BEGIN, 0);
	const struct trace_mark *end;
	bool quiet = a->base_quiet || (a->base_end && begin &&
				       begin->seq > a->base_end_seq);

	end = find_mark(t, MARK_END, begin ? begin->seq : 0);
	t->last_seq = end ? end->seq : t->end_seq;
	t->first_seq = begin ? begin->seq : 0;
	t->base_seq = SEQ_NEVER;
	if (t->has_base)
		t->base_seq = a->base_quiet ? 0 : a->base_end_seq;
	if (quiet)
		return;
	if (t->has_base && !t->write_cache)
		t->first_seq = MAX(t->first_seq, a->base_end_seq);
	else
		t->first_seq = MAX(t->first_seq,
				   first_flush_after(a, a->base_end_seq));
}

static int by_seq(const void *a, const void *b)
{
	const struct crash_point *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void add_point(struct trace *t, u32 *cap, u64 seq, u16 why)
{
	const struct crash_point *prev;

	if (seq == SEQ_NEVER || seq < t->first_seq || seq > t->last_seq)
		return;
	prev = t->n_points ? &t->points[t->n_points - 1] : NULL;
	if (prev && prev->seq == seq)
		return;
	GROW(t->points, t->n_points, *cap);
	t->points[t->n_points++] = (struct crash_point){
		.seq = seq,
		.why = why,
	};
}

/* What is on the disk at the start of the bounds is a state of its own. */
static void add_first_point(const struct intake *a, u32 *cap)
{
	static const u16 why[] = { [MODEL_ISSUE] = REC_ISSUE,
				   [MODEL_COMPLETE] = REC_COMPLETE,
				   [MODEL_REQUEUE] = REC_REQUEUE };
	struct trace *t = a->t;
	u64 seq = SEQ_NEVER;
	u16 type = 0;
	u32 i;

	for (i = 0; i < a->n_events && a->events[i].seq < t->first_seq; i++)
		;
	if (i < a->n_events) {
		seq = a->events[i].seq;
		type = why[a->events[i].kind];
	}
	for (i = 0; i < t->n_ops && t->ops[i].seq < t->first_seq; i++)
		;
	if (i < t->n_ops && t->ops[i].seq < seq) {
		seq = t->ops[i].seq;
		type = REC_FILE_OP;
	}
	/* marks are points anyway */
	add_point(t, cap, seq, type);
}

static void build_points(const struct intake *a)
{
	struct trace *t = a->t;
	u32 cap = 0, kept = 0, units = 0;

	add_first_point(a, &cap);
	/* issues first: under prefix they are what makes durable, too */
	for (u32 i = 0; i < t->n_units; i++)
		add_point(t, &cap, t->units[i].issue_seq, REC_ISSUE);
	for (u32 i = 0; i < t->n_units; i++)
		if (t->units[i].durable_seq != t->units[i].issue_seq)
			add_point(t, &cap, t->units[i].durable_seq,
				  REC_COMPLETE);
	for (u32 i = 0; i < t->n_ops; i++)
		if (op_promises_durability(&t->ops[i].op))
			add_point(t, &cap, t->ops[i].seq, REC_FILE_OP);
	for (u32 i = 0; i < t->n_marks; i++)
		add_point(t, &cap, t->marks[i].seq, REC_MARK);
	if (t->n_points)
		qsort(t->points, t->n_points, sizeof(*t->points), by_seq);
	for (u32 i = 0; i < t->n_points; i++) {
		if (kept && t->points[kept - 1].seq == t->points[i].seq)
			continue;
		while (units < t->n_units &&
		       t->units[units].issue_seq <= t->points[i].seq)
			units++;
		t->points[kept] = t->points[i];
		t->points[kept++].n_units = units;
	}
	t->n_points = kept;
}

int units_build(struct intake *a, const struct trace_opts *opts,
		struct errmsg *em)
{
	struct trace *t = a->t;
	const struct model_opts mo = {
		.model = opts->model,
		.write_cache = t->write_cache,
		.drop_flushes = opts->drop_flushes,
	};
	u32 cap = 0;
	int err;

	if (opts->torn_bytes % SECTOR_SIZE)
		return errmsg_set(em, 0, "a write cannot be torn at %u bytes:"
				  " a sector has %u", opts->torn_bytes,
				  SECTOR_SIZE);
	t->model = opts->model;
	t->discard = opts->discard;
	a->fates = xzalloc((size_t)a->n_events * sizeof(*a->fates));
	model_run(&mo, a->events, a->n_events, a->fates, &t->n_stray);
	for (u32 i = 0; i < a->n_events; i++) {
		u32 w = a->write_of[i];

		if (w == WRITE_NONE ||
		    discard_is_kept(t, t->writes[w].issue.op))
			continue;
		err = add_units(t, opts, w, &a->fates[i], &cap, em);
		if (err)
			return err;
	}
	find_bounds(a);
	build_points(a);
	return 0;
}
