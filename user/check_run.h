/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One run of check: the program on its own copy of the scratch file system,
 * recorded from before it starts until everything it left dirty is on the
 * device.
 */
#ifndef BLKBOX_CHECK_RUN_H
#define BLKBOX_CHECK_RUN_H

#include <signal.h>

#include "recorder.h"
#include "scratch.h"
#include "stopper.h"

struct check_run_opts {
	const struct scratch *scratch;
	const struct cgroup *cgroup;
	enum amplify amplify;
	char *const *argv;
	bool quiet;		/* the program's output is not shown */
	const char *recording;
	bool overwrite;
	bool trace_states;	/* no stops: states are rebuilt offline */
	const volatile sig_atomic_t *interrupted; /* set by a handler */
	char *const *env;	/* added to the program's environment; NULL */
};

struct check_run_result {
	int wait_status;	/* of the program */
	bool image_equal;	/* the recording rebuilds the device */
	u64 leftover_threads;	/* ended, when the program had */
	struct recorder_summary summary;
	u64 stops, states;
};

int check_run(const struct check_run_opts *opts, struct check_run_result *ret,
	      struct errmsg *em);

const char *amplify_name(enum amplify a);	/* "plain", "sync", "commit" */

#endif
