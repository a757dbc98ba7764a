// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena.h"
#include "intake_priv.h"

#define COPY_SECTORS 2048

int intake_finish(struct intake *a, const struct trace_opts *opts,
		    struct trace **ret, struct errmsg *em)
{
	int err;

	err = base_image_seal(a->t->base, em);
	if (!err)
		err = units_build(a, opts, em);
	if (err)
		return err;
	*ret = a->t;
	a->t = NULL;
	intake_free(a);
	return 0;
}

void trace_free(struct trace *t)
{
	if (!t)
		return;
	for (u32 i = 0; i < t->n_writes; i++)
		rec_issue_done(&t->writes[i].issue);
	for (u32 i = 0; i < t->n_ops; i++)
		rec_file_op_done(&t->ops[i].op);
	for (u32 i = 0; i < t->n_marks; i++)
		free(t->marks[i].text);
	for (u32 i = 0; i < t->n_states; i++)
		rec_state_done(t->store, &t->states[i]);
	if (t->store)
		store_free(t->store);
	free(t->writes);
	free(t->ops);
	free(t->marks);
	free(t->states);
	free(t->units);
	free(t->points);
	free(t->head_json);
	free(t->fs_type);
	free(t->mount_point);
	free(t->mount_options);
	base_image_free(t->base);
	arena_free(t->arena);
	free(t);
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom generators) */
static u64 mix(u64 x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

/* What a discarded sector may read as: bytes that depend on nothing but its
 * number. */
static void random_sector(u64 sector, u8 *data)
{
	for (u32 i = 0; i < SECTOR_SIZE; i += sizeof(u64)) {
		u64 v = mix(sector * SECTOR_SIZE + i);

		memcpy(data + i, &v, sizeof(v));
	}
}

bool trace_unit_is_zero(const struct trace *t, const struct unit *u)
{
	if (u->data)
		return false;
	return t->discard != DISCARD_RANDOM ||
	       (u->op != BLK_DISCARD && u->op != BLK_SECURE_ERASE);
}

void trace_unit_read(const struct trace *t, const struct unit *u, u64 sector,
		     void *data, u64 sectors)
{
	assert(sector >= u->sector &&
	       sector + sectors <= u->sector + u->sectors);
	if (u->data) {
		memcpy(data, u->data + (sector - u->sector) * SECTOR_SIZE,
		       sectors * SECTOR_SIZE);
	} else if (trace_unit_is_zero(t, u)) {
		memset(data, 0, sectors * SECTOR_SIZE);
	} else {
		for (u64 i = 0; i < sectors; i++)
			random_sector(sector + i,
				      (u8 *)data + i * SECTOR_SIZE);
	}
}

void trace_base_read(const struct trace *t, u64 sector, void *data, u32 sectors)
{
	base_image_read(t->base, sector, data, sectors);
}

u64 trace_base_run(const struct trace *t, u64 sector, u64 max, bool *ret_hole)
{
	return base_image_run(t->base, sector, max, ret_hole);
}

bool trace_base_is(const struct trace *t, dev_t dev, ino_t ino)
{
	return base_image_is(t->base, dev, ino);
}

static int make_empty(int fd, u64 bytes)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size && ftruncate(fd, 0) < 0)
		return -errno;
	return ftruncate(fd, bytes) < 0 ? -errno : 0;
}

int trace_base_write(const struct trace *t, int fd, struct errmsg *em)
{
	_cleanup_free_ u8 *data = xmalloc(COPY_SECTORS * SECTOR_SIZE);
	const u64 end = t->bytes / SECTOR_SIZE;
	u64 run;
	bool hole;
	int err;

	err = make_empty(fd, t->bytes);
	if (err)
		return errmsg_set(em, err, "making an image of %llu bytes",
				  (unsigned long long)t->bytes);
	for (u64 pos = 0; pos < end; pos += run) {
		run = trace_base_run(t, pos, end - pos, &hole);
		if (hole)
			continue;
		run = MIN(run, (u64)COPY_SECTORS);
		trace_base_read(t, pos, data, run);
		err = pwrite_full(fd, data, run * SECTOR_SIZE,
				  pos * SECTOR_SIZE);
		if (err)
			return errmsg_set(em, err, "writing the base image");
	}
	return 0;
}

int trace_point_at(const struct trace *t, u64 seq)
{
	u32 lo = 0, hi = t->n_points;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (t->points[mid].seq <= seq)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return -ENOENT;
	return lo - 1 <= INT32_MAX ? (int)(lo - 1) : -EOVERFLOW;
}
