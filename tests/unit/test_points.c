// SPDX-License-Identifier: GPL-2.0-or-later
/* Where crash points stand and from where on; what intake refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../replay/intake.h"
#include "trace_build.h"

static struct trace *load(const char *script, const struct trace_opts *opts,
			  bool write_cache)
{
	struct trace_build b;

	tb_script(&b, script);
	b.write_cache = write_cache;
	return tb_trace(&b, opts);
}

static struct trace *device(const char *script)
{
	return load(script, &(struct trace_opts){ .model = MODEL_DEVICE },
		    true);
}

static void assert_points(const struct trace *t, u32 n, const u64 *seqs)
{
	assert_int_equal(t->n_points, n);
	for (u32 i = 0; i < n; i++)
		assert_int_equal(t->points[i].seq, seqs[i]);
}

/* ---- from where on ----------------------------------------------------- */

static void design_live_base_begins_at_the_first_flush_after_it(void **state)
{
	struct trace *t = device("W1 C1 Fi Fc W2 base C2 F1i W3 F1c W4");

	(void)state;
	assert_true(t->has_base);
	assert_int_equal(t->base_seq, 5);
	assert_int_equal(t->first_seq, 9);
	assert_points(t, 2, (u64[]){ 9, 10 });
	assert_int_equal(t->points[0].n_units, 3);
	trace_free(t);
	/* no flush, no point */
	t = device("W1 C1 Fi Fc base W2 C2 F1i F1x F2i F2r");
	assert_int_equal(t->n_points, 0);
	trace_free(t);
	/* a flush under way at that moment will do */
	t = device("W1 C1 Fi base Fc");
	assert_points(t, 1, (u64[]){ 4 });
	trace_free(t);
}

static void live_base_without_cache_begins_at_its_end(void **state)
{
	const struct trace_opts o = { .model = MODEL_DEVICE };
	struct trace *t = load("W1 C1 base W2 C2", &o, false);

	(void)state;
	assert_int_equal(t->first_seq, 2);
	assert_points(t, 3, (u64[]){ 2, 3, 4 });
	trace_free(t);
}

/* ---- crash points ------------------------------------------------------ */

static void points_stand_where_something_can_change(void **state)
{
	/* 1 W1, 2 C1, 3 W2, 4 fsync!, 5 Fi, 6 Fc, 7 F1i, 8 F1c, 9 fsync,
	 * 10 mark, 11 WF3, 12 C3 */
	struct trace *t = device("W1 C1 W2 fsync! Fi Fc F1i F1c fsync mark"
				 " WF3 C3");

	(void)state;
	assert_points(t, 7, (u64[]){ 1, 3, 6, 9, 10, 11, 12 });
	assert_int_equal(t->points[0].why, REC_ISSUE);
	assert_int_equal(t->points[0].n_units, 1);
	assert_int_equal(t->points[2].why, REC_COMPLETE);
	assert_int_equal(t->points[2].n_units, 2);
	assert_int_equal(t->points[3].why, REC_FILE_OP);
	assert_int_equal(t->points[4].why, REC_MARK);
	assert_int_equal(t->points[6].n_units, 3);
	assert_int_equal(trace_point_at(t, 0), -ENOENT);
	assert_int_equal(trace_point_at(t, 5), 1);
	assert_int_equal(trace_point_at(t, 6), 2);
	assert_int_equal(trace_point_at(t, SEQ_NEVER), 6);
	trace_free(t);
}

static void points_lie_between_begin_and_end(void **state)
{
	struct trace *t = device("W1 C1 begin W2 Fi end Fc W3 end");

	(void)state;
	assert_int_equal(t->first_seq, 3);
	assert_int_equal(t->last_seq, 6);
	assert_int_equal(t->end_seq, 9);
	assert_points(t, 3, (u64[]){ 3, 4, 6 });
	assert_int_equal(t->points[0].n_units, 1);
	trace_free(t);
}

static void begin_after_a_live_base_is_believed(void **state)
{
	struct trace *t = device("W1 C1 Fi Fc base begin W2 C2");

	(void)state;
	assert_int_equal(t->first_seq, 5);
	assert_int_equal(t->base_seq, 4);
	assert_points(t, 2, (u64[]){ 5, 6 });
	trace_free(t);
	/* one within the copy says nothing */
	t = device("begin W1 base C1 Fi Fc");
	assert_int_equal(t->first_seq, 5);
	trace_free(t);
}

static void every_promise_of_durability_is_a_point(void **state)
{
	static const struct {
		u8 op;
		u32 flags;
		s64 ret;
		bool promises;
	} cases[] = {
		{ OP_FSYNC, 0, 0, true },	{ OP_FDATASYNC, 0, 0, true },
		{ OP_SYNC, 0, 0, true },	{ OP_SYNCFS, 0, 0, true },
		{ OP_MSYNC, 0, 0, true },	{ OP_FSYNC, 0, -5, false },
		{ OP_WRITE, 0, 10, false },	{ OP_CLOSE, 0, 0, false },
		{ OP_WRITE, FOP_SYNC_WRITE, 10, true },
		{ OP_WRITE, FOP_DSYNC_WRITE, 10, true },
		{ OP_WRITE, FOP_SYNC_WRITE, -28, false },
		{ OP_SYNC_FILE_RANGE, 0, 0, false },
		{ OP_CLOSE, FOP_SYNC_WRITE, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct rec_file_op op = { .op = cases[i].op,
						.flags = cases[i].flags,
						.ret = cases[i].ret };

		assert_int_equal(op_promises_durability(&op),
				 cases[i].promises);
	}
}

/* ---- what is refused --------------------------------------------------- */

static int issue_one(u64 seq, u64 sector, u32 sectors, u32 data_bytes)
{
	struct intake *in = intake_new(TB_DEV, 1 << 20, true);
	_cleanup_free_ u8 *data = xzalloc(data_bytes);
	struct rec_issue i = { .op = BLK_WRITE,
			       .sector = sector,
			       .sectors = sectors,
			       .data = data,
			       .data_bytes = data_bytes };
	struct errmsg em = { "" };
	int err = intake_issue(in, seq, 0, &i, &em);

	assert_true(!err || *em.text);
	intake_free(in);
	return err;
}

static void requests_past_the_device_are_refused(void **state)
{
	(void)state;
	assert_int_equal(issue_one(1, 2047, 1, 512), 0);
	assert_int_equal(issue_one(1, 2047, 2, 1024), -EBADMSG);
	assert_int_equal(issue_one(1, 2048, 1, 512), -EBADMSG);
	assert_int_equal(issue_one(1, UINT64_MAX, 1, 512), -EBADMSG);
	assert_int_equal(issue_one(1, UINT64_MAX - 1, 8, 4096), -EBADMSG);
	assert_int_equal(issue_one(1, 0, 2, 512), -EBADMSG);
	assert_int_equal(issue_one(1, 0, 1, 1024), -EBADMSG);
	assert_int_equal(issue_one(0, 0, 1, 512), -EBADMSG);
	assert_int_equal(issue_one(SEQ_NEVER, 0, 1, 512), -EBADMSG);
}

static void torn_must_be_whole_sectors(void **state)
{
	const struct trace_opts o = { .torn_bytes = 700 };
	struct intake *in = intake_new(TB_DEV, 1 << 20, true);
	struct errmsg em = { "" };
	struct trace *t;

	(void)state;
	assert_int_equal(intake_finish(in, &o, &t, &em), -EINVAL);
	assert_non_null(strstr(em.text, "700"));
	intake_free(in);
}

static void missing_payload_is_counted(void **state)
{
	struct intake *in = intake_new(TB_DEV, 1 << 20, true);
	const struct trace_opts o = { .model = MODEL_DEVICE };
	struct rec_page *pages = xzalloc(2 * sizeof(*pages));
	struct rec_issue i = { .op = BLK_WRITE, .sectors = 4,
			       .flags = BLK_PAYLOAD_MISSING };
	u8 data[2048] = { 0 };
	struct trace *t;

	(void)state;
	assert_int_equal(intake_issue(in, 1, 0, &i, NULL), 0);
	pages[0] = (struct rec_page){ .bytes = 1536 };
	pages[1] = (struct rec_page){ .bytes = 512, .flags = PAGE_UNREADABLE };
	i = (struct rec_issue){ .op = BLK_WRITE, .sectors = 4,
				.flags = BLK_PAYLOAD_MISSING,
				.data = data, .data_bytes = sizeof(data),
				.n_pages = 2, .pages = pages };
	assert_int_equal(intake_issue(in, 2, 0, &i, NULL), 0);
	assert_int_equal(intake_finish(in, &o, &t, NULL), 0);
	assert_int_equal(t->unreadable_bytes, 2048 + 512);
	assert_int_equal(t->writes[0].unreadable_bytes, 2048);
	assert_int_equal(t->writes[1].unreadable_bytes, 512);
	trace_free(t);
}

static void large_discard_is_torn_into_few_parts(void **state)
{
	struct intake *in = intake_new(TB_DEV, 1ULL << 41, true);
	const struct trace_opts o = { .torn_bytes = 512 };
	struct rec_issue i = { .op = BLK_DISCARD, .sector = 5,
			       .sectors = 1U << 31 };
	u64 next = 5;
	struct trace *t;

	(void)state;
	assert_int_equal(intake_issue(in, 1, 0, &i, NULL), 0);
	assert_int_equal(intake_finish(in, &o, &t, NULL), 0);
	assert_in_range(t->n_units, 2, TORN_MAX_PARTS);
	for (u32 u = 0; u < t->n_units; u++) {
		assert_int_equal(t->units[u].sector, next);
		next += t->units[u].sectors;
	}
	assert_int_equal(next, 5 + (1ULL << 31));
	trace_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			design_live_base_begins_at_the_first_flush_after_it),
		cmocka_unit_test(live_base_without_cache_begins_at_its_end),
		cmocka_unit_test(points_stand_where_something_can_change),
		cmocka_unit_test(points_lie_between_begin_and_end),
		cmocka_unit_test(begin_after_a_live_base_is_believed),
		cmocka_unit_test(every_promise_of_durability_is_a_point),
		cmocka_unit_test(requests_past_the_device_are_refused),
		cmocka_unit_test(torn_must_be_whole_sectors),
		cmocka_unit_test(missing_payload_is_counted),
		cmocka_unit_test(large_discard_is_torn_into_few_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
