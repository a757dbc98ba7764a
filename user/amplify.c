// SPDX-License-Identifier: GPL-2.0-or-later
#include "amplify.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

int amplifier_new(const char *fs_type, const char *mount_point,
		  struct amplifier *ret, struct errmsg *em)
{
	struct amplifier a = { .unrelated_fd = -1 };

	a.btrfs = !strcmp(fs_type, "btrfs");
	a.root_fd = open(mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a.root_fd < 0)
		return errmsg_set(em, errno, "opening %s", mount_point);
	if (!a.btrfs)
		a.unrelated_fd = openat(a.root_fd, ".",
					O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (!a.btrfs && a.unrelated_fd < 0) {
		int err = errmsg_set(em, errno, "making an unnamed file in %s",
				     mount_point);

		close(a.root_fd);
		return err;
	}
	*ret = a;
	return 0;
}

void amplifier_done(struct amplifier *a)
{
	closep(&a->root_fd);
	closep(&a->unrelated_fd);
	a->root_fd = a->unrelated_fd = -1;
}

static int commit_btrfs(struct amplifier *a, struct errmsg *em)
{
	u64 transid = 0;

	if (ioctl(a->root_fd, BTRFS_IOC_START_SYNC, &transid) < 0 ||
	    ioctl(a->root_fd, BTRFS_IOC_WAIT_SYNC, &transid) < 0)
		return errmsg_set(em, errno, "committing the transaction");
	return 0;
}

int amplify_commit(struct amplifier *a, struct errmsg *em)
{
	/* A change of times puts the inode into the transaction under way;
	 * fsync then has something to commit. */
	static const struct timespec now[2] = { { .tv_nsec = UTIME_NOW },
						{ .tv_nsec = UTIME_NOW } };

	if (a->btrfs)
		return commit_btrfs(a, em);
	if (futimens(a->unrelated_fd, now) < 0 || fsync(a->unrelated_fd) < 0)
		return errmsg_set(em, errno, "committing the journal");
	return 0;
}

int amplify_sync(struct amplifier *a, struct errmsg *em)
{
	if (syncfs(a->root_fd) < 0)
		return errmsg_set(em, errno, "syncing the file system");
	return 0;
}

int amplify_writeback(struct amplifier *a, const struct tree *tree,
		      struct errmsg *em)
{
	const unsigned int all = SYNC_FILE_RANGE_WAIT_BEFORE |
				 SYNC_FILE_RANGE_WRITE |
				 SYNC_FILE_RANGE_WAIT_AFTER;

	for (u32 i = 0; i < tree->n; i++) {
		const struct node *n = &tree->nodes[i];
		_cleanup_close_ int fd = -1;

		if (n->type != NODE_FILE)
			continue;
		fd = openat(a->root_fd, n->path,
			    O_RDONLY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
		if (fd < 0 || sync_file_range(fd, 0, 0, all) < 0)
			return errmsg_set(em, errno, "writing back %s",
					  n->path);
	}
	return 0;
}
