/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * File operations: what the hooks at the entry of a system call leave for the
 * ones at its exit, and how an operation is put into the ring.
 *
 * Invariants:
 *  1. A hook at entry looks at the scope first and leaves nothing for a call
 *     that is not to be recorded. A hook at exit does nothing without an entry
 *     and takes it away.
 *  2. A call in flight is described in the same terms whatever system call
 *     (or io_uring operation) it came by, and however the hook was attached.
 *  3. struct scratch is one per CPU. Its users run in the context of a
 *     process with preemption off, and never one inside another: programs on
 *     tracepoints and kprobes exclude each other, those on io_uring's and the
 *     scheduler's tracepoints do not interrupt.
 *  4. Strings and data are read at exit, when the kernel itself has just read
 *     them. What cannot be read then is marked, not guessed.
 *  5. Pieces of an operation go into the ring before it, all with its number.
 *  6. No signal without an event: a process is stopped only when the event
 *     that says so is in the ring.
 */
#ifndef BLKBOX_FILEOPS_H
#define BLKBOX_FILEOPS_H

#include "common.bpf.h"
#include "fileops_abi.h"

#define MAX_CALLS 16384
#define MAX_WRITTEN 16384
#define MAX_DATA_BYTES (64ULL << 20)	/* of one event */

#define AT_FDCWD (-100)
#define S_IFMT 0170000
#define S_IFREG 0100000
#define SIGSTOP 19

#define FMODE_WRITE 2
#define FMODE_CREATED 0x100000	/* the same since 4.19 */

#define O_ACCMODE 3
#define O_WRONLY 1
#define O_RDWR 2
#define O_CREAT 0100
#define O_EXCL 0200
#define O_TRUNC 01000
#define O_APPEND 02000
#define O_DSYNC 010000
#define O_SYNC_ONLY 04000000	/* __O_SYNC: what O_SYNC adds to O_DSYNC */
#define O_TMPFILE_ONLY 020000000

enum call_flag {
	CALL_PATH = 1,	   /* path, dfd */
	CALL_PATH2 = 2,	   /* path2, dfd2 */
	CALL_TARGET = 4,   /* path is a symlink's target, from nowhere */
	CALL_OFF = 8,	   /* off is given, not the file's position */
	CALL_MARK = 64,	   /* only of interest as a mark */
	CALL_HOW = 128,	   /* open_flags and mode are at how */
	CALL_VEC = 256,	   /* iovs iovecs at addr */
	CALL_SAVED = 512,  /* iovecs and paths were saved at submission */
	CALL_ABS = 1024,   /* ... and path begins at the root */
	CALL_ABS2 = 2048,  /* ... and path2 */
	CALL_DIRECT = 4096, /* the descriptor is one of io_uring's own */
};

/* A call in flight. */
struct call {
	u64 start_seq;
	u64 start_ns;
	u64 file, inode;	/* struct file *, struct inode * */
	u64 src_file, src_inode;
	u64 ino;
	u64 path, path2;	/* addresses in the process, as are: */
	u64 how;		/* ... struct open_how */
	u64 addr;		/* ... the data, or the iovecs */
	u64 off, len;
	u64 src_off;
	u32 dev;
	u32 op;			/* BOP_... */
	u32 nr;
	u32 flags;		/* enum call_flag */
	u32 event_flags;	/* BFOP_... */
	u32 open_flags;
	u32 mode;
	u32 rwf;		/* RWF_ flags */
	u32 iovs;
	s32 fd, dfd, dfd2;
	u32 pad;
};

/* A file that was written through, by its struct file. */
struct written {
	u64 inode;
	u64 ino;
	u32 dev;
	u32 maps;	/* mappings ever made of it; each may hold a reference */
	u32 closing;	/* tid whose call will close descriptors of it: */
	u32 seen;	/* ... so many */
	s32 fd;		/* ... one of them */
	u32 last;	/* ... and no reference is left then */
	u32 open_flags;
	u32 pad;
};

struct walk_fds {
	u64 table;	/* struct file ** */
	u64 cloexec;	/* address of a bitmap, 0: all descriptors */
	u32 first, last;
	u32 tid;
	u32 marked;	/* files */
};

#define MAX_SAVED_IOVS 128

/* A request on its way through io_uring. */
struct uring_call {
	struct call call;
	u64 tgid_tid;		/* of who submitted it */
	char comm[EV_COMM_BYTES];
	struct iovec iov[MAX_SAVED_IOVS];
};

struct saved_key {
	u64 req;
	u32 kind;		/* EV_PATH_1, EV_PATH_2 */
	u32 pad;
};

struct saved_path {
	char text[EV_PATH_MAX];
};

struct walk_path {
	u64 dentry;
	u64 mnt;		/* struct vfsmount * */
	u64 root, root_mnt;	/* the process's */
	u32 pos;
	u32 done;
};

struct walk_data {
	u64 addr;	/* of what is left of this one */
	u64 here;	/* bytes left of it */
	u64 left;	/* of the event */
	u64 offset;
	u64 seq;
	u32 iovs, next;
	u32 pad;
	u32 page_wise;	/* pieces end at page boundaries */
};

/* A wire record and the room for what follows it. */
#pragma clang diagnostic ignored "-Wgnu-variable-sized-type-not-at-end"

struct path_piece {
	struct ev_path h;
	/* A component or a string may run over the end by its own length. */
	char text[EV_PATH_MAX + 256];
};

struct data_piece {
	struct ev_data h;
	u8 data[EV_PIECE_BYTES];
};

struct scratch {
	struct call call;
	struct ev_file_op ev;
	struct walk_path walk;
	struct walk_data data;
	struct walk_fds fds;
	struct uring_call uring;
	u64 uring_req;
	struct path_piece path;
	struct data_piece piece;
};

struct calls_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_CALLS);
	__type(key, u32);	/* tid */
	__type(value, struct call);
};
extern struct calls_map calls SEC(".maps");

struct written_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_WRITTEN);
	__type(key, u64);	/* struct file * */
	__type(value, struct written);
};
extern struct written_map written_files SEC(".maps");

struct saved_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct saved_key);
	__type(value, struct saved_path);
};
extern struct saved_map saved_paths SEC(".maps");

struct scratch_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
};
extern struct scratch_map scratches SEC(".maps");

static __always_inline struct scratch *get_scratch(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

static __always_inline u32 current_tid(void)
{
	return (u32)bpf_get_current_pid_tgid();
}

/* ---- files and inodes ------------------------------------------------------ */

static __always_inline struct file *file_of_fd(s32 fd)
{
	struct task_struct *t = (void *)bpf_get_current_task();
	struct files_struct *files = BPF_CORE_READ(t, files);
	struct fdtable *fdt;
	struct file **slot, *f = NULL;

	if (fd < 0 || !files)
		return NULL;
	fdt = BPF_CORE_READ(files, fdt);
	if ((u32)fd >= BPF_CORE_READ(fdt, max_fds))
		return NULL;
	slot = BPF_CORE_READ(fdt, fd);
	bpf_probe_read_kernel(&f, sizeof(f), slot + fd);
	return f;
}

static __always_inline bool file_in_scope(struct file *f)
{
	struct inode *inode = BPF_CORE_READ(f, f_inode);

	return inode && sb_in_scope(BPF_CORE_READ(inode, i_sb));
}

static __always_inline bool is_regular(struct file *f)
{
	return (BPF_CORE_READ(f, f_inode, i_mode) & S_IFMT) == S_IFREG;
}

/* How many references there are to an open file. */
static __always_inline u64 file_refs(struct file *f)
{
	if (bpf_core_field_exists(((struct file___ref *)0)->f_ref)) {
		struct file___ref *r = (void *)f;

		return BPF_CORE_READ(r, f_ref.refcnt.counter) + 1;
	} else {
		struct file___count *c = (void *)f;

		return BPF_CORE_READ(c, f_count.counter);
	}
}

/*
 * The entry of an open file that was written through, or NULL. One left by an
 * earlier file at the same address is not taken for this one's.
 */
static __always_inline struct written *written_of(struct file *f)
{
	u64 key = (u64)f;
	struct written *w = bpf_map_lookup_elem(&written_files, &key);

	if (!w || w->inode != (u64)BPF_CORE_READ(f, f_inode) ||
	    !(BPF_CORE_READ(f, f_mode) & FMODE_WRITE))
		return NULL;
	return w;
}

static __always_inline void note_written(struct file *f, bool mapped)
{
	struct written *old = written_of(f), w = {};
	struct inode *inode;
	u64 key = (u64)f;

	if (old) {
		if (mapped)
			__sync_fetch_and_add(&old->maps, 1);
		return;
	}
	inode = BPF_CORE_READ(f, f_inode);
	w.inode = (u64)inode;
	w.ino = BPF_CORE_READ(inode, i_ino);
	w.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	w.open_flags = BPF_CORE_READ(f, f_flags);
	w.maps = mapped;
	bpf_map_update_elem(&written_files, &key, &w, BPF_ANY);
}

/* ---- calls in flight ------------------------------------------------------- */

static __always_inline void call_start(struct call *c, u32 op, u32 nr)
{
	c->start_seq = peek_seq();
	c->start_ns = bpf_ktime_get_ns();
	c->op = op;
	c->nr = nr;
	c->fd = BFD_NONE;
}

static __always_inline void call_file(struct call *c, struct file *f)
{
	struct inode *inode = BPF_CORE_READ(f, f_inode);

	c->file = (u64)f;
	c->inode = (u64)inode;
	c->ino = BPF_CORE_READ(inode, i_ino);
	c->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	c->open_flags = BPF_CORE_READ(f, f_flags);
}

/* Is the call's file still the one it was at entry? Another thread may have
 * closed it. */
static __always_inline bool call_file_stands(struct call *c)
{
	struct file *f = (struct file *)c->file;

	return (u64)BPF_CORE_READ(f, f_inode) == c->inode;
}

static __always_inline void call_keep(struct call *c)
{
	u32 tid = current_tid();

	if (bpf_map_update_elem(&calls, &tid, c, BPF_ANY))
		put_lost(next_seq(), c->dev, EV_FILE_OP, 0);
}

/* Moves this thread's call into the scratch; NULL when there is none. */
static __always_inline struct scratch *call_take(void)
{
	u32 tid = current_tid();
	struct call *c = bpf_map_lookup_elem(&calls, &tid);
	struct scratch *s;

	if (!c)
		return NULL;
	s = get_scratch();
	if (!s)
		return NULL;
	s->call = *c;
	bpf_map_delete_elem(&calls, &tid);
	return s;
}

#endif
