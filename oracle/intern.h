/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Byte strings to small numbers: equal bytes get equal numbers, 0, 1, ... in
 * order of first appearance. Exploring meets the same tree, the same verdict
 * and the same finding over and over; each is held once.
 */
#ifndef BLKBOX_INTERN_H
#define BLKBOX_INTERN_H

#include "../replay/base.h"

struct intern_item {
	u64 hash;
	size_t len;
	u8 *data;
};

struct intern {
	u32 n, cap;
	struct intern_item *items;
	u32 n_slots;	/* a power of two, or 0 */
	u32 *slots;	/* item number + 1, 0: free */
	size_t bytes;	/* held in all */
};

/* The number of these bytes; ret_new (may be NULL): they were not there. */
u32 intern_put(struct intern *in, const void *data, size_t len, bool *ret_new);
void intern_done(struct intern *in);

#endif
