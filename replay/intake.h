/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A trace from its events: what trace_load() does with a recording's records,
 * and tests with events of their own.
 *
 * Events are given in the order of their sequence numbers. What is given is
 * checked here, whoever gives it: a request lies within the device, its data
 * is as long as it says. After an error only intake_free() is allowed.
 */
#ifndef BLKBOX_INTAKE_H
#define BLKBOX_INTAKE_H

#include "base_image.h"
#include "trace.h"

struct intake;
/* bytes: the device's size, whole sectors. */
struct intake *intake_new(u32 dev, u64 bytes, bool write_cache);
void intake_free(struct intake *a);	/* NULL is fine */

/* The trace under construction: for its names, states and counts. */
struct trace *intake_trace(struct intake *a);
/* The base, as far as known when data was copied; see base_image.h. */
int intake_base(struct intake *a, const struct rec_base *b,
		  struct errmsg *em);
/* The base is complete; quiet: it is the disk of before the first event.
 * Without it crash points begin at the first flush completed from here on. */
void intake_base_end(struct intake *a);
void intake_base_quiet(struct intake *a);

/* issue's and op's heap parts become the trace's, also on failure; their data
 * is copied. */
int intake_issue(struct intake *a, u64 seq, u64 time_ns,
		   struct rec_issue *issue, struct errmsg *em);
int intake_complete(struct intake *a, u64 seq,
		      const struct rec_complete *c, struct errmsg *em);
int intake_requeue(struct intake *a, u64 seq, const struct rec_requeue *q,
		     struct errmsg *em);
int intake_file_op(struct intake *a, u64 seq, u64 time_ns, u32 dev,
		     struct rec_file_op *op, struct errmsg *em);
int intake_mark(struct intake *a, u64 seq, const struct rec_mark *m,
		  struct errmsg *em);

/* Units and crash points. *a is freed on success. */
int intake_finish(struct intake *a, const struct trace_opts *opts,
		    struct trace **ret, struct errmsg *em);

/* Did the operation promise, when it returned, that something is durable? */
bool op_promises_durability(const struct rec_file_op *op);

#endif
