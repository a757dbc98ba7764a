// SPDX-License-Identifier: GPL-2.0-or-later
/* What happened to the files of a crashed tree, in words. */
#include "expected_kit.h"

#include <stdlib.h>

#include "../../oracle/file_fate.h"

struct fixture {
	struct kit k;
	struct expected e;
	struct rec_state states[4];
	struct tree crash;
	struct file_finding *f;
	u32 n;
};

static int setup(void **state)
{
	struct fixture *f = xzalloc(sizeof(*f));

	kit_init(&f->k);
	f->e.states = f->states;
	f->e.store = f->k.t.store;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (u32 i = 0; i < f->n; i++) {
		free(f->f[i].path);
		free(f->f[i].words);
	}
	free(f->f);
	for (u32 i = 0; i < f->e.n; i++)
		tree_free(f->e.store, &f->states[i].tree);
	tree_free(f->e.store, &f->crash);
	kit_done(&f->k);
	free(f);
	return 0;
}

static struct tree *add_state(struct fixture *f, const char *what)
{
	f->states[f->e.n].after_seq = f->e.n;
	f->states[f->e.n].what = (char *)what;
	return &f->states[f->e.n++].tree;
}

static void put(struct fixture *f, struct tree *t, const char *path,
		const void *data, size_t len)
{
	struct node *n = tree_add(t, path, NODE_FILE);

	n->content = content_from_bytes(f->e.store, data, len);
}

static void judge(struct fixture *f, u32 state)
{
	for (u32 i = 0; i < f->e.n; i++)
		tree_seal(&f->states[i].tree);
	tree_seal(&f->crash);
	file_fates(&f->e, state, &f->crash, &f->f, &f->n);
}

static void assert_fate(const struct fixture *f, u32 i, const char *path,
			enum file_fate fate, const char *words)
{
	assert_true(i < f->n);
	assert_string_equal(f->f[i].path, path);
	assert_string_equal(f->f[i].words, words);
	assert_int_equal(f->f[i].fate, fate);
}

static void empty_and_missing(void **state)
{
	struct fixture *f = *state;
	struct tree *t = add_state(f, "close data.gz");

	kit_node(&f->k, t, "data", 1, "0123456789");
	kit_node(&f->k, t, "data.gz", 2, "0123");
	kit_node(&f->k, t, "other", 3, "same");
	kit_node(&f->k, &f->crash, "data.gz", 2, "");
	kit_node(&f->k, &f->crash, "other", 3, "same");
	judge(f, 0);
	assert_int_equal(f->n, 2);
	assert_fate(f, 0, "data", FATE_MISSING,
		    "is gone; the program had left 10 bytes there");
	assert_fate(f, 1, "data.gz", FATE_EMPTY,
		    "is there but empty (0 of 4 bytes); the program had left "
		    "4 bytes there");
	assert_int_equal(f->f[1].bytes, 0);
	assert_int_equal(f->f[1].expected_bytes, 4);
}

static void all_the_same(void **state)
{
	struct fixture *f = *state;

	kit_node(&f->k, add_state(f, NULL), "a", 1, "x");
	kit_node(&f->k, &f->crash, "a", 1, "x");
	judge(f, 0);
	assert_int_equal(f->n, 1);
	assert_fate(f, 0, "a", FATE_SAME, "as expected");
}

static void older_and_newer(void **state)
{
	struct fixture *f = *state;
	struct tree *t;

	kit_node(&f->k, add_state(f, NULL), "a", 1, "one");
	t = add_state(f, "rename tmp to a");
	kit_node(&f->k, t, "a", 1, "two");
	kit_node(&f->k, t, "b", 1, "two");
	t = add_state(f, "close b");
	kit_node(&f->k, t, "a", 1, "two");
	kit_node(&f->k, t, "b", 2, "three");
	kit_node(&f->k, &f->crash, "a", 1, "one");
	kit_node(&f->k, &f->crash, "b", 2, "three");
	judge(f, 1);
	assert_int_equal(f->n, 2);
	assert_fate(f, 0, "a", FATE_OLDER,
		    "older content: as it was at the start");
	assert_int_equal(f->f[0].state, 0);
	assert_fate(f, 1, "b", FATE_NEWER,
		    "newer content: as it was after state 2 (close b)");
	assert_int_equal(f->f[1].state, 2);
}

static void there_too_long_or_too_soon(void **state)
{
	struct fixture *f = *state;

	kit_node(&f->k, add_state(f, NULL), "a", 1, "one");
	kit_node(&f->k, add_state(f, NULL), "b", 1, "one");
	kit_node(&f->k, add_state(f, "create c"), "c", 1, "");
	kit_node(&f->k, &f->crash, "a", 1, "one");
	kit_node(&f->k, &f->crash, "b", 1, "one");
	kit_node(&f->k, &f->crash, "c", 1, "");
	judge(f, 1);
	assert_int_equal(f->n, 2);
	assert_fate(f, 0, "a", FATE_OLDER,
		    "is still there: as it was at the start");
	assert_fate(f, 1, "c", FATE_NEWER,
		    "is there already: as it was after state 2 (create c)");
}

static void moved_away(void **state)
{
	struct fixture *f = *state;

	kit_node(&f->k, add_state(f, NULL), "a", 1, "one");
	kit_node(&f->k, &f->crash, "z", 1, "one");
	judge(f, 0);
	assert_fate(f, 0, "a", FATE_MISSING,
		    "is gone, but z holds what it held");
	assert_fate(f, 1, "z", FATE_EXTRA,
		    "is a file that is in no expected state");
}

/* 4 blocks of one letter each, per letter of text; '0': zeroes. */
static void put_blocks(struct fixture *f, struct tree *t, const char *path,
		       const char *text, size_t cut)
{
	size_t len = strlen(text) * 2048 - cut;
	_cleanup_free_ char *data = xmalloc(len + cut);

	for (u32 i = 0; text[i]; i++)
		memset(data + i * 2048, text[i] == '0' ? 0 : text[i], 2048);
	put(f, t, path, data, len);
}

static void damaged_contents(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *is;
		u32 cut;
		enum file_fate fate;
		const char *words;
	} cases[] = {
		{ "ab", 100, FATE_TRUNCATED,
		  "is cut short: the first 3996 of 8192 bytes" },
		{ "ab00", 0, FATE_ZERO_FILLED,
		  "holds zeroes from byte 4096 on" },
		{ "ab0", 0, FATE_ZERO_FILLED,
		  "holds zeroes from byte 4096 on" },
		{ "a0c0", 0, FATE_ZERO_FILLED,
		  "holds zeroes in 4096 bytes from byte 2048 on" },
		{ "0000", 0, FATE_ZERO_FILLED,
		  "holds nothing but zeroes (8192 bytes)" },
		{ "xbcd", 0, FATE_MIXED,
		  "holds parts of different states: 6144 bytes as expected, "
		  "2048 of other states" },
		{ "x0cd", 0, FATE_MIXED,
		  "holds parts of different states: 4096 bytes as expected, "
		  "2048 of other states, 2048 of zeroes" },
		{ "abqd", 0, FATE_GARBAGE,
		  "holds bytes no expected state has there, in 2048 bytes "
		  "from byte 4096 on" },
		{ "abcdq", 5, FATE_GARBAGE,
		  "holds bytes no expected state has there, from byte 8192 "
		  "on" },
	};
	char path[2] = "A";
	struct tree *now, *old;

	old = add_state(f, NULL);
	now = add_state(f, "close");
	for (u32 i = 0; i < ARRAY_SIZE(cases); i++, path[0]++) {
		put_blocks(f, old, path, "xyzw", 0);
		put_blocks(f, now, path, "abcd", 0);
		put_blocks(f, &f->crash, path, cases[i].is, cases[i].cut);
	}
	judge(f, 1);
	assert_int_equal(f->n, ARRAY_SIZE(cases));
	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *words =
			xasprintf("%s; the program had left 8192 bytes there",
				  cases[i].words);

		path[0] = 'A' + i;
		assert_fate(f, i, path, cases[i].fate, words);
	}
}

/* Across chunks, and where the expected content ends within a block. */
static void large_and_odd_sizes(void **state)
{
	struct fixture *f = *state;
	size_t len = 3 * CHUNK_BYTES + 100;
	_cleanup_free_ u8 *data = xmalloc(len);

	memset(data, 'a', len);
	put(f, add_state(f, NULL), "a", data, len - 50);
	memset(data + 2 * CHUNK_BYTES, 0, CHUNK_BYTES + 50);
	memset(data + len - 50, 'q', 50);
	put(f, &f->crash, "a", data, len);
	judge(f, 0);
	assert_int_equal(f->f[0].fate, FATE_GARBAGE);
	assert_non_null(strstr(f->f[0].words, "from byte 196658 on"));
}

static void a_newer_time_stamp_is_named(void **state)
{
	struct fixture *f = *state;
	struct tree *t = add_state(f, "close foo.o");

	kit_node(&f->k, t, "d/foo.c", 1, "int x;");
	kit_node(&f->k, t, "d/foo.o", 2, "ELF");
	kit_node(&f->k, &f->crash, "d/foo.c", 1, "int x;")->mtime_ns = 5;
	kit_node(&f->k, &f->crash, "d/foo.o", 2, "")->mtime_ns = 6;
	judge(f, 0);
	assert_int_equal(f->n, 1);
	assert_fate(f, 0, "d/foo.o", FATE_EMPTY,
		    "is there but empty (0 of 3 bytes), with a newer time "
		    "stamp than d/foo.c; the program had left 3 bytes there");
}

static void unreadable_and_other_types(void **state)
{
	struct fixture *f = *state;
	struct tree *t = add_state(f, NULL);
	struct node *n;

	kit_node(&f->k, t, "a", 1, "x");
	kit_node(&f->k, t, "b", 2, "x");
	kit_node(&f->k, t, "d", 3, NULL);
	n = kit_node(&f->k, &f->crash, "a", 1, "");
	n->error = EIO;
	kit_node(&f->k, &f->crash, "b", 2, NULL);
	judge(f, 0);
	assert_int_equal(f->n, 3);
	assert_fate(f, 0, "a", FATE_UNREADABLE,
		    "cannot be read: Input/output error");
	assert_fate(f, 1, "b", FATE_GARBAGE, "is a directory, and was a file");
	assert_fate(f, 2, "d", FATE_MISSING, "is gone (it was a directory)");
}

/* Half a temporary file, which the nearest state does not have. */
static void damage_of_a_file_of_another_state(void **state)
{
	struct fixture *f = *state;
	struct tree *t;

	kit_node(&f->k, add_state(f, NULL), "a", 1, "old");
	t = add_state(f, "close tmp");
	kit_node(&f->k, t, "a", 1, "old");
	kit_node(&f->k, t, "tmp", 2, "new and longer");
	kit_node(&f->k, add_state(f, "rename tmp to a"), "a", 2,
		 "new and longer");
	kit_node(&f->k, &f->crash, "a", 2, "new and longer");
	kit_node(&f->k, &f->crash, "tmp", 3, "new");
	judge(f, 2);
	assert_int_equal(f->n, 1);
	assert_fate(f, 0, "tmp", FATE_TRUNCATED,
		    "is cut short: the first 3 of 14 bytes; it held 14 bytes "
		    "after state 1 (close tmp)");
}

#define WITH_FIXTURE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(empty_and_missing),
		WITH_FIXTURE(all_the_same),
		WITH_FIXTURE(older_and_newer),
		WITH_FIXTURE(there_too_long_or_too_soon),
		WITH_FIXTURE(moved_away),
		WITH_FIXTURE(damaged_contents),
		WITH_FIXTURE(large_and_odd_sizes),
		WITH_FIXTURE(a_newer_time_stamp_is_named),
		WITH_FIXTURE(unreadable_and_other_types),
		WITH_FIXTURE(damage_of_a_file_of_another_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
