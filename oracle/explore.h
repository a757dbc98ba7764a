/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exploring a recording: every crash site within bounds is rebuilt, recovered
 * by the kernel and judged; the outcome is a verdict with findings.
 */
#ifndef BLKBOX_EXPLORE_H
#define BLKBOX_EXPLORE_H

#include <signal.h>

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
	char *point_words;	/* "just after unlink(data) had returned" */
	char **dropped_words;	/* per dropped unit: what it was */
	char *command;		/* rebuilds this very site, shell-quoted */
	u32 n_files_left;	/* files beyond those kept */
};

struct explore_opts {
	u32 k;			/* covered whole */
	u32 k_max;		/* then widened up to here while time lasts */
	u64 for_ns;		/* 0: no bound on time */
	u64 widen_ns;		/* widening stops when so much time has passed
				 * since the start, which makes nothing
				 * incomplete; 0: no such bound */
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
	const char *program;	/* what blkbox was called as, for the command
				 * that rebuilds a site; NULL: "blkbox" */
	u64 check_timeout_ns;	/* of the user checker; 0: 30 s */
	const volatile sig_atomic_t *stop; /* set by a signal handler: stop and
				 * report what was covered; may be NULL */
};

struct explore_result {
	enum verdict verdict;
	int exit_status;
	u32 covered_k;		/* every site with at most so many drops was
				 * judged; 0: only nothing dropped. K_ALL */
	u32 covered_max;	/* with K_ALL: the most writes that could be
				 * lost at once at any crash point */
	bool covered_any;	/* covered_k means something */
	u64 crash_points, sites, distinct, judged, failed_sites;
	double seconds;
	u32 n_expected;		/* states that were compared with */
	u32 n_unknown;		/* expected states left out: content unknown */
	bool checked;		/* a user checker ran */
	bool distance_judged;	/* a distance is a finding */
	u64 max_distance;	/* over all sites, finding or not */
	u64 lost_events, lost_bytes, unreadable_bytes;
	char *incomplete_why;	/* a sentence, NULL */
	char *limits;		/* what this machine made us do without, NULL */
	u32 n_findings;
	struct finding *findings; /* worst first */
	u32 n_findings_left;	/* more than were kept in detail */
	u64 n_inconsistent;	/* distinct disks with a finding */
};

int explore(const char *recording, const struct explore_opts *opts,
	    struct explore_result *ret, struct errmsg *em);
void explore_result_done(struct explore_result *r);

/* Says that what r rests on is incomplete: the exit status follows unless
 * something was found. */
void explore_incomplete(struct explore_result *r, const char *why);

/* Adds from's figures and findings to to (which owns them then). */
void explore_merge(struct explore_result *to, struct explore_result *from);

#endif
