// SPDX-License-Identifier: GPL-2.0-or-later
/* Enumeration: the design's examples, and its bounds. That the disks are the
 * right ones is test_brute_force.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../replay/enumerate.h"
#include "../../replay/intake.h"
#include "trace_build.h"

/* ---- seeing what is visited -------------------------------------------- */

struct seen {
	const struct trace *t;
	u32 n, n_first;
	struct {
		u64 seq;
		u32 n_drop;
		u64 drop[8];	/* issue numbers */
		u32 disk_no;
		bool first;
	} site[256];
	u32 stop_after;		/* 0: never */
	int stop_with;
};

static int see(void *ctx, const struct site *s)
{
	struct seen *v = ctx;

	assert_true(v->n < ARRAY_SIZE(v->site) && s->n_drop <= 8);
	v->site[v->n].seq = v->t->points[s->point].seq;
	v->site[v->n].n_drop = s->n_drop;
	for (u32 i = 0; i < s->n_drop; i++)
		v->site[v->n].drop[i] = v->t->units[s->drop[i]].issue_seq;
	v->site[v->n].disk_no = s->disk_no;
	v->site[v->n++].first = s->first;
	v->n_first += s->first;
	return v->n == v->stop_after ? v->stop_with : 0;
}

static struct trace *device(const char *script)
{
	const struct trace_opts o = { .model = MODEL_DEVICE };
	struct trace_build b;

	tb_script(&b, script);
	return tb_trace(&b, &o);
}

static int run(struct seen *v, const char *script, const struct enum_opts *o,
	       struct enum_stats *ret)
{
	struct trace *t = device(script);
	struct enumerator *e = enumerator_new(t);
	int err;

	*v = (struct seen){ .t = t, .stop_after = v->stop_after,
			    .stop_with = v->stop_with };
	err = enumerate(e, o, see, v, ret);
	enumerator_free(e);
	trace_free(t);
	return err;
}

static void assert_site(const struct seen *v, u32 i, u64 seq, u32 n_drop,
			u64 a, u64 b, bool first)
{
	assert_true(i < v->n);
	assert_int_equal(v->site[i].seq, seq);
	assert_int_equal(v->site[i].n_drop, n_drop);
	if (n_drop > 0)
		assert_int_equal(v->site[i].drop[0], a);
	if (n_drop > 1)
		assert_int_equal(v->site[i].drop[1], b);
	assert_int_equal(v->site[i].first, first);
}

/* ---- the design's examples --------------------------------------------- */

static void design_dropping_the_newest_is_the_previous_points_site(void **state)
{
	struct seen v = { 0 };
	struct enum_opts o = { .k = 1 };

	(void)state;
	assert_int_equal(run(&v, "W1 W2", &o, NULL), 0);
	assert_int_equal(v.n, 5);
	assert_site(&v, 0, 1, 0, 0, 0, true);	/* {1} */
	assert_site(&v, 1, 1, 1, 1, 0, true);	/* {} */
	assert_site(&v, 2, 2, 0, 0, 0, true);	/* {1,2} */
	assert_site(&v, 3, 2, 1, 1, 0, true);	/* {2} */
	assert_site(&v, 4, 2, 1, 2, 0, false);	/* {1}: the first again */
	assert_int_equal(v.site[4].disk_no, v.site[0].disk_no);
}

static void design_flush_example_leaves_one_pending(void **state)
{
	struct seen v = { 0 };
	struct enum_opts o = { .k = K_ALL, .from_seq = 8 };

	(void)state;
	assert_int_equal(run(&v, "W1 W2 W3 C3 C2 Fi C1 Fc", &o, NULL), 0);
	assert_int_equal(v.n, 2);
	assert_site(&v, 0, 8, 0, 0, 0, true);
	assert_site(&v, 1, 8, 1, 1, 0, true);
}

static void design_at_most_k_are_dropped(void **state)
{
	struct enum_stats st;
	struct seen v = { 0 };
	struct enum_opts o = { .from_seq = 4 };
	static const u32 sites[] = { 1, 1 + 4, 1 + 4 + 6, 1 + 4 + 6 + 4, 16 };

	(void)state;
	for (o.k = 0; o.k < ARRAY_SIZE(sites); o.k++) {
		assert_int_equal(run(&v, "W1 W2 W3 W4", &o, &st), 0);
		assert_int_equal(st.sites, sites[o.k]);
		assert_int_equal(st.distinct, sites[o.k]);
		assert_int_equal(st.points, 1);
		assert_false(st.truncated);
	}
	o.k = K_ALL;
	assert_int_equal(run(&v, "W1 W2 W3 W4", &o, &st), 0);
	assert_int_equal(st.sites, 16);
}

static void design_each_disk_is_generated_once(void **state)
{
	struct seen v = { 0 };
	struct enum_opts o = { .k = 2 };
	struct enum_stats st;

	(void)state;
	/* the same bytes to the same place, twice, and over the base's own */
	assert_int_equal(run(&v, "W1 W2@1=1 Z3 fsync mark", &o, &st), 0);
	assert_int_equal(st.distinct, 2);
	assert_int_equal(v.n_first, 2);
	assert_int_equal(v.n, st.sites);
}

static void overwritten_write_shows_when_the_upper_one_is_lost(void **state)
{
	struct seen v = { 0 };
	struct enum_opts o = { .k = 2, .from_seq = 3 };

	(void)state;
	assert_int_equal(run(&v, "W1@0+4=1 W2@1+1=2 W3@1+2=3", &o, NULL), 0);
	assert_int_equal(v.n, 7);
	assert_site(&v, 0, 3, 0, 0, 0, true);
	assert_site(&v, 1, 3, 1, 1, 0, true);
	assert_site(&v, 2, 3, 1, 2, 0, false);	/* hidden below W3 */
	assert_site(&v, 3, 3, 1, 3, 0, true);
	assert_site(&v, 4, 3, 2, 1, 2, false);
	assert_site(&v, 5, 3, 2, 1, 3, true);
	assert_site(&v, 6, 3, 2, 2, 3, true);
}

/* ---- bounds ------------------------------------------------------------ */

static void max_sites_and_visit_end_it(void **state)
{
	struct enum_opts o = { .k = K_ALL, .max_sites = 3 };
	struct enum_stats st;
	struct seen v = { 0 };

	(void)state;
	assert_int_equal(run(&v, "W1 W2 W3 W4", &o, &st), 0);
	assert_int_equal(st.sites, 3);
	assert_int_equal(v.n, 3);
	assert_true(st.truncated);
	o.max_sites = 0;
	v.stop_after = 5;
	v.stop_with = 7;
	assert_int_equal(run(&v, "W1 W2 W3 W4", &o, &st), 0);
	assert_int_equal(v.n, 5);
	assert_true(st.truncated);
	v.stop_with = -EIO;
	assert_int_equal(run(&v, "W1 W2 W3 W4", &o, &st), -EIO);
	assert_int_equal(v.n, 5);
}

static void exactly_max_sites_is_not_truncated(void **state)
{
	struct enum_opts o = { .k = 0, .max_sites = 4 };
	struct enum_stats st;
	struct seen v = { 0 };

	(void)state;
	assert_int_equal(run(&v, "W1 W2 W3 W4", &o, &st), 0);
	assert_int_equal(st.sites, 4);
	assert_false(st.truncated);
}

static void only_points_asked_for(void **state)
{
	struct enum_opts o = { .k = 0, .from_seq = 2, .to_seq = 3 };
	struct enum_stats st;
	struct seen v = { 0 };

	(void)state;
	assert_int_equal(run(&v, "W1 W2 W3 W4", &o, &st), 0);
	assert_int_equal(st.points, 2);
	assert_site(&v, 0, 2, 0, 0, 0, true);
	assert_site(&v, 1, 3, 0, 0, 0, true);
	o = (struct enum_opts){ .k = 0, .to_seq = SEQ_NEVER };
	assert_int_equal(run(&v, "W1 W2 W3 W4", &o, &st), 0);
	assert_int_equal(st.points, 4);
}

static void nothing_recorded_nothing_visited(void **state)
{
	struct enum_opts o = { .k = K_ALL };
	struct enum_stats st;
	struct seen v = { 0 };

	(void)state;
	assert_int_equal(run(&v, "", &o, &st), 0);
	assert_int_equal(st.points + st.sites + st.distinct, 0);
	assert_int_equal(run(&v, "mark", &o, &st), 0);
	assert_int_equal(st.sites, 1);
}

/* ---- a device much larger than its memory ------------------------------ */

static int count(void *ctx, const struct site *s)
{
	*(u64 *)ctx += s->first;
	return 0;
}

static void discard_of_a_whole_large_device_is_cheap(void **state)
{
	const struct trace_opts o = { .model = MODEL_DEVICE };
	const struct enum_opts eo = { .k = 2 };
	struct intake *in = intake_new(TB_DEV, 1ULL << 40, true);
	u8 data[4096];
	u64 distinct = 0;
	struct enumerator *e;
	struct trace *t;

	(void)state;
	memset(data, 7, sizeof(data));
	intake_base_quiet(in);
	for (u32 i = 0; i < 24; i++) {
		struct rec_issue w = { .op = BLK_WRITE, .sectors = 8,
				       .sector = 1000000007ULL * i % (1 << 30),
				       .data = data,
				       .data_bytes = sizeof(data) };
		struct rec_issue d = { .op = BLK_DISCARD,
				       .sectors = 1U << 31 };

		assert_int_equal(intake_issue(in, i + 1, 0, i == 12 ? &d : &w,
					      NULL), 0);
	}
	assert_int_equal(intake_finish(in, &o, &t, NULL), 0);
	e = enumerator_new(t);
	assert_int_equal(enumerate(e, &eo, count, &distinct, NULL), 0);
	assert_true(distinct > 24 && distinct < 3000);
	enumerator_free(e);
	trace_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			design_dropping_the_newest_is_the_previous_points_site),
		cmocka_unit_test(design_flush_example_leaves_one_pending),
		cmocka_unit_test(design_at_most_k_are_dropped),
		cmocka_unit_test(design_each_disk_is_generated_once),
		cmocka_unit_test(
			overwritten_write_shows_when_the_upper_one_is_lost),
		cmocka_unit_test(max_sites_and_visit_end_it),
		cmocka_unit_test(exactly_max_sites_is_not_truncated),
		cmocka_unit_test(only_points_asked_for),
		cmocka_unit_test(nothing_recorded_nothing_visited),
		cmocka_unit_test(discard_of_a_whole_large_device_is_cheap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
