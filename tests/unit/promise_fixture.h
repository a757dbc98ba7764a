/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A start, operations, what they promise, and a crashed tree. */
#ifndef BLKBOX_PROMISE_FIXTURE_H
#define BLKBOX_PROMISE_FIXTURE_H

#include "expected_kit.h"

#include <stdlib.h>

#define TEXT "0123456789abcdef"	/* 16 bytes */

struct fixture {
	struct kit k;
	struct expected *e;
	struct promises *p;
	struct tree crash;
};

static KIT_UNUSED int setup(void **state)
{
	struct fixture *f = xzalloc(sizeof(*f));

	kit_init(&f->k);
	*state = f;
	return 0;
}

static KIT_UNUSED int teardown(void **state)
{
	struct fixture *f = *state;

	promises_free(f->p);
	expected_free(f->e);
	tree_free(f->k.t.store, &f->crash);
	kit_done(&f->k);
	free(f);
	return 0;
}

static KIT_UNUSED void build(struct fixture *f)
{
	struct errmsg em;

	f->e = kit_expected(&f->k);
	assert_int_equal(promises_build(&f->k.t, f->e, &f->p, &em), 0);
}

static KIT_UNUSED void file(struct fixture *f, const char *path, u64 ino, const char *text)
{
	kit_node(&f->k, &f->k.start, path, ino, text);
}

static KIT_UNUSED void crashed(struct fixture *f, const char *path, u64 ino,
		    const char *text)
{
	kit_node(&f->k, &f->crash, path, ino, text);
}

/* How many promises that bind at t the crashed tree breaks. */
static KIT_UNUSED u32 broken_at(struct fixture *f, u64 t)
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
static KIT_UNUSED bool byte_promised(struct fixture *f, u64 ino, u64 off, u64 t)
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
static KIT_UNUSED void assert_promised(struct fixture *f, u64 t, const char *map)
{
	char is[17] = "";

	for (u32 i = 0; i < 16; i++)
		is[i] = byte_promised(f, 11, i, t) ? 'x' : '.';
	assert_string_equal(is, map);
}

static KIT_UNUSED u32 count_kind(struct fixture *f, enum promise_kind kind)
{
	u32 n = 0;

	for (u32 i = 0; i < f->p->n; i++)
		n += f->p->p[i].kind == kind;
	return n;
}

static KIT_UNUSED struct rec_file_op *fsync_of(struct fixture *f, u64 ino)
{
	return kit_on(&f->k, OP_FSYNC, ino);
}

static KIT_UNUSED struct rec_file_op *fsync_dir(struct fixture *f, u64 ino)
{
	struct rec_file_op *o = kit_on(&f->k, OP_FSYNC, ino);

	o->file_mode = 040755;
	return o;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
