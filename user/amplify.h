/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bringing out what the file system hides by luck: letting it persist one
 * thing and not yet another, in orders it really uses. All of it is benign to
 * the program, which is stopped or gone meanwhile.
 */
#ifndef BLKBOX_AMPLIFY_H
#define BLKBOX_AMPLIFY_H

#include "../replay/base.h"
#include "../replay/tree.h"

struct amplifier {
	int root_fd;		/* the file system's root directory */
	int unrelated_fd;	/* ext4, xfs: an O_TMPFILE file; -1 */
	bool btrfs;
};

int amplifier_new(const char *fs_type, const char *mount_point,
		  struct amplifier *ret, struct errmsg *em);
void amplifier_done(struct amplifier *a);

/*
 * Commits the journal or transaction, with every change of names and sizes so
 * far, but without other files' delayed data. On ext4 and xfs an fsync of an
 * unrelated file does that; btrfs logs one inode at fsync, so there it takes
 * START_SYNC and WAIT_SYNC (facts of kernels 6.1 and 6.18).
 */
int amplify_commit(struct amplifier *a, struct errmsg *em);
/* C3's: everything dirty in the file system, data included. */
int amplify_sync(struct amplifier *a, struct errmsg *em);
/*
 * What the flusher threads do in time: the data of every file in the tree
 * goes out, and the journal is not committed for it.
 */
int amplify_writeback(struct amplifier *a, const struct tree *tree,
		      struct errmsg *em);

#endif
