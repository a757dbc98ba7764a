// SPDX-License-Identifier: GPL-2.0-or-later
/* The pool of workers, on disks of real crashed file systems. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../replay/pool.h"
#include "../../replay/worker.h"
#include "scratch_disk.h"

#define ROUNDS 8
#define WAIT_NS 30000000000ULL
#define JOBS_MAX 4096

/* What a test's judge is to do with the job whose id is odd_id. */
enum oddity {
	NOTHING, CRASH, KILL_SELF, HANG, REFUSE, LEAVE_PROCESS, LONG_ANSWER,
	STACK_MOUNT, SAY_WHERE,
};

struct seen {
	u32 calls;
	enum mount_outcome outcome;
	int error;
	char *log;
	struct buf answer;
};

struct run {
	const struct scratch_trace *st;
	enum oddity oddity;
	u64 odd_id;
	int done_returns;
	u64 n_done;
	struct seen seen[JOBS_MAX];
};

/* One trace for each file system, made when first asked for; NULL: no mkfs. */
static struct scratch_trace *traces[ARRAY_SIZE(scratch_fs)];

static const struct scratch_trace *trace_of(size_t fs)
{
	struct errmsg em = { "" };
	int r;

	if (geteuid() != 0 || access("/dev/loop-control", R_OK | W_OK) < 0) {
		print_message("skipped: root and loop devices are needed\n");
		return NULL;
	}
	if (traces[fs])
		return traces[fs];
	r = scratch_trace_new(&scratch_fs[fs], ROUNDS, &traces[fs], &em);
	if (r == 0)
		return traces[fs];
	if (strncmp(em.text, "running", 7))
		fail_msg("%s", em.text);
	print_message("skipped: %s\n", em.text);
	return NULL;
}

/* ---- judging ---------------------------------------------------------------- */

/* Does f<i> hold what round i wrote? */
static bool file_is_whole(int root, u32 i)
{
	u8 want[SCRATCH_FILE_BYTES], have[SCRATCH_FILE_BYTES + 1];
	_cleanup_close_ int fd = -1;
	char name[16];

	snprintf(name, sizeof(name), "f%u", i);
	fd = openat(root, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	scratch_content(i, want);
	return pread(fd, have, sizeof(have), 0) == SCRATCH_FILE_BYTES &&
	       !memcmp(want, have, sizeof(want));
}

static u64 sum_of(u64 sum, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum = (sum ^ ((const u8 *)data)[i]) * 0x100000001b3ULL;
	return sum;
}

/* A number that says what the files are, whatever the order of the listing. */
static u64 tree_sum(int root)
{
	int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fdopendir(fd);
	u8 data[SCRATCH_FILE_BYTES * 2];
	struct dirent *e;
	u64 total = 0;

	while ((e = readdir(d))) {
		u64 sum = sum_of(14695981039346656037ULL, e->d_name,
				 strlen(e->d_name));
		_cleanup_close_ int file = -1;
		ssize_t n = 0;

		if (e->d_type == DT_REG)
			file = openat(root, e->d_name, O_RDONLY | O_CLOEXEC);
		if (file >= 0)
			n = read(file, data, sizeof(data));
		total += sum_of(sum, data, MAX(n, 0));
	}
	closedir(d);
	return total;
}

static void leave_process(const char *dir)
{
	if (fork() > 0)
		return;
	if (chdir(dir) < 0)
		_exit(1);
	setsid();
	for (;;)
		pause();
}

static void misbehave(enum oddity oddity, const char *path, struct buf *ret)
{
	switch (oddity) {
	case CRASH:
		__builtin_trap();
	case KILL_SELF:
		kill(getpid(), SIGKILL);
		break;
	case HANG:
		for (;;)
			pause();
	case LEAVE_PROCESS:
		leave_process(path);
		break;
	case LONG_ANSWER:
		for (u32 i = 0; i < 3000000; i++)
			buf_put_u32(ret, i);
		break;
	case STACK_MOUNT:
		mount("t", path, "tmpfs", 0, NULL);
		break;
	case SAY_WHERE:
		buf_put(ret, path, strlen(path));
		break;
	default:
		break;
	}
}

/* Answers with the kernel's words, which files are whole, and the tree. */
static int judge(void *ctx, const struct job *j, int root, const char *path,
		 const char *log, struct buf *ret)
{
	struct run *run = ctx;
	u32 whole = 0;

	if (j->id == run->odd_id) {
		if (run->oddity == REFUSE)
			return -EXDEV;
		misbehave(run->oddity, path, ret);
		if (run->oddity == LONG_ANSWER || run->oddity == SAY_WHERE)
			return 0;
	}
	for (u32 i = 0; i < ROUNDS; i++)
		whole |= (u32)file_is_whole(root, i) << i;
	buf_put_u32(ret, whole);
	buf_put_u64(ret, tree_sum(root));
	buf_put_str(ret, log);
	return 0;
}

static int done(void *ctx, u64 id, enum mount_outcome outcome, int error,
		const char *log, const void *answer, size_t len)
{
	struct run *run = ctx;
	struct seen *s = &run->seen[id];

	assert_true(id < JOBS_MAX);
	s->calls++;
	s->outcome = outcome;
	s->error = error;
	s->log = xstrdup(log);
	buf_put(&s->answer, answer, len);
	run->n_done++;
	return run->done_returns;
}

/* ---- running ---------------------------------------------------------------- */

static struct run *run_new(const struct scratch_trace *st)
{
	struct run *run = xzalloc(sizeof(*run));

	run->st = st;
	run->odd_id = UINT64_MAX;
	return run;
}

static void run_free(struct run *run)
{
	for (u32 i = 0; i < JOBS_MAX; i++) {
		free(run->seen[i].log);
		buf_free(&run->seen[i].answer);
	}
	free(run);
}

static struct pool_opts opts_for(struct run *run, u32 workers)
{
	return (struct pool_opts){
		.workers = workers,
		.fs_type = run->st->fs->type,
		.judge = judge,
		.done = done,
		.ctx = run,
	};
}

static struct pool *pool_for(struct run *run, const struct pool_opts *opts)
{
	struct errmsg em = { "" };
	struct pool *p = NULL;

	if (pool_new(run->st->t, run->st->index, opts, &p, &em) < 0)
		fail_msg("%s", em.text);
	return p;
}

static void submit(struct pool *p, u64 id, u32 n_units, u32 n_drop,
		   const u32 *drop)
{
	struct job j = { id, { n_units, n_drop, drop } };
	struct errmsg em = { "" };

	if (pool_submit(p, &j, &em) < 0)
		fail_msg("%s", em.text);
}

static void drain(struct pool *p)
{
	struct errmsg em = { "" };

	if (pool_drain(p, &em) < 0)
		fail_msg("%s", em.text);
}

/* Job i: the disk after round i % ROUNDS. */
static void submit_rounds(struct pool *p, const struct run *run, u32 n)
{
	for (u32 i = 0; i < n; i++)
		submit(p, i, run->st->round_units[i % ROUNDS], 0, NULL);
}

/* After round i, f<i> is there whole, and no later one. Whether f<i - 1> has
 * its new name yet is the file system's choice. */
static void assert_round(const struct run *run, u64 id, u32 round)
{
	const struct seen *s = &run->seen[id];
	struct cursor c = cursor_of(s->answer.data, s->answer.len);
	_cleanup_free_ char *log = NULL;
	u32 whole = cur_u32(&c);

	cur_u64(&c);
	log = cur_str(&c);
	assert_int_equal(s->calls, 1);
	if (s->outcome != MOUNT_OK)
		fail_msg("job %llu: outcome %d, error %d: %s",
			 (unsigned long long)id, s->outcome, s->error, s->log);
	assert_false(c.bad);
	assert_int_equal(whole >> round, 1);
	assert_string_equal(log, "");	/* recovery is no warning */
	assert_string_equal(s->log, "");
}

static u32 random_below(u32 *state, u32 n)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % n;
}

/* ---- that disks are what they should be ---------------------------------------- */

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

/* ---- disks that do not mount, and what the kernel says --------------------------- */

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

static void test_which_kernel_messages_concern_a_disk(void **state)
{
	static const struct {
		const char *record;
		bool concerns;
	} cases[] = {
		{ "4,10,5,-;EXT4-fs (loop3): warning: mounting fs with errors",
		  true },
		{ "3,10,5,-;BTRFS error (device loop3 state A): bad", true },
		{ "3,10,5,-;I/O error, dev loop3, sector 8\n DEVICE=b7:3\n",
		  true },
		{ "2,10,5,-;EXT4-fs error (device loop3): ext4_lookup", true },
		{ "5,10,5,-;XFS (loop3): Ending recovery (logdev: internal)",
		  false },
		{ "6,10,5,-;EXT4-fs (loop3): recovery complete", false },
		{ "4,10,5,-;EXT4-fs (loop31): warning: mounting", false },
		{ "4,10,5,-;EXT4-fs (loop13): loop30", false },
		{ "4,10,5,-;EXT4-fs (vda): warning: loop", false },
		{ "4,10,5,-;WARNING: CPU: 1 PID: 0 at fs/ext4/inode.c:1 f()",
		  true },
		{ "4,10,5,-;WARNING: CPU: 1 PID: 0 at net/core/dev.c:1 f()",
		  false },
		{ "1,10,5,-;BUG: unable to handle page fault", true },
		{ "12,10,5,-;EXT4-fs (loop3): a message of user space", true },
		{ "3,10,5,-;operation not supported error, dev loop3, sector"
		  " 8 op 0x9:(WRITE_ZEROES)", false },
		{ "4,10,5,-;", false },
		{ "4,10,5,-", false },
		{ "", false },
	};
	const struct kmsg k = { .fd = -1, .proc_fd = -1, .disk = "loop3" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *text;
		size_t len;

		if (kmsg_concerns(&k, cases[i].record, strlen(cases[i].record),
				  &text, &len) != cases[i].concerns)
			fail_msg("%s", cases[i].record);
		if (cases[i].concerns)
			assert_null(memchr(text, '\n', len));
	}
}

/* ---- judges that misbehave ------------------------------------------------------- */

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

/* ---- where it is mounted ------------------------------------------------------------ */

static bool host_mounts_hold(const char *text)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, text))
			return true;
	return false;
}

/* Mounted at path, as the judge is told; nothing of it is seen here. */
static void check_mount_point(const char *path, const char *want,
			      const char *must_not_exist)
{
	const struct scratch_trace *st = trace_of(0);
	struct pool_opts opts;
	struct run *run;
	struct pool *p;

	if (!st) {
		skip();
		return;
	}
	run = run_new(st);
	run->oddity = SAY_WHERE;
	run->odd_id = 0;
	opts = opts_for(run, 2);
	opts.mount_point = path;
	p = pool_for(run, &opts);
	submit_rounds(p, run, 20);
	drain(p);
	buf_put_u8(&run->seen[0].answer, 0);
	if (want)
		assert_string_equal(run->seen[0].answer.data, want);
	assert_int_equal(run->seen[0].answer.data[0], '/');
	for (u32 i = 1; i < 20; i++)
		assert_round(run, i, i % ROUNDS);
	if (must_not_exist)
		assert_int_equal(access(must_not_exist, F_OK), -1);
	assert_false(host_mounts_hold("blkbox "));
	pool_free(p);
	run_free(run);
}

static void test_mount_point_of_the_pools_own(void **state)
{
	(void)state;
	check_mount_point(NULL, NULL, NULL);
	check_mount_point("/", NULL, NULL);
}

static void test_mount_point_that_exists(void **state)
{
	char dir[] = "/tmp/blkbox-test-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(dir));
	check_mount_point(dir, dir, NULL);
	assert_int_equal(rmdir(dir), 0);
}

static void test_mount_point_that_is_missing(void **state)
{
	char dir[] = "/tmp/blkbox-test-XXXXXX", deep[64];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(deep, sizeof(deep), "%s/a/b", dir);
	check_mount_point(deep, deep, deep);
	assert_int_equal(rmdir(dir), 0);	/* still empty */
}

static void test_mount_point_missing_at_the_root(void **state)
{
	char top[64], deep[80];

	(void)state;
	snprintf(top, sizeof(top), "/blkbox-test-%d", getpid());
	snprintf(deep, sizeof(deep), "%s/mnt", top);
	check_mount_point(deep, deep, top);
}

/* What else is in a mirrored directory is still there for the judge. */
static int judge_siblings(void *ctx, const struct job *j, int root,
			  const char *path, const char *log, struct buf *ret)
{
	const char *dir = *(const char *const *)ctx;
	_cleanup_free_ char *file = xasprintf("%s/file", dir);
	_cleanup_free_ char *inner = xasprintf("%s/dir/file", dir);
	_cleanup_free_ char *link = xasprintf("%s/link", dir);
	char text[8] = "";
	_cleanup_close_ int fd = open(link, O_RDONLY | O_CLOEXEC);

	(void)j, (void)root, (void)path, (void)log;
	if (fd < 0 || read(fd, text, sizeof(text) - 1) != 4)
		return -EBADF;
	buf_put_u8(ret, !strcmp(text, "text") && !access(file, R_OK) &&
			!access(inner, R_OK) && !access("/proc/self", F_OK));
	return 0;
}

static int done_siblings(void *ctx, u64 id, enum mount_outcome outcome,
			 int error, const char *log, const void *answer,
			 size_t len)
{
	(void)ctx, (void)id, (void)error, (void)log;
	return outcome == MOUNT_OK && len == 1 && *(const u8 *)answer == 1 ?
		       0 : -EBADE;
}

static void make_file(const char *dir, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, "text", 4), 0);
	close(fd);
}

static void test_mirrored_directory_shows_its_entries(void **state)
{
	const struct scratch_trace *st = trace_of(0);
	char dir[] = "/tmp/blkbox-test-XXXXXX", path[64];
	const char *ctx = dir;
	struct errmsg em = { "" };
	struct pool_opts opts = {
		.workers = 1, .fs_type = "ext4", .judge = judge_siblings,
		.done = done_siblings, .ctx = &ctx, .mount_point = path,
	};
	struct pool *p = NULL;
	int r;

	(void)state;
	if (!st) {
		skip();
		return;
	}
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/dir", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	make_file(dir, "file");
	make_file(dir, "dir/file");
	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink("file", path), 0);
	snprintf(path, sizeof(path), "%s/missing/mnt", dir);
	r = pool_new(st->t, st->index, &opts, &p, &em);
	if (r == 0)
		r = pool_submit(p, &(struct job){ 0, { 0, 0, NULL } }, &em);
	if (r == 0)
		r = pool_drain(p, &em);
	pool_free(p);
	snprintf(path, sizeof(path), "rm -r %s", dir);
	assert_int_equal(system(path), 0);
	if (r < 0)
		fail_msg("%s", em.text);
}

/* ---- what cannot work ------------------------------------------------------------- */

static void assert_refused(const struct pool_opts *opts, const char *words)
{
	const struct scratch_trace *st = trace_of(0);
	struct errmsg em = { "" };
	struct pool *p = NULL;

	assert_true(pool_new(st->t, st->index, opts, &p, &em) < 0);
	assert_null(p);
	if (!strstr(em.text, words))
		fail_msg("%s", em.text);
}

static void test_what_cannot_work_is_refused(void **state)
{
	struct pool_opts opts;
	struct run *run;

	(void)state;
	if (!trace_of(0)) {
		skip();
		return;
	}
	run = run_new(trace_of(0));
	opts = opts_for(run, 1);
	opts.mount_options = "rw,nosuchoption=1";
	assert_refused(&opts, "nosuchoption");
	opts.mount_options = "errors=panic";
	assert_refused(&opts, "errors=panic");
	opts.mount_options = NULL;
	opts.mount_point = "relative/path";
	assert_refused(&opts, "relative/path");
	opts.mount_point = "/proc/self/status/x";
	assert_refused(&opts, "/proc/self/status");
	opts.mount_point = NULL;
	opts.fs_type = "nosuchfs";
	assert_refused(&opts, "nosuchfs");
	opts.fs_type = NULL;
	assert_refused(&opts, "type");
	run_free(run);
}

static void test_mount_options(void **state)
{
	struct mount_spec spec;

	(void)state;
	assert_int_equal(mount_spec_parse("xfs", "rw,relatime,inode64,noexec"
					  ",suid,x-systemd.automount", &spec,
					  NULL), 0);
	assert_int_equal(spec.flags, MS_NOSUID | MS_NODEV | MS_NOATIME |
				     MS_NOEXEC);
	assert_string_equal(spec.data, "nouuid,inode64");
	mount_spec_done(&spec);
	assert_int_equal(mount_spec_parse("f2fs", NULL, &spec, NULL), 0);
	assert_null(spec.data);
	mount_spec_done(&spec);
}

/* ---- nothing is left ----------------------------------------------------------------- */

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

/* ---- the group --------------------------------------------------------------------- */

static int set_up(void **state)
{
	(void)state;
	if (geteuid() != 0)
		return 0;
	/* what tests mount is nobody else's business */
	if (unshare(CLONE_NEWNS) < 0)
		return -1;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -1;
	/* whatever is left here goes with us */
	return mount("tests", "/tmp", "tmpfs", 0, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(traces); i++)
		scratch_trace_free(traces[i]);
	return 0;
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
		cmocka_unit_test(test_which_kernel_messages_concern_a_disk),
		cmocka_unit_test(test_a_judge_that_crashes_costs_one_disk),
		cmocka_unit_test(test_a_judge_that_is_killed_costs_one_disk),
		cmocka_unit_test(test_a_judge_that_hangs_costs_one_disk),
		cmocka_unit_test(test_processes_left_behind_do_not_hold_the_disk),
		cmocka_unit_test(test_a_mount_on_top_does_not_hold_the_disk),
		cmocka_unit_test(test_an_answer_may_be_long),
		cmocka_unit_test(test_a_judge_that_fails_ends_the_run),
		cmocka_unit_test(test_done_that_fails_ends_the_run),
		cmocka_unit_test(test_mount_point_of_the_pools_own),
		cmocka_unit_test(test_mount_point_that_exists),
		cmocka_unit_test(test_mount_point_that_is_missing),
		cmocka_unit_test(test_mount_point_missing_at_the_root),
		cmocka_unit_test(test_mirrored_directory_shows_its_entries),
		cmocka_unit_test(test_what_cannot_work_is_refused),
		cmocka_unit_test(test_mount_options),
		cmocka_unit_test(test_killed_parent_leaves_nothing),
		cmocka_unit_test(test_freed_pool_ends_busy_workers),
		cmocka_unit_test(test_tracefs_need_not_be_mounted),
	};

	alarm(300);	/* a test that waits for ever has failed */
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
