/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between intake.c and units.c, nobody else. */
#ifndef BLKBOX_INTAKE_PRIV_H
#define BLKBOX_INTAKE_PRIV_H

#include "arena.h"
#include "intake.h"
#include "model.h"

#define WRITE_NONE UINT32_MAX

struct intake {
	struct trace *t;
	u32 n_events, cap_events;
	struct model_event *events;
	u32 *write_of;		/* index into trace.writes, or WRITE_NONE */
	struct model_fate *fates; /* units_build()'s */
	u32 cap_writes, cap_ops, cap_marks;
	bool base_end;		/* the base in the recording is complete ... */
	u64 base_end_seq;	/* ... with what happened up to here in it */
	bool base_quiet;
};

/* Fills in trace.units, points, first_seq, last_seq, base_seq. */
int units_build(struct intake *a, const struct trace_opts *opts,
		struct errmsg *em);

#endif
