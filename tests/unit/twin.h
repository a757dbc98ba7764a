/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The crash model's twin: the design's words applied to raw events, point by
 * point and subset by subset, on images of one byte a sector. It shares no
 * code with replay/, is slow, and is meant to be read beside the design.
 */
#ifndef BLKBOX_TESTS_TWIN_H
#define BLKBOX_TESTS_TWIN_H

#include "trace_build.h"

#define TWIN_UNITS 64
#define TWIN_RANDOM 255		/* a discarded sector under DISCARD_RANDOM */

struct twin_unit {
	u32 ev;			/* index of its issue */
	u64 issue_seq;
	u32 sector, sectors;
	u8 fill[TB_SECTORS];
};

/* One disk, and the site that is its canonical witness. */
struct twin_disk {
	u8 image[TB_SECTORS];
	u64 seq;
	u32 n_drop;
	u32 drop[TWIN_UNITS];
};

struct twin {
	const struct trace_build *b;
	const struct trace_opts *opts;
	u32 n_units;		/* of the whole trace; TWIN_UNITS + 1: too
				 * many */
	struct twin_unit unit[TWIN_UNITS];
	size_t n_disks, cap_disks;
	struct twin_disk *disks; /* ascending by image */
};

void twin_init(struct twin *w, const struct trace_build *b,
	       const struct trace_opts *opts);
void twin_done(struct twin *w);
/* Numbers of the units pending just after event seq, ascending. */
u32 twin_pending(const struct twin *w, u64 seq, u32 ret[TWIN_UNITS]);
/* The disk with all units issued up to seq but the dropped ones. */
void twin_image(const struct twin *w, u64 seq, const u32 *drop, u32 n_drop,
		u8 ret[TB_SECTORS]);
/* How many sites there are, at all events; UINT64_MAX: a great many. */
u64 twin_sites(const struct twin *w, u32 k);
/* Fills in disks: every subset at every event, the first of equals kept. */
void twin_enumerate(struct twin *w, u32 k);

#endif
