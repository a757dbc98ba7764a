/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sector -> the units that write it, without an entry per sector: the units'
 * ends cut the disk into segments, and all sectors of a segment are written by
 * the same units. A discard of the whole device costs one entry in each
 * segment the other units made.
 *
 * Invariants:
 *  1. Segments are ascending, do not overlap, and each is written by at least
 *     one unit. What lies between them is the base's.
 *  2. A segment's entries are unit numbers, ascending: the later stands above
 *     the earlier.
 *  3. A unit's segments are neighbours: unit_first[u] .. unit_end[u] - 1, and
 *     together they are exactly its sectors.
 */
#ifndef BLKBOX_SEGMENTS_H
#define BLKBOX_SEGMENTS_H

#include "trace.h"

struct segment {
	u64 sector, sectors;
	u64 first, end;		/* its entries */
};

struct segments {
	u32 n;
	struct segment *seg;
	u64 n_entries;
	u32 *entry;		/* unit numbers */
	u32 *unit_first, *unit_end;
};

#define UNIT_NONE UINT32_MAX	/* the base */

void segments_build(struct segments *s, const struct trace *t);
void segments_done(struct segments *s);

/* The first segment that ends past sector; s->n when none does. */
u32 segments_find(const struct segments *s, u64 sector);
/* How many entries of the segment are units below n_units. */
u64 segment_depth(const struct segments *s, const struct segment *g,
		  u32 n_units);

#endif
