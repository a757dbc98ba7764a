// SPDX-License-Identifier: GPL-2.0-or-later
#include "disk_hash.h"

#include <string.h>
#include <xxhash.h>

#define CHUNK_SECTORS 256	/* read at once */

static bool all_zero(const u8 *sector)
{
	u64 w[SECTOR_SIZE / sizeof(u64)], any = 0;

	memcpy(w, sector, SECTOR_SIZE);
	for (size_t i = 0; i < ARRAY_SIZE(w); i++)
		any |= w[i];
	return !any;
}

u128 hash_sectors(u64 sector, const u8 *data, u64 sectors)
{
	u128 sum = 0;

	for (u64 i = 0; i < sectors; i++, data += SECTOR_SIZE) {
		struct {
			u64 lo, hi, sector;
		} key;
		XXH128_hash_t h;

		if (all_zero(data))
			continue;
		h = XXH3_128bits(data, SECTOR_SIZE);
		key.lo = h.low64;
		key.hi = h.high64;
		key.sector = sector + i;
		h = XXH3_128bits(&key, sizeof(key));
		sum += (u128)h.high64 << 64 | h.low64;
	}
	return sum;
}

u128 hash_unit(const struct trace *t, const struct unit *u, u64 sector,
	       u64 sectors)
{
	u8 chunk[CHUNK_SECTORS * SECTOR_SIZE];
	u128 sum = 0;

	if (trace_unit_is_zero(t, u))
		return 0;
	if (u->data)
		return hash_sectors(sector, u->data + (sector - u->sector) *
					    SECTOR_SIZE, sectors);
	while (sectors) {
		u64 n = MIN(sectors, (u64)CHUNK_SECTORS);

		trace_unit_read(t, u, sector, chunk, n);
		sum += hash_sectors(sector, chunk, n);
		sector += n;
		sectors -= n;
	}
	return sum;
}

u128 hash_base(const struct trace *t, u64 sector, u64 sectors)
{
	u8 chunk[CHUNK_SECTORS * SECTOR_SIZE];
	u128 sum = 0;
	bool hole;

	while (sectors) {
		u64 n = trace_base_run(t, sector, sectors, &hole);

		if (!hole) {
			n = MIN(n, (u64)CHUNK_SECTORS);
			trace_base_read(t, sector, chunk, n);
			sum += hash_sectors(sector, chunk, n);
		}
		sector += n;
		sectors -= n;
	}
	return sum;
}

/* ---- the disks seen: open addressing, linear probing ------------------- */

#define NO_DISK UINT32_MAX

struct slot {
	u64 lo, hi;
	u32 no;			/* NO_DISK: free */
};

struct disk_table {
	struct slot *slots;
	u64 size;		/* a power of two, at most half full */
	u32 n;
};

static struct slot *new_slots(u64 size)
{
	struct slot *s = xreallocarray(NULL, size, sizeof(*s));

	for (u64 i = 0; i < size; i++)
		s[i].no = NO_DISK;
	return s;
}

struct disk_table *disk_table_new(void)
{
	struct disk_table *d = xzalloc(sizeof(*d));

	d->size = 1024;
	d->slots = new_slots(d->size);
	return d;
}

void disk_table_free(struct disk_table *d)
{
	if (!d)
		return;
	free(d->slots);
	free(d);
}

u32 disk_table_count(const struct disk_table *d)
{
	return d->n;
}

static struct slot *find_slot(struct slot *slots, u64 size, u64 lo, u64 hi)
{
	u64 i = lo & (size - 1);

	while (slots[i].no != NO_DISK &&
	       (slots[i].lo != lo || slots[i].hi != hi))
		i = (i + 1) & (size - 1);
	return &slots[i];
}

static void grow(struct disk_table *d)
{
	struct slot *slots = new_slots(d->size * 2);

	for (u64 i = 0; i < d->size; i++) {
		const struct slot *s = &d->slots[i];

		if (s->no != NO_DISK)
			*find_slot(slots, d->size * 2, s->lo, s->hi) = *s;
	}
	free(d->slots);
	d->slots = slots;
	d->size *= 2;
}

int disk_table_add(struct disk_table *d, u128 disk, u32 *ret_no)
{
	u64 lo = disk, hi = disk >> 64;
	struct slot *s = find_slot(d->slots, d->size, lo, hi);

	if (s->no != NO_DISK) {
		*ret_no = s->no;
		return 0;
	}
	if (d->n == NO_DISK)
		return -EOVERFLOW;
	*s = (struct slot){ .lo = lo, .hi = hi, .no = d->n };
	*ret_no = d->n++;
	if (d->n > d->size / 2)
		grow(d);
	return 1;
}
