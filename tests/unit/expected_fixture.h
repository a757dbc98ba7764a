/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A start and operations, and the expected states rebuilt from them. */
#ifndef BLKBOX_EXPECTED_FIXTURE_H
#define BLKBOX_EXPECTED_FIXTURE_H

#include "expected_kit.h"

#include <stdlib.h>

#define OLD_TEXT "old and dear"
#define NEW_TEXT "NEW, JUST AS DEAR"

struct fixture {
	struct kit k;
	struct expected *e;
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

	expected_free(f->e);
	kit_done(&f->k);
	free(f);
	return 0;
}

static KIT_UNUSED void build(struct fixture *f)
{
	f->e = kit_expected(&f->k);
}

static const struct tree *tree_of(struct fixture *f, u32 state)
{
	assert_true(state < f->e->n);
	return &f->e->states[state].tree;
}

static const struct tree *last(struct fixture *f)
{
	return tree_of(f, f->e->n - 1);
}

static KIT_UNUSED void unlink_path(struct fixture *f, const char *path)
{
	kit_names(&f->k, OP_UNLINK, path, NULL);
}

static KIT_UNUSED void rename_path(struct fixture *f, const char *from, const char *to)
{
	kit_names(&f->k, OP_RENAME, from, to);
}

static KIT_UNUSED void start_file(struct fixture *f, const char *path, u64 ino,
		       const char *text)
{
	kit_node(&f->k, &f->k.start, path, ino, text);
}

/* left_out of each state, as text: "j" judges, "e" empty, "u", "t". */
static KIT_UNUSED void assert_use(struct fixture *f, const char *use)
{
	char is[64] = "";

	for (u32 i = 0; i < f->e->n; i++)
		is[i] = "jeut"[f->e->left_out[i]];
	assert_string_equal(is, use);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
