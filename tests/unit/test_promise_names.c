// SPDX-License-Identifier: GPL-2.0-or-later
/* What is promised of names; sync; O_SYNC. */
#include "promise_fixture.h"

static void a_directory_promises_its_names(void **state)
{
	struct fixture *f = *state;

	file(f, "d", 20, NULL);
	file(f, "d/a", 11, "a");
	file(f, "d/old", 12, "o");
	kit_names(&f->k, OP_RENAME, "d/a", "d/b");	/* 10 */
	kit_names(&f->k, OP_UNLINK, "d/old", NULL);	/* 20 */
	fsync_dir(f, 20);				/* 30 */
	build(f);
	assert_int_equal(count_kind(f, PROMISE_NAME), 1);
	assert_int_equal(count_kind(f, PROMISE_NO_NAME), 2);
	crashed(f, "d", 20, NULL);
	crashed(f, "d/b", 11, "");
	assert_int_equal(broken_at(f, 30), 0);
	crashed(f, "d/old", 12, "o");
	assert_int_equal(broken_at(f, 30), 1);
	crashed(f, "d/a", 11, "a");
	assert_int_equal(broken_at(f, 30), 2);
	assert_int_equal(broken_at(f, 29), 0);
	tree_free(f->k.t.store, &f->crash);
	crashed(f, "d", 20, NULL);
	crashed(f, "d/b", 12, "");
	assert_int_equal(broken_at(f, 30), 1);
}

/* Names go by their directory, wherever that is now. */
static void names_move_with_their_directory(void **state)
{
	struct fixture *f = *state;

	file(f, "d", 20, NULL);
	file(f, "d/a", 11, "a");
	fsync_dir(f, 20);				/* 10 */
	kit_names(&f->k, OP_RENAME, "d", "e");		/* 20 */
	build(f);
	crashed(f, "e", 20, NULL);
	crashed(f, "e/a", 11, "a");
	assert_int_equal(broken_at(f, 30), 0);
	tree_free(f->k.t.store, &f->crash);
	crashed(f, "a", 11, "a");
	assert_true(broken_at(f, 30) >= 1);
}

static void the_root_is_a_directory_too(void **state)
{
	struct fixture *f = *state;

	kit_save(&f->k, "tmp", 11, TEXT);		/* to 30 */
	kit_names(&f->k, OP_RENAME, "tmp", "a");	/* 40 */
	fsync_dir(f, 2);				/* 50 */
	build(f);
	assert_int_equal(count_kind(f, PROMISE_NAME), 1);
	assert_int_equal(count_kind(f, PROMISE_NO_NAME), 1);
	crashed(f, "tmp", 11, TEXT);
	assert_int_equal(broken_at(f, 49), 0);
	assert_int_equal(broken_at(f, 50), 2);
}

static void a_changed_name_is_taken_back(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, "a");
	file(f, "b", 12, "b");
	fsync_dir(f, 2);				/* 10 */
	kit_names(&f->k, OP_UNLINK, "a", NULL);		/* 20 */
	kit_names(&f->k, OP_RENAME, "b", "c");		/* 30 */
	fsync_dir(f, 2);				/* 40 */
	kit_save(&f->k, "a", 13, "again");		/* 50 to 70 */
	build(f);
	/* nothing is there: at 10 two names missing, at 11 one, at 21 none */
	assert_int_equal(broken_at(f, 10), 2);
	assert_int_equal(broken_at(f, 11), 1);
	assert_int_equal(broken_at(f, 21), 0);
	assert_int_equal(broken_at(f, 40), 1);
	crashed(f, "c", 12, "b");
	crashed(f, "a", 13, "");
	assert_int_equal(broken_at(f, 40), 1);
	assert_int_equal(broken_at(f, 41), 0);
}

static void names_changed_during_the_sync_are_not_promised(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, "a");
	file(f, "b", 12, "b");
	kit_names(&f->k, OP_RENAME, "a", "c");			/* 10 */
	fsync_dir(f, 2)->start_seq = 5;				/* 20 */
	kit_names(&f->k, OP_UNLINK, "b", NULL)->start_seq = 15;	/* 30 */
	fsync_dir(f, 2);					/* 40 */
	build(f);
	crashed(f, "x", 1, "x");
	assert_int_equal(broken_at(f, 20), 0);
	/* c is, by the later call */
	assert_int_equal(broken_at(f, 40), 1);
}

static void sync_promises_everything(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	file(f, "d", 20, NULL);
	file(f, "d/b", 12, "b");
	kit_names(&f->k, OP_UNLINK, "d/b", NULL);	/* 10 */
	kit_op(&f->k, OP_SYNC);				/* 20 */
	kit_op(&f->k, OP_SYNCFS);			/* 30: nothing new */
	build(f);
	assert_promised(f, 20, "xxxxxxxxxxxxxxxx");
	assert_int_equal(count_kind(f, PROMISE_NAME), 2);
	assert_int_equal(count_kind(f, PROMISE_NO_NAME), 1);
	for (u32 i = 0; i < f->p->n; i++)
		assert_int_equal(f->p->p[i].from_seq, 20);
}

/* ---- O_SYNC -------------------------------------------------------------- */

static void a_synchronous_write_promises_its_bytes(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	kit_write(&f->k, 11, 4, "XXXX")->flags = FOP_DSYNC_WRITE; /* 10 */
	build(f);
	assert_promised(f, 10, "....xxxx........");
	crashed(f, "a", 11, "????XXXX");
	assert_int_equal(broken_at(f, 10), 0);
	tree_free(f->k.t.store, &f->crash);
	crashed(f, "a", 11, "0123XXX");
	assert_int_equal(broken_at(f, 10), 1);
}

static void a_synchronous_write_without_its_data(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	file(f, "a", 11, TEXT);
	o = kit_write(&f->k, 11, 4, "XXXX");
	o->flags = FOP_SYNC_WRITE;
	o->data_bytes = 2;
	build(f);
	assert_int_equal(f->p->n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_directory_promises_its_names),
		T(names_move_with_their_directory),
		T(the_root_is_a_directory_too),
		T(a_changed_name_is_taken_back),
		T(names_changed_during_the_sync_are_not_promised),
		T(sync_promises_everything),
		T(a_synchronous_write_promises_its_bytes),
		T(a_synchronous_write_without_its_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
