/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wire records between the BPF programs and user space, through the ring.
 *
 * Invariants:
 *  1. seq is taken from one global counter when an event in scope is met, so
 *     a number that never arrives is an event that was lost. Whoever takes a
 *     number either puts a record with it into the ring or counts the loss
 *     (struct ev_lost in the notices ring).
 *  2. Bulk pieces (EV_PAGE, EV_DATA) carry the number of the event they belong
 *     to and are reserved before it. The ring delivers in order of
 *     reservation, so when the event itself arrives, every piece of it that
 *     was not lost has arrived.
 *  3. The event says how many bytes its pieces should add up to and how many
 *     could not be had.
 *  4. Only fixed-width types, no padding the compiler chose: sizes asserted.
 */
#ifndef BLKBOX_EVENT_H
#define BLKBOX_EVENT_H

#define EV_COMM_BYTES 16
#define EV_PIECE_BYTES 4096
#define EV_PATH_MAX 4096

enum ev_type {
	EV_ISSUE = 1,
	EV_PAGE,	/* a piece of a request's data */
	EV_COMPLETE,
	EV_REQUEUE,
	EV_FILE_OP,
	EV_DATA,	/* a piece of a write's data */
	EV_PATH,	/* a string of a file operation */
	EV_MARK,
	EV_PROC,
	EV_CALIBRATE,	/* a (page, address) pair, see calibrate.bpf.c */
};

struct ev_hdr {
	__u32 type;		/* enum ev_type */
	__u32 bytes;		/* of the whole record */
	__u64 seq;
	__u64 time_ns;		/* bpf_ktime_get_ns(): CLOCK_MONOTONIC */
	__u32 dev;		/* kernel dev_t: major << 20 | minor */
	__u32 tgid;
	__u32 tid;
	__u32 pad;
	char comm[EV_COMM_BYTES];
};
_Static_assert(sizeof(struct ev_hdr) == 56, "ev_hdr");

struct ev_issue {
	struct ev_hdr h;
	__u64 sector;		/* of the disk, 512-byte units */
	__u32 sectors;
	__u32 cmd_flags;	/* raw */
	__u32 pieces;		/* EV_PAGE records sent */
	__u32 lost_pieces;	/* ring full */
	__u32 lost_bytes;
	__u32 too_large;	/* bytes past what one event may hold */
};
_Static_assert(sizeof(struct ev_issue) == 56 + 32, "ev_issue");

enum ev_page_flag {
	EV_PAGE_UNREADABLE = 1,
	EV_PAGE_BLOCKDEV = 2,
	EV_PAGE_ANON = 4,
	EV_PAGE_NODATA = 8,	/* payload is not being recorded */
};

struct ev_page {
	__u32 type;		/* EV_PAGE: the header is shortened, these are
				 * the bulk of the ring */
	__u32 bytes;		/* of the whole record */
	__u64 seq;		/* the issue's */
	__u32 offset;		/* in the request, bytes */
	__u32 len;		/* <= EV_PIECE_BYTES */
	__u32 flags;		/* enum ev_page_flag */
	__u32 fs_dev;
	__u64 ino;
	__u64 file_offset;
	__u8 data[];
};
_Static_assert(sizeof(struct ev_page) == 48, "ev_page");

struct ev_complete {
	struct ev_hdr h;
	__u64 issue_seq;
	__s32 error;
	__u32 bytes_done;
};
_Static_assert(sizeof(struct ev_complete) == 56 + 16, "ev_complete");

struct ev_requeue {
	struct ev_hdr h;
	__u64 issue_seq;
};

/* Fields as struct rec_file_op (replay/recording.h) describes them. */
struct ev_file_op {
	struct ev_hdr h;
	__u32 op;		/* enum file_op */
	__u32 flags;		/* enum fop_flag */
	__u32 syscall;
	__u32 open_flags;
	__u64 start_seq;
	__u64 start_ns;
	__s64 ret;
	__u64 off;
	__u64 len;
	__u64 ino;
	__u64 size;
	__u64 dir_ino;
	__u64 dir2_ino;
	__u64 src_ino;
	__u64 src_off;
	__u32 dir_dev;
	__u32 dir2_dev;
	__u32 src_dev;
	__s32 fd;
	__u32 mode;
	__u32 nlink;
	__u32 file_mode;
	__u32 data_pieces;	/* EV_DATA records sent */
	__u32 data_lost;	/* bytes lost, ring full */
	__u32 data_unreadable;	/* bytes that could not be read */
	__u64 data_too_large;	/* bytes past what one event may hold */
	__u32 paths;		/* EV_PATH records sent */
	__u32 paths_lost;	/* ring full */
	__u32 n_stack;
	__u32 pad;
};
_Static_assert(sizeof(struct ev_file_op) == 56 + 16 + 11 * 8 + 10 * 4 + 8 + 16,
	       "ev_file_op");

struct ev_data {
	__u32 type;
	__u32 bytes;		/* of the whole record */
	__u64 seq;
	__u64 offset;		/* in the data written */
	__u32 len;
	__u32 unreadable;	/* data is not there */
	__u8 data[];
};
_Static_assert(sizeof(struct ev_data) == 32, "ev_data");

enum ev_path_kind {
	EV_PATH_1 = 1,		/* as passed */
	EV_PATH_2,
	EV_PATH_DIR,		/* as a list of components, innermost first,
				 * each ended by NUL; "" ends it at the root */
	EV_PATH_DIR2,
	EV_PATH_FILE,		/* as EV_PATH_DIR */
	EV_PATH_STACK,		/* __u64 addresses */
};

struct ev_path {
	__u32 type;
	__u32 bytes;
	__u64 seq;
	__u32 kind;		/* enum ev_path_kind */
	__u32 len;		/* of text, with the NUL */
	__u32 flags;		/* 1: unreadable; 2: cut short */
	__u32 pad;
	char text[];
};
_Static_assert(sizeof(struct ev_path) == 32, "ev_path");

struct ev_mark {
	struct ev_hdr h;
	char text[256];
};

struct ev_proc {
	struct ev_hdr h;
	__u32 event;		/* enum proc_event */
	__u32 pid;
	__u32 parent;
	__s32 status;
};

/* In the notices ring: the event with this number is lost whole. */
struct ev_lost {
	__u64 seq;
	__u64 time_ns;
	__u32 dev;
	__u32 type;		/* enum ev_type */
	__u64 bytes;		/* payload bytes that went with it */
};
_Static_assert(sizeof(struct ev_lost) == 32, "ev_lost");

#endif
