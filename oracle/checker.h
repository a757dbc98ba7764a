/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The user's checker: a command that looks at a recovered file system and says
 * by its exit status whether what it finds there is whole.
 *
 * Invariants:
 *  1. When checker_run() returns, no process it started is left, whatever the
 *     command did (background jobs, setsid, double forks): all live in a
 *     process-id namespace whose first process is ours, and the kernel ends a
 *     namespace with its first process.
 *  2. Never longer than the time-out, and never more memory than the tail of
 *     the output that is kept.
 */
#ifndef BLKBOX_CHECKER_H
#define BLKBOX_CHECKER_H

#include "../replay/base.h"

#define CHECK_OUTPUT_BYTES 4096
#define CHECK_TIMEOUT_NS (30ULL * 1000000000)

/*
 * The command finds in its environment BLKBOX_ROOT, BLKBOX_CRASH_POINT,
 * BLKBOX_DROPPED (sequence numbers, commas between) and BLKBOX_MARKS (the
 * marks made before the crash, one a line).
 */
struct checker_opts {
	const char *command;	/* for sh -c */
	int root_fd;		/* its working directory */
	const char *root_path;
	u64 crash_point;
	const char *dropped;
	const char *marks;
	u64 timeout_ns;		/* 0: CHECK_TIMEOUT_NS */
};

enum check_outcome {
	CHECK_PASSED = 1,
	CHECK_FAILED,		/* status: exit status */
	CHECK_KILLED,		/* status: signal */
	CHECK_TIMED_OUT,
};

struct check_result {
	enum check_outcome outcome;
	int status;
	char *output;		/* stdout and stderr, the tail; heap */
};

/* Negative errno when the command could not be started at all. */
int checker_run(const struct checker_opts *o, struct check_result *ret);
void check_result_done(struct check_result *r);

#endif
