/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exploring a recording: every crash site within bounds is rebuilt, recovered
 * by the kernel and judged; the outcome is a verdict with findings.
 */
#ifndef BLKBOX_EXPLORE_H
#define BLKBOX_EXPLORE_H

#include "../replay/enumerate.h"
#include "expected.h"

enum verdict { VERDICT_CONSISTENT, VERDICT_INCONSISTENT, VERDICT_INCOMPLETE };

enum finding_kind {
	FIND_DISTANCE,
	FIND_DURABILITY,
	FIND_UNMOUNTABLE,
	FIND_KERNEL_WARNING,
	FIND_CHECK,
};

enum file_fate {
	FATE_SAME,	/* as in the expected state */
	FATE_OLDER,	/* as in an earlier expected state */
	FATE_NEWER,	/* as in a later one */
	FATE_EMPTY,	/* there, with no bytes */
	FATE_TRUNCATED,	/* a proper prefix of an expected content */
	FATE_ZERO_FILLED, /* expected content with stretches of zeroes */
	FATE_MIXED,	/* blocks of several expected contents */
	FATE_GARBAGE,	/* bytes no expected content has */
	FATE_MISSING,
	FATE_EXTRA,	/* not in the expected state nor any other */
	FATE_UNREADABLE,
};

struct file_finding {
	char *path;
	enum file_fate fate;
	u32 state;		/* FATE_SAME, OLDER, NEWER: which */
	u64 bytes, expected_bytes;
	char *words;		/* a sentence a person understands at once */
};

struct finding {
	enum finding_kind kind;
	char *site;		/* stable name: "p<seq>" or "p<seq>-<drops>" */
	u64 crash_point;	/* sequence number */
	u32 n_dropped;
	u64 *dropped;		/* sequence numbers of the issues lost */
	u64 distance_bytes;
	u32 expected;		/* nearest expected state */
	char *expected_what;	/* "after close data.gz" */
	char *detail;		/* what the kernel or checker said, which
				 * promise was broken: a sentence */
	u32 n_files;
	struct file_finding *files;
	u64 count;		/* sites with this finding in all */
	char *run;		/* "plain", "sync", "commit"; NULL: explore */
	char *recording;	/* path, for the command to reproduce */
};

struct explore_opts {
	u32 k;			/* covered whole */
	u32 k_max;		/* then widened up to here while time lasts */
	u64 for_ns;		/* 0: no bound on time */
	u64 max_sites;
	u32 workers;
	struct trace_opts trace;
	const char *check;	/* user checker, run by sh -c in the recovered
				 * file system */
	u64 threshold;		/* distance at which a site is reported; 0: the
				 * default, 1, or 32 with other_expected */
	bool distance_judges;	/* also with check (default: a checker given
				 * knows better; the distance is reported but
				 * is no finding) */
	enum { STATES_AUTO, STATES_STOP, STATES_TRACE } states;
	const char *other_expected; /* recording of another run */
	const char *mount_options;
	u32 max_findings;	/* kept in detail; 0: 16 */
	bool progress;
	const char *run;	/* label for findings */
};

struct explore_result {
	enum verdict verdict;
	int exit_status;
	u32 covered_k;		/* every site with at most so many drops was
				 * judged; 0: only nothing dropped. K_ALL */
	bool covered_any;	/* covered_k means something */
	u64 crash_points, sites, distinct, judged, failed_sites;
	double seconds;
	u32 n_expected;
	u64 lost_events, lost_bytes, unreadable_bytes;
	char *incomplete_why;	/* a sentence, NULL */
	u32 n_findings;
	struct finding *findings; /* worst first */
	u64 n_inconsistent;	/* distinct disks with a finding */
};

int explore(const char *recording, const struct explore_opts *opts,
	    struct explore_result *ret, struct errmsg *em);
void explore_result_done(struct explore_result *r);

/* Adds from's figures and findings to to (which owns them then). */
void explore_merge(struct explore_result *to, struct explore_result *from);

#endif
