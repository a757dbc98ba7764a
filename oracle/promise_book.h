/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The promises made so far while a recording's operations go by (promise.c),
 * and what each operation takes back of them (promise_book.c).
 */
#ifndef BLKBOX_PROMISE_BOOK_H
#define BLKBOX_PROMISE_BOOK_H

#include "expected.h"
#include "fs_model.h"

/* Of one inode of the model. */
struct inode_book {
	u32 n_live, cap_live;
	u32 *live;		/* its promises (a directory's: also those of
				 * its names) that may yet be taken back */
	u64 map_off, map_end;	/* in reach of a mapping */
	bool names_promised;	/* all names but those below */
	u32 n_pending, cap_pending;
	char **pending;		/* names changed since they were promised, in
				 * any order, one perhaps several times */
};

/* A change, and the number its operation returned at. */
struct logged {
	u64 seq;
	enum fs_change_kind kind;
	struct fs_inode *inode;
	u64 off, end;
	char *name;
};

struct range {
	u64 off, end;
};

struct ranges {
	u32 n, cap;
	struct range *r;
};

void ranges_add(struct ranges *r, u64 off, u64 end);
void ranges_subtract(struct ranges *r, u64 off, u64 end);
/* All of take at once, which is sorted for it. */
void ranges_subtract_all(struct ranges *r, struct ranges *take);

struct book {
	struct store *store;
	u32 n, cap;
	struct promise *p;
	u32 n_inodes;
	struct inode_book *inodes;	/* by fs_inode.id */
	u32 n_log, cap_log;
	struct logged *log;		/* ascending seq */
};

struct inode_book *book_inode(struct book *b, const struct fs_inode *i);
/* A promise of inode i; path is copied, content's reference passes. */
struct promise *book_add(struct book *b, const struct fs_inode *i,
			 const struct promise *p);
/*
 * What change, of an operation that began at start, takes back. No operation
 * that returns later began before least_start.
 */
void book_take_back(struct book *b, const struct fs_change *change, u64 start,
		    u64 least_start);
/* Everything, from start on. */
void book_take_back_all(struct book *b, u64 start);
void book_log(struct book *b, u64 seq, const struct fs_change *change);
/* Promises that bind somewhere; the rest is freed with the book. */
void book_close(struct book *b, struct promises *ret);

#endif
