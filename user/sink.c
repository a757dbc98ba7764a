// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Events, in order, into the recording; losses into GAPs.
 *
 * Invariants:
 *  1. Lost events with consecutive numbers on the same device make one GAP; it
 *     is written before the next event is.
 *  2. A loss within an event that is there itself makes a GAP with the event's
 *     own number, zero events, and the exact bytes.
 *  3. What a callback is told of is in the recording already.
 */
#include "sink.h"

#include <string.h>

#include "mark.h"

/* ---- writing ------------------------------------------------------------- */

static u8 lost_rec_type(u32 type)
{
	static const u8 types[] = {
		[EV_ISSUE] = REC_ISSUE,	      [EV_COMPLETE] = REC_COMPLETE,
		[EV_REQUEUE] = REC_REQUEUE,   [EV_FILE_OP] = REC_FILE_OP,
		[EV_MARK] = REC_MARK,	      [EV_PROC] = REC_PROC,
	};

	return type < ARRAY_SIZE(types) ? types[type] : 0;
}

static int put_gap(struct sink *s, u64 seq, u64 time_ns, u32 dev,
		   const struct rec_gap *g)
{
	s->sum.gaps++;
	s->sum.lost_events += g->events;
	if (g->reason == GAP_UNREADABLE)
		s->sum.unreadable_bytes += g->bytes;
	else
		s->sum.lost_bytes += g->bytes;
	if (!s->writer)
		return 0;
	return rec_put_gap(s->writer, seq, time_ns, dev, g);
}

int sink_flush_gap(struct sink *s)
{
	struct rec_gap g = {
		.reason = GAP_RING_FULL,
		.lost_type = lost_rec_type(s->gap.type),
		.events = s->gap_events,
		.bytes = s->gap.bytes,
		.last_seq = s->gap_last,
	};

	if (!s->gap_events)
		return 0;
	s->gap_events = 0;
	return put_gap(s, s->gap.seq, s->gap.time_ns, s->gap.dev, &g);
}

int sink_lost(struct sink *s, u64 seq, const struct parts *p)
{
	int err;

	if (s->gap_events && s->gap.dev == p->lost_dev &&
	    s->gap_last + 1 == seq) {
		if (s->gap.type != p->lost_type)
			s->gap.type = 0;
		s->gap.bytes += p->lost_bytes;
		s->gap_events++;
		s->gap_last = seq;
		return 0;
	}
	err = sink_flush_gap(s);
	s->gap = (struct ev_lost){
		.seq = seq,
		.time_ns = p->lost_time_ns,
		.dev = p->lost_dev,
		.type = p->lost_type,
		.bytes = p->lost_bytes,
	};
	s->gap_events = 1;
	s->gap_last = seq;
	return err;
}

static int put_loss(struct sink *s, const struct record *hdr,
		    const struct parts_loss *loss)
{
	const struct {
		u8 reason;
		u64 bytes;
	} all[] = {
		{ GAP_RING_FULL, loss->ring_full_bytes },
		{ GAP_UNREADABLE, loss->unreadable_bytes },
		{ GAP_TOO_LARGE, loss->too_large_bytes },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all) && !err; i++) {
		struct rec_gap g = {
			.reason = all[i].reason,
			.lost_type = hdr->type,
			.bytes = all[i].bytes,
			.last_seq = hdr->seq,
		};

		if (g.bytes || (!i && loss->paths))
			err = put_gap(s, hdr->seq, hdr->time_ns, hdr->dev, &g);
	}
	return err;
}

/* A record the format does not hold is a loss like any other. */
static int put_too_large(struct sink *s, const struct record *hdr, u64 bytes)
{
	struct rec_gap g = {
		.reason = GAP_TOO_LARGE,
		.lost_type = hdr->type,
		.events = 1,
		.bytes = bytes,
		.last_seq = hdr->seq,
	};

	s->sum.events--;
	return put_gap(s, hdr->seq, hdr->time_ns, hdr->dev, &g);
}

static int put_issue(struct sink *s, struct parts *p, const struct record *hdr)
{
	struct parts_loss loss;
	struct rec_issue i;
	int err = 0;

	parts_issue(p, s->kernel, &i, &loss);
	s->sum.raw_bytes += i.data_bytes;
	if (s->issue)
		s->issue(s->ctx, &i);
	if (s->writer)
		err = rec_put_issue(s->writer, hdr->seq, hdr->time_ns,
				    hdr->dev, &i);
	if (err == -EMSGSIZE)
		return put_too_large(s, hdr, i.data_bytes);
	return err ? err : put_loss(s, hdr, &loss);
}

static int put_file_op(struct sink *s, struct parts *p,
		       const struct record *hdr)
{
	struct parts_loss loss;
	struct rec_file_op op;
	int err = 0;

	parts_file_op(p, &op, &loss);
	s->sum.raw_bytes += op.data_bytes;
	if (s->writer)
		err = rec_put_file_op(s->writer, hdr->seq, hdr->time_ns,
				      hdr->dev, &op);
	err = err == -EMSGSIZE ? put_too_large(s, hdr, op.data_bytes) :
	      err	       ? err :
				 put_loss(s, hdr, &loss);
	/* A callback may drain, and the data goes away. */
	op.parts = NULL;
	op.n_parts = op.data_bytes = 0;
	if (!err && s->event)
		err = s->event(s->ctx, hdr, &op);
	if (!err && op.flags & FOP_STOPPED && s->stopped)
		err = s->stopped(s->ctx, hdr->seq, &op);
	rec_file_op_done(&op);
	return err;
}

static int put_mark(struct sink *s, const struct ev_mark *m,
		    const struct record *hdr)
{
	_cleanup_free_ char *put = strndup(m->text, sizeof(m->text));
	_cleanup_free_ char *text = mark_text(put ? put : "", s->name);

	return rec_put_mark(s->writer, hdr->seq, hdr->time_ns,
			    &(struct rec_mark){
				    .pid = m->h.tgid,
				    .text = text,
			    });
}

static int put_small(struct sink *s, const void *event,
		     const struct record *hdr)
{
	const struct ev_complete *c = event;
	const struct ev_requeue *q = event;
	const struct ev_proc *e = event;
	struct rec_writer *w = s->writer;
	struct rec_proc proc;

	if (!w)
		return 0;
	switch (hdr->type) {
	case REC_COMPLETE:
		return rec_put_complete(w, hdr->seq, hdr->time_ns, hdr->dev,
					&(struct rec_complete){
						.issue_seq = c->issue_seq,
						.error = c->error,
						.bytes = c->bytes_done,
					});
	case REC_REQUEUE:
		return rec_put_requeue(w, hdr->seq, hdr->time_ns, hdr->dev,
				       &(struct rec_requeue){
					       .issue_seq = q->issue_seq,
				       });
	case REC_MARK:
		return put_mark(s, event, hdr);
	case REC_PROC:
		proc = (struct rec_proc){
			.event = e->event,
			.pid = e->pid,
			.parent = e->parent,
			.status = e->status,
		};
		memcpy(proc.comm, e->h.comm, sizeof(proc.comm));
		return rec_put_proc(w, hdr->seq, hdr->time_ns, &proc);
	}
	return -EBADMSG;
}

int sink_event(struct sink *s, u64 seq, struct parts *p)
{
	const struct ev_hdr *h = (const void *)p->event.data;
	struct record hdr = {
		.type = lost_rec_type(h->type),
		.dev = h->dev,
		.seq = seq,
		.time_ns = h->time_ns,
	};
	int err = sink_flush_gap(s);

	if (err)
		return err;
	s->sum.events++;
	if (hdr.type == REC_FILE_OP)
		return put_file_op(s, p, &hdr);
	err = hdr.type == REC_ISSUE ? put_issue(s, p, &hdr) :
				      put_small(s, h, &hdr);
	if (!err && s->event)
		err = s->event(s->ctx, &hdr, NULL);
	return err;
}

int sink_missed(struct sink *s, u64 seq, u64 events)
{
	struct rec_gap g = { .reason = GAP_MISSED, .last_seq = seq };
	int err;

	if (events <= s->missed)
		return 0;
	g.events = events - s->missed;
	s->missed = events;
	err = sink_flush_gap(s);
	return err ? err : put_gap(s, seq, now_ns(), 0, &g);
}
