/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of exploring one recording, shared by explore.c, which visits and
 * judges, and outcome.c, which puts the outcome into words.
 */
#ifndef BLKBOX_EXPLORATION_H
#define BLKBOX_EXPLORATION_H

#include "findings.h"
#include "start.h"

enum stop_reason {
	STOP_NOT = 0,
	STOP_TIME,
	STOP_SIGNAL,
	STOP_SITES,
	STOP_WIDENED,	/* the time for widening is up; nothing is missing */
};

struct exploration {
	const char *recording;
	struct explore_opts o;	/* defaults filled in */
	struct trace *t;
	struct image_index *index;
	struct expected *own;	/* this recording's expected states */
	struct trace *other;	/* --expected */
	struct expected *others;
	const struct expected *e; /* what is compared with: own or others */
	struct promises *p;
	u64 data_seq;		/* before it e expects no data; 0 */
	u64 lost_seq;		/* from here on e says nothing; SEQ_NEVER */
	char *usual;		/* kernel's words at the start's mount */
	bool distance_judges;

	struct judge judge;	/* used in the workers */
	struct pool *pool;
	struct site_book book;
	struct verdict_table vt;

	u64 started_ns;
	u64 deadline_ns, widen_until_ns;	/* 0: none */
	u64 progress_ns;		/* next time to show it */
	u32 pass_k;
	u64 pass_sites;
	enum stop_reason stop;
	u64 judged, failed, bad_disks, excused;
	u64 checks, checks_not_run;

	bool covered_any;
	u32 covered_k, covered_max;

	bool explaining;	/* an explanation is awaited ... */
	bool explained;
	struct judgement explanation;	/* ... and came */
};

/* The verdict, the figures and the findings of a finished exploration. */
int exploration_outcome(struct exploration *x, struct explore_result *ret,
			struct errmsg *em);

#endif
