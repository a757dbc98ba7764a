// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Disk images: going from state to state leaves the same bytes as building
 * the state afresh, whatever was written behind the image's back; and two
 * states have the same identity exactly when they have the same bytes.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <xxhash.h>

#include "../../replay/enumerate.h"
#include "../../replay/image.h"
#include "../../replay/intake.h"
#include "trace_build.h"

#define IMAGE_BYTES (TB_SECTORS * SECTOR_SIZE)
#define TRACES 150
#define STEPS 60

static int memory_file(void)
{
	int fd = memfd_create("test_image", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* ---- random states ----------------------------------------------------- */

struct state {
	u32 drop[256];
	struct disk_state st;
};

static void random_state(struct state *s, const struct trace *t,
			 struct tb_random *r)
{
	u32 one_in = 1 + tb_below(r, 5);

	s->st = (struct disk_state){ .drop = s->drop };
	s->st.n_units = tb_below(r, t->n_units + 1);
	for (u32 u = 0; u < s->st.n_units && s->st.n_drop < 256; u++)
		if (!tb_below(r, one_in))
			s->drop[s->st.n_drop++] = u;
}

/* Built afresh, in the plainest way: the base, then the units one by one. */
static void build_plainly(const struct trace *t, const struct disk_state *st,
			  u8 *image)
{
	trace_base_read(t, 0, image, t->bytes / SECTOR_SIZE);
	for (u32 u = 0, d = 0; u < st->n_units; u++) {
		const struct unit *x = &t->units[u];

		if (d < st->n_drop && st->drop[d] == u)
			d++;
		else
			trace_unit_read(t, x, x->sector,
					image + x->sector * SECTOR_SIZE,
					x->sectors);
	}
}

static void read_image(int fd, u8 *image, size_t bytes)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, bytes);
	assert_int_equal(pread_full(fd, image, bytes, 0), 0);
}

/* What recovery or a checker does: writes somewhere, and is seen doing it. */
static void scribble(struct image *m, int fd, struct tb_random *r)
{
	u8 junk[SECTOR_SIZE * 3];

	if (!tb_below(r, 12)) {
		memset(junk, 0xee, sizeof(junk));
		for (u64 at = 0; at < IMAGE_BYTES; at += SECTOR_SIZE)
			assert_int_equal(pwrite_full(fd, junk, SECTOR_SIZE,
						     at), 0);
		image_touched_unknown(m);
		return;
	}
	for (u32 n = tb_below(r, 4); n; n--) {
		u32 sectors = 1 + tb_below(r, 3);
		u32 at = tb_below(r, TB_SECTORS - sectors + 1);

		memset(junk, tb_below(r, 256), sizeof(junk));
		assert_int_equal(pwrite_full(fd, junk, sectors * SECTOR_SIZE,
					     at * SECTOR_SIZE), 0);
		image_touched(m, at, sectors);
	}
}

static void random_opts(struct trace_opts *o, struct tb_random *r)
{
	*o = (struct trace_opts){
		.model = tb_below(r, 3),
		.discard = tb_below(r, 3),
		.torn_bytes = tb_below(r, 2) * SECTOR_SIZE,
	};
}

static void walk_states(u64 seed)
{
	struct tb_random r = { .state = seed };
	u8 plain[IMAGE_BYTES], image[IMAGE_BYTES], sector[SECTOR_SIZE];
	struct trace_build b;
	struct trace_opts o;
	struct image_index *x;
	struct image *m;
	struct trace *t;
	struct state s;
	int fd;

	tb_fill_random(&b, &r, 12);
	random_opts(&o, &r);
	t = tb_trace(&b, &o);
	x = image_index_new(t);
	fd = memory_file();
	assert_int_equal(image_new(t, x, fd, &m, NULL), 0);
	for (u32 i = 0; i < STEPS; i++) {
		random_state(&s, t, &r);
		scribble(m, fd, &r);
		assert_int_equal(image_goto(m, &s.st, NULL), 0);
		build_plainly(t, &s.st, plain);
		read_image(fd, image, sizeof(image));
		if (memcmp(image, plain, sizeof(plain))) {
			fprintf(stderr, "seed %llu step %u: image differs\n",
				(unsigned long long)seed, i);
			tb_print(&b);
			fail();
		}
		for (u32 k = 0; k < TB_SECTORS; k++) {
			disk_sector(t, x, &s.st, k, sector);
			assert_memory_equal(sector, plain + k * SECTOR_SIZE,
					    SECTOR_SIZE);
		}
	}
	image_free(m);
	close(fd);
	image_index_free(x);
	trace_free(t);
}

static void going_anywhere_equals_building_afresh(void **state)
{
	const u32 n = TRACES * (getenv("BLKBOX_LONG") ? 20 : 1);

	(void)state;
	for (u32 i = 0; i < n; i++)
		walk_states(i + 1);
}

/* ---- identity ---------------------------------------------------------- */

struct known {
	struct hash128 id;
	XXH128_hash_t bytes;
};

struct identities {
	const struct trace *t;
	const struct image_index *x;
	struct image *m;
	int fd;
	size_t n, cap;
	struct known *known;
};

static int compare_identity(void *ctx, const struct site *s)
{
	struct identities *v = ctx;
	const struct disk_state st = { v->t->points[s->point].n_units,
				       s->n_drop, s->drop };
	u8 image[IMAGE_BYTES];
	XXH128_hash_t h;

	assert_int_equal(image_goto(v->m, &st, NULL), 0);
	read_image(v->fd, image, sizeof(image));
	h = XXH3_128bits(image, sizeof(image));
	if (s->first) {
		for (size_t i = 0; i < v->n; i++) {
			assert_false(XXH128_isEqual(v->known[i].bytes, h));
			assert_memory_not_equal(&v->known[i].id, &s->disk,
						sizeof(s->disk));
		}
		GROW(v->known, v->n, v->cap);
		v->known[v->n++] = (struct known){ s->disk, h };
	}
	assert_true(s->disk_no < v->n);
	assert_true(XXH128_isEqual(v->known[s->disk_no].bytes, h));
	assert_memory_equal(&v->known[s->disk_no].id, &s->disk,
			    sizeof(s->disk));
	return 0;
}

static void same_identity_exactly_when_same_bytes(void **state)
{
	const struct enum_opts eo = { .k = 2, .max_sites = 400 };

	(void)state;
	for (u64 seed = 1; seed <= 60; seed++) {
		struct tb_random r = { .state = seed };
		struct trace_build b;
		struct trace_opts o;
		struct identities v = { .fd = memory_file() };
		struct image_index *x;
		struct enumerator *e;
		struct trace *t;

		tb_fill_random(&b, &r, 8);
		random_opts(&o, &r);
		t = tb_trace(&b, &o);
		v.t = t;
		v.x = x = image_index_new(t);
		assert_int_equal(image_new(t, x, v.fd, &v.m, NULL), 0);
		e = enumerator_new(t);
		assert_int_equal(enumerate(e, &eo, compare_identity, &v, NULL),
				 0);
		enumerator_free(e);
		image_free(v.m);
		image_index_free(x);
		trace_free(t);
		free(v.known);
		close(v.fd);
	}
}

/* ---- how much is written ----------------------------------------------- */

struct one {
	struct trace *t;
	struct image_index *x;
	struct image *m;
	int fd;
};

static void one_open(struct one *o, const char *script)
{
	const struct trace_opts opts = { .model = MODEL_DEVICE };
	struct trace_build b;

	tb_script(&b, script);
	memset(b.base, 9, sizeof(b.base));
	o->t = tb_trace(&b, &opts);
	o->x = image_index_new(o->t);
	o->fd = memory_file();
	assert_int_equal(image_new(o->t, o->x, o->fd, &o->m, NULL), 0);
}

static void one_close(struct one *o)
{
	image_free(o->m);
	image_index_free(o->x);
	trace_free(o->t);
	close(o->fd);
}

static u64 written_going(struct one *o, u32 n_units, u32 n_drop,
			 const u32 *drop)
{
	const struct disk_state st = { n_units, n_drop, drop };
	u64 before = image_written_sectors(o->m);

	assert_int_equal(image_goto(o->m, &st, NULL), 0);
	return image_written_sectors(o->m) - before;
}

static void only_what_differs_is_written(void **state)
{
	static const u32 first[] = { 0 }, second[] = { 1 };
	struct one o;

	(void)state;
	one_open(&o, "W1@0+4 W2@8+2 W3@1+1 W4@8+2");
	assert_int_equal(written_going(&o, 2, 0, NULL), 6);
	assert_int_equal(written_going(&o, 2, 0, NULL), 0);
	assert_int_equal(written_going(&o, 2, 1, second), 2);
	/* both drop sets: 2 comes back, 1 goes */
	assert_int_equal(written_going(&o, 2, 1, first), 6);
	assert_int_equal(written_going(&o, 3, 0, NULL), 4);
	/* what lies below another unit does not show */
	assert_int_equal(written_going(&o, 4, 0, NULL), 2);
	assert_int_equal(written_going(&o, 4, 1, second), 0);
	image_touched(o.m, 12, 2);
	image_touched(o.m, 14, 1000);
	image_touched(o.m, 4000, 7);
	assert_int_equal(written_going(&o, 4, 1, second), 4);
	/* what is touched twice, or differs anyway, is written once */
	image_touched(o.m, 12, 2);
	image_touched(o.m, 7, 2);
	image_touched(o.m, 13, 1);
	image_touched(o.m, 0, 2);
	assert_int_equal(written_going(&o, 4, 1, first), 2 + 2 + 4);
	assert_int_equal(written_going(&o, 4, 1, second), 3);
	image_touched_unknown(o.m);
	assert_int_equal(written_going(&o, 4, 1, second), TB_SECTORS);
	assert_int_equal(written_going(&o, 4, 1, second), 0);
	one_close(&o);
}

static void impossible_states_are_refused(void **state)
{
	static const u32 unsorted[] = { 1, 0 }, twice[] = { 0, 0 },
			 late[] = { 2 };
	const struct disk_state bad[] = {
		{ 4, 0, NULL }, { 2, 2, unsorted }, { 2, 2, twice },
		{ 2, 1, late },
	};
	struct one o;

	(void)state;
	one_open(&o, "W1 W2 W3");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(image_goto(o.m, &bad[i], NULL), -EINVAL);
	one_close(&o);
}

static void after_a_failed_write_everything_is_rebuilt(void **state)
{
	const struct disk_state all = { 2, 0, NULL }, none = { 0, 0, NULL };
	u8 plain[IMAGE_BYTES], image[IMAGE_BYTES];
	struct rlimit old, low;
	struct errmsg em = { "" };
	struct one o;
	int err;

	(void)state;
	one_open(&o, "W1 W9");
	/* the first write gets through, the second does not */
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = (struct rlimit){ 5 * SECTOR_SIZE, old.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	err = image_goto(o.m, &all, &em);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(err, -EFBIG);
	assert_non_null(strstr(em.text, "writing the image"));
	read_image(o.fd, image, sizeof(image));
	assert_int_equal(image[SECTOR_SIZE], 1);
	assert_int_equal(image_goto(o.m, &none, NULL), 0);
	build_plainly(o.t, &none, plain);
	read_image(o.fd, image, sizeof(image));
	assert_memory_equal(image, plain, sizeof(plain));
	one_close(&o);
}

/* ---- large and sparse -------------------------------------------------- */

static void issue(struct intake *in, u64 seq, u8 op, u64 sector, u32 sectors,
		  u8 fill)
{
	u32 bytes = op == BLK_WRITE ? sectors * SECTOR_SIZE : 0;
	_cleanup_free_ u8 *data = xmalloc(bytes);
	struct rec_issue i = { .op = op, .sector = sector, .sectors = sectors,
			       .data = data, .data_bytes = bytes };

	memset(data, fill, bytes);
	if (!bytes)
		i.data = NULL;
	assert_int_equal(intake_issue(in, seq, 0, &i, NULL), 0);
}

static void large_image_stays_sparse(void **state)
{
	const u64 bytes = 4ULL << 30;
	const struct trace_opts o = { .model = MODEL_DEVICE };
	struct intake *in = intake_new(TB_DEV, bytes, true);
	static u8 base[1 << 16];
	const struct rec_base rb = { 1 << 30, base, sizeof(base) };
	struct image_index *x;
	struct image *m;
	struct trace *t;
	struct stat st;
	u8 sector[SECTOR_SIZE];
	int fd = memory_file();

	(void)state;
	memset(base, 5, sizeof(base));
	assert_int_equal(intake_base(in, &rb, NULL), 0);
	issue(in, 1, BLK_WRITE, 1000, 4096, 6);
	issue(in, 2, BLK_DISCARD, 0, bytes / SECTOR_SIZE, 0);
	issue(in, 3, BLK_WRITE, 2000, 8, 7);
	assert_int_equal(intake_finish(in, &o, &t, NULL), 0);
	x = image_index_new(t);
	assert_int_equal(image_new(t, x, fd, &m, NULL), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_blocks * 512, sizeof(base));
	for (u32 n = 0; n <= 3; n++) {
		const struct disk_state ds = { n, 0, NULL };

		assert_int_equal(image_goto(m, &ds, NULL), 0);
	}
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, bytes);
	assert_true(st.st_blocks * 512 <= 8192);
	assert_int_equal(pread_full(fd, sector, sizeof(sector), 2003 * 512),
			 0);
	assert_int_equal(sector[0], 7);
	image_free(m);
	image_index_free(x);
	trace_free(t);
	close(fd);
}

static void base_replaces_what_the_file_held(void **state)
{
	const struct trace_opts o = { .model = MODEL_DEVICE };
	u8 image[IMAGE_BYTES], plain[IMAGE_BYTES];
	struct trace_build b;
	struct trace *t;
	int fd = memory_file();

	(void)state;
	memset(image, 3, sizeof(image));
	assert_int_equal(pwrite_full(fd, image, sizeof(image), 0), 0);
	assert_int_equal(pwrite_full(fd, image, sizeof(image), 100000), 0);
	tb_script(&b, "W1");
	b.base[2] = 4;
	t = tb_trace(&b, &o);
	assert_int_equal(trace_base_write(t, fd, NULL), 0);
	trace_base_read(t, 0, plain, TB_SECTORS);
	assert_int_equal(plain[2 * SECTOR_SIZE], 4);
	assert_int_equal(plain[0], 0);
	read_image(fd, image, sizeof(image));
	assert_memory_equal(image, plain, sizeof(plain));
	trace_free(t);
	close(fd);
}

static void damaged_base_is_refused(void **state)
{
	static const struct {
		u64 a, b;
		u32 bytes;
	} cases[] = {
		{ 0, 0, 512 },	    { 0, 512, 1024 },  { 1024, 512, 1024 },
		{ 0, 1 << 20, 512 }, { 0, 100, 512 },  { 0, 512, 100 },
		{ 0, UINT64_MAX - 511, 1024 },
	};
	static const u8 data[1024];
	const struct trace_opts o = { .model = MODEL_DEVICE };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct intake *in = intake_new(TB_DEV, 1 << 20, true);
		struct rec_base a = { cases[i].a, data, 1024 };
		struct rec_base b = { cases[i].b, data, cases[i].bytes };
		struct trace *t;
		int err;

		err = intake_base(in, &a, NULL);
		if (!err)
			err = intake_base(in, &b, NULL);
		if (!err)
			err = intake_finish(in, &o, &t, NULL);
		assert_int_equal(err, -EBADMSG);
		intake_free(in);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(going_anywhere_equals_building_afresh),
		cmocka_unit_test(same_identity_exactly_when_same_bytes),
		cmocka_unit_test(only_what_differs_is_written),
		cmocka_unit_test(impossible_states_are_refused),
		cmocka_unit_test(after_a_failed_write_everything_is_rebuilt),
		cmocka_unit_test(large_image_stays_sparse),
		cmocka_unit_test(base_replaces_what_the_file_held),
		cmocka_unit_test(damaged_base_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
