// SPDX-License-Identifier: GPL-2.0-or-later
/* The worker's side of exploring, without mounting anything: what is judged is
 * a plain directory. And the checker, the answers, the site book. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../oracle/judge.h"
#include "../../oracle/sites.h"
#include "../../oracle/start.h"
#include "../../replay/loop.h"

/* ---- a directory to look at ------------------------------------------------- */

struct place {
	char dir[32];
	int fd;
	struct store *store;
	struct tree start;
	struct rec_state state;
	struct expected e;
	struct crash_point points[3];
	struct trace_mark marks[3];
	struct trace t;
	struct judge g;
};

static void put_file(const struct place *p, const char *name, const char *text)
{
	_cleanup_close_ int fd = openat(p->fd, name,
					O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
}

static int set_up(void **state)
{
	struct place *p = xzalloc(sizeof(*p));
	struct errmsg em;

	strcpy(p->dir, "/tmp/blkbox-judge-XXXXXX");
	if (!mkdtemp(p->dir))
		return -1;
	p->fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	p->store = store_new();
	put_file(p, "data", "hello\n");
	put_file(p, "other", "world\n");
	if (tree_read(p->store, p->fd, NULL, NULL, NULL, &p->state.tree, &em) <
	    0)
		return -1;
	p->state.what = xstrdup("the start");
	p->e = (struct expected){ .n = 1, .states = &p->state,
				  .store = p->store, .lost_seq = SEQ_NEVER };
	p->points[0].seq = 10;
	p->points[1].seq = 20;
	p->points[2].seq = 30;
	p->marks[0] = (struct trace_mark){ .seq = 5, .text = "blkbox: begin" };
	p->marks[1] = (struct trace_mark){ .seq = 15, .text = "one" };
	p->marks[2] = (struct trace_mark){ .seq = 30, .text = "two" };
	p->t = (struct trace){ .n_points = 3, .points = p->points,
			       .n_marks = 3, .marks = p->marks };
	p->g = (struct judge){ .t = &p->t, .e = &p->e, .threshold = 1 };
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "data", "other", "runs", "seen" };
	struct place *p = *state;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlinkat(p->fd, names[i], 0);
	close(p->fd);
	rmdir(p->dir);
	judge_done(&p->g);
	rec_state_done(p->store, &p->state);
	store_free(p->store);
	free(p);
	return 0;
}

static void judge_at(struct place *p, u32 point, struct buf *ret)
{
	struct job j = { .id = job_judge_id(0, point) };

	buf_reset(ret);
	assert_int_equal(judge_disk(&p->g, &j, p->fd, p->dir, "", ret), 0);
}

static struct judgement decode(const struct buf *answer,
			       struct check_result *check)
{
	struct judgement j;
	const void *core;
	size_t len;

	assert_int_equal(answer_split(answer->data, answer->len, &core, &len,
				      check), 0);
	assert_int_equal(judgement_decode(core, len, &j), 0);
	return j;
}

/* ---- judging ---------------------------------------------------------------- */

static void an_expected_tree_has_no_distance(void **state)
{
	struct place *p = *state;
	_cleanup_buf_ struct buf b = { 0 };
	struct check_result check;
	struct judgement j;

	judge_at(p, 0, &b);
	j = decode(&b, &check);
	assert_int_equal(j.distance, 0);
	assert_int_equal(j.n_files, 0);
	assert_null(j.unreadable);
	assert_int_equal(check.outcome, 0);
	judgement_done(&j);
}

static void what_is_missing_is_counted_and_told(void **state)
{
	struct place *p = *state;
	_cleanup_buf_ struct buf b = { 0 };
	struct check_result check;
	struct judgement j;
	bool told = false;

	put_file(p, "data", "");
	judge_at(p, 0, &b);
	j = decode(&b, &check);
	/* other's letters are needed for other */
	assert_int_equal(j.distance, 6);
	assert_int_equal(j.nearest, 0);
	for (u32 i = 0; i < j.n_files; i++)
		told |= !strcmp(j.files[i].path, "data") &&
			j.files[i].fate == FATE_EMPTY &&
			j.files[i].expected_bytes == 6;
	assert_true(told);
	assert_string_equal(j.files[0].path, "data");
	judgement_done(&j);
}

static void equal_trees_give_equal_bytes(void **state)
{
	struct place *p = *state;
	_cleanup_buf_ struct buf a = { 0 }, b = { 0 }, c = { 0 };

	put_file(p, "data", "");
	judge_at(p, 0, &a);
	judge_at(p, 2, &b);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	assert_int_equal(p->g.trees.n, 1);
	judge_done(&p->g);	/* another worker */
	judge_at(p, 0, &c);
	assert_int_equal(a.len, c.len);
	assert_memory_equal(a.data, c.data, a.len);
}

static void an_unknown_state_excuses(void **state)
{
	struct place *p = *state;
	_cleanup_buf_ struct buf b = { 0 };
	struct rec_state states[2] = { p->state, { .what = NULL } };
	struct check_result check;
	struct judgement j;
	struct node *n;

	n = tree_add(&states[1].tree, "data", NODE_FILE);
	n->content = content_from_bytes(p->store, "??????", 6);
	n->content->unknown = true;
	tree_seal(&states[1].tree);
	p->e.n = 2;
	p->e.states = states;
	p->e.left_out = (u8[]){ STATE_JUDGES, STATE_UNKNOWN };
	judge_count_known(&p->g);
	assert_int_equal(p->g.n_unknown, 1);
	put_file(p, "data", "");
	judge_at(p, 0, &b);
	j = decode(&b, &check);
	assert_true(j.excused);
	assert_int_equal(j.distance, 0);
	judgement_done(&j);
	tree_free(p->store, &states[1].tree);
}

static void damaged_answers_are_refused(void **state)
{
	struct place *p = *state;
	_cleanup_buf_ struct buf b = { 0 };

	put_file(p, "data", "");
	judge_at(p, 0, &b);
	for (size_t len = 0; len < b.len; len++) {
		struct check_result check;
		const void *core;
		size_t core_len;
		struct judgement j;
		_cleanup_free_ u8 *copy = xmalloc(len);

		memcpy(copy, b.data, len);
		assert_int_equal(answer_split(copy, len, &core, &core_len,
					      &check), -EBADMSG);
		if (len < 4)
			continue;
		assert_int_equal(judgement_decode(copy + 4, len - 4, &j) == 0,
				 len == b.len - 1);
		if (len == b.len - 1)
			judgement_done(&j);
	}
}

static void job_numbers_come_back(void **state)
{
	(void)state;
	u64 id = job_judge_id(JOB_MAX_NUMBER, UINT32_MAX);

	assert_false(id & JOB_EXPLAIN);
	assert_int_equal(job_number(id), JOB_MAX_NUMBER);
	assert_int_equal(job_point(id), UINT32_MAX);
	id = job_explain_id(7, 9);
	assert_true(id & JOB_EXPLAIN);
	assert_int_equal(job_number(id), 7);
	assert_int_equal(job_point(id), 9);
}

/* ---- the checker ------------------------------------------------------------ */

static struct check_result check(struct place *p, const char *command,
				 u64 timeout_ns)
{
	struct checker_opts o = {
		.command = command,
		.root_fd = p->fd,
		.root_path = p->dir,
		.crash_point = 42,
		.dropped = "1,2",
		.marks = "one\ntwo\n",
		.timeout_ns = timeout_ns,
	};
	struct check_result r;
	int err;

	err = checker_run(&o, &r);
	if (err == -EPERM) {
		print_message("SKIP: no process namespaces here\n");
		skip();
	}
	assert_int_equal(err, 0);
	return r;
}

static void a_checker_sees_its_surroundings(void **state)
{
	struct place *p = *state;
	struct check_result r = check(
		p, "cat data; echo $BLKBOX_CRASH_POINT $BLKBOX_DROPPED"
		   " $BLKBOX_MARKS; test \"$PWD\" = \"$BLKBOX_ROOT\" && ! read x",
		0);

	assert_int_equal(r.outcome, CHECK_PASSED);
	assert_string_equal(r.output, "hello\n42 1,2 one two");
	check_result_done(&r);
}

static void a_checker_fails_in_its_own_way(void **state)
{
	struct place *p = *state;
	struct check_result r = check(p, "echo bad >&2; exit 3", 0);

	assert_int_equal(r.outcome, CHECK_FAILED);
	assert_int_equal(r.status, 3);
	assert_string_equal(r.output, "bad");
	check_result_done(&r);
	r = check(p, "kill -SEGV $$", 0);
	assert_int_equal(r.outcome, CHECK_KILLED);
	assert_int_equal(r.status, SIGSEGV);
	check_result_done(&r);
}

static void only_the_tail_of_the_output_is_kept(void **state)
{
	struct place *p = *state;
	struct check_result r = check(
		p, "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done;"
		   "exit 1", 0);

	assert_int_equal(r.outcome, CHECK_FAILED);
	assert_true(strlen(r.output) <= CHECK_OUTPUT_BYTES);
	assert_string_equal(r.output + strlen(r.output) - 5, "19999");
	check_result_done(&r);
}

/* Does a process still have this FIFO open for reading? */
static bool somebody_reads(struct place *p, const char *name)
{
	_cleanup_close_ int fd = openat(p->fd, name, O_WRONLY | O_NONBLOCK);

	assert_true(fd >= 0 || errno == ENXIO);
	return fd >= 0;
}

static void nothing_survives_a_checker(void **state)
{
	struct place *p = *state;
	struct check_result r;
	u64 began = now_ns();

	if (access("/usr/bin/setsid", X_OK) < 0) {
		print_message("SKIP: no setsid here\n");
		skip();
	}
	assert_int_equal(mkfifoat(p->fd, "seen", 0600), 0);
	r = check(p, "setsid sh -c 'exec 3<>seen; : > runs; exec sleep 1000'"
		     " > /dev/null 2>&1 & sleep 1000 &"
		     " while [ ! -e runs ]; do :; done; echo started", 0);
	assert_int_equal(r.outcome, CHECK_PASSED);
	assert_string_equal(r.output, "started");
	check_result_done(&r);
	/* the second sleep held the pipe: had it lived, we would still wait */
	assert_true(now_ns() - began < 20000000000ULL);
	assert_false(somebody_reads(p, "seen"));
}

static void a_checker_that_hangs_is_ended(void **state)
{
	struct place *p = *state;
	struct check_result r = check(
		p, "trap '' TERM INT HUP; echo hanging; sleep 1000; sleep 1000",
		300000000);

	assert_int_equal(r.outcome, CHECK_TIMED_OUT);
	assert_string_equal(r.output, "hanging");
	check_result_done(&r);
}

static u64 lines_in(struct place *p, const char *name)
{
	_cleanup_close_ int fd = openat(p->fd, name, O_RDONLY);
	char text[256];
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));
	u64 lines = 0;

	for (ssize_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	return lines;
}

static void a_checker_runs_once_for_equal_trees_and_marks(void **state)
{
	struct place *p = *state;
	_cleanup_buf_ struct buf b = { 0 };
	_cleanup_free_ char *log = xasprintf("%s-runs", p->dir);
	_cleanup_free_ char *command = xasprintf("echo x >> %s", log);
	struct check_result r = check(p, "true", 0);
	_cleanup_close_ int dir = open("/tmp", O_RDONLY | O_DIRECTORY);
	struct place outside = { .fd = dir };

	check_result_done(&r);
	p->g.check = command;
	judge_at(p, 0, &b);
	judge_at(p, 0, &b);
	assert_int_equal(lines_in(&outside, log), 1);
	judge_at(p, 1, &b);	/* after mark "one" */
	assert_int_equal(lines_in(&outside, log), 2);
	assert_int_equal(fchmodat(p->fd, "data", 0600, 0), 0);
	judge_at(p, 1, &b);
	assert_int_equal(lines_in(&outside, log), 3);
	unlink(log);
}

static void marks_before_the_crash_are_told(void **state)
{
	struct place *p = *state;
	_cleanup_free_ char *at10 = marks_text(&p->t, 10);
	_cleanup_free_ char *at29 = marks_text(&p->t, 29);
	_cleanup_free_ char *at30 = marks_text(&p->t, 30);

	assert_string_equal(at10, "");
	assert_string_equal(at29, "one\n");
	assert_string_equal(at30, "one\ntwo\n");
}

/* ---- the site book ---------------------------------------------------------- */

static void sites_are_booked_by_disk_and_segment(void **state)
{
	struct place *p = *state;
	struct promise promise = { .kind = PROMISE_NAME, .from_seq = 15,
				   .until_seq = 30 };
	struct promises ps = { .n = 1, .p = &promise };
	u32 drop[] = { 4, 9 };
	struct site s = { .point = 0, .n_drop = 2, .drop = drop };
	struct site_book b;
	bool is_new;
	u32 a, c;

	site_book_init(&b, &p->t, &ps, 0, SEQ_NEVER, false);
	assert_int_equal(b.n_bounds, 2);
	assert_int_equal(site_segment(&b, 14), 0);
	assert_int_equal(site_segment(&b, 15), 1);
	assert_int_equal(site_segment(&b, 29), 1);
	assert_int_equal(site_segment(&b, 30), 2);
	a = site_book_note(&b, &p->t, &s, &is_new);
	assert_true(is_new);
	s.n_drop = 0;
	assert_int_equal(site_book_note(&b, &p->t, &s, &is_new), a);
	assert_false(is_new);
	s.point = 1;
	c = site_book_note(&b, &p->t, &s, &is_new);
	assert_true(is_new && c != a);
	s.point = 0;	/* a wider pass comes back to it */
	assert_int_equal(site_book_note(&b, &p->t, &s, &is_new), a);
	assert_false(is_new);
	assert_int_equal(b.entries[a].count, 3);
	assert_int_equal(b.entries[a].n_drop, 2);
	assert_memory_equal(site_drops(&b, &b.entries[a]), drop, sizeof(drop));
	assert_int_equal(b.n_sites, 4);
	assert_int_equal(b.n_disks, 1);
	site_book_done(&b);
}

/* ---- interning, transport --------------------------------------------------- */

static void equal_bytes_get_equal_numbers(void **state)
{
	struct intern in = { 0 };
	bool is_new;

	(void)state;
	for (u32 round = 0; round < 2; round++) {
		for (u32 i = 0; i < 5000; i++) {
			assert_int_equal(intern_put(&in, &i, sizeof(i),
						    &is_new), i);
			assert_int_equal(is_new, round == 0);
		}
	}
	assert_int_equal(in.bytes, 5000 * sizeof(u32));
	intern_done(&in);
}

static void a_tree_survives_its_transport(void **state)
{
	struct place *p = *state;
	_cleanup_close_ int fd = memfd_new("test", 0, NULL);
	struct tree back = { 0 };
	struct stat st;
	u8 data[4096];

	assert_true(fd >= 0);
	assert_int_equal(tree_save(&p->state.tree, fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_size < (off_t)sizeof(data));
	assert_int_equal(pread_full(fd, data, st.st_size, 0), 0);
	assert_int_equal(tree_restore(p->store, data, st.st_size, &back), 0);
	assert_int_equal(back.n, p->state.tree.n);
	assert_memory_equal(&back.hash, &p->state.tree.hash, sizeof(back.hash));
	assert_int_equal(back.nodes[0].ino, p->state.tree.nodes[0].ino);
	assert_int_equal(back.nodes[0].mode, p->state.tree.nodes[0].mode);
	tree_free(p->store, &back);
	for (off_t len = 0; len < st.st_size; len++)
		assert_int_equal(tree_restore(p->store, data, len, &back),
				 -EBADMSG);
}

#define PLACE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(an_expected_tree_has_no_distance),
		PLACE_TEST(what_is_missing_is_counted_and_told),
		PLACE_TEST(equal_trees_give_equal_bytes),
		PLACE_TEST(an_unknown_state_excuses),
		PLACE_TEST(damaged_answers_are_refused),
		cmocka_unit_test(job_numbers_come_back),
		PLACE_TEST(a_checker_sees_its_surroundings),
		PLACE_TEST(a_checker_fails_in_its_own_way),
		PLACE_TEST(only_the_tail_of_the_output_is_kept),
		PLACE_TEST(nothing_survives_a_checker),
		PLACE_TEST(a_checker_that_hangs_is_ended),
		PLACE_TEST(a_checker_runs_once_for_equal_trees_and_marks),
		PLACE_TEST(marks_before_the_crash_are_told),
		PLACE_TEST(sites_are_booked_by_disk_and_segment),
		cmocka_unit_test(equal_bytes_get_equal_numbers),
		PLACE_TEST(a_tree_survives_its_transport),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
