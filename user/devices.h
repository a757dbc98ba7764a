/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Disks and mounts of this machine, as sysfs and mountinfo have them. */
#ifndef BLKBOX_DEVICES_H
#define BLKBOX_DEVICES_H

#include "../replay/base.h"

struct device_info {
	u32 dev;		/* major << 20 | minor, of the whole disk */
	char name[32];		/* "sda" */
	u64 sectors;
	u32 logical_block_bytes;
	bool write_cache, fua;
};

struct mount_info {
	u32 dev;		/* s_dev */
	u32 block_dev;		/* of the whole disk below, 0: none */
	bool whole_disk;	/* not a partition of it */
	char *type;
	char *mount_point;
	char *source;
	char *options;
};

u32 kernel_dev(dev_t dev);	/* of stat() to the kernel's own */

/* path: a block device. A partition is refused: requests go to disks. */
int device_by_path(const char *path, struct device_info *ret,
		   struct errmsg *em);
int device_by_dev(u32 dev, struct device_info *ret, struct errmsg *em);

/* "ext4", "xfs", "btrfs" by what the device begins with, or "". */
void device_fs_type(const char *path, char ret[16]);

/* The mount that path lies on. */
int mount_of_path(const char *path, struct mount_info *ret, struct errmsg *em);
/* The first mount from the disk; -ENOENT when there is none. */
int mount_of_disk(u32 dev, struct mount_info *ret, struct errmsg *em);
void mount_info_done(struct mount_info *m);

/* Do writes to the file (or device) at path end up on disk, also through
 * partitions, loop devices and device mapper? */
bool file_lies_on(const char *path, u32 disk);

#endif
