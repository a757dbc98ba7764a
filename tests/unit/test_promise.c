// SPDX-License-Identifier: GPL-2.0-or-later
/* What the synchronising calls promise, until when, and what breaks it. */
#include "expected_kit.h"

#include <linux/falloc.h>
#include <stdlib.h>
#include <sys/mman.h>

#define TEXT "0123456789abcdef"	/* 16 bytes */

struct fixture {
	struct kit k;
	struct expected *e;
	struct promises *p;
	struct tree crash;
};

static int setup(void **state)
{
	struct fixture *f = xzalloc(sizeof(*f));

	kit_init(&f->k);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	promises_free(f->p);
	expected_free(f->e);
	tree_free(f->k.t.store, &f->crash);
	kit_done(&f->k);
	free(f);
	return 0;
}

static void build(struct fixture *f)
{
	struct errmsg em;

	f->e = kit_expected(&f->k);
	assert_int_equal(promises_build(&f->k.t, f->e, &f->p, &em), 0);
}

static void file(struct fixture *f, const char *path, u64 ino, const char *text)
{
	kit_node(&f->k, &f->k.start, path, ino, text);
}

static void crashed(struct fixture *f, const char *path, u64 ino,
		    const char *text)
{
	kit_node(&f->k, &f->crash, path, ino, text);
}

/* How many promises that bind at t the crashed tree breaks. */
static u32 broken_at(struct fixture *f, u64 t)
{
	u32 list[64], n, count = 0;

	assert_true(f->p->n <= 64);
	tree_seal(&f->crash);
	n = promises_broken(f->p, &f->crash, list);
	for (u32 i = 0; i < n; i++) {
		const struct promise *p = &f->p->p[list[i]];

		assert_true(!i || list[i] > list[i - 1]);
		count += p->from_seq <= t && t < p->until_seq;
	}
	return count;
}

/* Is byte off of inode ino promised at t? */
static bool byte_promised(struct fixture *f, u64 ino, u64 off, u64 t)
{
	for (u32 i = 0; i < f->p->n; i++) {
		const struct promise *p = &f->p->p[i];

		if (p->kind == PROMISE_BYTES && p->ino == ino &&
		    p->off <= off && off < p->off + p->len &&
		    p->from_seq <= t && t < p->until_seq)
			return true;
	}
	return false;
}

/* The 16 bytes of inode 11, as text: "x" promised at t, "." not. */
static void assert_promised(struct fixture *f, u64 t, const char *map)
{
	char is[17] = "";

	for (u32 i = 0; i < 16; i++)
		is[i] = byte_promised(f, 11, i, t) ? 'x' : '.';
	assert_string_equal(is, map);
}

static u32 count_kind(struct fixture *f, enum promise_kind kind)
{
	u32 n = 0;

	for (u32 i = 0; i < f->p->n; i++)
		n += f->p->p[i].kind == kind;
	return n;
}

static struct rec_file_op *fsync_of(struct fixture *f, u64 ino)
{
	return kit_on(&f->k, OP_FSYNC, ino);
}

static struct rec_file_op *fsync_dir(struct fixture *f, u64 ino)
{
	struct rec_file_op *o = kit_on(&f->k, OP_FSYNC, ino);

	o->file_mode = 040755;
	return o;
}

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

/* ---- names --------------------------------------------------------------- */

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

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

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
		T(msync_promises_the_length_and_shows_a_mapping),
		T(an_asynchronous_msync_promises_nothing),
		T(a_directory_promises_its_names),
		T(names_move_with_their_directory),
		T(the_root_is_a_directory_too),
		T(a_changed_name_is_taken_back),
		T(names_changed_during_the_sync_are_not_promised),
		T(sync_promises_everything),
		T(a_synchronous_write_promises_its_bytes),
		T(a_synchronous_write_without_its_data),
		T(lost_events_end_all_promises),
		T(an_operation_not_to_be_placed_ends_all_promises),
		T(large_files),
		T(equals_a_plain_account),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
