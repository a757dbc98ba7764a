// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records of the ring put together: data and pages that are all there, lost,
 * or not to be read; names and where they start.
 *
 * The kernel's own numbers are these: an op of 1 is a write, and no flag means
 * anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../user/assemble.h"

u8 kernel_blk_op(const struct kernel_info *k, u32 cmd_flags)
{
	(void)k;
	return cmd_flags == 1 ? BLK_WRITE : BLK_FLUSH;
}

u32 kernel_blk_flags(const struct kernel_info *k, u32 cmd_flags)
{
	(void)k;
	(void)cmd_flags;
	return 0;
}

static int setup(void **state)
{
	*state = xzalloc(sizeof(struct parts));
	return 0;
}

static int teardown(void **state)
{
	parts_free(*state);
	return 0;
}

/* ---- records, as the BPF programs make them ------------------------------ */

/* The ring lets go of a record once it is added. */
static int add(struct parts *p, const void *record, u32 bytes)
{
	int err = parts_add(p, record, bytes);

	parts_keep(p);
	return err;
}

/* with: bytes of it that go with the record. */
static int add_data(struct parts *p, u64 offset, u32 len, bool unreadable,
		    u8 byte, u32 with)
{
	u8 raw[sizeof(struct ev_data) + EV_PIECE_BYTES + 8];
	struct ev_data e = {
		.type = EV_DATA, .bytes = sizeof(e) + with, .seq = 7,
		.offset = offset, .len = len, .unreadable = unreadable,
	};

	memset(raw, byte, sizeof(raw));
	memcpy(raw, &e, sizeof(e));
	return add(p, raw, e.bytes);
}

static int add_page(struct parts *p, u32 offset, u32 len, u32 flags, u8 byte,
		    u32 with)
{
	u8 raw[sizeof(struct ev_page) + EV_PIECE_BYTES + 8];
	struct ev_page e = {
		.type = EV_PAGE, .bytes = sizeof(e) + with, .seq = 7,
		.offset = offset, .len = len, .flags = flags, .fs_dev = 3,
		.ino = 11, .file_offset = offset,
	};

	memset(raw, byte, sizeof(raw));
	memcpy(raw, &e, sizeof(e));
	return add(p, raw, e.bytes);
}

static void add_op(struct parts *p, struct ev_file_op e)
{
	e.h.type = EV_FILE_OP;
	e.h.bytes = sizeof(e);
	e.h.seq = 7;
	assert_int_equal(parts_add(p, &e, sizeof(e)), 1);
}

static void add_write(struct parts *p, s64 ret, u32 unreadable, u32 lost)
{
	add_op(p, (struct ev_file_op){
		.op = OP_WRITE, .ret = ret, .len = ret,
		.data_unreadable = unreadable, .data_lost = lost,
		.flags = unreadable ? FOP_DATA_UNREADABLE : 0,
	});
}

static int add_path(struct parts *p, u32 kind, const char *text, u32 len,
		    u32 flags)
{
	u8 raw[sizeof(struct ev_path) + 256];
	struct ev_path e = {
		.type = EV_PATH, .bytes = sizeof(e) + len, .seq = 7,
		.kind = kind, .len = len, .flags = flags,
	};

	memcpy(raw, &e, sizeof(e));
	memcpy(raw + sizeof(e), text, len);
	return add(p, raw, e.bytes);
}

#define PATH(p, kind, text, flags)                                             \
	assert_int_equal(add_path(p, kind, text, sizeof(text), flags), 0)

/* Of a request or an operation, whose data is in parts. */
#define ASSERT_BYTES(of, from, to, byte)                                       \
	assert_bytes((of).parts, (of).n_parts, from, to, byte)

static void assert_bytes(const struct rec_bytes *parts, u32 n, u64 from, u64 to,
			 u8 byte)
{
	u64 at = 0;

	for (; n; n--, at += parts++->bytes) {
		const u8 *d = parts->data;

		for (u32 i = 0; i < parts->bytes; i++)
			if (at + i >= from && at + i < to)
				assert_int_equal(d ? d[i] : 0, byte);
	}
	assert_in_range(to, from, at);
}

/* ---- the data of a write ------------------------------------------------- */

static void data_that_is_all_there(void **state)
{
	struct parts *p = *state;
	struct parts_loss loss;
	struct rec_file_op op;

	assert_int_equal(add_data(p, 0, 4096, false, 'a', 4096), 0);
	assert_int_equal(add_data(p, 4096, 10, false, 'b', 10), 0);
	add_write(p, 4106, 0, 0);
	parts_file_op(p, &op, &loss);
	assert_int_equal(op.flags, 0);
	assert_int_equal(op.data_bytes, 4106);
	ASSERT_BYTES(op, 0, 4096, 'a');
	ASSERT_BYTES(op, 4096, 4106, 'b');
	assert_int_equal(loss.unreadable_bytes, 0);
	assert_int_equal(loss.ring_full_bytes, 0);
	rec_file_op_done(&op);
}

/* A piece that could not be read comes without data. */
static void an_unreadable_piece_is_zeroes_and_counted(void **state)
{
	struct parts *p = *state;
	struct parts_loss loss;
	struct rec_file_op op;

	assert_int_equal(add_data(p, 0, 4096, false, 'a', 4096), 0);
	assert_int_equal(add_data(p, 4096, 4096, true, 0, 0), 0);
	assert_int_equal(add_data(p, 8192, 7, true, 0, 0), 0);
	assert_int_equal(add_data(p, 8199, 4096, false, 'b', 4096), 0);
	add_write(p, 12295, 4103, 0);
	parts_file_op(p, &op, &loss);
	assert_true(op.flags & FOP_DATA_UNREADABLE);
	assert_int_equal(op.data_bytes, 12295);
	ASSERT_BYTES(op, 0, 4096, 'a');
	ASSERT_BYTES(op, 4096, 8199, 0);
	ASSERT_BYTES(op, 8199, 12295, 'b');
	assert_int_equal(loss.unreadable_bytes, 4103);
	assert_int_equal(loss.ring_full_bytes, 0);
	rec_file_op_done(&op);
}

static void nothing_of_it_can_be_read(void **state)
{
	struct parts *p = *state;
	struct parts_loss loss;
	struct rec_file_op op;

	assert_int_equal(add_data(p, 0, 4096, true, 0, 0), 0);
	add_write(p, 4096, 4096, 0);
	parts_file_op(p, &op, &loss);
	assert_true(op.flags & FOP_DATA_UNREADABLE);
	assert_int_equal(op.data_bytes, 4096);
	ASSERT_BYTES(op, 0, 4096, 0);
	assert_int_equal(loss.unreadable_bytes, 4096);
	rec_file_op_done(&op);
}

static void a_lost_piece_is_zeroes_and_counted(void **state)
{
	struct parts *p = *state;
	struct parts_loss loss;
	struct rec_file_op op;

	assert_int_equal(add_data(p, 100, 50, false, 'b', 50), 0);
	add_write(p, 150, 0, 100);
	parts_file_op(p, &op, &loss);
	assert_true(op.flags & FOP_DATA_UNREADABLE);
	assert_int_equal(op.data_bytes, 150);
	ASSERT_BYTES(op, 0, 100, 0);
	ASSERT_BYTES(op, 100, 150, 'b');
	assert_int_equal(loss.ring_full_bytes, 100);
	assert_int_equal(loss.unreadable_bytes, 0);
	rec_file_op_done(&op);
}

static void pieces_that_contradict_themselves(void **state)
{
	struct parts *p = *state;
	u8 raw[sizeof(struct ev_data)] = { EV_DATA };

	assert_int_equal(add_data(p, 0, 10, false, 'a', 9), -EBADMSG);
	assert_int_equal(add_data(p, 0, 4097, false, 'a', 4097), -EBADMSG);
	assert_int_equal(add_data(p, 0, 4097, true, 0, 0), -EBADMSG);
	assert_int_equal(add_data(p, UINT64_MAX, 1, true, 0, 0), -EBADMSG);
	assert_int_equal(parts_add(p, raw, sizeof(raw) - 1), -EBADMSG);
	assert_int_equal(add_data(p, 0, 10, false, 'a', 10), 0);
	assert_int_equal(add_data(p, 9, 10, false, 'a', 10), -EBADMSG);
	assert_int_equal(add_data(p, 9, 10, true, 0, 0), -EBADMSG);
}

/* ---- the pages of a request ---------------------------------------------- */

static void issue(struct parts *p, u32 sectors, struct rec_issue *ret,
		  struct parts_loss *ret_loss)
{
	struct ev_issue e = {
		.h = { .type = EV_ISSUE, .bytes = sizeof(e), .seq = 7 },
		.sectors = sectors, .cmd_flags = 1,
	};

	assert_int_equal(parts_add(p, &e, sizeof(e)), 1);
	parts_issue(p, NULL, ret, ret_loss);
}

static void a_request_that_is_all_there(void **state)
{
	struct parts *p = *state;
	struct parts_loss loss;
	struct rec_issue i;

	assert_int_equal(add_page(p, 0, 4096, 0, 'a', 4096), 0);
	assert_int_equal(add_page(p, 4096, 4096, 0, 'b', 4096), 0);
	issue(p, 16, &i, &loss);
	assert_int_equal(i.flags, 0);
	assert_int_equal(i.data_bytes, 8192);
	ASSERT_BYTES(i, 0, 4096, 'a');
	ASSERT_BYTES(i, 4096, 8192, 'b');
	assert_int_equal(i.n_pages, 1);
	assert_int_equal(i.pages[0].bytes, 8192);
	assert_int_equal(loss.unreadable_bytes, 0);
}

/* With room for the data after it, whatever it holds, or without. */
static void an_unreadable_page_is_zeroes_and_marked(void **state)
{
	struct parts *p = *state;
	struct parts_loss loss;
	struct rec_issue i;

	assert_int_equal(add_page(p, 0, 4096, EV_PAGE_UNREADABLE, 'x', 4096),
			 0);
	assert_int_equal(add_page(p, 4096, 4096, 0, 'b', 4096), 0);
	assert_int_equal(add_page(p, 8192, 4096, EV_PAGE_UNREADABLE, 0, 0), 0);
	issue(p, 24, &i, &loss);
	assert_true(i.flags & BLK_PAYLOAD_MISSING);
	assert_int_equal(i.data_bytes, 12288);
	ASSERT_BYTES(i, 0, 4096, 0);
	ASSERT_BYTES(i, 4096, 8192, 'b');
	ASSERT_BYTES(i, 8192, 12288, 0);
	assert_int_equal(i.n_pages, 3);
	assert_int_equal(i.pages[0].flags, PAGE_UNREADABLE);
	assert_int_equal(i.pages[1].flags, 0);
	assert_int_equal(i.pages[2].flags, PAGE_UNREADABLE);
	assert_int_equal(i.pages[2].ino, 11);
	assert_int_equal(loss.unreadable_bytes, 8192);
	assert_int_equal(loss.ring_full_bytes, 0);
}

static void a_lost_page_is_zeroes_and_marked(void **state)
{
	struct parts *p = *state;
	struct parts_loss loss;
	struct rec_issue i;

	assert_int_equal(add_page(p, 4096, 4096, 0, 'b', 4096), 0);
	issue(p, 24, &i, &loss);
	assert_true(i.flags & BLK_PAYLOAD_MISSING);
	assert_int_equal(i.data_bytes, 12288);
	ASSERT_BYTES(i, 0, 4096, 0);
	ASSERT_BYTES(i, 4096, 8192, 'b');
	ASSERT_BYTES(i, 8192, 12288, 0);
	assert_int_equal(i.n_pages, 3);
	assert_true(i.pages[0].flags & PAGE_UNREADABLE);
	assert_int_equal(i.pages[1].flags, 0);
	assert_true(i.pages[2].flags & PAGE_UNREADABLE);
	assert_int_equal(loss.ring_full_bytes, 8192);
}

static void pages_that_contradict_themselves(void **state)
{
	struct parts *p = *state;

	assert_int_equal(add_page(p, 0, 10, 0, 'a', 9), -EBADMSG);
	assert_int_equal(add_page(p, 0, 4097, EV_PAGE_UNREADABLE, 0, 0),
			 -EBADMSG);
	assert_int_equal(add_page(p, 0, 10, 0, 'a', 10), 0);
	assert_int_equal(add_page(p, 9, 10, 0, 'a', 10), -EBADMSG);
}

/* ---- names --------------------------------------------------------------- */

static void where_names_start(void **state)
{
	struct parts *p = *state;
	struct parts_loss loss;
	struct rec_file_op op;

	PATH(p, EV_PATH_1, "mnt/a", 0);
	PATH(p, EV_PATH_DIR, "inner\0outer\0", 0);
	PATH(p, EV_PATH_2, "b", 0);
	PATH(p, EV_PATH_DIR2, "sub\0dir\0", 0);
	add_op(p, (struct ev_file_op){ .op = OP_RENAME,
				       .flags = FOP_DIR_ABSOLUTE });
	parts_file_op(p, &op, &loss);
	assert_int_equal(op.flags, FOP_DIR_ABSOLUTE);
	assert_string_equal(op.path, "mnt/a");
	assert_string_equal(op.dir_path, "/outer/inner");
	assert_string_equal(op.path2, "b");
	assert_string_equal(op.dir2_path, "dir/sub");
	rec_file_op_done(&op);
}

static void at_a_root(void **state)
{
	struct parts *p = *state;
	struct parts_loss loss;
	struct rec_file_op op;

	PATH(p, EV_PATH_DIR, "", 0);
	PATH(p, EV_PATH_DIR2, "", 0);
	add_op(p, (struct ev_file_op){ .op = OP_RENAME,
				       .flags = FOP_DIR2_ABSOLUTE });
	parts_file_op(p, &op, &loss);
	assert_string_equal(op.dir_path, "");
	assert_string_equal(op.dir2_path, "/");
	rec_file_op_done(&op);
}

/* Cut short, it is not said to begin at the root. */
static void a_directory_too_deep(void **state)
{
	struct parts *p = *state;
	struct parts_loss loss;
	struct rec_file_op op;

	PATH(p, EV_PATH_DIR, "inner\0outer\0", 2);
	add_op(p, (struct ev_file_op){ .op = OP_UNLINK,
				       .flags = FOP_DIR_ABSOLUTE });
	parts_file_op(p, &op, &loss);
	assert_int_equal(op.flags, FOP_DIR_ABSOLUTE | FOP_DIR_TRUNCATED);
	assert_string_equal(op.dir_path, "outer/inner");
	rec_file_op_done(&op);
}

static void a_name_that_cannot_be_read(void **state)
{
	struct parts *p = *state;
	struct parts_loss loss;
	struct rec_file_op op;

	PATH(p, EV_PATH_1, "", 1);
	add_op(p, (struct ev_file_op){ .op = OP_UNLINK, .paths_lost = 0 });
	parts_file_op(p, &op, &loss);
	assert_int_equal(op.flags, FOP_PATH_UNREADABLE);
	assert_null(op.path);
	rec_file_op_done(&op);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(data_that_is_all_there),
		T(an_unreadable_piece_is_zeroes_and_counted),
		T(nothing_of_it_can_be_read),
		T(a_lost_piece_is_zeroes_and_counted),
		T(pieces_that_contradict_themselves),
		T(a_request_that_is_all_there),
		T(an_unreadable_page_is_zeroes_and_marked),
		T(a_lost_page_is_zeroes_and_marked),
		T(pages_that_contradict_themselves),
		T(where_names_start),
		T(at_a_root),
		T(a_directory_too_deep),
		T(a_name_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
