// SPDX-License-Identifier: GPL-2.0-or-later
/* Where and how workers mount, and which of the kernel's words they keep. */
#include "pool_run.h"

#include "../../replay/worker.h"

/* ---- where it is mounted ------------------------------------------------- */

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

/* ---- what cannot work ---------------------------------------------------- */

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
		{ "4,10,5,-;WARNING: fs/ext4/inode.c:1 at f+0x1/0x2, CPU#1:"
		  " mount/7", true },
		{ "4,10,5,-;WARNING: net/core/dev.c:1 at f+0x1/0x2, CPU#1:"
		  " mount/7", false },
		{ "4,10,5,-;WARNING: at f+0x1/0x2, CPU#1: mount/7", false },
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

/* A warning that another program on the machine brought about is not ours. */
static void test_splats_of_other_processes_do_not_concern_a_disk(void **state)
{
	struct kmsg k = { .fd = -1, .disk = "loop3" };
	static const char *const forms[] = {
		"4,10,5,-;WARNING: CPU: 1 PID: %d at fs/ext4/inode.c:1 f()",
		"4,10,5,-;WARNING: fs/ext4/inode.c:1 at f(), CPU#1: mount/%d",
	};

	(void)state;
	k.proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(k.proc_fd >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		char record[128];
		const char *text;
		struct stat st;
		size_t len;

		snprintf(record, sizeof(record), forms[i], getpid());
		assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
		k.own_pid_ns = st.st_ino;
		assert_true(kmsg_concerns(&k, record, strlen(record), &text,
					  &len));
		k.own_pid_ns = st.st_ino + 1;
		assert_false(kmsg_concerns(&k, record, strlen(record), &text,
					   &len));
	}
	close(k.proc_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mount_point_of_the_pools_own),
		cmocka_unit_test(test_mount_point_that_exists),
		cmocka_unit_test(test_mount_point_that_is_missing),
		cmocka_unit_test(test_mount_point_missing_at_the_root),
		cmocka_unit_test(test_mirrored_directory_shows_its_entries),
		cmocka_unit_test(test_what_cannot_work_is_refused),
		cmocka_unit_test(test_mount_options),
		cmocka_unit_test(test_which_kernel_messages_concern_a_disk),
		cmocka_unit_test(
			test_splats_of_other_processes_do_not_concern_a_disk),
	};

	alarm(300);	/* a test that waits for ever has failed */
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
