/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tests of the pool share: disks of real crashed file systems, a judge
 * that says what it found on them and misbehaves when asked to, and a record of
 * what done() was told.
 */
#ifndef BLKBOX_TESTS_POOL_RUN_H
#define BLKBOX_TESTS_POOL_RUN_H

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
#include <unistd.h>

#include <cmocka.h>

#include "../../replay/pool.h"
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

static inline const struct scratch_trace *trace_of(size_t fs)
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

/* ---- judging ------------------------------------------------------------- */

/* Does f<i> hold what round i wrote? */
static inline bool file_is_whole(int root, u32 i)
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

static inline u64 sum_of(u64 sum, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum = (sum ^ ((const u8 *)data)[i]) * 0x100000001b3ULL;
	return sum;
}

/* A number that says what the files are, whatever the order of the listing. */
static inline u64 tree_sum(int root)
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

static inline void leave_process(const char *dir)
{
	if (fork() > 0)
		return;
	if (chdir(dir) < 0)
		_exit(1);
	setsid();
	for (;;)
		pause();
}

static inline void misbehave(enum oddity oddity, const char *path,
			     struct buf *ret)
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
static inline int judge(void *ctx, const struct job *j, int root,
			const char *path, const char *log, struct buf *ret)
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

static inline int done(void *ctx, u64 id, enum mount_outcome outcome, int error,
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

/* ---- running ------------------------------------------------------------- */

static inline struct run *run_new(const struct scratch_trace *st)
{
	struct run *run = xzalloc(sizeof(*run));

	run->st = st;
	run->odd_id = UINT64_MAX;
	return run;
}

static inline void run_free(struct run *run)
{
	for (u32 i = 0; i < JOBS_MAX; i++) {
		free(run->seen[i].log);
		buf_free(&run->seen[i].answer);
	}
	free(run);
}

static inline struct pool_opts opts_for(struct run *run, u32 workers)
{
	return (struct pool_opts){
		.workers = workers,
		.fs_type = run->st->fs->type,
		.judge = judge,
		.done = done,
		.ctx = run,
	};
}

static inline struct pool *pool_for(struct run *run,
				    const struct pool_opts *opts)
{
	struct errmsg em = { "" };
	struct pool *p = NULL;

	if (pool_new(run->st->t, run->st->index, opts, &p, &em) < 0)
		fail_msg("%s", em.text);
	return p;
}

static inline void submit(struct pool *p, u64 id, u32 n_units, u32 n_drop,
		   const u32 *drop)
{
	struct job j = { id, { n_units, n_drop, drop } };
	struct errmsg em = { "" };

	if (pool_submit(p, &j, &em) < 0)
		fail_msg("%s", em.text);
}

static inline void drain(struct pool *p)
{
	struct errmsg em = { "" };

	if (pool_drain(p, &em) < 0)
		fail_msg("%s", em.text);
}

/* Job i: the disk after round i % ROUNDS. */
static inline void submit_rounds(struct pool *p, const struct run *run, u32 n)
{
	for (u32 i = 0; i < n; i++)
		submit(p, i, run->st->round_units[i % ROUNDS], 0, NULL);
}

/* After round i, f<i> is there whole, and no later one. Whether f<i - 1> has
 * its new name yet is the file system's choice. */
static inline void assert_round(const struct run *run, u64 id, u32 round)
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

static inline bool host_mounts_hold(const char *text)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, text))
			return true;
	return false;
}

/* ---- the group ----------------------------------------------------------- */

static inline int set_up(void **state)
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

static inline int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(traces); i++)
		scratch_trace_free(traces[i]);
	return 0;
}

#endif
