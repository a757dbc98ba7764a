/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a disk holds at a site, and how to bring an image there cheaply.
 *
 * An image knows the state it shows and the sectors somebody else (recovery, a
 * checker) has written since. Going to another state writes only the sectors
 * that may differ: those of units between the two points, those of both drop
 * sets, and those written behind its back.
 */
#ifndef BLKBOX_IMAGE_H
#define BLKBOX_IMAGE_H

#include "trace.h"

/* A disk: every unit below n_units except the dropped ones, on the base. */
struct disk_state {
	u32 n_units;
	u32 n_drop;
	const u32 *drop;	/* ascending unit numbers */
};

struct image_index;	/* sector -> the units that wrote it; shared, read-only */
struct image_index *image_index_new(const struct trace *t);
void image_index_free(struct image_index *x);

/* The content of one sector in a state. The one place that says so. */
void disk_sector(const struct trace *t, const struct image_index *x,
		 const struct disk_state *st, u64 sector, u8 ret[SECTOR_SIZE]);

struct image;
/* fd: a memfd or file; it is made the base's content. The image borrows fd. */
int image_new(const struct trace *t, const struct image_index *x, int fd,
	      struct image **ret, struct errmsg *em);
void image_free(struct image *m);
int image_goto(struct image *m, const struct disk_state *st,
	       struct errmsg *em);
/* Somebody else wrote these sectors; the next image_goto() puts them right. */
void image_touched(struct image *m, u64 sector, u64 sectors);
/* Nobody knows what was written: the next image_goto() rebuilds everything. */
void image_touched_unknown(struct image *m);
u64 image_written_sectors(const struct image *m); /* by image_goto(), total */

#endif
