/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scratch file system of check: made in memory, filled with the inputs,
 * then copied for each run, so that every run starts from the same disk.
 *
 * All of it lives in a mount namespace of our own, under one directory that is
 * a tmpfs there and empty for everybody else.
 */
#ifndef BLKBOX_SCRATCH_H
#define BLKBOX_SCRATCH_H

#include "../replay/base.h"
#include "../replay/loop.h"
#include "janitor.h"

struct scratch_opts {
	const char *fs_type;		/* "ext4", "xfs", "btrfs" */
	u64 bytes;			/* 0: enough for the inputs */
	const char *mkfs_options;	/* words, may be NULL */
	const char *mount_options;	/* may be NULL */
	u32 n_inputs;
	char *const *inputs;		/* paths, copied with cp -a */
	const char *input_dir;		/* its content is copied; NULL */
	const char *setup;		/* run by sh -c in the file system; NULL */
};

struct scratch {
	char *dir;		/* our directory: a tmpfs, for us */
	char *mount_point;	/* dir/fs, the same in every run */
	const char *fs_type;
	const char *mount_options;
	u64 bytes;
	int image_fd;		/* the file system as built, never mounted
				 * again */
};

/* One run's copy. */
struct scratch_run {
	int image_fd;
	struct loop loop;
	bool mounted;
	u32 fs_dev;		/* s_dev of the mounted file system */
};

/* Where directories of ours go: $TMPDIR or /tmp, without symlinks; heap. */
char *scratch_tmp_dir(void);

/* Enters a mount namespace of our own and makes the directory. Ours, for good:
 * call once, in a process that ends with the check. */
int scratch_enter(struct janitor *j, struct scratch *ret, struct errmsg *em);
int scratch_build(struct scratch *s, const struct scratch_opts *opts,
		  struct errmsg *em);
void scratch_done(struct scratch *s);

int scratch_run_start(const struct scratch *s, struct scratch_run *ret,
		      struct errmsg *em);
int scratch_run_unmount(const struct scratch *s, struct scratch_run *r,
			struct errmsg *em);
void scratch_run_done(const struct scratch *s, struct scratch_run *r);

/* 1 when both images hold the same bytes, 0 when not, or a negative errno. */
int scratch_images_equal(int a, int b, u64 bytes);

#endif
