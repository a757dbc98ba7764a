// SPDX-License-Identifier: GPL-2.0-or-later
/* What the synchronising calls promise of a file's bytes, and until when. */
#include "promise_fixture.h"

#include <linux/falloc.h>
#include <sys/mman.h>

/* ---- from when until when ------------------------------------------------ */

static void binds_from_the_return_of_the_call(void **state)
{
	struct fixture *f = *state;

	kit_create(&f->k, "a", 11);		/* 10 */
	kit_write(&f->k, 11, 0, TEXT);		/* 20 */
	fsync_of(f, 11);			/* 30 */
	build(f);
	assert_int_equal(f->p->n, 1);
	assert_promised(f, 29, "................");
	assert_promised(f, 30, "xxxxxxxxxxxxxxxx");
	assert_promised(f, SEQ_NEVER - 1, "xxxxxxxxxxxxxxxx");
	crashed(f, "a", 11, "");
	assert_int_equal(broken_at(f, 29), 0);
	assert_int_equal(broken_at(f, 30), 1);
}

static void nothing_without_a_sync(void **state)
{
	struct fixture *f = *state;

	kit_save(&f->k, "a", 11, TEXT);
	build(f);
	assert_int_equal(f->p->n, 0);
	assert_int_equal(broken_at(f, 30), 0);
}

static void a_failed_sync_promises_nothing(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	fsync_of(f, 11)->ret = -EIO;
	build(f);
	assert_int_equal(f->p->n, 0);
}

static void kept_under_whatever_name(void **state)
{
	struct fixture *f = *state;

	kit_save(&f->k, "tmp", 11, TEXT);
	fsync_of(f, 11);			/* 40 */
	kit_names(&f->k, OP_RENAME, "tmp", "data");
	build(f);
	crashed(f, "data", 11, TEXT);
	assert_int_equal(broken_at(f, 100), 0);
	tree_free(f->k.t.store, &f->crash);
	crashed(f, "tmp", 11, TEXT "longer");
	assert_int_equal(broken_at(f, 100), 0);
	tree_free(f->k.t.store, &f->crash);
	crashed(f, "tmp", 12, TEXT);
	assert_int_equal(broken_at(f, 100), 1);
}

/* A write takes back its own bytes only, from when it begins. */
static void a_later_write_takes_back_what_it_touches(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	fsync_of(f, 11);			/* 10 */
	kit_write(&f->k, 11, 4, "XXXX");	/* 20, begins at 11 */
	build(f);
	assert_promised(f, 10, "xxxxxxxxxxxxxxxx");
	assert_promised(f, 11, "xxxx....xxxxxxxx");
	crashed(f, "a", 11, "0123????89abcdef");
	assert_int_equal(broken_at(f, 10), 1);
	assert_int_equal(broken_at(f, 11), 0);
	tree_free(f->k.t.store, &f->crash);
	crashed(f, "a", 11, "?123XXXX89abcdef");
	assert_int_equal(broken_at(f, 11), 1);
}

static void each_change_takes_back_its_own(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	file(f, "a", 11, TEXT);
	fsync_of(f, 11);			/* 10 */
	o = kit_on(&f->k, OP_FALLOCATE, 11);	/* 20 */
	o->mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	o->off = 2;
	o->len = 2;
	o = kit_on(&f->k, OP_COPY, 11);		/* 30 */
	o->off = 6;
	o->ret = o->len = 2;
	o = kit_write(&f->k, 11, 8, "zz");	/* 40 */
	o->ret = 1;
	o = kit_on(&f->k, OP_FALLOCATE, 11);	/* 50: nothing changes */
	o->len = 100;
	o = kit_on(&f->k, OP_TRUNCATE, 11);	/* 60 */
	o->len = 12;
	o = kit_on(&f->k, OP_FALLOCATE, 11);	/* 70 */
	o->mode = FALLOC_FL_INSERT_RANGE;
	o->off = 10;
	o->len = 1;
	build(f);
	assert_promised(f, 11, "xx..xxxxxxxxxxxx");
	assert_promised(f, 21, "xx..xx..xxxxxxxx");
	assert_promised(f, 31, "xx..xx...xxxxxxx");
	assert_promised(f, 50, "xx..xx...xxxxxxx");
	assert_promised(f, 51, "xx..xx...xxx....");
	assert_promised(f, 61, "xx..xx...x......");
}

static void opening_to_truncate_takes_back_everything(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	file(f, "a", 11, TEXT);
	fsync_of(f, 11);
	o = kit_on(&f->k, OP_OPEN, 11);
	o->file_path = xstrdup("a");
	o->open_flags = O_WRONLY | O_TRUNC;
	build(f);
	assert_promised(f, 10, "xxxxxxxxxxxxxxxx");
	assert_promised(f, 11, "................");
}

/* What failed may have been done in part. */
static void a_failed_write_takes_back_the_file(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	fsync_of(f, 11);
	kit_write(&f->k, 11, 0, "x")->ret = -EIO;
	build(f);
	assert_promised(f, 11, "................");
}

static void unlinking_the_last_name_takes_back_everything(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	fsync_of(f, 11);				/* 10 */
	kit_names(&f->k, OP_LINK, "a", "b");		/* 20 */
	kit_names(&f->k, OP_UNLINK, "a", NULL);		/* 30 */
	kit_names(&f->k, OP_UNLINK, "b", NULL);		/* 40 */
	build(f);
	assert_promised(f, 30, "xxxxxxxxxxxxxxxx");
	assert_promised(f, 31, "................");
	assert_int_equal(broken_at(f, 30), 1);
	assert_int_equal(broken_at(f, 31), 0);
}

static void renaming_over_it_takes_back_everything(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	fsync_of(f, 11);				/* 10 */
	kit_save(&f->k, "tmp", 12, "new");		/* to 40 */
	kit_names(&f->k, OP_RENAME, "tmp", "a");	/* 50 */
	build(f);
	assert_promised(f, 40, "xxxxxxxxxxxxxxxx");
	assert_promised(f, 41, "................");
}

static void exchanging_names_takes_back_nothing(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	file(f, "b", 12, "b");
	fsync_of(f, 11);
	kit_names(&f->k, OP_RENAME, "a", "b")->mode = 2;
	build(f);
	assert_promised(f, 11, "xxxxxxxxxxxxxxxx");
}

/* ---- calls under way at the same time ------------------------------------ */

static void what_is_under_way_during_the_sync_is_not_promised(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	/* returned before the fsync did, but after it had begun */
	kit_write(&f->k, 11, 0, "XX");			/* 10 */
	fsync_of(f, 11)->start_seq = 5;			/* 20 */
	/* began before the fsync returned */
	kit_write(&f->k, 11, 4, "XX")->start_seq = 15;	/* 30 */
	kit_write(&f->k, 11, 8, "XX")->start_seq = 20;	/* 40 */
	build(f);
	assert_promised(f, 20, "..xx..xx..xxxxxx");
	assert_promised(f, 21, "..xx..xx..xxxxxx");
}

static void a_write_that_returned_before_the_sync_began_is(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	kit_write(&f->k, 11, 0, "XX");			/* 10 */
	fsync_of(f, 11);				/* from 11 to 20 */
	build(f);
	assert_promised(f, 20, "xxxxxxxxxxxxxxxx");
	crashed(f, "a", 11, TEXT);
	assert_int_equal(broken_at(f, 20), 1);
}

/* Of two operations, the one that returned later may have begun earlier. */
static void the_earliest_start_counts(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	fsync_of(f, 11);				/* 10 */
	fsync_of(f, 99);				/* 20 */
	kit_write(&f->k, 11, 0, "XX");			/* from 21 to 30 */
	kit_write(&f->k, 11, 0, "YY")->start_seq = 12;	/* to 40 */
	build(f);
	assert_promised(f, 11, "xxxxxxxxxxxxxxxx");
	assert_promised(f, 12, "..xxxxxxxxxxxxxx");
}

/* ---- what is promised once ----------------------------------------------- */

static void a_log_promises_each_line_once(void **state)
{
	struct fixture *f = *state;
	char crash[101] = "";

	kit_create(&f->k, "log", 11);
	for (u32 i = 0; i < 10; i++) {
		kit_write(&f->k, 11, i * 10, "0123456789");
		fsync_of(f, 11);
	}
	build(f);
	assert_int_equal(f->p->n, 10);
	for (u32 i = 0; i < 10; i++) {
		assert_int_equal(f->p->p[i].off, i * 10);
		assert_int_equal(f->p->p[i].len, 10);
		assert_int_equal(f->p->p[i].from_seq, 30 + 20 * i);
	}
	for (u32 i = 0; i < 5; i++)
		strcat(crash, "0123456789");
	crashed(f, "log", 11, crash);
	assert_int_equal(broken_at(f, 110), 0);
	assert_int_equal(broken_at(f, 130), 1);
}

static void overwritten_and_synced_again(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	fsync_of(f, 11);			/* 10 */
	kit_write(&f->k, 11, 0, "XXXX");	/* 20 */
	fsync_of(f, 11);			/* 30 */
	build(f);
	assert_promised(f, 15, "....xxxxxxxxxxxx");
	assert_promised(f, 30, "xxxxxxxxxxxxxxxx");
	crashed(f, "a", 11, TEXT);
	assert_int_equal(broken_at(f, 10), 0);
	assert_int_equal(broken_at(f, 29), 0);
	assert_int_equal(broken_at(f, 30), 1);
}

/* ---- lengths ------------------------------------------------------------- */

static void an_empty_file_must_exist(void **state)
{
	struct fixture *f = *state;

	kit_create(&f->k, "a", 11);
	fsync_of(f, 11);
	build(f);
	assert_int_equal(f->p->n, 1);
	assert_int_equal(f->p->p[0].kind, PROMISE_SIZE);
	assert_int_equal(broken_at(f, 20), 1);
	crashed(f, "a", 11, "");
	assert_int_equal(broken_at(f, 20), 0);
}

static void a_mapped_file_is_promised_its_length(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	file(f, "a", 11, TEXT);
	fsync_of(f, 11);			/* 10 */
	o = kit_on(&f->k, OP_MMAP_SHARED, 11);	/* 20 */
	o->len = 4096;
	fsync_of(f, 11);			/* 30 */
	o = kit_on(&f->k, OP_TRUNCATE, 11);	/* 40 */
	o->len = 6;
	build(f);
	assert_promised(f, 10, "xxxxxxxxxxxxxxxx");
	assert_promised(f, 11, "................");
	assert_promised(f, 30, "................");
	crashed(f, "a", 11, "?????????");
	assert_int_equal(broken_at(f, 30), 1);
	assert_int_equal(broken_at(f, 31), 0);
	tree_free(f->k.t.store, &f->crash);
	crashed(f, "a", 11, "?????");
	assert_int_equal(broken_at(f, 31), 1);
}

/* The stop source knows the bytes, which stores may change all the same. */
static void mapped_bytes_that_are_known(void **state)
{
	struct fixture *f = *state;
	struct rec_state *st = xzalloc(2 * sizeof(*st));
	struct rec_file_op *o;
	struct errmsg em;

	for (u32 i = 0; i < 2; i++) {
		kit_node(&f->k, &st[i].tree, "a", 11, TEXT);
		tree_seal(&st[i].tree);
	}
	o = kit_on(&f->k, OP_MMAP_SHARED, 11);		/* 10 */
	o->len = 4096;
	fsync_of(f, 11);				/* 20 */
	st[1].after_seq = 20;
	f->k.t.states = st;
	f->k.t.n_states = 2;
	assert_int_equal(expected_from_recording(&f->k.t, &f->e, &em), 0);
	assert_int_equal(promises_build(&f->k.t, f->e, &f->p, &em), 0);
	assert_promised(f, 20, "................");
	crashed(f, "a", 11, "????????????????");
	assert_int_equal(broken_at(f, 20), 0);
	for (u32 i = 0; i < 2; i++)
		tree_free(f->k.t.store, &st[i].tree);
	free(st);
}

static void msync_promises_the_length_and_shows_a_mapping(void **state)
{
	struct fixture *f = *state;
	struct rec_file_op *o;

	file(f, "a", 11, TEXT);
	fsync_of(f, 11);			/* 10: bytes, but for: */
	o = kit_on(&f->k, OP_MSYNC, 11);	/* 20 */
	o->len = 4096;
	o->mode = MS_SYNC;
	build(f);
	assert_promised(f, 10, "................");
	crashed(f, "a", 11, "????????????????");
	assert_int_equal(broken_at(f, 100), 0);
	tree_free(f->k.t.store, &f->crash);
	crashed(f, "a", 11, "???");
	assert_int_equal(broken_at(f, 19), 0);
	assert_int_equal(broken_at(f, 20), 1);
}

static void an_asynchronous_msync_promises_nothing(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	kit_on(&f->k, OP_MSYNC, 11)->mode = MS_ASYNC;
	build(f);
	assert_int_equal(f->p->n, 0);
}

/* ---- what cannot be followed --------------------------------------------- */

static void lost_events_end_all_promises(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	fsync_of(f, 11);
	f->k.t.lost_events = 1;
	f->k.t.first_gap_seq = 15;
	build(f);
	assert_promised(f, 14, "xxxxxxxxxxxxxxxx");
	assert_promised(f, 15, "................");
	assert_non_null(f->p->lost_why);
	assert_int_equal(f->p->lost_seq, 15);
}

static void an_operation_not_to_be_placed_ends_all_promises(void **state)
{
	struct fixture *f = *state;

	file(f, "a", 11, TEXT);
	fsync_of(f, 11);
	kit_names(&f->k, OP_UNLINK, NULL, NULL)->flags = FOP_PATH_UNREADABLE;
	build(f);
	assert_promised(f, 10, "xxxxxxxxxxxxxxxx");
	assert_promised(f, 11, "................");
	assert_non_null(f->p->lost_why);
}

/* Bytes beyond the first chunk, at the same place and moved by a write. */
static void large_files(void **state)
{
	struct fixture *f = *state;
	size_t len = 3 * CHUNK_BYTES + 77;
	_cleanup_free_ char *text = xzalloc(len + 1);
	struct rec_file_op *o;

	memset(text, 'x', len);
	file(f, "a", 11, text);
	fsync_of(f, 11);				/* 10 */
	o = kit_write(&f->k, 11, 1000, text);		/* 20 */
	o->flags = FOP_SYNC_WRITE;
	build(f);
	text[CHUNK_BYTES + 5] = 'y';
	crashed(f, "a", 11, text);
	assert_int_equal(broken_at(f, 10), 1);
	text[CHUNK_BYTES + 5] = 'x';
	tree_free(f->k.t.store, &f->crash);
	crashed(f, "a", 11, text);
	assert_int_equal(broken_at(f, 10), 0);
	assert_int_equal(broken_at(f, 20), 1);
}

/*
 * Property, against a plain account of it: for one process, a byte is promised
 * after a sync until an operation begins that touches it.
 */
static void equals_a_plain_account(void **state)
{
	struct fixture *f = *state;
	bool promised[200][16] = { 0 };
	u32 dice = 7;

	file(f, "a", 11, TEXT);
	for (u32 i = 0; i < 190; i++) {
		u32 off, len;

		dice = dice * 1103515245 + 12345;
		memcpy(promised[i + 1], promised[i], 16);
		if ((dice >> 16) % 3 == 0) {
			fsync_of(f, 11);
			memset(promised[i + 1], 1, 16);
			continue;
		}
		off = (dice >> 8) % 16;
		len = 1 + (dice >> 20) % (16 - off);
		kit_write(&f->k, 11, off, TEXT)->ret = len;
		memset(promised[i + 1] + off, 0, len);
	}
	build(f);
	for (u32 i = 1; i <= 190; i++)
		for (u32 b = 0; b < 16; b++)
			assert_int_equal(byte_promised(f, 11, b, i * 10),
					 promised[i][b]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(binds_from_the_return_of_the_call),
		T(nothing_without_a_sync),
		T(a_failed_sync_promises_nothing),
		T(kept_under_whatever_name),
		T(a_later_write_takes_back_what_it_touches),
		T(each_change_takes_back_its_own),
		T(opening_to_truncate_takes_back_everything),
		T(a_failed_write_takes_back_the_file),
		T(unlinking_the_last_name_takes_back_everything),
		T(renaming_over_it_takes_back_everything),
		T(exchanging_names_takes_back_nothing),
		T(what_is_under_way_during_the_sync_is_not_promised),
		T(a_write_that_returned_before_the_sync_began_is),
		T(the_earliest_start_counts),
		T(a_log_promises_each_line_once),
		T(overwritten_and_synced_again),
		T(an_empty_file_must_exist),
		T(a_mapped_file_is_promised_its_length),
		T(mapped_bytes_that_are_known),
		T(msync_promises_the_length_and_shows_a_mapping),
		T(an_asynchronous_msync_promises_nothing),
		T(lost_events_end_all_promises),
		T(an_operation_not_to_be_placed_ends_all_promises),
		T(large_files),
		T(equals_a_plain_account),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
