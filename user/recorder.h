/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live recorder as a library: BPF programs attached, the ring drained in
 * order of sequence numbers into a recording. record and check are its users.
 */
#ifndef BLKBOX_RECORDER_H
#define BLKBOX_RECORDER_H

#include "../replay/recording.h"

struct recorder;

struct recorder_dev {
	u32 dev;		/* of the whole disk */
	char name[32];
};

struct recorder_fs {
	u32 dev;		/* s_dev, 0: not mounted yet (taken as the
				 * device's own number) */
	u32 block_dev;
	char type[16];
	char *mount_point;
	char *mount_options;
};

struct recorder_opts {
	const char *path;	/* the recording */
	bool overwrite;
	int level;		/* zstd, 0: default */
	u64 ring_bytes;		/* 0: default */
	u32 n_devs;
	const struct recorder_dev *devs;
	u32 n_fs;
	const struct recorder_fs *fs;
	u32 n_pids;		/* these and their descendants, from now on */
	const u32 *pids;
	u64 cgroup_id;		/* cgroup v2 id, 0: none */
	bool all_pids;		/* whoever works on the file systems */
	bool stacks;
	bool brief;		/* a short recording: hooks that are detached
				 * at once, and cost every process a little */
	u32 stop_ops;		/* bit (1 << enum file_op): stop the process at
				 * the exit of these when they succeeded; OPEN
				 * only where it created or truncated, CLOSE
				 * only the last one of a written file */
	const char *base;	/* "none", "embedded" or a file, for HEAD */
	const char *expected_states; /* "stop" or "trace", for HEAD */
	char *const *command;	/* for HEAD, may be NULL */
	/*
	 * An event with FOP_STOPPED arrived (in order, everything before it is
	 * in the recording): its process is stopped or about to be. Whoever is
	 * called sends SIGCONT when done. A negative errno ends the recording.
	 */
	int (*stopped)(void *ctx, u64 seq, const struct rec_file_op *op);
	/* Every event in order, may be NULL. Both get operations without the
	 * data of writes. */
	int (*event)(void *ctx, const struct record *hdr,
		     const struct rec_file_op *op);
	void *ctx;
};

struct recorder_summary {
	u64 events, lost_events, lost_bytes, unreadable_bytes;
	u64 gaps;
	u64 raw_bytes, file_bytes;	/* payload, size of the recording */
	u64 ring_bytes, ring_peak_bytes;
};

/* Names of tracepoints become numbers through tracefs: mounts it at its usual
 * place, as perf and systemd do, where nobody has. */
void recorder_mount_tracefs(void);
/* Loads, calibrates, proves, attaches, and creates the recording. */
int recorder_open(const struct recorder_opts *opts, struct recorder **ret,
		  struct errmsg *em);
/* For base images and expected states. */
struct rec_writer *recorder_writer(struct recorder *r);
/* Adds what was not known when it was opened. */
int recorder_add_pid(struct recorder *r, u32 pid);
/* Drains for up to timeout_ms; 0 or negative errno. A signal ends it early
 * with 0. */
int recorder_poll(struct recorder *r, int timeout_ms);
/* A mark with a number of its own, taken now, in this recording alone; text
 * begins with MARK_OWN. */
int recorder_mark(struct recorder *r, const char *text);
/* Drains everything that happened before the call. */
int recorder_fence(struct recorder *r);
/* Detaches, drains, writes END. r is freed, also on failure. */
int recorder_close(struct recorder *r, struct recorder_summary *ret,
		   struct errmsg *em);
/* "N events, nothing lost" or what was lost and which option avoids it. */
void recorder_print_summary(FILE *out, const struct recorder_summary *s);

#endif
