// SPDX-License-Identifier: GPL-2.0-or-later
/* Exploring end to end: recordings made by hand, verdicts on them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explore_lab.h"

#include "../../oracle/report.h"

/* ---- the workloads ---------------------------------------------------------- */

static void op_write(struct lab *l, const char *path, char which)
{
	static char text[LAB_DATA_BYTES];

	lab_text(which, text);
	lab_op(l, (struct rec_file_op){ .op = OP_WRITE, .fd = 3,
					.ret = sizeof(text),
					.len = sizeof(text), .ino = l->ino,
					.size = sizeof(text), .nlink = 1,
					.file_mode = S_IFREG,
					.file_path = (char *)path,
					.data = text,
					.data_bytes = sizeof(text) });
}

/* data is truncated, that reaches the disk, and only then is it written. */
static void truncate_then_write(struct lab *l)
{
	assert_int_equal(lab_truncate(l, "data"), 0);
	lab_op(l, (struct rec_file_op){ .op = OP_OPEN, .fd = 3,
					.open_flags = O_WRONLY | O_TRUNC,
					.ino = l->ino, .file_mode = S_IFREG,
					.path = "data", .nlink = 1 });
	lab_fsync(l, "data");
	assert_int_equal(lab_write(l, "data", 0, 'B'), 0);
	op_write(l, "data", 'B');
	lab_op(l, (struct rec_file_op){ .op = OP_CLOSE, .fd = 3,
					.flags = FOP_LAST_CLOSE | FOP_WRITTEN,
					.ino = l->ino, .size = LAB_DATA_BYTES,
					.nlink = 1, .file_mode = S_IFREG,
					.file_path = "data" });
	lab_state(l, l->seq, "close data");
	lab_fsync(l, "data");
}

static void name_data(struct lab *l, u8 op, const char *path, u32 flags)
{
	lab_op(l, (struct rec_file_op){ .op = op, .fd = 3, .flags = flags,
					.ino = l->ino, .nlink = 1,
					.size = LAB_DATA_BYTES,
					.file_mode = S_IFREG,
					.open_flags = O_WRONLY | O_CREAT,
					.file_path = (char *)path });
}

/* A new file is written, made safe, and renamed over data. */
static void replace_safely(struct lab *l)
{
	assert_int_equal(lab_write(l, "new", O_CREAT, 'B'), 0);
	l->ino = lab_ino(l, "new");
	lab_op(l, (struct rec_file_op){ .op = OP_OPEN, .fd = 3,
					.flags = FOP_CREATED,
					.open_flags = O_WRONLY | O_CREAT,
					.ino = l->ino, .nlink = 1,
					.file_mode = S_IFREG, .path = "new" });
	op_write(l, "new", 'B');
	lab_fsync(l, "new");
	name_data(l, OP_FSYNC, "new", 0);
	lab_state(l, l->seq, "fsync new");
	lab_mark(l, "acked");
	assert_int_equal(renameat(l->dirfd, "new", l->dirfd, "data"), 0);
	lab_op(l, (struct rec_file_op){ .op = OP_RENAME, .ino = l->ino,
					.nlink = 1, .size = LAB_DATA_BYTES,
					.file_mode = S_IFREG, .path = "new",
					.path2 = "data" });
	lab_state(l, l->seq, "rename new to data");
	lab_fsync(l, ".");
}

/* ---- helpers ---------------------------------------------------------------- */

static int set_up(void **state)
{
	*state = geteuid() == 0 ? lab_new() : NULL;
	return 0;
}

static int tear_down(void **state)
{
	if (*state)
		lab_free(*state);
	return 0;
}

static struct lab *lab_or_skip(void **state)
{
	if (*state)
		return *state;
	print_message("SKIP: this needs root, loop devices and mke2fs\n");
	skip();
	return NULL;
}

static struct explore_opts with_k(u32 k)
{
	return (struct explore_opts){ .k = k, .k_max = k, .workers = 1 };
}

static struct explore_result run(struct lab *l, const struct explore_opts *o)
{
	struct explore_result r;
	struct errmsg em = { "" };

	if (explore(l->recording, o, &r, &em) < 0)
		fail_msg("explore: %s", em.text);
	return r;
}

static const struct finding *find_kind(const struct explore_result *r,
				       enum finding_kind kind)
{
	for (u32 i = 0; i < r->n_findings; i++)
		if (r->findings[i].kind == kind)
			return &r->findings[i];
	return NULL;
}

static void expect_verdict(const struct explore_result *r, enum verdict v,
			   int exit_status)
{
	if (r->verdict != v || r->exit_status != exit_status)
		report_text(stderr, "unexpected", r, true);
	assert_int_equal(r->verdict, v);
	assert_int_equal(r->exit_status, exit_status);
}

/* ---- tests ------------------------------------------------------------------ */

static void a_lost_block_is_found(void **state)
{
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(1);
	struct explore_result r;
	const struct finding *f;

	truncate_then_write(l);
	lab_close(l);
	r = run(l, &o);
	expect_verdict(&r, VERDICT_INCONSISTENT, EXIT_INCONSISTENT);
	assert_true(r.covered_any);
	assert_int_equal(r.covered_k, 1);
	assert_int_equal(r.judged, r.distinct);
	f = find_kind(&r, FIND_DISTANCE);
	assert_non_null(f);
	/* everything but the line ends may have a like elsewhere */
	assert_true(f->distance_bytes > LAB_DATA_BYTES * 9 / 10);
	assert_int_equal(f->n_dropped, 0);
	assert_true(f->count >= 1);
	assert_int_equal(f->n_files, 1);
	assert_string_equal(f->files[0].path, "data");
	assert_int_equal(f->files[0].fate, FATE_EMPTY);
	assert_non_null(strstr(f->command, "--at"));
	assert_non_null(strstr(f->command, l->recording));
	explore_result_done(&r);
}

static void a_rebuilt_state_judges_the_same(void **state)
{
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(0);
	struct explore_result stop, trace;

	truncate_then_write(l);
	lab_close(l);
	o.states = STATES_STOP;
	stop = run(l, &o);
	o.states = STATES_TRACE;
	trace = run(l, &o);
	expect_verdict(&trace, VERDICT_INCONSISTENT, EXIT_INCONSISTENT);
	assert_int_equal(stop.n_findings, trace.n_findings);
	assert_int_equal(stop.max_distance, trace.max_distance);
	assert_string_equal(stop.findings[0].site, trace.findings[0].site);
	explore_result_done(&stop);
	explore_result_done(&trace);
}

static void nothing_lost_is_consistent(void **state)
{
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(1);
	struct explore_result r;

	replace_safely(l);
	lab_close(l);
	r = run(l, &o);
	expect_verdict(&r, VERDICT_CONSISTENT, EXIT_CONSISTENT);
	assert_true(r.crash_points > 0 && r.distinct > 10);
	assert_int_equal(r.judged, r.distinct);
	assert_int_equal(r.n_expected, 4);	/* one is rebuilt */
	assert_null(r.incomplete_why);
	explore_result_done(&r);
}

static void a_lying_device_breaks_a_promise(void **state)
{
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(1);
	struct explore_result r;
	const struct finding *f;

	replace_safely(l);
	lab_close(l);
	o.trace.drop_flushes = true;
	o.max_findings = 1000;
	r = run(l, &o);
	expect_verdict(&r, VERDICT_INCONSISTENT, EXIT_INCONSISTENT);
	f = find_kind(&r, FIND_DURABILITY);
	if (!f)
		report_text(stderr, "no durability finding", &r, true);
	assert_non_null(f);
	assert_int_equal(f->n_dropped, 1);
	assert_non_null(f->detail);
	assert_non_null(strstr(f->detail, "fsync"));
	assert_non_null(strstr(f->detail, "new"));
	explore_result_done(&r);
}

static void a_destroyed_file_system_is_found(void **state)
{
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(1);
	struct explore_result r;
	u8 garbage[LAB_BLOCK];

	memset(garbage, 0xff, sizeof(garbage));
	lab_put_write(l, 0, garbage, sizeof(garbage), false);
	lab_flush(l);
	lab_close(l);
	r = run(l, &o);
	expect_verdict(&r, VERDICT_INCONSISTENT, EXIT_INCONSISTENT);
	assert_int_equal(r.findings[0].kind, FIND_UNMOUNTABLE);
	assert_int_equal(r.findings[0].n_files, 0);
	/* with the write lost it mounts */
	assert_int_equal(r.n_inconsistent, 1);
	explore_result_done(&r);
}

static void a_checker_decides(void **state)
{
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(1);
	struct explore_result r;
	const struct finding *f;

	replace_safely(l);
	lab_close(l);
	o.check = "test -s data && test -z \"$(tr -d 'AB\\n' < data)\"";
	r = run(l, &o);
	expect_verdict(&r, VERDICT_CONSISTENT, EXIT_CONSISTENT);
	assert_true(r.checked);
	explore_result_done(&r);

	o.check = "echo looked; ! grep -q B data";
	r = run(l, &o);
	expect_verdict(&r, VERDICT_INCONSISTENT, EXIT_INCONSISTENT);
	f = find_kind(&r, FIND_CHECK);
	assert_non_null(f);
	assert_non_null(strstr(f->detail, "looked"));
	assert_non_null(strstr(f->detail, "status 1"));
	explore_result_done(&r);
}

/* The same disk before and after a mark: only after it may be expected what
 * the mark says. */
static void a_checker_is_told_the_marks(void **state)
{
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(0);
	struct explore_result r;

	lab_flush(l);
	lab_mark(l, "acked");
	lab_flush(l);
	lab_close(l);
	o.check = "case \"$BLKBOX_MARKS\" in *acked*) exit 1;; esac";
	r = run(l, &o);
	expect_verdict(&r, VERDICT_INCONSISTENT, EXIT_INCONSISTENT);
	assert_int_equal(r.distinct, 1);
	assert_int_equal(r.judged, 1);
	assert_true(r.findings[0].count < r.sites);
	explore_result_done(&r);
}

static void a_checker_that_cannot_run_is_an_error(void **state)
{
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(0);
	struct explore_result r;
	struct errmsg em = { "" };

	truncate_then_write(l);
	lab_close(l);
	o.check = "./no-such-checker-anywhere";
	assert_true(explore(l->recording, &o, &r, &em) < 0);
	assert_non_null(strstr(em.text, "no-such-checker-anywhere"));
}

static void a_gap_is_incomplete(void **state)
{
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(1);
	struct rec_gap gap = { .reason = GAP_RING_FULL, .events = 3,
			       .bytes = 4096 };
	struct explore_result r;

	gap.last_seq = l->seq + 3;
	assert_int_equal(rec_put_gap(l->w, l->seq + 1, 0, LAB_DEV, &gap), 0);
	l->seq += 3;
	replace_safely(l);
	lab_close(l);
	r = run(l, &o);
	expect_verdict(&r, VERDICT_INCOMPLETE, EXIT_INCOMPLETE);
	assert_non_null(strstr(r.incomplete_why, "3 events"));
	assert_int_equal(r.lost_events, 3);
	explore_result_done(&r);
}

static void a_cut_recording_is_incomplete(void **state)
{
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(0);
	struct explore_result r;

	replace_safely(l);
	assert_int_equal(rec_flush(l->w), 0);
	rec_abandon(l->w);
	l->w = NULL;
	r = run(l, &o);
	expect_verdict(&r, VERDICT_INCOMPLETE, EXIT_INCOMPLETE);
	assert_non_null(strstr(r.incomplete_why, "cut off"));
	explore_result_done(&r);
}

static void bounds_are_reported(void **state)
{
	static const volatile sig_atomic_t stop = 1;
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(2);
	struct explore_result r;

	replace_safely(l);
	lab_close(l);
	o.max_sites = 5;
	r = run(l, &o);
	expect_verdict(&r, VERDICT_INCOMPLETE, EXIT_INCOMPLETE);
	assert_int_equal(r.sites, 5);
	assert_false(r.covered_any);
	explore_result_done(&r);

	o.max_sites = 0;
	o.stop = &stop;
	r = run(l, &o);
	expect_verdict(&r, VERDICT_INCOMPLETE, EXIT_INCOMPLETE);
	assert_non_null(strstr(r.incomplete_why, "interrupted"));
	assert_int_equal(r.sites, 0);
	explore_result_done(&r);
}

static void all_is_covered_when_nothing_is_pending(void **state)
{
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(K_ALL);
	struct explore_result r;

	replace_safely(l);
	lab_close(l);
	o.trace.model = MODEL_PREFIX;
	r = run(l, &o);
	expect_verdict(&r, VERDICT_CONSISTENT, EXIT_CONSISTENT);
	assert_int_equal(r.covered_k, K_ALL);
	assert_int_equal(r.covered_max, 0);
	explore_result_done(&r);
}

static void another_run_can_say_what_is_expected(void **state)
{
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(0);
	struct explore_result r;
	struct lab *other = lab_new();

	assert_non_null(other);
	replace_safely(other);
	lab_close(other);
	truncate_then_write(l);
	lab_close(l);
	o.other_expected = other->recording;
	r = run(l, &o);
	lab_free(other);
	/* both know "data" whole, old and new; neither knows it empty */
	expect_verdict(&r, VERDICT_INCONSISTENT, EXIT_INCONSISTENT);
	assert_int_equal(r.n_expected, 4);	/* one is rebuilt */
	assert_int_equal(r.findings[0].files[0].fate, FATE_EMPTY);
	explore_result_done(&r);
}

static void two_runs_find_the_same(void **state)
{
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(1);
	struct explore_result a, b;

	truncate_then_write(l);
	lab_close(l);
	a = run(l, &o);
	o.workers = 2;
	b = run(l, &o);
	assert_int_equal(a.n_findings, b.n_findings);
	for (u32 i = 0; i < a.n_findings; i++) {
		assert_string_equal(a.findings[i].site, b.findings[i].site);
		assert_int_equal(a.findings[i].kind, b.findings[i].kind);
		assert_int_equal(a.findings[i].count, b.findings[i].count);
		assert_int_equal(a.findings[i].distance_bytes,
				 b.findings[i].distance_bytes);
	}
	explore_result_done(&a);
	explore_result_done(&b);
}

static void a_recording_without_a_base_is_refused(void **state)
{
	struct lab *l = lab_or_skip(state);
	struct explore_opts o = with_k(0);
	struct explore_result r;
	struct errmsg em = { "" };
	char head[] = "{\"format\":\"blkbox recording\",\"devices\":[{\"dev\":8,"
		      "\"name\":\"x\",\"sectors\":2048}],\"file_systems\":"
		      "[{\"dev\":8,\"block_dev\":8,\"type\":\"ext4\"}],"
		      "\"base\":\"none\"}";
	struct rec_writer_opts wo = { .overwrite = true };

	rec_abandon(l->w);
	l->w = NULL;
	assert_int_equal(rec_create(l->recording, head, &wo, &l->w, &em), 0);
	lab_close(l);
	assert_true(explore(l->recording, &o, &r, &em) < 0);
	assert_non_null(strstr(em.text, "base"));
}

/* Mounts stay ours, and go with us. */
static int own_namespace(void **state)
{
	(void)state;
	if (geteuid() != 0)
		return 0;
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		print_message("no mount namespace of our own\n");
	return 0;
}

#define LAB_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(a_lost_block_is_found),
		LAB_TEST(a_rebuilt_state_judges_the_same),
		LAB_TEST(nothing_lost_is_consistent),
		LAB_TEST(a_lying_device_breaks_a_promise),
		LAB_TEST(a_destroyed_file_system_is_found),
		LAB_TEST(a_checker_decides),
		LAB_TEST(a_checker_is_told_the_marks),
		LAB_TEST(a_checker_that_cannot_run_is_an_error),
		LAB_TEST(a_gap_is_incomplete),
		LAB_TEST(a_cut_recording_is_incomplete),
		LAB_TEST(bounds_are_reported),
		LAB_TEST(all_is_covered_when_nothing_is_pending),
		LAB_TEST(another_run_can_say_what_is_expected),
		LAB_TEST(two_runs_find_the_same),
		LAB_TEST(a_recording_without_a_base_is_refused),
	};

	return cmocka_run_group_tests(tests, own_namespace, NULL);
}
