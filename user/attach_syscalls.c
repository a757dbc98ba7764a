// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The attach table's rows for file operations: each system call that changes
 * a file system or promises that it is changed, the program at its entry and
 * the one at its exit (bpf/fileops_*.bpf.c).
 */
#include "attach.h"

#include "../bpf/fileops_abi.h"
#include "../replay/recording.h"

#define SYSCALL(call, kind)                                                    \
	{                                                                      \
		#call, true,                                                   \
		{                                                              \
			{ ATTACH_TRACEPOINT,                                   \
			  { "enter_" #call, "exit_" #kind },                   \
			  { "syscalls:sys_enter_" #call,                       \
			    "syscalls:sys_exit_" #call } },                    \
		}                                                              \
	}

const struct attach_event attach_file_events[] = {
	SYSCALL(open, open),
	SYSCALL(openat, open),
	SYSCALL(openat2, open),
	SYSCALL(creat, open),
	SYSCALL(write, write),
	SYSCALL(pwrite64, write),
	SYSCALL(writev, write),
	SYSCALL(pwritev, write),
	SYSCALL(pwritev2, write),
	SYSCALL(truncate, path),
	SYSCALL(ftruncate, fd),
	SYSCALL(fallocate, fd),
	SYSCALL(rename, path),
	SYSCALL(renameat, path),
	SYSCALL(renameat2, path),
	SYSCALL(link, path),
	SYSCALL(linkat, path),
	SYSCALL(unlink, path),
	SYSCALL(unlinkat, path),
	SYSCALL(symlink, path),
	SYSCALL(symlinkat, path),
	SYSCALL(mkdir, path),
	SYSCALL(mkdirat, path),
	SYSCALL(rmdir, path),
	SYSCALL(mknod, path),
	SYSCALL(mknodat, path),
	SYSCALL(close, close),
	SYSCALL(dup2, close),
	SYSCALL(dup3, close),
	SYSCALL(close_range, close_many),
	SYSCALL(execve, close_many),
	SYSCALL(execveat, close_many),
	SYSCALL(fsync, fd),
	SYSCALL(fdatasync, fd),
	SYSCALL(sync, fd),
	SYSCALL(syncfs, fd),
	SYSCALL(sync_file_range, fd),
	SYSCALL(mmap, mmap),
	SYSCALL(msync, msync),
	SYSCALL(sendfile64, copy),
	SYSCALL(splice, copy),
	SYSCALL(copy_file_range, copy),
	SYSCALL(ioctl, clone),
	{ "file_exit", true,
	  { { ATTACH_TP_BTF, { "file_exit_btf" }, { NULL } },
	    { ATTACH_RAW_TP, { "file_exit_raw" }, { NULL } } } },
	{ "io_uring_submit", false,
	  { { ATTACH_RAW_TP, { "uring_submit" }, { "io_uring_submit_req" } },
	    { ATTACH_RAW_TP, { "uring_submit" }, { "io_uring_submit_sqe" } } } },
	{ "io_uring_complete", false,
	  { { ATTACH_RAW_TP, { "uring_complete_parts" },
	      { "io_uring_complete" } },
	    { ATTACH_RAW_TP, { "uring_complete" }, { "io_uring_complete" } } } },
	{ 0 },
};

/* The BPF side has the recording's numbers under names of its own. */
#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a)

SAME(BOP_OPEN, OP_OPEN);
SAME(BOP_WRITE, OP_WRITE);
SAME(BOP_TRUNCATE, OP_TRUNCATE);
SAME(BOP_FALLOCATE, OP_FALLOCATE);
SAME(BOP_RENAME, OP_RENAME);
SAME(BOP_LINK, OP_LINK);
SAME(BOP_UNLINK, OP_UNLINK);
SAME(BOP_SYMLINK, OP_SYMLINK);
SAME(BOP_MKDIR, OP_MKDIR);
SAME(BOP_RMDIR, OP_RMDIR);
SAME(BOP_MKNOD, OP_MKNOD);
SAME(BOP_CLOSE, OP_CLOSE);
SAME(BOP_FSYNC, OP_FSYNC);
SAME(BOP_FDATASYNC, OP_FDATASYNC);
SAME(BOP_SYNC, OP_SYNC);
SAME(BOP_SYNCFS, OP_SYNCFS);
SAME(BOP_SYNC_FILE_RANGE, OP_SYNC_FILE_RANGE);
SAME(BOP_MSYNC, OP_MSYNC);
SAME(BOP_MMAP_SHARED, OP_MMAP_SHARED);
SAME(BOP_COPY, OP_COPY);
SAME(BOP_IO_URING, OP_IO_URING);
SAME(BOP_IO_URING + 1, OP_MAX);

SAME(BFOP_LAST_CLOSE, FOP_LAST_CLOSE);
SAME(BFOP_WRITTEN, FOP_WRITTEN);
SAME(BFOP_CREATED, FOP_CREATED);
SAME(BFOP_STOPPED, FOP_STOPPED);
SAME(BFOP_DATA_UNREADABLE, FOP_DATA_UNREADABLE);
SAME(BFOP_DATA_UNKNOWN, FOP_DATA_UNKNOWN);
SAME(BFOP_PATH_UNREADABLE, FOP_PATH_UNREADABLE);
SAME(BFOP_PATH2_UNREADABLE, FOP_PATH2_UNREADABLE);
SAME(BFOP_DIR_TRUNCATED, FOP_DIR_TRUNCATED);
SAME(BFOP_AT_EXIT, FOP_AT_EXIT);
SAME(BFOP_IO_URING, FOP_IO_URING);
SAME(BFOP_SYNC_WRITE, FOP_SYNC_WRITE);
SAME(BFOP_DSYNC_WRITE, FOP_DSYNC_WRITE);
SAME(BFOP_DIR_ABSOLUTE, FOP_DIR_ABSOLUTE);
SAME(BFOP_DIR2_ABSOLUTE, FOP_DIR2_ABSOLUTE);

SAME(BFD_NONE, FD_NONE);
