/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the drain puts events once they are in order. */
#ifndef BLKBOX_SINK_H
#define BLKBOX_SINK_H

#include "assemble.h"
#include "recorder.h"

struct sink {
	const struct kernel_info *kernel;
	struct rec_writer *writer;	/* NULL: records are only looked at */
	/* recorder_opts.stopped and .event; may be NULL. Operations come
	 * without their data. */
	int (*stopped)(void *ctx, u64 seq, const struct rec_file_op *op);
	int (*event)(void *ctx, const struct record *hdr,
		     const struct rec_file_op *op);
	/* Every request, before it is written; may be NULL. */
	void (*issue)(void *ctx, const struct rec_issue *i);
	void *ctx;

	const char *name;		/* of the recorder (mark.h), NULL: none */
	struct ev_lost gap;		/* run of lost events not yet written */
	u64 gap_last, gap_events;
	u64 missed;			/* told so far */
	struct recorder_summary sum;
};

/* The event of a number, whole. Fails with what a callback said, too. */
int sink_event(struct sink *s, u64 seq, struct parts *p);
/* The number's event is lost (p->lost_...). */
int sink_lost(struct sink *s, u64 seq, const struct parts *p);
/* Writes the run of lost events under way. */
int sink_flush_gap(struct sink *s);
/* Events in all that never got a number; seq is the last one written. */
int sink_missed(struct sink *s, u64 seq, u64 events);

#endif
