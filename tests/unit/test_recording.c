// SPDX-License-Identifier: GPL-2.0-or-later
/* The recording: what is written is what is read. */
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "recording_help.h"

/* ---- every type, there and back ------------------------------------------ */

static void check_issue(const struct record *r)
{
	struct rec_issue i;

	assert_int_equal(r->seq, 1);
	assert_int_equal(r->time_ns, 1001);
	assert_int_equal(r->dev, DEV);
	assert_int_equal(rec_get_issue(r, &i), 0);
	assert_int_equal(i.op, an_issue.op);
	assert_int_equal(i.flags, an_issue.flags);
	assert_int_equal(i.raw_flags, an_issue.raw_flags);
	assert_int_equal(i.sector, an_issue.sector);
	assert_int_equal(i.sectors, an_issue.sectors);
	assert_int_equal(i.pid, an_issue.pid);
	assert_string_equal(i.comm, an_issue.comm);
	assert_int_equal(i.n_pages, 2);
	assert_int_equal(i.pages[0].bytes, 1024);
	assert_int_equal(i.pages[0].flags, PAGE_BLOCKDEV);
	assert_int_equal(i.pages[0].fs_dev, DEV);
	assert_int_equal(i.pages[0].file_offset, 4096);
	assert_int_equal(i.pages[1].bytes, 512);
	assert_int_equal(i.pages[1].flags, PAGE_UNREADABLE);
	assert_int_equal(i.pages[1].ino, 77);
	assert_int_equal(i.pages[1].file_offset, 1ULL << 40);
	assert_int_equal(i.data_bytes, 1536);
	assert_int_equal(((const u8 *)i.data)[999], 0xa5);
	assert_int_equal(((const u8 *)i.data)[1000], 1);
	rec_issue_done(&i);
}

#define SAME(field) assert_int_equal(op.field, an_op.field)

static void check_numbers(const struct rec_file_op op)
{
	SAME(op);
	SAME(flags);
	SAME(syscall);
	SAME(start_seq);
	SAME(start_ns);
	SAME(pid);
	SAME(tid);
	SAME(ret);
	SAME(fd);
	SAME(open_flags);
	SAME(mode);
	SAME(off);
	SAME(len);
	SAME(ino);
	SAME(size);
	SAME(nlink);
	SAME(file_mode);
	SAME(dir_dev);
	SAME(dir2_dev);
	SAME(dir_ino);
	SAME(dir2_ino);
	SAME(src_dev);
	SAME(src_ino);
	SAME(src_off);
	SAME(n_stack);
}

static void check_file_op(const struct record *r)
{
	struct rec_file_op op;

	assert_int_equal(rec_get_file_op(r, &op), 0);
	check_numbers(op);
	assert_string_equal(op.comm, "sort");
	assert_string_equal(op.file_path, an_op.file_path);
	assert_string_equal(op.dir_path, "");
	assert_string_equal(op.path, an_op.path);
	assert_null(op.dir2_path);
	assert_null(op.path2);
	assert_memory_equal(op.stack, an_op.stack, 16);
	/* what the call did not write is not kept */
	assert_int_equal(op.data_bytes, 5);
	assert_memory_equal(op.data, "hello", 5);
	rec_file_op_done(&op);
}

static void check_rest(struct rec_reader *r)
{
	struct record rec;
	struct rec_mark mark;
	struct rec_proc proc;
	struct rec_gap gap;
	struct rec_end end;

	rec = next_ok(r, REC_MARK);
	assert_int_equal(rec_get_mark(&rec, &mark), 0);
	assert_int_equal(mark.pid, 6);
	assert_string_equal(mark.text, "a mark");
	rec = next_ok(r, REC_PROC);
	assert_int_equal(rec_get_proc(&rec, &proc), 0);
	assert_int_equal(proc.event, PROC_EXIT);
	assert_int_equal(proc.parent, 8);
	assert_int_equal(proc.status, -1);
	assert_string_equal(proc.comm, "x");
	rec = next_ok(r, REC_GAP);
	assert_int_equal(rec_get_gap(&rec, &gap), 0);
	assert_int_equal(gap.reason, GAP_RING_FULL);
	assert_int_equal(gap.lost_type, REC_ISSUE);
	assert_int_equal(gap.events, 3);
	assert_int_equal(gap.bytes, 4096);
	assert_int_equal(gap.last_seq, 9);
	rec = next_ok(r, 1000);	/* a type nobody knows is passed on */
	assert_int_equal(rec.flags, 3);
	assert_memory_equal(rec.body, "future", 6);
	rec = next_ok(r, REC_END);
	assert_int_equal(rec_get_end(&rec, &end), 0);
	assert_int_equal(end.events, 6);
	assert_int_equal(end.gaps, 1);
	assert_int_equal(end.lost_events, 3);
	assert_int_equal(end.lost_bytes, 4096);
}

static void test_each_record_comes_back(void **state)
{
	struct dir *d = *state;
	struct rec_writer *w = create(d->file, 0);
	struct errmsg em = { "" };
	struct rec_complete complete;
	struct rec_requeue requeue;
	struct rec_reader *r;
	struct rec_base base;
	struct record rec;
	u64 bytes;

	put_each(w);
	assert_int_equal(rec_close(w, &em), 0);
	r = open_ok(d->file);
	assert_string_equal(rec_head(r), HEAD);
	rec = next_ok(r, REC_BASE);
	assert_int_equal(rec.seq, 0);
	assert_int_equal(rec_get_base(&rec, &base), 0);
	assert_int_equal(base.offset_bytes, 8192);
	assert_int_equal(base.bytes, 4);
	assert_memory_equal(base.data, "base", 4);
	rec = next_ok(r, REC_BASE_END);
	assert_int_equal(rec_get_base_end(&rec, &bytes), 0);
	assert_int_equal(bytes, 1 << 20);
	rec = next_ok(r, REC_ISSUE);
	check_issue(&rec);
	/* a decoder of another type refuses it */
	assert_int_equal(rec_get_base(&rec, &base), -EBADMSG);
	rec = next_ok(r, REC_REQUEUE);
	assert_int_equal(rec_get_requeue(&rec, &requeue), 0);
	assert_int_equal(requeue.issue_seq, 1);
	rec = next_ok(r, REC_COMPLETE);
	assert_int_equal(rec_get_complete(&rec, &complete), 0);
	assert_int_equal(complete.issue_seq, 1);
	assert_int_equal(complete.error, -5);
	assert_int_equal(complete.bytes, 1536);
	rec = next_ok(r, REC_FILE_OP);
	check_file_op(&rec);
	check_rest(r);
	assert_int_equal(rec_next(r, &rec, &em), 0);
	assert_true(rec_is_closed(r));
	rec_reader_free(r);
}

/* ---- frames -------------------------------------------------------------- */

static void test_large_record_has_a_frame_of_its_own(void **state)
{
	struct dir *d = *state;
	struct rec_writer *w = create(d->file, 0);
	u32 bytes = 3 << 20;
	u8 *data = xzalloc(bytes);
	struct rec_issue i = { .op = BLK_WRITE, .sectors = bytes / 512,
			       .data = data, .data_bytes = bytes };
	struct rec_reader *r;
	struct record rec;

	for (u32 k = 0; k < bytes; k++)
		data[k] = k * 7 + (k >> 9);
	assert_int_equal(rec_put_mark(w, 1, 1, &(struct rec_mark){ 1, "a" }),
			 0);
	assert_int_equal(rec_put_issue(w, 2, 2, DEV, &i), 0);
	assert_int_equal(rec_put_mark(w, 3, 3, &(struct rec_mark){ 1, "b" }),
			 0);
	assert_int_equal(rec_close(w, NULL), 0);
	r = open_ok(d->file);
	rec = next_ok(r, REC_MARK);
	assert_int_equal(rec.frame, 1);
	rec = next_ok(r, REC_ISSUE);
	assert_int_equal(rec.frame, 2);
	assert_int_equal(rec_get_issue(&rec, &i), 0);
	assert_memory_equal(i.data, data, bytes);
	rec_issue_done(&i);
	rec = next_ok(r, REC_MARK);
	assert_int_equal(rec.frame, 3);
	rec = next_ok(r, REC_END);
	assert_int_equal(rec.frame, 4);
	rec_reader_free(r);
	free(data);
}

static void test_frames_close_at_their_size(void **state)
{
	struct dir *d = *state;
	struct rec_writer *w = create(d->file, 1000);
	struct rec_reader *r;
	struct record rec;
	u64 last = 0, in_frame = 0;

	for (u64 seq = 1; seq <= 1000; seq++)
		assert_int_equal(rec_put_requeue(w, seq, seq, DEV,
						 &(struct rec_requeue){ 1 }),
				 0);
	assert_int_equal(rec_close(w, NULL), 0);
	r = open_ok(d->file);
	while (rec_next(r, &rec, NULL) > 0) {
		in_frame = rec.frame == last ? in_frame + 1 : 1;
		last = rec.frame;
		/* 36 bytes each */
		assert_true(in_frame <= 1000 / 36);
	}
	assert_true(rec_is_closed(r));
	assert_int_equal(last, 1 + 1 + 1000 / 27);
	rec_reader_free(r);
}

/* A header with a right checksum that asks for more than a reader gives. */
static void test_sizes_are_bounded_before_allocation(void **state)
{
	static const struct {
		u32 raw, zstd;
	} cases[] = {
		{ UINT32_MAX, 100 },	  { FRAME_RAW_MAX + 1, 100 },
		{ 100, UINT32_MAX },	  { RECORD_HEADER_BYTES - 1, 50 },
		{ 0, 0 },		  { 100, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct frame_header h;
		struct buf b = { 0 };
		const char *why = NULL;

		buf_put(&b, "BBXF", 4);
		buf_put_u32(&b, 0);
		buf_put_u64(&b, 3);
		buf_put_u32(&b, cases[i].raw);
		buf_put_u32(&b, cases[i].zstd);
		buf_put_u64(&b, 0);
		buf_put_u64(&b, XXH3_64bits_withSeed(b.data, b.len, 9));
		assert_int_equal(frame_header_decode(b.data, 9, 3, &h, &why),
				 -EUCLEAN);
		assert_string_equal(why, "its sizes are out of bounds");
		buf_free(&b);
	}
}

static void test_body_must_be_one_zstd_frame_of_its_size(void **state)
{
	u8 raw[200] = { 1 }, zstd[400];
	size_t n = ZSTD_compress(zstd, sizeof(zstd), raw, 100, 1);
	struct frame_header h = { .raw_bytes = 100, .zstd_bytes = n };
	const char *why;

	(void)state;
	h.body_hash = XXH3_64bits_withSeed(zstd, n, 9);
	assert_int_equal(frame_body_check(&h, 9, zstd, &why), 0);
	h.raw_bytes = 99;
	assert_int_equal(frame_body_check(&h, 9, zstd, &why), -EUCLEAN);
	/* two zstd frames one after the other */
	h.raw_bytes = 100;
	memcpy(zstd + n, zstd, n);
	h.zstd_bytes = 2 * n;
	h.body_hash = XXH3_64bits_withSeed(zstd, 2 * n, 9);
	assert_int_equal(frame_body_check(&h, 9, zstd, &why), -EUCLEAN);
}

/* ---- bodies -------------------------------------------------------------- */

static int decode(const struct record *r)
{
	struct rec_base base;
	struct rec_issue issue;
	struct rec_complete complete;
	struct rec_requeue requeue;
	struct rec_file_op op;
	struct rec_mark mark;
	struct rec_proc proc;
	struct rec_gap gap;
	struct rec_end end;
	u64 bytes;
	int err;

	switch (r->type) {
	case REC_BASE:
		return rec_get_base(r, &base);
	case REC_BASE_END:
		return rec_get_base_end(r, &bytes);
	case REC_ISSUE:
		err = rec_get_issue(r, &issue);
		if (err == 0)
			rec_issue_done(&issue);
		return err;
	case REC_COMPLETE:
		return rec_get_complete(r, &complete);
	case REC_REQUEUE:
		return rec_get_requeue(r, &requeue);
	case REC_FILE_OP:
		err = rec_get_file_op(r, &op);
		if (err == 0)
			rec_file_op_done(&op);
		return err;
	case REC_MARK:
		return rec_get_mark(r, &mark);
	case REC_PROC:
		return rec_get_proc(r, &proc);
	case REC_GAP:
		return rec_get_gap(r, &gap);
	case REC_END:
		return rec_get_end(r, &end);
	}
	return 1;
}

static void test_short_bodies_are_refused_and_grown_ones_read(void **state)
{
	struct dir *d = *state;
	struct rec_writer *w = create(d->file, 0);
	struct rec_reader *r;
	struct record rec;
	u32 types = 0;

	put_each(w);
	assert_int_equal(rec_close(w, NULL), 0);
	r = open_ok(d->file);
	while (rec_next(r, &rec, NULL) > 0) {
		struct record cut = rec;

		if (rec.type == 1000)
			continue;
		assert_int_equal(decode(&rec), 0);
		for (u32 n = 0; n < rec.body_bytes; n++) {
			/* a copy, so that a sanitizer sees a byte too many */
			u8 *body = xmalloc(n);

			memcpy(body, rec.body, n);
			cut.body = body;
			cut.body_bytes = n;
			assert_int_equal(decode(&cut), -EBADMSG);
			free(body);
		}
		{
			u8 *body = xzalloc(rec.body_bytes + 9);

			memcpy(body, rec.body, rec.body_bytes);
			cut.body = body;
			cut.body_bytes = rec.body_bytes + 9;
			assert_int_equal(decode(&cut), 0);
			free(body);
		}
		types++;
	}
	assert_int_equal(types, 10);
	rec_reader_free(r);
}

static void test_contradictions_are_not_written(void **state)
{
	struct dir *d = *state;
	struct rec_writer *w = create(d->file, 0);
	struct rec_issue i = an_issue;
	struct rec_file_op op = an_op;
	u64 before;

	i.data_bytes = 0;
	i.data = NULL;
	assert_int_equal(rec_put_issue(w, 10, 1, DEV, &i), 0);
	before = 10;
	assert_int_equal(rec_put_issue(w, before, 1, DEV, &i), -EINVAL);
	assert_int_equal(rec_put_issue(w, 9, 1, DEV, &i), -EINVAL);
	assert_int_equal(rec_put_issue(w, UINT64_MAX, 1, DEV, &i), -EINVAL);
	i.sectors = 4;	/* its pieces are three sectors */
	assert_int_equal(rec_put_issue(w, 11, 1, DEV, &i), -EINVAL);
	i = an_issue;
	i.n_pages = 0;
	i.data = "x";
	i.data_bytes = 1;
	assert_int_equal(rec_put_issue(w, 11, 1, DEV, &i), -EINVAL);
	i.data_bytes = 0;
	i.sector = UINT64_MAX - 1;
	assert_int_equal(rec_put_issue(w, 11, 1, DEV, &i), -EINVAL);
	i.sector = 0;
	i.op = 0;
	assert_int_equal(rec_put_issue(w, 11, 1, DEV, &i), -EINVAL);
	op.op = OP_MAX;
	assert_int_equal(rec_put_file_op(w, 11, 1, DEV, &op), -EINVAL);
	assert_int_equal(rec_put_gap(w, 11, 1, DEV,
				     &(struct rec_gap){ 1, 0, 1, 1, 10 }),
			 -EINVAL);
	assert_int_equal(rec_put(w, &(struct record){ .type = REC_HEAD }),
			 -EINVAL);
	assert_int_equal(rec_put(w, &(struct record){ .type = REC_END }),
			 -EINVAL);
	/* the writer goes on after each of these */
	assert_int_equal(rec_put_requeue(w, 11, 1, DEV,
					 &(struct rec_requeue){ 10 }), 0);
	assert_int_equal(rec_close(w, NULL), 0);
	{
		struct rec_reader *r = open_ok(d->file);

		next_ok(r, REC_ISSUE);
		next_ok(r, REC_REQUEUE);
		next_ok(r, REC_END);
		rec_reader_free(r);
	}
}

static void test_record_too_large_is_not_taken(void **state)
{
	struct dir *d = *state;
	struct rec_writer *w = create(d->file, 0);
	struct record r = { .type = 1000, .body_bytes = RECORD_BODY_MAX + 1 };
	struct rec_reader *rd;

	assert_int_equal(rec_put(w, &r), -EMSGSIZE);
	assert_int_equal(rec_put_mark(w, 1, 1, &(struct rec_mark){ 1, "a" }),
			 0);
	assert_int_equal(rec_close(w, NULL), 0);
	rd = open_ok(d->file);
	next_ok(rd, REC_MARK);
	next_ok(rd, REC_END);
	rec_reader_free(rd);
}

static void test_names_are_there_for_every_value(void **state)
{
	(void)state;
	for (u8 op = 1; op < OP_MAX; op++)
		assert_string_not_equal(file_op_name(op), "unknown");
	for (u8 op = BLK_WRITE; op <= BLK_OTHER; op++)
		assert_string_not_equal(blk_op_name(op), "unknown");
	assert_string_equal(file_op_name(0), "unknown");
	assert_string_equal(file_op_name(OP_MAX), "unknown");
	assert_string_equal(blk_op_name(255), "unknown");
	assert_string_equal(rec_type_name(REC_FILE_OP), "file-op");
	assert_string_equal(rec_type_name(REC_END), "end");
	assert_string_equal(rec_type_name(65535), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_each_record_comes_back),
		T(test_large_record_has_a_frame_of_its_own),
		T(test_frames_close_at_their_size),
		T(test_sizes_are_bounded_before_allocation),
		T(test_body_must_be_one_zstd_frame_of_its_size),
		T(test_short_bodies_are_refused_and_grown_ones_read),
		T(test_contradictions_are_not_written),
		T(test_record_too_large_is_not_taken),
		T(test_names_are_there_for_every_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
