// SPDX-License-Identifier: GPL-2.0-or-later
/* The pool of workers: what goes wrong costs one disk, and leaves nothing. */
#include "pool_run.h"

/* ---- judges that misbehave ----------------------------------------------- */

/* Forty jobs, of which number 7 meets the oddity. */
static struct run *run_odd(enum oddity oddity, u64 timeout_ns)
{
	const struct scratch_trace *st = trace_of(0);
	struct pool_opts opts;
	struct run *run;
	struct pool *p;

	if (!st)
		return NULL;
	run = run_new(st);
	run->oddity = oddity;
	run->odd_id = 7;
	opts = opts_for(run, 2);
	opts.timeout_ns = timeout_ns;
	p = pool_for(run, &opts);
	submit_rounds(p, run, 40);
	drain(p);
	pool_free(p);
	assert_int_equal(run->n_done, 40);
	for (u32 i = 0; i < 40; i++)
		if (i != run->odd_id)
			assert_round(run, i, i % ROUNDS);
	assert_int_equal(run->seen[7].calls, 1);
	return run;
}

static void test_a_judge_that_crashes_costs_one_disk(void **state)
{
	struct run *run = run_odd(CRASH, 0);

	(void)state;
	if (!run) {
		skip();
		return;
	}
	assert_int_equal(run->seen[7].outcome, MOUNT_WORKER_DIED);
	assert_int_equal(run->seen[7].error, SIGILL);
	run_free(run);
}

static void test_a_judge_that_is_killed_costs_one_disk(void **state)
{
	struct run *run = run_odd(KILL_SELF, 0);

	(void)state;
	if (!run) {
		skip();
		return;
	}
	assert_int_equal(run->seen[7].outcome, MOUNT_WORKER_DIED);
	assert_int_equal(run->seen[7].error, SIGKILL);
	run_free(run);
}

static void test_a_judge_that_hangs_costs_one_disk(void **state)
{
	struct run *run = run_odd(HANG, 1500000000);

	(void)state;
	if (!run) {
		skip();
		return;
	}
	assert_int_equal(run->seen[7].outcome, MOUNT_TIMED_OUT);
	run_free(run);
}

static void test_processes_left_behind_do_not_hold_the_disk(void **state)
{
	struct run *run = run_odd(LEAVE_PROCESS, 0);

	(void)state;
	if (!run) {
		skip();
		return;
	}
	assert_round(run, 7, 7);
	run_free(run);
}

static void test_a_mount_on_top_does_not_hold_the_disk(void **state)
{
	struct run *run = run_odd(STACK_MOUNT, 0);

	(void)state;
	if (!run) {
		skip();
		return;
	}
	assert_round(run, 7, 7);
	run_free(run);
}

static void test_an_answer_may_be_long(void **state)
{
	struct run *run = run_odd(LONG_ANSWER, 0);
	struct cursor c;

	(void)state;
	if (!run) {
		skip();
		return;
	}
	assert_int_equal(run->seen[7].outcome, MOUNT_OK);
	assert_int_equal(run->seen[7].answer.len, 12000000);
	c = cursor_of(run->seen[7].answer.data, run->seen[7].answer.len);
	for (u32 i = 0; i < 3000000; i++)
		assert_int_equal(cur_u32(&c), i);
	run_free(run);
}

/* Submits until the pool fails; returns with what. */
static int submit_until_failure(struct pool *p, const struct run *run,
				struct errmsg *em)
{
	int r = 0;

	for (u32 i = 0; r == 0 && i < 200; i++) {
		struct job j = { i, { run->st->round_units[0], 0, NULL } };

		r = pool_submit(p, &j, em);
	}
	return r < 0 ? r : pool_drain(p, em);
}

static void test_a_judge_that_fails_ends_the_run(void **state)
{
	const struct scratch_trace *st = trace_of(0);
	struct errmsg em = { "" };
	struct pool_opts opts;
	struct run *run;
	struct pool *p;

	(void)state;
	if (!st) {
		skip();
		return;
	}
	run = run_new(st);
	run->oddity = REFUSE;
	run->odd_id = 7;
	opts = opts_for(run, 2);
	p = pool_for(run, &opts);
	assert_int_equal(submit_until_failure(p, run, &em), -EXDEV);
	assert_non_null(strstr(em.text, "judging"));
	assert_int_equal(pool_drain(p, &em), -EXDEV);
	pool_free(p);
	run_free(run);
}

static void test_done_that_fails_ends_the_run(void **state)
{
	const struct scratch_trace *st = trace_of(0);
	struct errmsg em = { "" };
	struct pool_opts opts;
	struct run *run;
	struct pool *p;

	(void)state;
	if (!st) {
		skip();
		return;
	}
	run = run_new(st);
	run->done_returns = -EILSEQ;
	opts = opts_for(run, 2);
	p = pool_for(run, &opts);
	assert_int_equal(submit_until_failure(p, run, &em), -EILSEQ);
	assert_true(run->n_done == 1);
	pool_free(p);
	run_free(run);
}

/* ---- nothing is left ----------------------------------------------------- */

struct killed {
	int say_fd;
	char dir[32];
};

/* Each worker says which processes there are and which device it has. */
static int judge_and_tell(void *ctx, const struct job *j, int root,
			  const char *path, const char *log, struct buf *ret)
{
	const struct killed *k = ctx;
	char line[128], dev[64] = "?";
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char text[4096];

	(void)root, (void)log, (void)ret;
	while (f && fgets(text, sizeof(text), f)) {
		char *s = strstr(text, "/dev/loop");

		if (s && strstr(text, path))
			sscanf(s, "%63s", dev);
	}
	if (f)
		fclose(f);
	if (j->id < 2) {
		leave_process(path);
		snprintf(line, sizeof(line), "%-63s\n", dev);
		(void)!write(k->say_fd, line, 64);
		for (;;)
			pause();
	}
	return 0;
}

static int done_nothing(void *ctx, u64 id, enum mount_outcome outcome,
			int error, const char *log, const void *answer,
			size_t len)
{
	(void)ctx, (void)id, (void)outcome, (void)error, (void)log;
	(void)answer, (void)len;
	return 0;
}

static void be_killed(const struct scratch_trace *st, const struct killed *k)
{
	struct pool_opts opts = {
		.workers = 2, .fs_type = "ext4", .judge = judge_and_tell,
		.done = done_nothing, .ctx = (void *)k, .mount_point = k->dir,
	};
	struct errmsg em;
	struct pool *p;

	if (pool_new(st->t, st->index, &opts, &p, &em) < 0)
		_exit(1);
	for (u32 i = 0; i < 6; i++)
		if (pool_submit(p, &(struct job){ i, { i, 0, NULL } }, &em) < 0)
			_exit(1);
	pause();
	_exit(0);
}

static bool is_ours(const char *dev)
{
	char sys[128], text[256] = "";
	_cleanup_close_ int fd = -1;

	snprintf(sys, sizeof(sys), "/sys/block/%s/loop/backing_file", dev + 5);
	fd = open(sys, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 &&
	       strstr(text, "blkbox disk");
}

/* Does any process still have its root in our pool's mounts or its directory
 * as its own? */
static bool process_in(const char *dir)
{
	_cleanup_free_ char *cmd = xasprintf(
		"for p in /proc/[0-9]*; do case $(readlink $p/cwd) in"
		" %s*) exit 0;; esac; done; exit 1", dir);

	return system(cmd) == 0;
}

static void test_killed_parent_leaves_nothing(void **state)
{
	const struct scratch_trace *st = trace_of(0);
	struct killed k = { .dir = "/tmp/blkbox-test-XXXXXX" };
	char line[2][65] = { "", "" }, more[64];
	u64 end = now_ns() + WAIT_NS;
	int say[2], r = 0;
	pid_t pid;

	(void)state;
	if (!st) {
		skip();
		return;
	}
	assert_non_null(mkdtemp(k.dir));
	assert_int_equal(pipe2(say, O_CLOEXEC), 0);
	k.say_fd = say[1];
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		be_killed(st, &k);
	close(say[1]);
	for (int i = 0; i < 2; i++)
		r |= read_full(say[0], line[i], 64);
	for (int i = 0; i < 2; i++)
		line[i][strcspn(line[i], " \n")] = 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* every copy of the pipe's other end is gone: so is every process */
	while (read(say[0], more, sizeof(more)) > 0)
		;
	close(say[0]);
	assert_int_equal(r, 0);
	assert_int_equal(strncmp(line[0], "/dev/loop", 9), 0);
	assert_int_equal(strncmp(line[1], "/dev/loop", 9), 0);
	while (is_ours(line[0]) || is_ours(line[1])) {
		assert_true(now_ns() < end);
		poll(NULL, 0, 1);
	}
	assert_false(process_in(k.dir));
	assert_int_equal(rmdir(k.dir), 0);
}

static void test_freed_pool_ends_busy_workers(void **state)
{
	const struct scratch_trace *st = trace_of(0);
	struct killed k = { .dir = "/tmp/blkbox-test-XXXXXX" };
	struct pool_opts opts = {
		.workers = 2, .fs_type = "ext4", .judge = judge_and_tell,
		.done = done_nothing, .ctx = &k, .mount_point = k.dir,
	};
	struct errmsg em = { "" };
	struct pool *p = NULL;
	char line[64];
	int say[2];

	(void)state;
	if (!st) {
		skip();
		return;
	}
	assert_non_null(mkdtemp(k.dir));
	assert_int_equal(pipe2(say, O_CLOEXEC), 0);
	k.say_fd = say[1];
	assert_int_equal(pool_new(st->t, st->index, &opts, &p, &em), 0);
	for (u32 i = 0; i < 2; i++)
		submit(p, i, i, 0, NULL);
	for (u32 i = 0; i < 2; i++)
		assert_int_equal(read_full(say[0], line, 64), 0);
	close(say[1]);
	pool_free(p);
	/* the processes are gone when pool_free() returns */
	assert_int_equal(read_full(say[0], line, 1), -ENODATA);
	close(say[0]);
	assert_false(process_in(k.dir));
	assert_int_equal(rmdir(k.dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_judge_that_crashes_costs_one_disk),
		cmocka_unit_test(test_a_judge_that_is_killed_costs_one_disk),
		cmocka_unit_test(test_a_judge_that_hangs_costs_one_disk),
		cmocka_unit_test(test_processes_left_behind_do_not_hold_the_disk),
		cmocka_unit_test(test_a_mount_on_top_does_not_hold_the_disk),
		cmocka_unit_test(test_an_answer_may_be_long),
		cmocka_unit_test(test_a_judge_that_fails_ends_the_run),
		cmocka_unit_test(test_done_that_fails_ends_the_run),
		cmocka_unit_test(test_killed_parent_leaves_nothing),
		cmocka_unit_test(test_freed_pool_ends_busy_workers),
	};

	alarm(300);	/* a test that waits for ever has failed */
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
