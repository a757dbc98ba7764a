// SPDX-License-Identifier: GPL-2.0-or-later
/* The pool of workers: that disks are what they should be. */
#include "pool_run.h"

static u32 random_below(u32 *state, u32 n)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % n;
}

/* ---- that disks are what they should be ---------------------------------- */

static void check_rounds(size_t fs, u32 workers)
{
	const struct scratch_trace *st = trace_of(fs);
	struct pool_opts opts;
	struct run *run;
	struct pool *p;

	if (!st) {
		skip();
		return;
	}
	run = run_new(st);
	opts = opts_for(run, workers);
	p = pool_for(run, &opts);
	assert_int_equal(pool_workers(p), workers);
	submit_rounds(p, run, 10 * ROUNDS);
	drain(p);
	assert_int_equal(run->n_done, 10 * ROUNDS);
	for (u32 i = 0; i < 10 * ROUNDS; i++)
		assert_round(run, i, i % ROUNDS);
	pool_free(p);
	run_free(run);
}

static void test_ext4_disks_recover(void **state)
{
	(void)state;
	check_rounds(0, 4);
}

static void test_xfs_disks_recover(void **state)
{
	(void)state;
	check_rounds(1, 4);
}

static void test_btrfs_disks_recover(void **state)
{
	(void)state;
	check_rounds(2, 4);
}

/* A random disk: drops among the last writes. Returns how many are dropped. */
static u32 random_disk(const struct scratch_trace *st, u32 *rnd, u32 *ret_units,
		       u32 drop[2])
{
	u32 n = random_below(rnd, st->t->n_units + 1), n_drop = 0;

	*ret_units = n;
	if (n >= 8 && random_below(rnd, 4))
		drop[n_drop++] = n - 8 + random_below(rnd, 7);
	if (n_drop && random_below(rnd, 2))
		drop[n_drop++] = n - 1;
	return n_drop;
}

/* Whatever recovery wrote is undone: before each mount the worker compares its
 * image with the disk as it should be. */
static void check_image_stays_right(size_t fs, u32 jobs)
{
	const struct scratch_trace *st = trace_of(fs);
	struct pool_opts opts;
	struct run *run;
	struct pool *p;
	u32 rnd = 1;

	if (!st) {
		skip();
		return;
	}
	run = run_new(st);
	opts = opts_for(run, 2);
	opts.verify_image = true;
	p = pool_for(run, &opts);
	assert_string_equal(pool_limits(p), "");
	for (u32 i = 0; i < jobs; i++) {
		u32 drop[2], n_units;
		u32 n = random_disk(st, &rnd, &n_units, drop);

		submit(p, i, n_units, n, drop);
	}
	drain(p);
	assert_int_equal(run->n_done, jobs);
	pool_free(p);
	run_free(run);
}

static void test_ext4_image_stays_right(void **state)
{
	(void)state;
	check_image_stays_right(0, 2000);
}

static void test_xfs_image_stays_right(void **state)
{
	(void)state;
	check_image_stays_right(1, 40);
}

static void test_btrfs_image_stays_right(void **state)
{
	(void)state;
	check_image_stays_right(2, 60);
}

/* The same disk gives the same tree, whatever its worker had before. */
static void test_answers_do_not_depend_on_history(void **state)
{
	enum { DISKS = 150 };
	const struct scratch_trace *st = trace_of(0);
	struct pool_opts opts;
	struct run *run;
	struct pool *p;

	(void)state;
	if (!st) {
		skip();
		return;
	}
	run = run_new(st);
	opts = opts_for(run, 3);
	p = pool_for(run, &opts);
	for (u32 i = 0; i < 2 * DISKS; i++) {
		u32 disk = i < DISKS ? i : 2 * DISKS - 1 - i;
		u32 rnd = disk * 77 + 1, drop[2], n_units;
		u32 n = random_disk(st, &rnd, &n_units, drop);

		submit(p, i, n_units, n, drop);
	}
	drain(p);
	for (u32 i = 0; i < DISKS; i++) {
		const struct seen *a = &run->seen[i];
		const struct seen *b = &run->seen[2 * DISKS - 1 - i];

		assert_int_equal(a->outcome, b->outcome);
		assert_int_equal(a->answer.len, b->answer.len);
		assert_memory_equal(a->answer.data, b->answer.data,
				    a->answer.len);
	}
	pool_free(p);
	run_free(run);
}

/* ---- disks that do not mount, and what the kernel says ------------------- */

/* A trace whose last unit overwrites len bytes at offset of the disk's end
 * state's sector. */
static struct trace *spoilt(const struct scratch_trace *st, u64 sector,
			    u32 offset, const void *data, u32 len)
{
	struct trace_opts opts = { .model = MODEL_DEVICE };
	struct disk_state base = { 0 };
	struct intake *in = intake_new(st->t->dev, st->t->bytes, true);
	struct rec_issue issue = {
		.op = BLK_WRITE, .sector = sector, .sectors = 1,
		.data_bytes = SECTOR_SIZE,
	};
	struct errmsg em = { "" };
	struct trace *t = NULL;
	u8 text[SECTOR_SIZE];

	for (u64 at = 0; at < st->t->bytes; at += 4096) {
		struct rec_base b = { at, st->base + at, 4096 };

		assert_int_equal(intake_base(in, &b, &em), 0);
	}
	intake_base_end(in);
	intake_base_quiet(in);
	disk_sector(st->t, st->index, &base, sector, text);
	memcpy(text + offset, data, len);
	issue.data = text;
	assert_int_equal(intake_issue(in, 1, 1, &issue, &em), 0);
	assert_int_equal(intake_finish(in, &opts, &t, &em), 0);
	return t;
}

static void run_spoilt(struct run *run, struct trace *t)
{
	struct image_index *x = image_index_new(t);
	struct pool_opts opts = opts_for(run, 1);
	struct errmsg em = { "" };
	struct pool *p;

	if (pool_new(t, x, &opts, &p, &em) < 0)
		fail_msg("%s", em.text);
	submit(p, 0, 1, 0, NULL);
	submit(p, 1, 0, 0, NULL);
	submit(p, 2, 1, 0, NULL);
	drain(p);
	pool_free(p);
	image_index_free(x);
	trace_free(t);
}

static void test_a_disk_that_does_not_mount(void **state)
{
	const struct scratch_trace *st = trace_of(0);
	struct run *run;

	(void)state;
	if (!st) {
		skip();
		return;
	}
	run = run_new(st);
	/* ext4's block count, in the super block */
	run_spoilt(run, spoilt(st, 2, 4, "\xff\xff\xff\x7f", 4));
	for (u32 i = 0; i < 3; i += 2) {
		assert_int_equal(run->seen[i].outcome, MOUNT_FAILED);
		assert_true(run->seen[i].error < 0);
		assert_non_null(strstr(run->seen[i].log, "loop"));
		assert_int_equal(run->seen[i].answer.len, 0);
	}
	assert_int_equal(run->seen[1].outcome, MOUNT_OK);
	run_free(run);
}

/* The kernel warns of a file system marked as having errors. */
static void test_kernel_warning_reaches_judge(void **state)
{
	const struct scratch_fs fs = {
		"ext4", 16 << 20,
		{ "mke2fs", "-q", "-F", "-t", "ext4", "-O", "^metadata_csum" },
		NULL,
	};
	struct scratch_trace *st = NULL;
	struct errmsg em = { "" };
	struct run *run;

	(void)state;
	if (!trace_of(0) || scratch_trace_new(&fs, 1, &st, &em) < 0) {
		print_message("skipped: %s\n", em.text);
		skip();
		return;
	}
	run = run_new(st);
	/* s_state: errors were detected */
	run_spoilt(run, spoilt(st, 2, 0x3a, "\x03", 2));
	for (u32 i = 0; i < 3; i++) {
		struct cursor c = cursor_of(run->seen[i].answer.data,
					    run->seen[i].answer.len);
		_cleanup_free_ char *log = NULL;

		assert_int_equal(run->seen[i].outcome, MOUNT_OK);
		cur_u32(&c);
		cur_u64(&c);
		log = cur_str(&c);
		assert_non_null(log);
		if (i == 1)
			assert_string_equal(log, "");
		else
			assert_non_null(strstr(log, "with errors"));
	}
	run_free(run);
	scratch_trace_free(st);
}

/* Without tracefs in sight a worker mounts it for itself alone. */
static void test_tracefs_need_not_be_mounted(void **state)
{
	const struct scratch_trace *st = trace_of(0);
	struct pool_opts opts;
	struct run *run;
	struct pool *p;

	(void)state;
	if (!st) {
		skip();
		return;
	}
	while (umount2("/sys/kernel/tracing", MNT_DETACH) == 0)
		;
	while (umount2("/sys/kernel/debug", MNT_DETACH) == 0)
		;
	run = run_new(st);
	opts = opts_for(run, 1);
	opts.verify_image = true;
	p = pool_for(run, &opts);
	assert_string_equal(pool_limits(p), "");
	submit_rounds(p, run, 2 * ROUNDS);
	drain(p);
	for (u32 i = 0; i < 2 * ROUNDS; i++)
		assert_round(run, i, i % ROUNDS);
	assert_false(host_mounts_hold("tracefs"));
	pool_free(p);
	run_free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ext4_disks_recover),
		cmocka_unit_test(test_xfs_disks_recover),
		cmocka_unit_test(test_btrfs_disks_recover),
		cmocka_unit_test(test_ext4_image_stays_right),
		cmocka_unit_test(test_xfs_image_stays_right),
		cmocka_unit_test(test_btrfs_image_stays_right),
		cmocka_unit_test(test_answers_do_not_depend_on_history),
		cmocka_unit_test(test_a_disk_that_does_not_mount),
		cmocka_unit_test(test_kernel_warning_reaches_judge),
		cmocka_unit_test(test_tracefs_need_not_be_mounted),
	};

	alarm(300);	/* a test that waits for ever has failed */
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
