/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recording: the one thing shared between the live half and the offline
 * half. Reader and writer.
 *
 * Invariants of the file (recording.c has the layout in bytes):
 *
 *  1. All integers are little-endian. A file is one preamble followed by
 *     frames; nothing lies between frames.
 *  2. The preamble and each frame carry an XXH3-64 checksum of every other
 *     byte of theirs. A frame's checksum is verified before any of its bytes
 *     is used; its compressed and raw sizes are bounded before anything is
 *     allocated.
 *  3. Frames are numbered from 0 without a hole. A frame that is missing,
 *     doubled or moved is an error, not a shorter recording.
 *  4. Each frame is one independent zstd frame and holds whole records only;
 *     no record crosses into the next frame.
 *  5. The first record of the first frame is HEAD; HEAD occurs once.
 *  6. A recording that was closed ends in an END record, alone in the last
 *     frame. One without END was cut off, and is whole up to its last whole
 *     frame.
 *  7. Records of events stand in the order of their sequence number. A number
 *     is used once. BASE, CHUNK and other bulk records carry number 0.
 *  8. A record type a reader does not know is skipped by its length. A known
 *     record may have grown at its end: what a reader does not know there it
 *     ignores.
 *  9. A recording is created with mode 0600 and never overwrites a file
 *     unless asked to.
 */
#ifndef BLKBOX_RECORDING_H
#define BLKBOX_RECORDING_H

#include "base.h"

enum rec_type {
	REC_HEAD = 1,	   /* JSON text, see below */
	REC_BASE = 2,	   /* an extent of a base image */
	REC_BASE_END = 3,  /* the base image of a device is complete */
	REC_ISSUE = 16,	   /* a block request went to the device */
	REC_COMPLETE = 17, /* ... and came back */
	REC_REQUEUE = 18,  /* the device did not take it; it is issued anew */
	REC_FILE_OP = 32,  /* an operation on a file system, at its exit */
	REC_MARK = 48,	   /* text from the workload or from blkbox itself */
	REC_PROC = 49,	   /* a process started or ended */
	REC_GAP = 50,	   /* something was lost here */
	REC_CHUNK = 64,	   /* file content shared by expected states */
	REC_STATE = 65,	   /* an expected state (oracle), see tree.h */
	REC_INDEX = 126,   /* optional: frame offsets */
	REC_END = 127,	   /* totals */
};

/* A record as it stands in a frame; body points into the reader's buffer and
 * is valid until the next call on the reader. */
struct record {
	u16 type;
	u16 flags;
	u32 dev;	/* device number as in dev_t of the kernel:
			 * major << 20 | minor; 0: none */
	u64 seq;
	u64 time_ns;	/* CLOCK_MONOTONIC */
	const void *body;
	u32 body_bytes;
	u64 frame;	/* number of the frame it came from */
};

/*
 * HEAD is a JSON object, so that it describes itself:
 *   format        "blkbox recording"
 *   version       blkbox version that wrote it
 *   kernel        { release, machine }
 *   wall_time_ns, monotonic_ns  the same moment on both clocks
 *   request_ops   { "REQ_OP_WRITE": 1, ... }     this kernel's own values
 *   request_flags { "__REQ_FUA": 17, ... }       bit numbers
 *   devices[]     { dev, name, sectors, logical_block_bytes, write_cache,
 *                   fua }
 *   file_systems[] { dev, block_dev, type, mount_point, mount_options }
 *   scope         what was asked for: { devices, mounts, pids, cgroup, command }
 *   hooks[]       { event, attached_by }  ("tracepoint", "kprobe", ..., "none")
 *   base          "none" | "embedded" | { file, bytes, xxh3 }
 *   payload       "full" | "none" and why
 *   expected_states "stop" | "trace"
 * Add members, never change one.
 */

enum blk_op {
	BLK_WRITE = 1,
	BLK_FLUSH = 2,
	BLK_DISCARD = 3,
	BLK_SECURE_ERASE = 4,
	BLK_WRITE_ZEROES = 5,
	BLK_OTHER = 6,	/* zone management and what comes */
};

/* What raw_flags mean, translated by the recorder with the kernel's own bit
 * numbers. */
enum blk_flag {
	BLK_FUA = 1 << 0,
	BLK_PREFLUSH = 1 << 1,
	BLK_SYNC = 1 << 2,
	BLK_META = 1 << 3,
	BLK_PRIO = 1 << 4,
	BLK_NOUNMAP = 1 << 5,
	BLK_PAYLOAD_MISSING = 1 << 8, /* data is absent or partly unreadable */
};

enum page_flag {
	PAGE_UNREADABLE = 1 << 0, /* data of this piece is zeroes, unknown */
	PAGE_BLOCKDEV = 1 << 1,	  /* the page belongs to the device's own
				   * inode: file system metadata */
	PAGE_ANON = 1 << 2,	  /* no file: direct I/O or a private buffer */
};

/* A piece of a write's data, in order; the pieces' bytes add up to the
 * request's length. */
struct rec_page {
	u32 bytes;
	u32 flags;
	u32 fs_dev;	/* super block's device of the inode, 0: unknown */
	u64 ino;
	u64 file_offset; /* in bytes */
};

/* A part of data that does not lie in one piece. */
struct rec_bytes {
	const void *data;	/* NULL: zeroes */
	u32 bytes;
};

struct rec_issue {
	u8 op;		/* enum blk_op */
	u32 flags;	/* enum blk_flag */
	u32 raw_flags;	/* cmd_flags as the kernel had them */
	u64 sector;	/* 512-byte units */
	u32 sectors;
	u32 pid;	/* thread group of who issued it; not who wrote it */
	char comm[16];
	u32 n_pages;
	struct rec_page *pages;	/* decoded: heap, free with rec_issue_done() */
	const void *data;	/* sectors * 512 bytes, or NULL */
	u32 data_bytes;
	/* For writing, instead of data: data_bytes in parts. */
	u32 n_parts;
	const struct rec_bytes *parts;
};

struct rec_complete {
	u64 issue_seq;
	s64 error;	/* 0, or the kernel's blk_status_t */
	u32 bytes;
};

struct rec_requeue {
	u64 issue_seq;
};

enum file_op {
	OP_OPEN = 1,	/* open, openat, openat2, creat: see open_flags */
	OP_WRITE,	/* write, pwrite, writev, pwritev, io_uring: off, len */
	OP_TRUNCATE,	/* truncate, ftruncate: len is the new size */
	OP_FALLOCATE,	/* mode, off, len */
	OP_RENAME,	/* path to path2; mode has the RENAME_ flags */
	OP_LINK,
	OP_UNLINK,	/* mode has AT_REMOVEDIR */
	OP_SYMLINK,	/* path is the target as passed, path2 the new name */
	OP_MKDIR,
	OP_RMDIR,
	OP_MKNOD,
	OP_CLOSE,	/* of a file that was written: FOP_LAST_CLOSE */
	OP_FSYNC,
	OP_FDATASYNC,
	OP_SYNC,
	OP_SYNCFS,
	OP_SYNC_FILE_RANGE,
	OP_MSYNC,	/* off, len: file range of the mapping, if known */
	OP_MMAP_SHARED,	/* a writable shared mapping was made: off, len */
	OP_COPY,	/* sendfile, splice, copy_file_range: src_*, off, len */
	OP_IO_URING,	/* an io_uring operation of another kind: mode is its
			 * opcode */
	OP_MAX,
};

enum fop_flag {
	FOP_LAST_CLOSE = 1 << 0,    /* last reference to an open file ... */
	FOP_WRITTEN = 1 << 1,	    /* ... that was written through */
	FOP_CREATED = 1 << 2,	    /* open made the file */
	FOP_STOPPED = 1 << 3,	    /* the process was stopped at this exit */
	FOP_DATA_UNREADABLE = 1 << 4, /* data could not be read, or in part */
	FOP_DATA_UNKNOWN = 1 << 5,  /* no data by nature (splice, fixed
				     * buffers); not lost, never guessed */
	FOP_PATH_UNREADABLE = 1 << 6,
	FOP_PATH2_UNREADABLE = 1 << 7,
	FOP_DIR_TRUNCATED = 1 << 8, /* dir path was deeper than recorded */
	FOP_AT_EXIT = 1 << 9,	    /* close by the end of the process */
	FOP_IO_URING = 1 << 10,
	FOP_SYNC_WRITE = 1 << 11,   /* O_SYNC, or RWF_SYNC */
	FOP_DSYNC_WRITE = 1 << 12,  /* O_DSYNC, or RWF_DSYNC */
	FOP_DIR_ABSOLUTE = 1 << 13, /* dir is not on a recorded file system:
				     * dir_path begins at the process's root
				     * and goes through all mounts */
	FOP_DIR2_ABSOLUTE = 1 << 14, /* the same of dir2 */
};

#define FD_NONE INT32_MIN

/*
 * An operation on a file system. Strings are heap copies in a decoded record
 * (rec_file_op_done() frees them), NULL where the operation has none.
 *
 * A path is recorded as it was passed. dir is where it started from when it
 * is relative: the path from the file system's root of the directory (an open
 * directory, or the working directory), and its inode; or an absolute path, see
 * FOP_DIR_ABSOLUTE. When file_path is set it is the path from the file system's
 * root of the open file itself.
 */
struct rec_file_op {
	u8 op;			/* enum file_op */
	u32 flags;		/* enum fop_flag */
	u32 syscall;		/* this machine's number; 0xffffffff: none */
	u64 start_seq;		/* first number that could follow its entry:
				 * events with a smaller one precede it */
	u64 start_ns;
	u32 pid;		/* thread group */
	u32 tid;
	char comm[16];
	s64 ret;		/* result, negative errno on failure */
	s32 fd;			/* as passed, or as returned by open */
	u32 open_flags;		/* O_..., of the open file or as passed */
	u32 mode;
	u64 off;		/* bytes */
	u64 len;		/* bytes asked for; what was done is ret */
	/* record.dev is the file system's device (s_dev) of the object, or of
	 * the directory where there is no object. */
	u64 ino;		/* the object, 0: unknown */
	u64 size;		/* its size after the operation, bytes */
	u32 nlink;
	u32 file_mode;		/* i_mode of the object */
	u32 dir_dev, dir2_dev;	/* s_dev */
	u64 dir_ino, dir2_ino;
	u32 src_dev;		/* OP_COPY */
	u64 src_ino, src_off;
	char *file_path;
	char *dir_path, *path;
	char *dir2_path, *path2;
	const void *data;	/* of OP_WRITE: the first data_bytes of ret */
	u32 data_bytes;
	u32 n_parts;		/* as in rec_issue */
	const struct rec_bytes *parts;
	u32 n_stack;
	u64 *stack;		/* user addresses, on request */
};

struct rec_mark {
	u32 pid;
	const char *text;	/* NUL-terminated, points into the record */
};

enum proc_event { PROC_FORK = 1, PROC_EXEC = 2, PROC_EXIT = 3 };

struct rec_proc {
	u8 event;	/* enum proc_event */
	u32 pid;
	u32 parent;	/* fork: the parent's pid */
	s32 status;	/* exit: as wait() has it */
	char comm[16];
};

enum gap_reason {
	GAP_RING_FULL = 1,
	GAP_UNREADABLE = 2,	/* payload could not be read */
	GAP_TOO_LARGE = 3,
	GAP_OUTPUT = 4,		/* the recording could not be written */
	GAP_MISSED = 5,		/* the kernel skipped a hook that was already
				 * running on that processor */
};

/* What was lost. record.seq is the first number lost, record.dev where. */
struct rec_gap {
	u8 reason;	/* enum gap_reason */
	u8 lost_type;	/* enum rec_type of what was lost, 0: several */
	u64 events;
	u64 bytes;
	u64 last_seq;	/* last number lost, same as seq for one */
};

struct rec_base {
	u64 offset_bytes;
	const void *data;
	u32 bytes;
};

struct rec_end {
	u64 events;	/* records with a number, GAP apart */
	u64 gaps;	/* GAP records */
	u64 lost_events;
	u64 lost_bytes;
};

/* ---- writing ------------------------------------------------------------ */

struct rec_writer;

/*
 * Frames are compressed and written by threads of the writer's own. A writer
 * is used by one thread of the process that created it: a child forked later
 * has the memory, but not the threads, and must not touch it, not even to free
 * it.
 */
struct rec_writer_opts {
	int level;		/* zstd; 0: the default, 3. Frames that come
				 * faster than they can be compressed get a
				 * weaker one, or none */
	u32 frame_bytes;	/* raw size a frame is closed at; 0: 1 MiB */
	bool overwrite;
	int threads;		/* that compress and write: 0: as many as
				 * processors, at most 4; negative: none, each
				 * call does it itself */
};

/*
 * Creates path, mode 0600, and writes the preamble and HEAD. head_json is
 * copied. -EEXIST when path exists and overwrite is not set.
 */
int rec_create(const char *path, const char *head_json,
	       const struct rec_writer_opts *opts, struct rec_writer **ret_w,
	       struct errmsg *em);

/*
 * Each appends one record; it reaches the file when its frame is closed.
 * -EINVAL: the record contradicts itself (a write's pieces do not add up to
 * its length, a number was used before); it is not taken. -EMSGSIZE: larger
 * than a frame may be (256 MiB); not taken. Any other error is the file's; it
 * stays, and what had been written remains a whole, cut recording. It may come
 * from a later call than that which put the record it is about, at the latest
 * from rec_flush() or rec_close(). Each waits when 64 MiB, or 64 frames, are on
 * their way to the file.
 */
int rec_put(struct rec_writer *w, const struct record *r);
int rec_put_base(struct rec_writer *w, u32 dev, u64 offset, const void *data,
		 u32 bytes);
int rec_put_base_end(struct rec_writer *w, u32 dev, u64 device_bytes);
int rec_put_issue(struct rec_writer *w, u64 seq, u64 time_ns, u32 dev,
		  const struct rec_issue *i);
int rec_put_complete(struct rec_writer *w, u64 seq, u64 time_ns, u32 dev,
		     const struct rec_complete *c);
int rec_put_requeue(struct rec_writer *w, u64 seq, u64 time_ns, u32 dev,
		    const struct rec_requeue *q);
int rec_put_file_op(struct rec_writer *w, u64 seq, u64 time_ns, u32 dev,
		    const struct rec_file_op *op);
int rec_put_mark(struct rec_writer *w, u64 seq, u64 time_ns,
		 const struct rec_mark *m);
int rec_put_proc(struct rec_writer *w, u64 seq, u64 time_ns,
		 const struct rec_proc *p);
int rec_put_gap(struct rec_writer *w, u64 seq, u64 time_ns, u32 dev,
		const struct rec_gap *g);

/*
 * Stores the used blocks of the device or image behind fd as the embedded
 * base of dev: holes and zero blocks (4 KiB) cost nothing. device_bytes is
 * its size. Ends in BASE_END.
 */
int rec_put_base_image(struct rec_writer *w, u32 dev, int fd, u64 device_bytes,
		       struct errmsg *em);

/* Closes the frame under way; all that was put is in the file (no fsync) when
 * it returns. */
int rec_flush(struct rec_writer *w);
u64 rec_writer_bytes(const struct rec_writer *w); /* in the file so far */
/* So many bytes of records are at hand and still to be put: the more, the less
 * time is spent on compression. Holds until the next call. */
void rec_writer_backlog(struct rec_writer *w, u64 bytes);

/* Writes END, closes the file and frees w. The totals are the writer's own
 * count. rec_abandon() frees without END, as a crash would; closed frames do
 * reach the file. */
int rec_close(struct rec_writer *w, struct errmsg *em);
void rec_abandon(struct rec_writer *w);

/* ---- reading ------------------------------------------------------------ */

struct rec_reader;

int rec_open(const char *path, struct rec_reader **ret_r, struct errmsg *em);
/* As rec_open(); takes fd, also on failure. name is for messages. */
int rec_open_fd(int fd, const char *name, struct rec_reader **ret_r,
		struct errmsg *em);
void rec_reader_free(struct rec_reader *r);

/* The JSON text of HEAD, NUL-terminated, owned by r. */
const char *rec_head(const struct rec_reader *r);

/*
 * 1 and a record; 0 at the end, whole or cut (rec_is_closed() tells); negative
 * on a damaged frame, with em saying which frame and where. HEAD is not
 * returned again. After an error only rec_reader_free() is allowed.
 */
int rec_next(struct rec_reader *r, struct record *ret, struct errmsg *em);

/* After rec_next() returned 0: was END seen? */
bool rec_is_closed(const struct rec_reader *r);
/* Where a cut recording's incomplete tail begins, in bytes; equals the file's
 * size when there is none. */
u64 rec_whole_bytes(const struct rec_reader *r);

/*
 * Decoders: -EBADMSG when the body is not what its type says. Every length is
 * checked against the body; strings hold no NUL. Data pointers go into the
 * record.
 */
int rec_get_base(const struct record *r, struct rec_base *ret);
int rec_get_base_end(const struct record *r, u64 *ret_device_bytes);
int rec_get_issue(const struct record *r, struct rec_issue *ret);
void rec_issue_done(struct rec_issue *i);
int rec_get_complete(const struct record *r, struct rec_complete *ret);
int rec_get_requeue(const struct record *r, struct rec_requeue *ret);
int rec_get_file_op(const struct record *r, struct rec_file_op *ret);
void rec_file_op_done(struct rec_file_op *op);
int rec_get_mark(const struct record *r, struct rec_mark *ret);
int rec_get_proc(const struct record *r, struct rec_proc *ret);
int rec_get_gap(const struct record *r, struct rec_gap *ret);
int rec_get_end(const struct record *r, struct rec_end *ret);

/* "unknown" for what is not known. */
const char *rec_type_name(u16 type);	/* "issue", "file-op", ... */
const char *file_op_name(u8 op);	/* "open", "write", ... */
const char *blk_op_name(u8 op);		/* "write", "flush", ... */

#endif
