// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The crash model. One pass over the events, linear in their number.
 *
 *              issue                 completion             flush, FUA
 *   (nothing) ------> REQ_IN_FLIGHT ------------> REQ_DONE -----------> durable
 *                        |     |
 *                requeue |     | completion with an error
 *                        v     v
 *              REQ_REQUEUED   REQ_FAILED
 *
 * device: completed writes stand in a queue in order of completion. A flush
 * remembers at its issue how long the queue was, and when it completes makes
 * durable what stood there then. epoch: it makes durable every write issued
 * before it.
 */
#include "model.h"

#include <assert.h>

enum request_state { REQ_IN_FLIGHT, REQ_DONE, REQ_FAILED, REQ_REQUEUED };

struct request {
	u8 state;
	u32 done_at_issue;	/* length of the queue then */
	u64 done_bytes;		/* partial completions */
};

struct run {
	const struct model_opts *opts;
	const struct model_event *ev;
	struct model_fate *fate;
	struct request *req;
	u32 *done;		/* completed writes, in order of completion */
	u32 n_done;
	u32 n_flushed;		/* of done: durable by a flush */
	u32 n_epoch;		/* events below are in a flushed epoch */
	u64 n_stray;
};

bool model_is_write(u8 op)
{
	return op == BLK_WRITE || op == BLK_DISCARD ||
	       op == BLK_SECURE_ERASE || op == BLK_WRITE_ZEROES;
}

static bool is_write(const struct model_event *e)
{
	return e->kind == MODEL_ISSUE && model_is_write(e->op) && e->sectors;
}

static bool is_flush(const struct model_event *e)
{
	return e->op == BLK_FLUSH || (e->flags & BLK_PREFLUSH);
}

static void make_durable(struct run *r, u32 i, u64 seq)
{
	if (r->fate[i].durable_seq > seq)
		r->fate[i].durable_seq = seq;
}

static void flush_done(struct run *r, u32 flush, u64 seq)
{
	if (r->opts->drop_flushes)
		return;
	for (; r->n_flushed < r->req[flush].done_at_issue; r->n_flushed++)
		make_durable(r, r->done[r->n_flushed], seq);
	if (r->opts->model != MODEL_EPOCH)
		return;
	for (; r->n_epoch < flush; r->n_epoch++)
		if (is_write(&r->ev[r->n_epoch]))
			make_durable(r, r->n_epoch, seq);
}

static void request_done(struct run *r, u32 i, u64 seq)
{
	const struct model_event *e = &r->ev[i];

	r->req[i].state = REQ_DONE;
	r->fate[i].complete_seq = seq;
	if (is_flush(e))
		flush_done(r, i, seq);
	if (!is_write(e))
		return;
	r->done[r->n_done++] = i;
	if (r->opts->drop_flushes)
		return;
	if (!r->opts->write_cache || (e->flags & BLK_FUA))
		make_durable(r, i, seq);
}

/* The issue with this number, before event end; -1: none. */
static s64 find_issue(const struct run *r, u64 seq, u32 end)
{
	u32 lo = 0, hi = end;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (r->ev[mid].seq < seq)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == end || r->ev[lo].seq != seq || r->ev[lo].kind != MODEL_ISSUE)
		return -1;
	return lo;
}

static void on_complete(struct run *r, u32 i, const struct model_event *c)
{
	struct request *q = &r->req[i];

	if (c->error) {
		q->state = REQ_FAILED;
		r->fate[i].complete_seq = c->seq;
		r->fate[i].failed = true;
		return;
	}
	if (is_write(&r->ev[i]) && c->bytes) {
		q->done_bytes += c->bytes;
		if (q->done_bytes >> SECTOR_SHIFT < r->ev[i].sectors)
			return;
	}
	request_done(r, i, c->seq);
}

static void on_requeue(struct run *r, u32 i, u64 seq)
{
	struct request *q = &r->req[i];

	r->fate[i].requeued = true;
	r->fate[i].sectors = q->done_bytes >> SECTOR_SHIFT;
	if (r->fate[i].sectors)
		request_done(r, i, seq);
	else
		q->state = REQ_REQUEUED;
}

static void on_event(struct run *r, u32 n)
{
	const struct model_event *e = &r->ev[n];
	s64 i;

	assert(!n || r->ev[n - 1].seq < e->seq);
	if (e->kind == MODEL_ISSUE) {
		r->fate[n] = (struct model_fate){
			.complete_seq = SEQ_NEVER,
			.durable_seq = SEQ_NEVER,
			.sectors = e->sectors,
		};
		r->req[n].done_at_issue = r->n_done;
		return;
	}
	i = find_issue(r, e->issue_seq, n);
	if (i < 0 || r->req[i].state != REQ_IN_FLIGHT)
		r->n_stray++;
	else if (e->kind == MODEL_COMPLETE)
		on_complete(r, i, e);
	else
		on_requeue(r, i, e->seq);
}

void model_run(const struct model_opts *opts, const struct model_event *events,
	       u32 n, struct model_fate *ret_fates, u64 *ret_stray)
{
	struct run r = {
		.opts = opts,
		.ev = events,
		.fate = ret_fates,
		.req = xzalloc((size_t)n * sizeof(*r.req)),
		.done = xreallocarray(NULL, n, sizeof(*r.done)),
	};

	for (u32 i = 0; i < n; i++)
		on_event(&r, i);
	for (u32 i = 0; i < n; i++) {
		if (events[i].kind != MODEL_ISSUE)
			continue;
		/* epoch may have covered a write that failed afterwards */
		if (ret_fates[i].failed)
			ret_fates[i].durable_seq = SEQ_NEVER;
		if (opts->model == MODEL_PREFIX)
			ret_fates[i].durable_seq = events[i].seq;
	}
	*ret_stray = r.n_stray;
	free(r.done);
	free(r.req);
}
