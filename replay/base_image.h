/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The disk as it was when recording began: extents kept in memory (embedded
 * in the recording) or in a file beside it. What no extent covers is zeroes.
 *
 * Invariants:
 *  1. Extents are whole sectors, ascending, do not overlap, and end within
 *     the device; base_image_seal() sees to it.
 *  2. Nothing is read before base_image_seal(), nothing added after.
 */
#ifndef BLKBOX_BASE_IMAGE_H
#define BLKBOX_BASE_IMAGE_H

#include "base.h"

struct base_image;
struct base_image *base_image_new(u64 device_bytes);
void base_image_free(struct base_image *b);	/* NULL is fine */

/* data stays the caller's and must outlive b. */
int base_image_add(struct base_image *b, u64 offset, const void *data,
		   u32 bytes, struct errmsg *em);
/*
 * Takes the content from a file instead. xxh3: hexadecimal XXH3-64 of the
 * whole file that it must have, or NULL; want_bytes: its size, or 0.
 */
int base_image_open(struct base_image *b, const char *path, const char *xxh3,
		    u64 want_bytes, struct errmsg *em);
bool base_image_is_file(const struct base_image *b);
/* Is it this very file? */
bool base_image_is(const struct base_image *b, dev_t dev, ino_t ino);
int base_image_seal(struct base_image *b, struct errmsg *em);

/* A failing read of the file behind it ends the program: it was whole when
 * it was opened. */
void base_image_read(const struct base_image *b, u64 sector, void *data,
		     u64 sectors);
/* How many sectors from here, at most max, are all stored or all a hole. */
u64 base_image_run(const struct base_image *b, u64 sector, u64 max,
		   bool *ret_hole);

#endif
