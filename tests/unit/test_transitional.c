// SPDX-License-Identifier: GPL-2.0-or-later
/* Which expected states are left out, for they show a program in the middle of
 * replacing a file. */
#include "expected_fixture.h"

/* as(1): the object file is unlinked, made anew, written. */
static void make_replaces_the_object_file(void **state)
{
	struct fixture *f = *state;

	start_file(f, "Makefile", 9, "foo.o: foo.c");
	start_file(f, "foo.c", 10, "int x;");
	start_file(f, "foo.o", 11, OLD_TEXT);
	unlink_path(f, "foo.o");
	kit_save(&f->k, "foo.o", 12, NEW_TEXT);
	build(f);
	assert_use(f, "jttj");
	assert_int_equal(f->e->n_transitional, 2);
}

static void the_only_file_unlinked_and_made_anew(void **state)
{
	struct fixture *f = *state;

	start_file(f, "data", 11, OLD_TEXT);
	unlink_path(f, "data");
	kit_save(&f->k, "data", 12, NEW_TEXT);
	build(f);
	assert_use(f, "jeej");
}

/* A state made by another file's operation while data is cut to nothing. */
static void another_files_state_during_a_rewrite(void **state)
{
	struct fixture *f = *state;

	start_file(f, "data", 11, OLD_TEXT);
	start_file(f, "more", 12, "m");
	kit_on(&f->k, OP_TRUNCATE, 11);
	kit_names(&f->k, OP_MKDIR, "d", NULL);
	kit_write(&f->k, 11, 0, NEW_TEXT);
	kit_close(&f->k, "data", 11);
	build(f);
	assert_use(f, "jtj");
}

/* Write new, delete old, rename: the new bytes are there all the while. */
static void an_editor_that_writes_deletes_renames(void **state)
{
	struct fixture *f = *state;

	start_file(f, "data", 11, OLD_TEXT);
	start_file(f, "more", 13, "m");
	kit_save(&f->k, "tmp", 12, NEW_TEXT);
	unlink_path(f, "data");
	rename_path(f, "tmp", "data");
	build(f);
	assert_use(f, "jjjjj");
	kit_assert_text(last(f), "data", NEW_TEXT);
}

static void rename_over_is_one_step(void **state)
{
	struct fixture *f = *state;

	start_file(f, "data", 11, OLD_TEXT);
	kit_save(&f->k, "tmp", 12, NEW_TEXT);
	kit_on(&f->k, OP_FSYNC, 12);
	rename_path(f, "tmp", "data");
	build(f);
	assert_use(f, "jjjjj");
}

static void a_log_moved_aside(void **state)
{
	struct fixture *f = *state;

	start_file(f, "log", 11, OLD_TEXT);
	rename_path(f, "log", "log.1");
	kit_save(&f->k, "log", 12, NEW_TEXT);
	build(f);
	assert_use(f, "jjjj");
}

/* What it holds is packed meanwhile, so that no file has the same bytes; the
 * distance is above 0, but not on account of log, whose bytes are there. */
static void a_log_moved_aside_while_another_file_changes(void **state)
{
	struct fixture *f = *state;

	start_file(f, "log", 11, OLD_TEXT);
	start_file(f, "other", 13, "zzz");
	rename_path(f, "log", "log.1");
	unlink_path(f, "other");
	kit_save(&f->k, "log", 12, NEW_TEXT);
	build(f);
	assert_use(f, "jjjjj");
}

/* sqlite's rollback journal: comes, goes, comes, goes. */
static void a_journal_that_comes_and_goes(void **state)
{
	struct fixture *f = *state;

	start_file(f, "db", 11, OLD_TEXT);
	for (u32 i = 0; i < 3; i++) {
		kit_save(&f->k, "db-journal", 20 + i, "some old pages");
		kit_write(&f->k, 11, i, "x");
		kit_on(&f->k, OP_FSYNC, 11);
		unlink_path(f, "db-journal");
	}
	build(f);
	assert_use(f, "jjjjjjjjjjjjj");
}

static void a_file_deleted_for_good(void **state)
{
	struct fixture *f = *state;

	start_file(f, "a", 11, OLD_TEXT);
	start_file(f, "b", 12, "b");
	unlink_path(f, "a");
	kit_save(&f->k, "c", 13, NEW_TEXT);
	build(f);
	assert_use(f, "jjjj");
}

/* The distance of the loss that make's states would have excused. */
static void a_lost_object_file_is_far_from_expected(void **state)
{
	struct fixture *f = *state;
	struct tree crash = { 0 };

	start_file(f, "foo.c", 10, "int x;");
	start_file(f, "foo.o", 11, OLD_TEXT);
	unlink_path(f, "foo.o");
	kit_save(&f->k, "foo.o", 12, NEW_TEXT);
	build(f);
	kit_node(&f->k, &crash, "foo.c", 10, "int x;");
	kit_node(&f->k, &crash, "foo.o", 12, "");
	tree_seal(&crash);
	assert_true(expected_nearest(f->e, &crash, NULL) >= 12);
	tree_free(f->k.t.store, &crash);
}

/* ---- states found in the recording --------------------------------------- */

static void states_of_the_recording(void **state)
{
	struct fixture *f = *state;
	struct rec_state st[4] = { 0 };
	static const u64 seqs[] = { 0, 7, 8, 12 };
	struct errmsg em;

	assert_int_equal(expected_from_recording(&f->k.t, &f->e, &em),
			 -ENOENT);
	for (u32 i = 0; i < 4; i++) {
		st[i].after_seq = seqs[i];
		kit_node(&f->k, &st[i].tree, "b", 2, "b");
		if (i == 0 || i == 3)
			kit_node(&f->k, &st[i].tree, "a", 1,
				 i ? NEW_TEXT : OLD_TEXT);
		tree_seal(&st[i].tree);
	}
	f->k.t.states = st;
	f->k.t.n_states = 4;
	assert_int_equal(expected_from_recording(&f->k.t, &f->e, &em), 0);
	assert_use(f, "jttj");
	expected_free(f->e);
	f->e = NULL;
	/* they are the trace's still */
	kit_assert_text(&st[0].tree, "a", OLD_TEXT);
	st[2].after_seq = 7;
	assert_int_equal(expected_from_recording(&f->k.t, &f->e, &em),
			 -EBADMSG);
	for (u32 i = 0; i < 4; i++)
		tree_free(f->k.t.store, &st[i].tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(make_replaces_the_object_file),
		T(the_only_file_unlinked_and_made_anew),
		T(another_files_state_during_a_rewrite),
		T(an_editor_that_writes_deletes_renames),
		T(rename_over_is_one_step),
		T(a_log_moved_aside),
		T(a_log_moved_aside_while_another_file_changes),
		T(a_journal_that_comes_and_goes),
		T(a_file_deleted_for_good),
		T(a_lost_object_file_is_far_from_expected),
		T(states_of_the_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
