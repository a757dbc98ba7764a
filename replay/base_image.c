// SPDX-License-Identifier: GPL-2.0-or-later
#include "base_image.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define READ_BYTES (1U << 20)

struct base_extent {
	u64 sector, sectors;
	const u8 *data;		/* NULL: in the file */
};

struct base_image {
	u64 device_bytes;
	int fd;			/* -1: everything is in memory */
	u64 file_bytes;
	size_t n, cap;
	struct base_extent *extents;
};

struct base_image *base_image_new(u64 device_bytes)
{
	struct base_image *b = xzalloc(sizeof(*b));

	b->device_bytes = device_bytes;
	b->fd = -1;
	return b;
}

void base_image_free(struct base_image *b)
{
	if (!b)
		return;
	closep(&b->fd);
	free(b->extents);
	free(b);
}

static void add_extent(struct base_image *b, u64 sector, u64 sectors,
		       const void *data)
{
	GROW(b->extents, b->n, b->cap);
	b->extents[b->n++] = (struct base_extent){
		.sector = sector,
		.sectors = sectors,
		.data = data,
	};
}

int base_image_add(struct base_image *b, u64 offset, const void *data,
		   u32 bytes, struct errmsg *em)
{
	if (offset > b->device_bytes || bytes > b->device_bytes - offset)
		return errmsg_set(em, EBADMSG,
				  "base image: %u bytes at %llu end past the"
				  " device's %llu bytes", bytes,
				  (unsigned long long)offset,
				  (unsigned long long)b->device_bytes);
	if (offset % SECTOR_SIZE || bytes % SECTOR_SIZE)
		return errmsg_set(em, EBADMSG,
				  "base image: %u bytes at %llu are not whole"
				  " sectors", bytes,
				  (unsigned long long)offset);
	if (bytes)
		add_extent(b, offset / SECTOR_SIZE, bytes / SECTOR_SIZE, data);
	return 0;
}

static int check_hash(struct base_image *b, const char *path, const char *want,
		      struct errmsg *em)
{
	_cleanup_free_ u8 *buf = xmalloc(READ_BYTES);
	XXH3_state_t *state = XXH3_createState();
	char have[17];
	int err = 0;

	if (!state)
		return errmsg_set(em, ENOMEM, "hashing %s", path);
	XXH3_64bits_reset(state);
	for (u64 pos = 0; pos < b->file_bytes && !err;) {
		size_t len = MIN(b->file_bytes - pos, (u64)READ_BYTES);

		err = pread_full(b->fd, buf, len, pos);
		XXH3_64bits_update(state, buf, len);
		pos += len;
	}
	snprintf(have, sizeof(have), "%016llx",
		 (unsigned long long)XXH3_64bits_digest(state));
	XXH3_freeState(state);
	if (err)
		return errmsg_set(em, err, "reading the base image %s", path);
	if (strcasecmp(have, want))
		return errmsg_set(em, ESTALE,
				  "%s is not the base image this recording"
				  " started from (XXH3 %s, recorded %s)", path,
				  have, want);
	return 0;
}

/* The file's data, hole by hole; where holes cannot be asked for, all of it. */
static void map_file(struct base_image *b)
{
	const u64 whole = b->file_bytes / SECTOR_SIZE;

	for (u64 pos = 0; pos < whole;) {
		off_t data = lseek(b->fd, pos * SECTOR_SIZE, SEEK_DATA);
		off_t hole;
		u64 end = whole;

		if (data < 0 && errno == ENXIO)
			return;
		if (data >= 0) {
			pos = MAX(pos, (u64)data / SECTOR_SIZE);
			hole = lseek(b->fd, data, SEEK_HOLE);
			if (hole > data)
				end = (hole + SECTOR_SIZE - 1) / SECTOR_SIZE;
			end = MIN(end, whole);
		}
		if (pos >= end)
			return;
		add_extent(b, pos, end - pos, NULL);
		pos = end;
	}
}

int base_image_open(struct base_image *b, const char *path, const char *xxh3,
		    u64 want_bytes, struct errmsg *em)
{
	struct stat st;
	off_t end;
	int err;

	closep(&b->fd);
	b->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (b->fd < 0)
		return errmsg_set(em, errno, "opening the base image %s", path);
	if (fstat(b->fd, &st) < 0)
		return errmsg_set(em, errno, "%s", path);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return errmsg_set(em, 0, "the base image %s is neither a file"
				  " nor a block device", path);
	end = lseek(b->fd, 0, SEEK_END);
	if (end < 0)
		return errmsg_set(em, errno, "%s", path);
	b->file_bytes = end;
	if (want_bytes && b->file_bytes != want_bytes)
		return errmsg_set(em, ESTALE, "the base image %s has %llu"
				  " bytes, the recording started from %llu", path,
				  (unsigned long long)b->file_bytes,
				  (unsigned long long)want_bytes);
	if (b->file_bytes > b->device_bytes || b->file_bytes % SECTOR_SIZE)
		return errmsg_set(em, 0, "the base image %s has %llu bytes, the"
				  " device %llu", path,
				  (unsigned long long)b->file_bytes,
				  (unsigned long long)b->device_bytes);
	err = xxh3 ? check_hash(b, path, xxh3, em) : 0;
	if (err)
		return err;
	b->n = 0;
	map_file(b);
	return 0;
}

bool base_image_is_file(const struct base_image *b)
{
	return b->fd >= 0;
}

bool base_image_is(const struct base_image *b, dev_t dev, ino_t ino)
{
	struct stat st;

	return b->fd >= 0 && fstat(b->fd, &st) == 0 && st.st_dev == dev &&
	       st.st_ino == ino;
}

static int by_sector(const void *a, const void *b)
{
	const struct base_extent *x = a, *y = b;

	return x->sector < y->sector ? -1 : x->sector > y->sector;
}

int base_image_seal(struct base_image *b, struct errmsg *em)
{
	if (b->n)
		qsort(b->extents, b->n, sizeof(*b->extents), by_sector);
	for (size_t i = 1; i < b->n; i++) {
		const struct base_extent *prev = &b->extents[i - 1];

		if (prev->sector + prev->sectors > b->extents[i].sector)
			return errmsg_set(em, EBADMSG, "base image: sector %llu"
					  " is stored twice",
					  (unsigned long long)
					  b->extents[i].sector);
	}
	return 0;
}

/* The first extent that ends past sector; n when none does. */
static size_t extent_at(const struct base_image *b, u64 sector)
{
	size_t lo = 0, hi = b->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct base_extent *e = &b->extents[mid];

		if (e->sector + e->sectors <= sector)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

u64 base_image_run(const struct base_image *b, u64 sector, u64 max,
		   bool *ret_hole)
{
	size_t i = extent_at(b, sector);
	const struct base_extent *e;

	if (i == b->n) {
		*ret_hole = true;
		return max;
	}
	e = &b->extents[i];
	*ret_hole = sector < e->sector;
	if (*ret_hole)
		return MIN(max, e->sector - sector);
	return MIN(max, e->sector + e->sectors - sector);
}

static void read_stored(const struct base_image *b, u64 sector, u8 *data,
			u64 sectors)
{
	const struct base_extent *e = &b->extents[extent_at(b, sector)];
	int err;

	if (e->data) {
		memcpy(data, e->data + (sector - e->sector) * SECTOR_SIZE,
		       sectors * SECTOR_SIZE);
		return;
	}
	err = pread_full(b->fd, data, sectors * SECTOR_SIZE,
			 sector * SECTOR_SIZE);
	if (!err)
		return;
	fprintf(stderr, "blkbox: reading the base image: %s\n", strerror(-err));
	_exit(EXIT_CANNOT_RUN);
}

void base_image_read(const struct base_image *b, u64 sector, void *data,
		     u64 sectors)
{
	u8 *out = data;
	bool hole;

	while (sectors) {
		u64 run = base_image_run(b, sector, sectors, &hole);

		if (hole)
			memset(out, 0, run * SECTOR_SIZE);
		else
			read_stored(b, sector, out, run);
		out += run * SECTOR_SIZE;
		sector += run;
		sectors -= run;
	}
}
