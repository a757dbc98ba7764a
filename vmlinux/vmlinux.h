/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel types blkbox's BPF programs look at, reduced to the members they
 * use. Compiled with CO-RE: libbpf finds each member's real offset in the
 * running kernel's BTF when a program is loaded, so that neither order nor
 * completeness matters here, only names and types.
 *
 * Invariants:
 *  1. Every structure of the kernel's is CO-RE (preserve_access_index), except
 *     those of the user-space ABI, which are complete and never move.
 *  2. A member that some supported kernel does not have stands in a flavour
 *     (struct NAME___old, struct NAME___new; libbpf drops what follows the
 *     three underscores) and is read only behind bpf_core_field_exists().
 *  3. vmlinux/check compares this file with the running kernel.
 *
 * Drift so far:
 *  page.index          __folio_index since 6.16
 *  request.rq_disk     before 5.17; then request_queue.disk
 *  file.f_count       file.f_ref.refcnt since 6.13
 *  buffer_head.b_page  may one day be b_folio alone
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

/* ---- names of fixed width, as the UAPI and the kernel spell them --------- */

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __s8 s8;
typedef __u8 u8;
typedef __s16 s16;
typedef __u16 u16;
typedef __s32 s32;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef __u16 __sum16;
typedef _Bool bool;
typedef int pid_t;
typedef long long loff_t;
typedef unsigned short umode_t;
typedef unsigned int dev_t;
typedef unsigned long size_t;
typedef long ssize_t;
typedef __u64 sector_t;
typedef unsigned int fmode_t;

enum {
	false = 0,
	true = 1,
};

#ifndef NULL
#define NULL ((void *)0)
#endif

/* ---- BPF's own ABI ------------------------------------------------------- */

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
};

enum {
	BPF_F_NO_PREALLOC = 1,
};

enum {
	BPF_F_USER_STACK = 1 << 8,
	BPF_F_CURRENT_CPU = 0xffffffff,
};

enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

enum {
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};

enum {
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

/* ---- contexts of other programs ------------------------------------------ */

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx;
	unsigned long r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)),           \
			     apply_to = record)

struct trace_entry {
	unsigned short type;
	unsigned char flags;
	unsigned char preempt_count;
	int pid;
};

struct trace_event_raw_sys_enter {
	struct trace_entry ent;
	long id;
	unsigned long args[6];
};

struct trace_event_raw_sys_exit {
	struct trace_entry ent;
	long id;
	long ret;
};

/* ---- files ----------------------------------------------------------------- */

struct list_head {
	struct list_head *next, *prev;
};

struct block_device;
struct super_block;
struct inode;

struct qstr {
	union {
		struct {
			u32 hash;
			u32 len;
		};
		u64 hash_len;
	};
	const unsigned char *name;
};

struct dentry {
	unsigned int d_flags;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	struct super_block *d_sb;
};

struct vfsmount {
	struct dentry *mnt_root;
	struct super_block *mnt_sb;
	int mnt_flags;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct address_space {
	struct inode *host;
};

struct file_system_type {
	const char *name;
};

struct super_block {
	dev_t s_dev;
	unsigned long s_blocksize;
	struct file_system_type *s_type;
	unsigned long s_flags;
	unsigned long s_magic;
	void *s_fs_info;
	struct dentry *s_root;
	struct block_device *s_bdev;
};

struct inode {
	umode_t i_mode;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	unsigned int i_nlink;
	dev_t i_rdev;
	loff_t i_size;
};

typedef struct {
	long counter;
} atomic64_t;

typedef struct {
	int counter;
} atomic_t;

typedef atomic64_t atomic_long_t;

struct file {
	fmode_t f_mode;
	struct address_space *f_mapping;
	void *private_data;
	struct inode *f_inode;
	unsigned int f_flags;
	struct path f_path;
	loff_t f_pos;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
	unsigned long *close_on_exec;
};

struct files_struct {
	atomic_t count;
	struct fdtable *fdt;
};

typedef struct {
	atomic64_t refcnt;
} file_ref_t;

/* Since 6.13; counts from 0 for one reference (file_ref.h). */
struct file___ref {
	file_ref_t f_ref;
};

/* Before; counts from 1. */
struct file___count {
	atomic_long_t f_count;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_pgoff;
	unsigned long vm_flags;
	struct file *vm_file;
};

struct fs_struct {
	struct path root, pwd;
};

/* btrfs keeps its devices itself: s_bdev is not set. */
struct btrfs_device___mod {
	struct block_device *bdev;
};

struct btrfs_fs_devices___mod {
	struct btrfs_device___mod *latest_dev;
};

struct btrfs_fs_info___mod {
	struct btrfs_fs_devices___mod *fs_devices;
};

/* ---- tasks ----------------------------------------------------------------- */

struct signal_struct {
	atomic_t live;
	int nr_threads;
	int group_exit_code;
	unsigned int flags;
};

struct mm_struct;

struct thread_info {
	u32 status;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	int exit_code;
	pid_t pid;
	pid_t tgid;
	struct mm_struct *mm;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	u64 start_time;
	char comm[16];
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
};

/* ---- block layer ----------------------------------------------------------- */

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	struct gendisk *bd_disk;
	dev_t bd_dev;
};

struct request_queue {
	struct gendisk *disk;
};

struct page {
	unsigned long compound_head;
	struct address_space *mapping;
};

struct page___old {
	unsigned long index;
};

struct page___new {
	unsigned long __folio_index;
};

struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len;
	unsigned int bv_offset;
};

struct bvec_iter {
	sector_t bi_sector;
	unsigned int bi_size;
	unsigned int bi_idx;
	unsigned int bi_bvec_done;
};

struct bio {
	struct bio *bi_next;
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	sector_t __sector;
	struct bio *bio;
};

struct request___old {
	struct gendisk *rq_disk;
};

struct buffer_head {
	unsigned long b_state;
	struct page *b_page;
	size_t b_size;
	char *b_data;
};

/* ---- io_uring --------------------------------------------------------------- */

struct io_uring_sqe;

struct io_cqe {
	u64 user_data;
};

struct io_ring_ctx {
	unsigned int flags;
	u32 *sq_array;
	struct io_uring_sqe *sq_sqes;
	unsigned int cached_sq_head;
	unsigned int sq_entries;
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
};

#pragma clang attribute pop

/* ---- the user-space ABI: complete, never moves ------------------------------- */

struct iovec {
	void *iov_base;
	unsigned long iov_len;
};

/* Its unions by the names of their first users. */
struct io_uring_sqe {
	__u8 opcode;
	__u8 flags;
	__u16 ioprio;
	__s32 fd;
	__u64 off;		/* or addr2 */
	__u64 addr;		/* or splice_off_in */
	__u32 len;
	__u32 rw_flags;		/* or fsync_flags, open_flags, ... */
	__u64 user_data;
	__u16 buf_index;
	__u16 personality;
	__u32 file_index;	/* or splice_fd_in */
	__u64 pad[2];
};

struct io_uring_cqe {
	__u64 user_data;
	__s32 res;
	__u32 flags;
};

struct open_how {
	__u64 flags;
	__u64 mode;
	__u64 resolve;
};

/* The block layer's status is one byte, and tracepoints pass it widened. */
typedef u8 blk_status_t;

#endif
