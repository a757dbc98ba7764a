/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file system as it was when the recording began: mounted once before
 * anything is judged. That it mounts proves the surroundings (privilege, loop
 * devices, mount options), its files are what operations are applied to, and
 * what the kernel says of it is not a crash's doing.
 */
#ifndef BLKBOX_START_H
#define BLKBOX_START_H

#include "../replay/pool.h"

struct start {
	bool has_tree;
	struct tree tree;	/* in the trace's store */
	char *log;		/* warnings at its mount, "" */
};

int start_read(const struct trace *t, const struct image_index *x,
	       const char *mount_options, bool want_tree, struct start *ret,
	       struct errmsg *em);
void start_done(const struct trace *t, struct start *s);

/* The transport between worker and parent: a tree with its content in a file
 * of its own. -EBADMSG when the bytes are not one. */
int tree_save(const struct tree *t, int fd);
int tree_restore(struct store *s, const void *data, size_t len,
		 struct tree *ret);

#endif
