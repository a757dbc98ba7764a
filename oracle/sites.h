/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The book of sites visited, kept by the parent: which disk occurs at which
 * crash points.
 *
 * A recovered tree depends on the disk alone, but what was promised, and what
 * a checker was told, depends on the crash point. The numbers at which either
 * changes cut the recording into segments; within one segment all crash points
 * are alike.
 *
 * Invariants:
 *  1. Every site visited is counted in exactly one entry, that of its disk and
 *     segment.
 *  2. An entry's witness is the first site visited with its disk and segment:
 *     fewest drops, then the earliest point.
 */
#ifndef BLKBOX_SITES_H
#define BLKBOX_SITES_H

#include "../replay/enumerate.h"
#include "expected.h"

#define SITE_NONE UINT32_MAX

struct site_entry {
	u32 disk;
	u32 segment;
	u32 point;		/* witness */
	u32 n_drop;
	u64 drop_off;		/* into site_book.drops */
	u64 count;		/* sites */
	u32 next;		/* entry of the same disk, SITE_NONE */
	u32 check;		/* checker's failure there, SITE_NONE */
};

struct site_disk {
	u32 first, last;	/* entries */
	u32 verdict;		/* caller's; SITE_NONE: not judged */
};

struct site_book {
	u32 n_bounds, cap_bounds;
	u64 *bounds;		/* ascending: where segments begin */
	u32 n, cap;
	struct site_entry *entries;
	u32 n_disks, cap_disks;
	struct site_disk *disks;
	u64 n_drops, cap_drops;
	u32 *drops;
	u64 n_sites;
};

/* Segments begin where a promise begins or stops to bind, at data_seq (from
 * where data is expected; 0), at lost_seq (from where expected states are
 * unknown; SEQ_NEVER) and, with marks, where a mark was made. p may be NULL. */
void site_book_init(struct site_book *b, const struct trace *t,
		    const struct promises *p, u64 data_seq, u64 lost_seq,
		    bool marks);
void site_book_done(struct site_book *b);
/* The entry of this site; ret_new: there was none. */
u32 site_book_note(struct site_book *b, const struct trace *t,
		   const struct site *s, bool *ret_new);
u32 site_segment(const struct site_book *b, u64 seq);
const u32 *site_drops(const struct site_book *b, const struct site_entry *e);

#endif
