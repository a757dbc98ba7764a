/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Enumeration of crash sites. A site is a crash point and the set of pending
 * units that are lost there. Two sites are the same disk when every sector
 * holds the same bytes; a disk's identity is the sum over its sectors of
 * hash128(sector number, content), taken relative to the base image, so that
 * one unit changes it in O(sectors of the unit).
 *
 * Invariants:
 *  1. Every site visited is reachable under the trace's crash model, and drops
 *     at most k units (all: any number).
 *  2. Sites are visited by point, then number of drops, then the drop set in
 *     lexicographic order of unit numbers. The first site of a disk is its
 *     canonical witness: the earliest point and the smallest drop set.
 *  3. The set of disks equals a brute-force enumeration's.
 */
#ifndef BLKBOX_ENUMERATE_H
#define BLKBOX_ENUMERATE_H

#include "trace.h"

#define K_ALL UINT32_MAX

struct site {
	u32 point;		/* index into trace.points */
	u32 n_drop;
	const u32 *drop;	/* unit numbers, ascending */
	struct hash128 disk;	/* identity */
	u32 disk_no;		/* 0, 1, ... in order of first appearance */
	bool first;		/* this is the disk's canonical witness */
};

struct enum_opts {
	u32 k;
	u32 min_drop;		/* only sites with at least this many drops
				 * (for widening); 0 */
	u64 max_sites;		/* 0: no bound */
	u64 from_seq, to_seq;	/* crash points within; 0, SEQ_NEVER */
};

struct enum_stats {
	u64 points;
	u64 sites;	/* (point, drop set) pairs visited */
	u64 distinct;	/* disks that no call before and no site before had */
	bool truncated;	/* max_sites or visit() ended it */
};

struct enumerator;
/* Keeps the table of disks seen, so that widening k continues with the same
 * numbers. Refers to t. */
struct enumerator *enumerator_new(const struct trace *t);
void enumerator_free(struct enumerator *e);

/*
 * visit is called for each site, also for one whose disk was there before
 * (first is false then): what must be durable is a matter of the point, not of
 * the disk alone. The site is valid during the call. visit returns 0 to go on,
 * positive to stop (enumerate() returns 0 then), negative errno to fail.
 * opts->to_seq 0 counts as SEQ_NEVER. ret_stats may be NULL, and is written on
 * failure, too. -EOVERFLOW: more than 2^32 disks.
 */
int enumerate(struct enumerator *e, const struct enum_opts *opts,
	      int (*visit)(void *ctx, const struct site *s), void *ctx,
	      struct enum_stats *ret_stats);

#endif
