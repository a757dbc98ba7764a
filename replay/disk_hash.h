/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Identity of a disk: the sum, modulo 2^128, over its sectors of
 * hash128(sector number, content), a sector of zeroes counting nothing (so
 * that a discard of a whole device is cheap). Order does not matter, and one
 * write changes it in O(sectors written).
 */
#ifndef BLKBOX_DISK_HASH_H
#define BLKBOX_DISK_HASH_H

#include "segments.h"

typedef unsigned __int128 u128;

/* data: sectors * 512 bytes that stand at sector. */
u128 hash_sectors(u64 sector, const u8 *data, u64 sectors);
u128 hash_unit(const struct trace *t, const struct unit *u, u64 sector,
	       u64 sectors);
u128 hash_base(const struct trace *t, u64 sector, u64 sectors);

/* Disk -> its number, 0, 1, ... in order of first appearance. */
struct disk_table;
struct disk_table *disk_table_new(void);
void disk_table_free(struct disk_table *d);
u32 disk_table_count(const struct disk_table *d);
/* 1: new, 0: seen before, -EOVERFLOW: too many. */
int disk_table_add(struct disk_table *d, u128 disk, u32 *ret_no);

#endif
