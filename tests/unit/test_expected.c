// SPDX-License-Identifier: GPL-2.0-or-later
/* Which operations make an expected state, and what it holds. */
#include "expected_fixture.h"

#include <linux/falloc.h>

/* ---- which operations ---------------------------------------------------- */

static bool makes(u8 op, u32 flags, u32 open_flags, s64 ret)
{
	const struct rec_file_op o = {
		.op = op, .flags = flags, .open_flags = open_flags, .ret = ret,
	};

	return op_makes_state(&o);
}

static void operations_that_make_a_state(void **state)
{
	static const u8 always[] = {
		OP_RENAME, OP_LINK, OP_UNLINK, OP_SYMLINK, OP_MKDIR, OP_RMDIR,
		OP_MKNOD, OP_FSYNC, OP_FDATASYNC, OP_SYNC, OP_SYNCFS, OP_MSYNC,
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(always); i++) {
		assert_true(makes(always[i], 0, 0, 0));
		assert_false(makes(always[i], 0, 0, -ENOENT));
	}
	assert_true(makes(OP_OPEN, FOP_CREATED, O_CREAT | O_WRONLY, 3));
	assert_true(makes(OP_CLOSE, FOP_LAST_CLOSE | FOP_WRITTEN, 0, 0));
}

static void operations_that_make_none(void **state)
{
	static const u8 never[] = {
		OP_WRITE, OP_TRUNCATE, OP_FALLOCATE, OP_SYNC_FILE_RANGE,
		OP_MMAP_SHARED, OP_COPY, OP_IO_URING, OP_OPEN, OP_CLOSE,
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(never); i++)
		assert_false(makes(never[i], 0, 0, 0));
	/* of a file that is there; the shell's descriptors; without a name */
	assert_false(makes(OP_OPEN, 0, O_CREAT | O_TRUNC | O_WRONLY, 3));
	assert_false(makes(OP_CLOSE, FOP_LAST_CLOSE, 0, 0));
	assert_false(makes(OP_CLOSE, FOP_WRITTEN, 0, 0));
	assert_false(makes(OP_OPEN, FOP_CREATED, O_TMPFILE | O_RDWR, 3));
	assert_false(makes(OP_OPEN, FOP_CREATED, O_CREAT, -ENOSPC));
}

/* ---- the trace source ---------------------------------------------------- */

static void states_of_gzip(void **state)
{
	struct fixture *f = *state;

	start_file(f, "data", 11, OLD_TEXT);
	kit_save(&f->k, "data.gz", 12, "packed");
	unlink_path(f, "data");
	build(f);
	assert_int_equal(f->e->n, 4);
	assert_use(f, "jjjj");
	assert_string_equal(f->e->states[0].what, "the start");
	assert_string_equal(f->e->states[1].what, "create data.gz");
	assert_string_equal(f->e->states[2].what, "close data.gz");
	assert_string_equal(f->e->states[3].what, "unlink data");
	assert_int_equal(f->e->states[0].after_seq, 0);
	assert_int_equal(f->e->states[3].after_seq, 40);
	kit_assert_text(tree_of(f, 1), "data.gz", "");
	kit_assert_text(tree_of(f, 2), "data", OLD_TEXT);
	kit_assert_text(tree_of(f, 2), "data.gz", "packed");
	assert_null(tree_find(tree_of(f, 3), "data"));
	assert_int_equal(tree_find(last(f), "data.gz")->ino, 12);
}

static void truncation_makes_no_state_but_shows_in_the_next(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	start_file(f, "data", 11, OLD_TEXT);
	o = kit_on(&f->k, OP_OPEN, 11);
	o->path = xstrdup("data");
	o->open_flags = O_WRONLY | O_CREAT | O_TRUNC;
	kit_write(&f->k, 11, 0, "sorted");
	o = kit_on(&f->k, OP_TRUNCATE, 11);
	o->len = 3;
	kit_close(&f->k, "data", 11);
	build(f);
	assert_int_equal(f->e->n, 2);
	kit_assert_text(last(f), "data", "sor");
}

static void partial_writes_and_sparse_ones(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;
	char text[8] = { 0 };

	kit_create(&f->k, "a", 11);
	o = kit_write(&f->k, 11, 0, "abcdef");
	o->ret = 2;
	kit_write(&f->k, 11, 5, "x");
	kit_close(&f->k, "a", 11);
	build(f);
	content_read(tree_find(last(f), "a")->content, 0, text, 8);
	assert_memory_equal(text, "ab\0\0\0x\0", 8);
	assert_int_equal(tree_find(last(f), "a")->content->bytes, 6);
}

static void an_unlinked_file_is_written_out_of_sight(void **state)
{
	struct fixture *f = *state;

	start_file(f, "keep", 10, "k");
	kit_create(&f->k, "a", 11);
	unlink_path(f, "a");
	kit_write(&f->k, 11, 0, "unseen")->nlink = 0;
	kit_on(&f->k, OP_FSYNC, 11)->nlink = 0;
	build(f);
	assert_int_equal(f->e->n, 4);
	assert_int_equal(last(f)->n, 1);
	assert_int_equal(f->e->n_unknown, 0);
}

/* A file made without a name, as O_TMPFILE does, then linked: by its
 * descriptor, which an other file had before. */
static void a_nameless_file_gets_a_name(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	for (u64 ino = 11; ino <= 12; ino++) {
		o = kit_on(&f->k, OP_OPEN, ino);
		o->path = xstrdup(".");
		o->open_flags = O_TMPFILE | O_RDWR;
		o->pid = 100;
		o->ret = 3;
		o->nlink = 0;
		kit_write(&f->k, ino, 0, ino == 12 ? "text" : "no")->nlink = 0;
	}
	o = kit_names(&f->k, OP_LINK, "/proc/self/fd/3", "a");
	o->pid = 100;
	o->mode = AT_SYMLINK_FOLLOW;
	o = kit_names(&f->k, OP_LINK, "", "b");
	o->mode = AT_EMPTY_PATH;
	o->dir_ino = 11;
	build(f);
	assert_null(f->e->lost_why);
	assert_int_equal(f->e->n, 3);
	kit_assert_text(last(f), "a", "text");
	kit_assert_text(last(f), "b", "no");
}

static void truncate_by_path(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	start_file(f, "a", 11, OLD_TEXT);
	o = kit_names(&f->k, OP_SYMLINK, "a", "l");
	o = kit_names(&f->k, OP_TRUNCATE, "l", NULL);
	o->len = 3;
	o = kit_names(&f->k, OP_TRUNCATE, "/elsewhere/a", NULL);
	kit_on(&f->k, OP_FSYNC, 11);
	build(f);
	assert_null(f->e->lost_why);
	kit_assert_text(last(f), "a", "old");
	kit_assert_text(last(f), "l", "a");
}

static void an_inode_number_is_used_again(void **state)
{
	struct fixture *f = *state;

	start_file(f, "a", 11, "first");
	unlink_path(f, "a");
	kit_save(&f->k, "b", 11, "second");
	build(f);
	assert_null(f->e->lost_why);
	assert_null(tree_find(last(f), "a"));
	kit_assert_text(last(f), "b", "second");
}

static void numbers_learnt_late_show_in_earlier_states(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	start_file(f, "keep", 10, "k");
	kit_names(&f->k, OP_MKDIR, "d", NULL);
	kit_names(&f->k, OP_MKDIR, "never", NULL);
	o = kit_on(&f->k, OP_FSYNC, 77);
	o->file_path = xstrdup("d");
	o = kit_on(&f->k, OP_OPEN, 77);
	o->file_path = xstrdup("d");
	build(f);
	assert_int_equal(tree_find(tree_of(f, 1), "d")->ino, 77);
	assert_int_equal(tree_find(last(f), "never")->ino, 0);
}

static void collapse_and_insert(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	start_file(f, "a", 11, "0123456789");
	o = kit_on(&f->k, OP_FALLOCATE, 11);
	o->mode = FALLOC_FL_COLLAPSE_RANGE;
	o->off = 0;
	o->len = 4;
	kit_on(&f->k, OP_FSYNC, 11);
	o = kit_on(&f->k, OP_FALLOCATE, 11);
	o->mode = FALLOC_FL_INSERT_RANGE;
	o->off = 2;
	o->len = 3;
	kit_write(&f->k, 11, 2, "___");
	kit_on(&f->k, OP_FSYNC, 11);
	build(f);
	kit_assert_text(tree_of(f, 1), "a", "456789");
	kit_assert_text(tree_of(f, 2), "a", "45___6789");
}

static void paths_from_elsewhere(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	start_file(f, "a", 11, OLD_TEXT);
	unlink_path(f, "/tmp/a");
	unlink_path(f, KIT_MOUNT "x/a");
	unlink_path(f, "../a");
	o = kit_names(&f->k, OP_UNLINK, "kit/a", NULL);
	o->dir_dev = 5;
	free(o->dir_path);
	o->dir_path = xstrdup("/home");
	o->flags |= FOP_DIR_ABSOLUTE;
	build(f);
	assert_null(f->e->lost_why);
	kit_assert_text(last(f), "a", OLD_TEXT);
}

static void paths_into_it_from_elsewhere(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	start_file(f, "a", 11, "a");
	start_file(f, "b", 12, "b");
	start_file(f, "c", 13, "c");
	start_file(f, "d", 14, "d");
	start_file(f, "e", 15, "e");
	unlink_path(f, KIT_MOUNT "/a");
	unlink_path(f, "../../mnt/./kit/b");
	o = kit_names(&f->k, OP_UNLINK, "kit/c", NULL);
	o->dir_dev = 5;
	free(o->dir_path);
	o->dir_path = xstrdup("/mnt");
	o->flags |= FOP_DIR_ABSOLUTE;
	o = kit_names(&f->k, OP_RENAME, "d", "kit/e");
	o->dir2_dev = 5;
	free(o->dir2_path);
	o->dir2_path = xstrdup("/mnt");
	o->flags |= FOP_DIR2_ABSOLUTE;
	build(f);
	assert_null(f->e->lost_why);
	assert_int_equal(last(f)->n, 1);
	kit_assert_text(last(f), "e", "d");
}

/* Of the file system it starts on, only that it is mounted in ours. */
static void a_path_that_may_be_in_either_ends_the_states(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	start_file(f, "a", 11, "a");
	o = kit_names(&f->k, OP_UNLINK, "../a", NULL);
	o->dir_dev = 5;
	free(o->dir_path);
	o->dir_path = xstrdup(KIT_MOUNT "/dir/other");
	o->flags |= FOP_DIR_ABSOLUTE;
	kit_on(&f->k, OP_FSYNC, 11);
	build(f);
	assert_non_null(f->e->lost_why);
	assert_int_equal(f->e->lost_seq, 10);
}

/* ---- what cannot be known ------------------------------------------------ */

static void a_mapping_makes_content_unknown_for_good(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	start_file(f, "a", 11, OLD_TEXT);
	kit_on(&f->k, OP_FSYNC, 11);
	o = kit_on(&f->k, OP_MMAP_SHARED, 11);
	o->len = 4096;
	kit_on(&f->k, OP_FSYNC, 11);
	o = kit_on(&f->k, OP_TRUNCATE, 11);
	o->len = 0;
	kit_write(&f->k, 11, 0, "known?");
	kit_on(&f->k, OP_FSYNC, 11);
	build(f);
	assert_use(f, "jjuu");
	assert_int_equal(f->e->n_unknown, 2);
}

static void data_not_recorded_is_unknown_until_cut_off(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	start_file(f, "a", 11, OLD_TEXT);
	o = kit_write(&f->k, 11, 0, "xyz");
	o->data_bytes = 2;
	kit_on(&f->k, OP_FSYNC, 11);
	o = kit_on(&f->k, OP_TRUNCATE, 11);
	kit_write(&f->k, 11, 0, "known");
	kit_on(&f->k, OP_FSYNC, 11);
	o = kit_write(&f->k, 11, 0, "x");
	o->flags |= FOP_DATA_UNREADABLE;
	kit_on(&f->k, OP_FSYNC, 11);
	build(f);
	assert_use(f, "juju");
	kit_assert_text(tree_of(f, 2), "a", "known");
	assert_int_equal(tree_find(last(f), "a")->content->bytes, 5);
}

static void a_file_copied_from_elsewhere_is_unknown(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	start_file(f, "a", 11, OLD_TEXT);
	start_file(f, "b", 12, "bbbb");
	o = kit_on(&f->k, OP_COPY, 12);
	o->src_ino = 11;
	o->src_dev = KIT_DEV;
	o->src_off = 4;
	o->off = 2;
	o->len = o->ret = 3;
	kit_on(&f->k, OP_FSYNC, 12);
	o = kit_on(&f->k, OP_COPY, 12);
	o->src_ino = 11;
	o->src_dev = KIT_DEV + 1;
	o->len = o->ret = 3;
	kit_on(&f->k, OP_FSYNC, 12);
	build(f);
	assert_use(f, "jju");
	kit_assert_text(tree_of(f, 1), "b", "bband");
}

/* Which of two writes under way at once came last is not known. */
static void concurrent_writes_to_the_same_bytes(void **state)
{
	struct fixture *f = *state;

	start_file(f, "a", 11, OLD_TEXT);
	start_file(f, "b", 12, OLD_TEXT);
	kit_write(&f->k, 11, 0, "xx");
	kit_write(&f->k, 11, 1, "yy")->start_seq = 5;
	kit_on(&f->k, OP_FSYNC, 11);
	unlink_path(f, "a");
	kit_write(&f->k, 12, 0, "xx");
	kit_write(&f->k, 12, 2, "yy")->start_seq = 45;
	kit_on(&f->k, OP_FSYNC, 12);
	build(f);
	assert_use(f, "jujj");
	kit_assert_text(last(f), "b", "xxyyand dear");
}

static void failed_operations_change_nothing(void **state)
{
	struct fixture *f = *state;

	start_file(f, "a", 11, OLD_TEXT);
	kit_names(&f->k, OP_UNLINK, "a", NULL)->ret = -EPERM;
	kit_write(&f->k, 11, 0, "x")->ret = -EBADF;
	kit_names(&f->k, OP_RENAME, "a", "b")->ret = -EXDEV;
	kit_on(&f->k, OP_FSYNC, 11);
	build(f);
	assert_use(f, "jj");
	kit_assert_text(last(f), "a", OLD_TEXT);
}

static void what_cannot_be_placed_ends_the_states(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	start_file(f, "a", 11, OLD_TEXT);
	kit_on(&f->k, OP_FSYNC, 11);
	o = kit_names(&f->k, OP_UNLINK, NULL, NULL);
	o->flags |= FOP_PATH_UNREADABLE;
	kit_on(&f->k, OP_FSYNC, 11);
	build(f);
	assert_int_equal(f->e->n, 2);
	assert_int_equal(f->e->n_unknown, 2);
	assert_non_null(f->e->lost_why);
	assert_int_equal(f->e->lost_seq, 20);
}

static void lost_events_end_the_states(void **state)
{
	struct fixture *f = *state;

	start_file(f, "a", 11, OLD_TEXT);
	kit_on(&f->k, OP_FSYNC, 11);
	kit_on(&f->k, OP_FSYNC, 11);
	f->k.t.lost_events = 1;
	f->k.t.first_gap_seq = 15;
	build(f);
	assert_int_equal(f->e->n, 2);
	assert_int_equal(f->e->n_unknown, 1);
	assert_int_equal(f->e->lost_seq, 15);
}

static void hostile_sizes_are_unknown(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	start_file(f, "a", 11, OLD_TEXT);
	o = kit_on(&f->k, OP_TRUNCATE, 11);
	o->len = UINT64_MAX;
	kit_write(&f->k, 11, UINT64_MAX - 1, "xyz");
	o = kit_on(&f->k, OP_FALLOCATE, 11);
	o->off = UINT64_MAX;
	o->len = UINT64_MAX;
	kit_on(&f->k, OP_FSYNC, 11);
	build(f);
	assert_use(f, "ju");
}

static void operations_out_of_order_are_refused(void **state)
{
	struct fixture *f = *state;
	struct errmsg em;

	kit_on(&f->k, OP_FSYNC, 11);
	kit_on(&f->k, OP_FSYNC, 11);
	f->k.t.ops[1].seq = 10;
	tree_seal(&f->k.start);
	assert_int_equal(expected_from_ops(&f->k.t, &f->k.start, &f->e, &em),
			 -EBADMSG);
	assert_null(f->e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_that_make_a_state),
		cmocka_unit_test(operations_that_make_none),
		T(states_of_gzip),
		T(truncation_makes_no_state_but_shows_in_the_next),
		T(partial_writes_and_sparse_ones),
		T(an_unlinked_file_is_written_out_of_sight),
		T(a_nameless_file_gets_a_name),
		T(truncate_by_path),
		T(an_inode_number_is_used_again),
		T(numbers_learnt_late_show_in_earlier_states),
		T(collapse_and_insert),
		T(paths_from_elsewhere),
		T(paths_into_it_from_elsewhere),
		T(a_path_that_may_be_in_either_ends_the_states),
		T(a_mapping_makes_content_unknown_for_good),
		T(data_not_recorded_is_unknown_until_cut_off),
		T(a_file_copied_from_elsewhere_is_unknown),
		T(concurrent_writes_to_the_same_bytes),
		T(failed_operations_change_nothing),
		T(what_cannot_be_placed_ends_the_states),
		T(lost_events_end_the_states),
		T(hostile_sizes_are_unknown),
		T(operations_out_of_order_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
