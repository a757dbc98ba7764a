/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What one check is made of; shared by the files of the verb only. */
#ifndef BLKBOX_CHECK_H
#define BLKBOX_CHECK_H

#include "../oracle/explore.h"
#include "check_run.h"

#define N_RUNS 3

struct check {
	struct scratch_opts scratch_opts;
	const char *case_dir;
	const char *checker;
	const char *output;	/* -o, or NULL */
	const char *json, *junit;
	bool run_amplified[N_RUNS];	/* by enum amplify */
	bool trace_states, distance_judges, force, verbose, allow_failure;
	u32 k, workers;
	u64 for_ns, threshold;
	char **argv;		/* the program */
	char *title;

	struct janitor janitor;
	struct scratch scratch;
	struct cgroup cgroup;
	char *dir;		/* for recordings and reports; NULL with -o */
	char *recordings[N_RUNS];
	char *env[2];
	struct explore_result result;
};

/* Reads the command line into c. -1: go on; else the exit status. */
int check_parse_options(struct check *c, int argc, char **argv);

/* Takes the program, setup, checker and inputs from c->case_dir. */
int check_read_case(struct check *c, struct errmsg *em);

#endif
