// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A recording that was changed, cut, or made by a stranger is never misread:
 * it gives an error or a shorter whole prefix.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "recording_help.h"

/* ---- nothing changed is misread ------------------------------------------ */

struct seen {
	u64 hash;	/* of header and body */
};

struct seen_list {
	u32 n, cap;
	struct seen *items;
};

/* Reads fd's content; what came, until end or error. */
static int read_list(int fd, struct seen_list *ret, bool *ret_closed)
{
	struct rec_reader *r = NULL;
	struct record rec;
	int err = rec_open_fd(dup(fd), "test", &r, NULL);

	ret->n = 0;
	*ret_closed = false;
	if (err < 0)
		return err;
	while ((err = rec_next(r, &rec, NULL)) > 0) {
		struct buf b = { 0 };

		record_header_encode(&b, &rec);
		buf_put(&b, rec.body, rec.body_bytes);
		GROW(ret->items, ret->n, ret->cap);
		ret->items[ret->n++].hash = XXH3_64bits(b.data, b.len);
		buf_free(&b);
	}
	if (err == 0)
		*ret_closed = rec_is_closed(r);
	rec_reader_free(r);
	return err;
}

static void assert_prefix(const struct seen_list *whole,
			  const struct seen_list *part)
{
	assert_true(part->n <= whole->n);
	if (part->n)
		assert_memory_equal(part->items, whole->items,
				    part->n * sizeof(*part->items));
}

/* A recording of several frames in a memfd. */
static int small_recording(struct dir *d, struct seen_list *whole,
			   off_t *ret_size)
{
	struct rec_writer *w = create(d->file, 200);
	int fd = memfd_create("recording", MFD_CLOEXEC);
	struct buf b;
	bool closed;

	put_each(w);
	assert_int_equal(rec_close(w, NULL), 0);
	b = slurp(d->file);
	assert_true(fd >= 0);
	assert_int_equal(pwrite_full(fd, b.data, b.len, 0), 0);
	*ret_size = b.len;
	buf_free(&b);
	assert_int_equal(read_list(fd, whole, &closed), 0);
	assert_true(closed);
	assert_int_equal(whole->n, 11);
	return fd;
}

static void test_any_byte_changed_is_noticed(void **state)
{
	static const u8 patterns[] = { 1, 2, 4, 8, 16, 32, 64, 128, 255 };
	struct seen_list whole = { 0 }, got = { 0 };
	off_t size;
	int fd = small_recording(*state, &whole, &size);
	u32 errors = 0;

	for (off_t pos = 0; pos < size; pos++) {
		for (size_t p = 0; p < sizeof(patterns); p++) {
			u8 old, bad;
			bool closed;
			int err;

			assert_int_equal(pread_full(fd, &old, 1, pos), 0);
			bad = old ^ patterns[p];
			assert_int_equal(pwrite_full(fd, &bad, 1, pos), 0);
			err = read_list(fd, &got, &closed);
			assert_prefix(&whole, &got);
			assert_true(err < 0 || got.n < whole.n);
			assert_false(closed);
			errors += err < 0;
			assert_int_equal(pwrite_full(fd, &old, 1, pos), 0);
		}
	}
	/* a header has its own checksum: none of these looks like a cut */
	assert_int_equal(errors, size * sizeof(patterns));
	free(whole.items);
	free(got.items);
	close(fd);
}

static void test_cut_at_any_length_is_a_prefix(void **state)
{
	struct seen_list whole = { 0 }, got = { 0 };
	off_t size;
	int fd = small_recording(*state, &whole, &size);
	u32 last = whole.n;
	u32 lengths = 0;

	for (off_t len = size - 1; len >= 0; len--) {
		bool closed;
		int err;

		assert_int_equal(ftruncate(fd, len), 0);
		err = read_list(fd, &got, &closed);
		assert_prefix(&whole, &got);
		assert_false(closed);
		assert_true(got.n <= last);
		lengths += got.n != last;
		last = got.n;
		/* an error only where not even the head is there */
		assert_true(err == 0 || got.n == 0);
		if (err == 0 && got.n == 0)
			assert_true(len >= PREAMBLE_BYTES);
	}
	assert_int_equal(last, 0);
	assert_true(lengths > 4);
	free(whole.items);
	free(got.items);
	close(fd);
}

static void test_cut_says_where(void **state)
{
	struct dir *d = *state;
	struct rec_writer *w = create(d->file, 0);
	struct rec_reader *r;
	struct record rec;
	u64 whole;

	put_each(w);
	assert_int_equal(rec_flush(w), 0);
	whole = rec_writer_bytes(w);
	assert_int_equal(rec_put_mark(w, 100, 1,
				      &(struct rec_mark){ 1, "lost" }), 0);
	assert_int_equal(rec_flush(w), 0);
	assert_int_equal(truncate(d->file, whole + 41), 0);
	rec_abandon(w);
	r = open_ok(d->file);
	while (rec_next(r, &rec, NULL) > 0)
		assert_true(rec.seq < 100);
	assert_false(rec_is_closed(r));
	assert_int_equal(rec_whole_bytes(r), whole);
	rec_reader_free(r);
}

static void test_zeroes_after_a_crash_are_a_cut(void **state)
{
	struct seen_list whole = { 0 }, got = { 0 };
	off_t size;
	int fd = small_recording(*state, &whole, &size);
	u64 frame, zstd_bytes;
	bool closed;
	u8 head[FRAME_HEADER_BYTES];

	/* the second frame's data never reached the disk, its length did */
	frame = PREAMBLE_BYTES;
	assert_int_equal(pread_full(fd, head, sizeof(head), frame), 0);
	zstd_bytes = head[20] | head[21] << 8;
	frame += FRAME_HEADER_BYTES + zstd_bytes;
	assert_int_equal(ftruncate(fd, frame), 0);
	assert_int_equal(ftruncate(fd, frame + 100000), 0);
	assert_int_equal(read_list(fd, &got, &closed), 0);
	assert_int_equal(got.n, 0);
	assert_false(closed);
	/* one byte that is not zero: damage */
	assert_int_equal(pwrite_full(fd, "x", 1, frame + 99999), 0);
	assert_true(read_list(fd, &got, &closed) < 0);
	free(whole.items);
	free(got.items);
	close(fd);
}

/* ---- frames -------------------------------------------------------------- */

#define MAX_FRAMES 32

/* Where the frames of a recording begin; [n] is its end. */
static u32 frames_of(const struct buf *b, size_t at[MAX_FRAMES + 1])
{
	u32 n = 0;

	for (size_t pos = PREAMBLE_BYTES; pos < b->len;) {
		struct cursor c = cursor_of(b->data + pos + 20, 4);

		assert_true(n < MAX_FRAMES);
		at[n++] = pos;
		pos += FRAME_HEADER_BYTES + cur_u32(&c);
		at[n] = pos;
	}
	return n;
}

/* A file of b's preamble and these of its frames. */
static int reframed(const struct buf *b, const size_t *at, const u32 *order,
		    u32 n)
{
	int fd = memfd_create("reframed", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, b->data, PREAMBLE_BYTES), 0);
	for (u32 i = 0; i < n; i++)
		assert_int_equal(write_full(fd, b->data + at[order[i]],
					    at[order[i] + 1] - at[order[i]]),
				 0);
	return fd;
}

static void test_frame_missing_doubled_or_moved_is_an_error(void **state)
{
	static const struct {
		u32 n;
		u32 order[5];
	} cases[] = {
		{ 4, { 0, 2, 3, 4 } },	  /* missing */
		{ 5, { 0, 1, 1, 2, 3 } }, /* doubled */
		{ 4, { 0, 2, 1, 3 } },	  /* moved */
		{ 3, { 1, 2, 3 } },	  /* the first missing */
	};
	struct dir *d = *state;
	struct rec_writer *w = create(d->file, 200);
	struct seen_list got = { 0 };
	size_t at[MAX_FRAMES + 1];
	struct buf b;
	bool closed;
	u32 n;

	put_each(w);
	assert_int_equal(rec_close(w, NULL), 0);
	b = slurp(d->file);
	n = frames_of(&b, at);
	assert_true(n > 5);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int fd = reframed(&b, at, cases[i].order, cases[i].n);

		assert_true(read_list(fd, &got, &closed) < 0);
		close(fd);
	}
	{
		/* END in the place of what it counts */
		const u32 order[] = { 0, n - 1 };
		int fd = reframed(&b, at, order, 2);

		assert_true(read_list(fd, &got, &closed) < 0);
		close(fd);
	}
	free(got.items);
	buf_free(&b);
}

static void test_frame_of_another_recording_is_an_error(void **state)
{
	struct dir *d = *state;
	struct seen_list got = { 0 };
	size_t at[2][MAX_FRAMES + 1];
	struct buf b[2];
	bool closed;
	int fd;

	for (int i = 0; i < 2; i++) {
		struct rec_writer *w = create(d->file, 200);

		put_each(w);
		assert_int_equal(rec_close(w, NULL), 0);
		b[i] = slurp(d->file);
		assert_true(frames_of(&b[i], at[i]) > 2);
		assert_int_equal(unlink(d->file), 0);
	}
	fd = memfd_create("graft", MFD_CLOEXEC);
	assert_int_equal(write_full(fd, b[0].data, at[0][1]), 0);
	assert_int_equal(write_full(fd, b[1].data + at[1][1],
				    b[1].len - at[1][1]), 0);
	assert_true(read_list(fd, &got, &closed) < 0);
	assert_int_equal(got.n, 0);
	close(fd);
	buf_free(&b[0]);
	buf_free(&b[1]);
	free(got.items);
}

static void test_bytes_after_end_are_an_error(void **state)
{
	struct seen_list whole = { 0 }, got = { 0 };
	off_t size;
	int fd = small_recording(*state, &whole, &size);
	bool closed;

	assert_int_equal(pwrite_full(fd, "x", 1, size), 0);
	assert_true(read_list(fd, &got, &closed) < 0);
	free(whole.items);
	free(got.items);
	close(fd);
}

/* A recording made of raw frames as given, with right checksums. */
static int forged(const struct buf *raws, u32 n)
{
	int fd = memfd_create("forged", MFD_CLOEXEC);
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	struct buf out = { 0 };

	assert_true(fd >= 0);
	preamble_encode(&out, 5);
	for (u32 i = 0; i < n; i++)
		assert_int_equal(frame_encode(&out, zstd, 1, 5, i, raws[i].data,
					      raws[i].len), 0);
	assert_int_equal(write_full(fd, out.data, out.len), 0);
	ZSTD_freeCCtx(zstd);
	buf_free(&out);
	return fd;
}

static void put_raw(struct buf *b, u16 type, u64 seq, const void *body,
		    u32 body_bytes, u32 said_bytes)
{
	struct record r = { .type = type, .seq = seq,
			    .body_bytes = said_bytes };

	record_header_encode(b, &r);
	buf_put(b, body, body_bytes);
}

static void test_forged_frames_are_refused(void **state)
{
	static const struct {
		u16 type[2];
		u64 seq[2];
		u32 extra;	/* bytes the second record claims beyond its
				 * frame */
	} cases[] = {
		{ { REC_MARK, REC_MARK }, { 2, 2 }, 0 },  /* a number twice */
		{ { REC_MARK, REC_ISSUE }, { 2, 1 }, 0 }, /* out of order */
		{ { REC_MARK, REC_HEAD }, { 1, 0 }, 0 },  /* a second HEAD */
		{ { REC_MARK, REC_GAP }, { 1, 2 }, 0 },	  /* a GAP of no body */
		{ { REC_MARK, REC_END }, { 1, 0 }, 0 },	  /* END not alone */
		{ { REC_MARK, 1000 }, { 1, 0 }, 1 },
		{ { REC_MARK, 1000 }, { 1, 0 }, UINT32_MAX },
		{ { REC_MARK, 1000 }, { 1, UINT64_MAX }, 0 },
	};
	struct seen_list got = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf raw[2] = { 0 };
		bool closed;
		int fd;

		put_raw(&raw[0], REC_HEAD, 0, "{}", 2, 2);
		put_raw(&raw[1], cases[i].type[0], cases[i].seq[0], "", 0, 0);
		put_raw(&raw[1], cases[i].type[1], cases[i].seq[1], "", 0,
			cases[i].extra);
		fd = forged(raw, 2);
		assert_int_equal(read_list(fd, &got, &closed), -EUCLEAN);
		assert_int_equal(got.n, 1);
		assert_false(closed);
		close(fd);
		buf_free(&raw[0]);
		buf_free(&raw[1]);
	}
	free(got.items);
}

/* HEAD, then a frame of n_before marks and an END that counts events. */
static int forged_end(u32 n_before, u64 events, u64 gaps)
{
	static const u8 mark[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0 };
	struct seen_list got = { 0 };
	struct buf raw[2] = { 0 }, end = { 0 };
	bool closed;
	int fd, err;

	put_raw(&raw[0], REC_HEAD, 0, "{}", 2, 2);
	for (u32 i = 0; i < n_before; i++)
		put_raw(&raw[1], REC_MARK, i + 1, mark, sizeof(mark),
			sizeof(mark));
	buf_put_u64(&end, events);
	buf_put_u64(&end, gaps);
	buf_put_u64(&end, 0);
	buf_put_u64(&end, 0);
	put_raw(&raw[1], REC_END, 0, end.data, end.len, end.len);
	fd = forged(raw, 2);
	err = read_list(fd, &got, &closed);
	assert_int_equal(closed, err == 0);
	close(fd);
	buf_free(&raw[0]);
	buf_free(&raw[1]);
	buf_free(&end);
	free(got.items);
	return err;
}

static void test_end_is_alone_and_counts_right(void **state)
{
	(void)state;
	assert_int_equal(forged_end(0, 0, 0), 0);
	assert_int_equal(forged_end(0, 1, 0), -EUCLEAN);
	assert_int_equal(forged_end(0, 0, 1), -EUCLEAN);
	assert_int_equal(forged_end(1, 1, 0), -EUCLEAN);
}

static void test_recording_without_head_is_refused(void **state)
{
	struct seen_list got = { 0 };
	struct buf raw = { 0 };
	bool closed;
	int fd;

	(void)state;
	put_raw(&raw, REC_MARK, 1, "", 0, 0);
	fd = forged(&raw, 1);
	assert_int_equal(read_list(fd, &got, &closed), -EUCLEAN);
	close(fd);
	buf_reset(&raw);
	put_raw(&raw, REC_HEAD, 0, "{\0}", 3, 3);
	fd = forged(&raw, 1);
	assert_int_equal(read_list(fd, &got, &closed), -EUCLEAN);
	close(fd);
	buf_free(&raw);
	free(got.items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_any_byte_changed_is_noticed),
		T(test_cut_at_any_length_is_a_prefix),
		T(test_cut_says_where),
		T(test_zeroes_after_a_crash_are_a_cut),
		T(test_frame_missing_doubled_or_moved_is_an_error),
		T(test_frame_of_another_recording_is_an_error),
		T(test_bytes_after_end_are_an_error),
		T(test_forged_frames_are_refused),
		T(test_end_is_alone_and_counts_right),
		T(test_recording_without_head_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
