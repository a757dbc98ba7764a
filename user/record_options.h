/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What 'blkbox record' was asked for; shared by the files of the verb only. */
#ifndef BLKBOX_RECORD_OPTIONS_H
#define BLKBOX_RECORD_OPTIONS_H

#include "recorder.h"

struct record_options {
	const char *output;
	const char *base;	/* "none", "full" or a file */
	const char *json;
	u64 for_ns;		/* 0: until told to stop */
	bool verbose;
	char **command;		/* NULL: none */

	u32 n_devices, cap_devices;
	char **devices;		/* as given */
	u32 n_mounts, cap_mounts;
	char **mounts;
	u32 n_pids, cap_pids;
	u32 *pids;
	const char *cgroup;

	/* what it comes to */
	struct recorder_opts opts;
	u32 n_devs, cap_devs;
	struct recorder_dev *devs;
	u32 n_fs, cap_fs;
	struct recorder_fs *fs;
};

/* Reads the command line. -1: go on; else the exit status. */
int record_parse_options(struct record_options *o, int argc, char **argv);
/* Finds the devices and file systems asked for, and fills in opts. */
int record_find_scope(struct record_options *o, struct errmsg *em);
void record_options_done(struct record_options *o);

#endif
