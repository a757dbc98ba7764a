/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers of the recording (replay/recording.h: enum file_op, enum fop_flag)
 * under names of their own, because BPF programs cannot include it.
 *
 * Invariant: equal to their namesakes there; user/attach_syscalls.c asserts
 * each one.
 */
#ifndef BLKBOX_FILEOPS_ABI_H
#define BLKBOX_FILEOPS_ABI_H

enum {
	BOP_OPEN = 1,
	BOP_WRITE,
	BOP_TRUNCATE,
	BOP_FALLOCATE,
	BOP_RENAME,
	BOP_LINK,
	BOP_UNLINK,
	BOP_SYMLINK,
	BOP_MKDIR,
	BOP_RMDIR,
	BOP_MKNOD,
	BOP_CLOSE,
	BOP_FSYNC,
	BOP_FDATASYNC,
	BOP_SYNC,
	BOP_SYNCFS,
	BOP_SYNC_FILE_RANGE,
	BOP_MSYNC,
	BOP_MMAP_SHARED,
	BOP_COPY,
	BOP_IO_URING,
};

enum {
	BFOP_LAST_CLOSE = 1 << 0,
	BFOP_WRITTEN = 1 << 1,
	BFOP_CREATED = 1 << 2,
	BFOP_STOPPED = 1 << 3,
	BFOP_DATA_UNREADABLE = 1 << 4,
	BFOP_DATA_UNKNOWN = 1 << 5,
	BFOP_PATH_UNREADABLE = 1 << 6,
	BFOP_PATH2_UNREADABLE = 1 << 7,
	BFOP_DIR_TRUNCATED = 1 << 8,
	BFOP_AT_EXIT = 1 << 9,
	BFOP_IO_URING = 1 << 10,
	BFOP_SYNC_WRITE = 1 << 11,
	BFOP_DSYNC_WRITE = 1 << 12,
	BFOP_DIR_ABSOLUTE = 1 << 13,
	BFOP_DIR2_ABSOLUTE = 1 << 14,
};

#define BFD_NONE (-2147483647 - 1)
#define BSYSCALL_NONE 0xffffffffU

/* What an open of this name means is in user/cmd_mark.c. */
#define MARK_PREFIX "/blkbox:mark/"
#define MARK_PREFIX_LEN (sizeof(MARK_PREFIX) - 1)
#define MARK_COMM "blkbox-mark"

#endif
