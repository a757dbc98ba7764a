/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Workers: processes that each own an image in memory, a loop device over it
 * and a private mount namespace. A worker is given a disk, lets the kernel
 * mount and recover it, calls judge() on what came back, unmounts, and undoes
 * what recovery wrote.
 *
 * A worker that dies, or is silent for timeout_ns, costs the disk it had:
 * done() is called with its failure and another worker takes its place. When
 * the parent is gone, however it went, workers end by themselves and the kernel
 * takes their loop devices and mounts with them.
 */
#ifndef BLKBOX_POOL_H
#define BLKBOX_POOL_H

#include "image.h"

enum mount_outcome {
	MOUNT_OK = 0,
	MOUNT_FAILED = 1,	/* error says why */
	MOUNT_WORKER_DIED = 2,	/* error is the signal; negative: -errno;
				 * EBUSY: could not be unmounted */
	MOUNT_TIMED_OUT = 3,
};

struct job {
	u64 id;			/* the caller's */
	struct disk_state st;
};

struct pool_opts {
	u32 workers;		/* 0: a default from the number of processors */
	const char *fs_type;
	const char *mount_point; /* where to mount, seen by nobody else;
				  * created if missing inside the namespace;
				  * NULL or "/": one of the pool's own */
	const char *mount_options; /* added to the defaults, NULL: none */
	u64 timeout_ns;		/* per disk; 0: 30 s */
	bool verify_image;	/* for tests, slow: the image is compared with
				 * disk_sector() before each mount */
	/*
	 * Runs in the worker, with the recovered file system mounted. Appends
	 * its answer to ret. A negative errno fails the run. recovery_log
	 * holds what the kernel said at level warning or worse while it
	 * mounted, one line each, "" for nothing.
	 */
	int (*judge)(void *ctx, const struct job *j, int root_fd,
		     const char *root_path, const char *recovery_log,
		     struct buf *ret);
	/*
	 * Runs in the parent, and must not use the pool. answer is judge()'s;
	 * empty unless MOUNT_OK. log is recovery_log, and what the kernel said
	 * after it, until the disk was unmounted. A negative errno fails the
	 * run.
	 */
	int (*done)(void *ctx, u64 id, enum mount_outcome outcome, int error,
		    const char *log, const void *answer, size_t len);
	void *ctx;
};

struct pool;
int pool_new(const struct trace *t, const struct image_index *x,
	     const struct pool_opts *opts, struct pool **ret,
	     struct errmsg *em);
/* Blocks while every worker's queue is full; calls done() meanwhile. */
int pool_submit(struct pool *p, const struct job *j, struct errmsg *em);
/* Waits for all that was submitted. */
int pool_drain(struct pool *p, struct errmsg *em);
u32 pool_workers(const struct pool *p);
/* What must be done without on this machine, in sentences; "" for nothing. */
const char *pool_limits(const struct pool *p);
void pool_free(struct pool *p);	/* ends the workers, also busy ones */

/* Default mount options with which a crashed file system of this type can be
 * mounted beside its twins ("nouuid" on xfs). */
const char *pool_default_mount_options(const char *fs_type);

#endif
