// SPDX-License-Identifier: GPL-2.0-or-later
/* Writing with threads: order, what is stored uncompressed, errors. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recording_help.h"

static struct rec_writer *create_with(const char *path, u32 frame_bytes,
				      int threads)
{
	struct rec_writer_opts opts = { .frame_bytes = frame_bytes,
					.overwrite = true,
					.threads = threads };
	struct rec_writer *w = NULL;
	struct errmsg em = { "" };

	if (rec_create(path, HEAD, &opts, &w, &em) < 0)
		fail_msg("%s", em.text);
	return w;
}

/* ---- order and content --------------------------------------------------- */

#define MIXED 4000

/* Records of all sizes, some compressible, data whole and in parts; the same
 * for the same seed. */
static void put_mixed(struct rec_writer *w, u64 n)
{
	static u8 data[256 << 10];
	u32 x = 7;

	memset(data, 0, sizeof(data));
	for (u64 seq = 1; seq <= n; seq++) {
		u32 kind = next_random(&x) % 8;
		u32 bytes = (1 + next_random(&x) % 16) * 512;
		struct rec_bytes parts[] = {
			{ data, 512 }, { NULL, bytes }, { data + 512, bytes },
		};
		struct rec_issue i = { .op = BLK_WRITE, .data = data };
		struct rec_file_op op = an_op;

		if (kind == 0 && seq % 16 == 0)
			bytes = sizeof(data);
		if (kind < 3) {
			if (kind)
				fill_random(data, bytes, &x);
			else
				memset(data, seq, bytes);
			i.sectors = bytes / 512;
			i.data_bytes = bytes;
			assert_int_equal(rec_put_issue(w, seq, seq, DEV, &i),
					 0);
		} else if (kind == 3) {
			i.data = NULL;
			i.parts = parts;
			i.n_parts = ARRAY_SIZE(parts);
			i.data_bytes = 512 + 2 * bytes;
			i.sectors = i.data_bytes / 512;
			assert_int_equal(rec_put_issue(w, seq, seq, DEV, &i),
					 0);
		} else if (kind < 6) {
			assert_int_equal(rec_put_file_op(w, seq, seq, DEV, &op),
					 0);
		} else {
			assert_int_equal(rec_put_requeue(
				w, seq, seq, DEV, &(struct rec_requeue){ seq }),
				0);
		}
		if (seq % 1000 == 0)
			rec_writer_backlog(w, seq % 3000 * 65536);
	}
}

/* Both hold the same records; how they are cut into frames may differ. */
static void same_records(const char *a, const char *b, u64 n)
{
	struct rec_reader *ra = open_ok(a), *rb = open_ok(b);
	struct record x, y;
	u64 seq = 0;

	while (rec_next(ra, &x, NULL) > 0) {
		assert_int_equal(rec_next(rb, &y, NULL), 1);
		if (x.type != REC_END)
			assert_int_equal(x.seq, ++seq);
		assert_int_equal(x.seq, y.seq);
		assert_int_equal(x.type, y.type);
		assert_int_equal(x.body_bytes, y.body_bytes);
		assert_memory_equal(x.body, y.body, x.body_bytes);
	}
	assert_int_equal(rec_next(rb, &y, NULL), 0);
	assert_int_equal(seq, n);
	assert_true(rec_is_closed(ra) && rec_is_closed(rb));
	rec_reader_free(ra);
	rec_reader_free(rb);
}

static void test_same_records_with_and_without_threads(void **state)
{
	static const struct {
		int threads;
		u32 frame_bytes;
	} cases[] = {
		{ 0, 0 }, { 1, 3000 }, { 2, 0 }, { 4, 3000 }, { 4, 70000 },
		{ 100, 500 },
	};
	struct dir *d = *state;
	_cleanup_free_ char *plain = xasprintf("%s/plain", d->path);
	struct rec_writer *w = create_with(plain, 0, -1);

	put_mixed(w, MIXED);
	assert_int_equal(rec_close(w, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		w = create_with(d->file, cases[i].frame_bytes,
				cases[i].threads);
		put_mixed(w, MIXED);
		assert_int_equal(rec_close(w, NULL), 0);
		same_records(plain, d->file, MIXED);
	}
	unlink(plain);
}

static void test_parts_must_add_up(void **state)
{
	struct dir *d = *state;
	struct rec_writer *w = create_with(d->file, 0, 0);
	struct rec_bytes parts[] = { { "x", 1 }, { NULL, 510 } };
	struct rec_issue i = { .op = BLK_WRITE, .sectors = 1,
			       .data_bytes = 512, .parts = parts,
			       .n_parts = 2 };

	assert_int_equal(rec_put_issue(w, 1, 1, DEV, &i), -EINVAL);
	parts[1].bytes = 511;
	assert_int_equal(rec_put_issue(w, 1, 1, DEV, &i), 0);
	assert_int_equal(rec_close(w, NULL), 0);
}

static void test_flushed_is_in_the_file(void **state)
{
	struct dir *d = *state;
	struct rec_writer *w = create_with(d->file, 1000, 4);
	struct rec_reader *r;
	struct record rec;
	struct stat st;
	u64 seq = 0, read = 0;

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 100; i++, seq++)
			assert_int_equal(rec_put_requeue(
				w, seq + 1, 1, DEV, &(struct rec_requeue){ 1 }),
				0);
		assert_int_equal(rec_flush(w), 0);
		assert_int_equal(stat(d->file, &st), 0);
		assert_int_equal(st.st_size, rec_writer_bytes(w));
	}
	/* What is closed later reaches the file too, an open frame does not. */
	for (int i = 0; i < 100; i++, seq++)
		assert_int_equal(rec_put_requeue(
			w, seq + 1, 1, DEV, &(struct rec_requeue){ 1 }), 0);
	rec_abandon(w);
	r = open_ok(d->file);
	while (rec_next(r, &rec, NULL) > 0)
		assert_int_equal(rec.seq, ++read);
	assert_false(rec_is_closed(r));
	/* 27 of 36 bytes in a frame */
	assert_int_equal(read, 5000 + 100 / 27 * 27);
	assert_int_equal(stat(d->file, &st), 0);
	assert_int_equal(rec_whole_bytes(r), st.st_size);
	rec_reader_free(r);
}

/* ---- compression gives way ----------------------------------------------- */

/* Of 4 MiB of bytes that are random below mask. */
static u64 recorded_bytes(const char *path, u64 backlog, u8 mask)
{
	struct rec_writer *w = create_with(path, 0, 2);
	_cleanup_free_ u8 *data = xzalloc(1 << 20);
	u64 bytes;
	u32 x = 1;

	rec_writer_backlog(w, backlog);
	for (int i = 0; i < 4; i++) {
		fill_random(data, 1 << 20, &x);
		for (u32 k = 0; k < 1 << 20; k++)
			data[k] &= mask;
		assert_int_equal(rec_put_base(w, DEV, 0, data, 1 << 20), 0);
		assert_int_equal(rec_flush(w), 0);
	}
	bytes = rec_writer_bytes(w);
	assert_int_equal(rec_close(w, NULL), 0);
	return bytes;
}

static void test_a_backlog_elsewhere_turns_compression_off(void **state)
{
	struct dir *d = *state;

	assert_true(recorded_bytes(d->file, 0, 0) < 64 << 10);
	assert_true(recorded_bytes(d->file, 0, 63) < 3400 << 10);
	assert_true(recorded_bytes(d->file, UINT64_MAX, 63) > 4 << 20);
	/* What shrinks much is quicker to write when it has shrunk. */
	assert_true(recorded_bytes(d->file, UINT64_MAX, 0) < 64 << 10);
}

/* Sizes around the block of 128 KiB, and more blocks than one writev takes. */
static void test_stored_frames_of_all_sizes(void **state)
{
	static const u32 sizes[] = {
		1, 1000, (128 << 10) - 41, (128 << 10) - 40, (128 << 10) - 39,
		(256 << 10) - 40, (256 << 10) - 39, 1 << 20, 4 << 20,
		(9 << 20) + 1,
	};
	struct dir *d = *state;
	struct rec_writer *w = create_with(d->file, 100, 2);
	u8 *data = xmalloc(16 << 20);
	struct rec_reader *r;
	struct record rec;
	struct rec_base b;
	u32 x = 3;

	fill_random(data, 16 << 20, &x);
	rec_writer_backlog(w, UINT64_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_int_equal(rec_put_base(w, DEV, 512 * i, data + i,
					      sizes[i]), 0);
	assert_int_equal(rec_close(w, NULL), 0);
	r = open_ok(d->file);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		rec = next_ok(r, REC_BASE);
		assert_int_equal(rec.frame, i + 1);
		assert_int_equal(rec_get_base(&rec, &b), 0);
		assert_int_equal(b.offset_bytes, 512 * i);
		assert_int_equal(b.bytes, sizes[i]);
		assert_memory_equal(b.data, data + i, sizes[i]);
	}
	next_ok(r, REC_END);
	rec_reader_free(r);
	free(data);
}

/* ---- a file that cannot grow --------------------------------------------- */

/* Puts random records until told of err, which then stays. Runs in a child. */
static bool error_comes_and_stays(struct rec_writer *w, int err, u32 bytes)
{
	_cleanup_free_ u8 *data = xmalloc(bytes);
	int got = 0;
	u32 x = 1;

	fill_random(data, bytes, &x);
	for (u64 seq = 1; seq <= 1000 && !got; seq++) {
		struct rec_issue i = { .op = BLK_WRITE, .sectors = bytes / 512,
				       .data = data, .data_bytes = bytes };

		fill_random(data, 512, &x);
		got = rec_put_issue(w, seq, seq, DEV, &i);
	}
	return got == err && rec_flush(w) == err &&
	       rec_put_requeue(w, 5000, 1, DEV, &(struct rec_requeue){ 1 }) ==
		       err && rec_flush(w) == err;
}

/* The file is whole frames from 1 on, and no more than that. */
static bool is_whole_prefix(const char *path, u64 least)
{
	struct rec_reader *r = NULL;
	struct record rec;
	struct stat st;
	u64 n = 0;
	bool ok = rec_open(path, &r, NULL) == 0;

	while (ok && rec_next(r, &rec, NULL) > 0)
		ok = rec.type == REC_ISSUE && rec.seq == ++n;
	ok = ok && n >= least && !rec_is_closed(r) && stat(path, &st) == 0 &&
	     rec_whole_bytes(r) == (u64)st.st_size;
	rec_reader_free(r);
	return ok;
}

struct full_case {
	int threads;
	u64 backlog;	/* UINT64_MAX: frames are stored */
	u32 bytes;	/* of each write */
};

static const struct full_case full_cases[] = {
	{ -1, 0, 4096 },      { 1, 0, 4096 },	       { 4, 0, 4096 },
	{ 4, UINT64_MAX, 4096 }, { 4, UINT64_MAX, 512 << 10 },
	{ -1, UINT64_MAX, 512 << 10 },
};

static void limited_child(const char *path, const struct full_case *c)
{
	struct rlimit limit = { 700000, RLIM_INFINITY };
	struct rec_writer *w = create_with(path, 1000, c->threads);

	rec_writer_backlog(w, c->backlog);
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	if (!error_comes_and_stays(w, -EFBIG, c->bytes))
		_exit(1);
	/* Room again does not bring back what is lost. */
	limit.rlim_cur = RLIM_INFINITY;
	setrlimit(RLIMIT_FSIZE, &limit);
	_exit(rec_close(w, NULL) == -EFBIG ? 0 : 2);
}

static void test_file_size_limit(void **state)
{
	struct dir *d = *state;

	for (size_t i = 0; i < ARRAY_SIZE(full_cases); i++) {
		const struct full_case *c = &full_cases[i];
		int status;
		pid_t pid = fork();

		if (pid == 0)
			limited_child(d->file, c);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		assert_true(is_whole_prefix(d->file, 1));
	}
}

#define EXIT_NO_MOUNT 77

/* On a tmpfs of 1 MiB in a mount namespace of its own. */
static void full_disk_child(const struct dir *d, const struct full_case *c)
{
	struct rec_writer *w;

	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", d->path, "tmpfs", 0, "size=1M") < 0)
		_exit(EXIT_NO_MOUNT);
	w = create_with(d->file, 1000, c->threads);
	rec_writer_backlog(w, c->backlog);
	if (!error_comes_and_stays(w, -ENOSPC, c->bytes))
		_exit(1);
	if (rec_close(w, NULL) != -ENOSPC)
		_exit(2);
	_exit(is_whole_prefix(d->file, 1) ? 0 : 3);
}

static void test_full_disk(void **state)
{
	struct dir *d = *state;

	for (size_t i = 0; i < ARRAY_SIZE(full_cases); i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			full_disk_child(d, &full_cases[i]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) == EXIT_NO_MOUNT) {
			print_message("needs root, to mount a tmpfs\n");
			skip();
		}
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_same_records_with_and_without_threads),
		T(test_parts_must_add_up),
		T(test_flushed_is_in_the_file),
		T(test_a_backlog_elsewhere_turns_compression_off),
		T(test_stored_frames_of_all_sizes),
		T(test_file_size_limit),
		T(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
