// SPDX-License-Identifier: GPL-2.0-or-later
/* Contents and trees in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "../../replay/store.h"

static u32 next_random(u32 *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

static void fill(u8 *data, size_t len, u32 seed)
{
	for (size_t i = 0; i < len; i++)
		data[i] = next_random(&seed);
}

/* ---- contents ------------------------------------------------------------ */

static void assert_content(const struct content *c, const u8 *want, size_t len)
{
	u8 *got = xzalloc(len + 1);

	assert_int_equal(c->bytes, len);
	assert_int_equal(c->n_chunks, chunks_of(len));
	assert_int_equal(content_read(c, 0, got, len + 1), len);
	assert_memory_equal(got, want, len);
	for (u32 i = 0; i < c->n_chunks; i++) {
		u32 counts[256] = { 0 };

		assert_int_equal(c->chunks[i]->bytes, chunk_len(len, i));
		for (u32 k = 0; k < c->chunks[i]->bytes; k++)
			counts[want[(size_t)i * CHUNK_BYTES + k]]++;
		assert_memory_equal(counts, c->chunks[i]->counts,
				    sizeof(counts));
	}
	free(got);
}

static void test_content_of_every_size_near_a_chunk(void **state)
{
	static const size_t sizes[] = { 0, 1, 2, 3, 5, CHUNK_BYTES - 1,
					CHUNK_BYTES, CHUNK_BYTES + 1,
					3 * CHUNK_BYTES, 3 * CHUNK_BYTES + 7 };
	u8 *data = xmalloc(4 * CHUNK_BYTES);

	(void)state;
	fill(data, 4 * CHUNK_BYTES, 1);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct store *s = store_new();
		struct content *c = content_from_bytes(s, data, sizes[i]);

		assert_content(c, data, sizes[i]);
		content_unref(s, c);
		store_free(s);
	}
	free(data);
}

static void test_content_read_at_an_offset(void **state)
{
	struct store *s = store_new();
	u8 data[2 * CHUNK_BYTES], got[100];
	struct content *c;

	(void)state;
	fill(data, sizeof(data), 2);
	c = content_from_bytes(s, data, sizeof(data));
	assert_int_equal(content_read(c, CHUNK_BYTES - 50, got, 100), 100);
	assert_memory_equal(got, data + CHUNK_BYTES - 50, 100);
	assert_int_equal(content_read(c, sizeof(data) - 3, got, 100), 3);
	assert_int_equal(content_read(c, sizeof(data), got, 100), 0);
	assert_int_equal(content_read(c, UINT64_MAX, got, 100), 0);
	content_unref(s, c);
	store_free(s);
}

#define MODEL_BYTES (5 * CHUNK_BYTES)

/* A plain array does the same; the two must agree after each step. */
static void test_writes_and_resizes_agree_with_an_array(void **state)
{
	struct store *s = store_new();
	struct content *c = NULL, *n;
	u8 *model = xzalloc(MODEL_BYTES), *data = xmalloc(MODEL_BYTES);
	size_t len = 0;
	u32 x = 12345;

	(void)state;
	for (int step = 0; step < 300; step++) {
		size_t off = next_random(&x) % (3 * CHUNK_BYTES);
		size_t bytes = next_random(&x) % (2 * CHUNK_BYTES);

		if (next_random(&x) % 4 == 0)
			bytes %= 64;
		if (next_random(&x) % 3) {
			fill(data, bytes, x | 1);
			n = content_write(s, c, off, data, bytes);
			memcpy(model + off, data, bytes);
			if (bytes)
				len = MAX(len, off + bytes);
		} else {
			n = content_resize(s, c, off);
			if (off < len)
				memset(model + off, 0, len - off);
			len = off;
		}
		content_unref(s, c);
		c = n;
		assert_content(c, model, len);
		/* the same bytes, the same hash, however they came about */
		n = content_from_bytes(s, model, len);
		assert_true(hash_equal(&n->hash, &c->hash));
		content_unref(s, n);
	}
	content_unref(s, c);
	store_free(s);
	free(model);
	free(data);
}

static void test_untouched_chunks_are_shared(void **state)
{
	struct store *s = store_new();
	u8 *data = xmalloc(4 * CHUNK_BYTES);
	struct content *c, *w, *r;

	(void)state;
	fill(data, 4 * CHUNK_BYTES, 3);
	c = content_from_bytes(s, data, 4 * CHUNK_BYTES);
	w = content_write(s, c, CHUNK_BYTES + 5, "x", 1);
	assert_ptr_equal(w->chunks[0], c->chunks[0]);
	assert_ptr_not_equal(w->chunks[1], c->chunks[1]);
	assert_ptr_equal(w->chunks[2], c->chunks[2]);
	assert_ptr_equal(w->chunks[3], c->chunks[3]);
	r = content_resize(s, c, 2 * CHUNK_BYTES);
	assert_ptr_equal(r->chunks[1], c->chunks[1]);
	/* c itself is as it was */
	assert_content(c, data, 4 * CHUNK_BYTES);
	content_unref(s, c);
	assert_content(r, data, 2 * CHUNK_BYTES);
	content_unref(s, r);
	content_unref(s, w);
	store_free(s);
	free(data);
}

static void test_equal_chunks_are_held_once_and_let_go(void **state)
{
	struct store *s = store_new();
	struct content *c[500], *again;
	struct hash128 hash;
	u8 data[64];

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(c); i++) {
		fill(data, sizeof(data), i + 1);
		c[i] = content_from_bytes(s, data, sizeof(data));
	}
	fill(data, sizeof(data), 77 + 1);
	again = content_from_bytes(s, data, sizeof(data));
	assert_ptr_equal(again->chunks[0], c[77]->chunks[0]);
	content_unref(s, again);
	/* taking chunks out must not hide others from a lookup */
	for (u32 i = 0; i < ARRAY_SIZE(c); i += 2)
		content_unref(s, c[i]);
	for (u32 i = 1; i < ARRAY_SIZE(c); i += 2) {
		assert_ptr_equal(store_find(s, &c[i]->chunks[0]->hash),
				 c[i]->chunks[0]);
		hash = c[i]->chunks[0]->hash;
		content_unref(s, c[i]);
		assert_null(store_find(s, &hash));
	}
	store_free(s);
}

static void test_contents_have_a_bound(void **state)
{
	struct store *s = store_new();
	struct content *c;

	(void)state;
	assert_null(content_resize(s, NULL, CONTENT_MAX_BYTES + 1));
	assert_null(content_resize(s, NULL, UINT64_MAX));
	assert_null(content_write(s, NULL, UINT64_MAX, "ab", 2));
	assert_null(content_write(s, NULL, INT64_MAX, "ab", 2));
	c = content_resize(s, NULL, 8ULL << 30);
	assert_int_equal(c->n_chunks, 131072);
	assert_int_equal(c->chunks[0]->refs, 131072);
	content_unref(s, c);
	store_free(s);
}

static void test_unknown_content_stays_unknown(void **state)
{
	struct store *s = store_new();
	struct content *c = content_from_bytes(s, "abc", 3), *n;

	(void)state;
	c->unknown = true;
	n = content_write(s, c, 1, "x", 1);
	assert_true(n->unknown);
	content_unref(s, n);
	content_unref(s, c);
	store_free(s);
}

/* ---- trees --------------------------------------------------------------- */

static void add(struct store *s, struct tree *t, const char *path, u8 type,
		const char *text)
{
	struct node *n = tree_add(t, path, type);

	if (text)
		n->content = content_from_bytes(s, text, strlen(text));
}

static void small_tree(struct store *s, struct tree *t)
{
	*t = (struct tree){ 0 };
	add(s, t, "z", NODE_FILE, "zzz");
	add(s, t, "d", NODE_DIR, NULL);
	add(s, t, "d/a", NODE_FILE, "abca");
	add(s, t, "d.txt", NODE_FILE, "");
	add(s, t, "l", NODE_SYMLINK, "d/a");
	add(s, t, "p", NODE_OTHER, NULL);
	tree_seal(t);
}

static void test_tree_is_sorted_and_found(void **state)
{
	static const char *const order[] = { "d", "d.txt", "d/a",
					     "l", "p",	   "z" };
	struct store *s = store_new();
	struct tree t;

	(void)state;
	small_tree(s, &t);
	t.nodes[2].ino = 99;
	for (u32 i = 0; i < ARRAY_SIZE(order); i++) {
		assert_string_equal(t.nodes[i].path, order[i]);
		assert_ptr_equal(tree_find(&t, order[i]), &t.nodes[i]);
	}
	assert_null(tree_find(&t, "d/"));
	assert_null(tree_find(&t, ""));
	assert_string_equal(tree_find_ino(&t, 99)->path, "d/a");
	assert_null(tree_find_ino(&t, 98));
	tree_free(s, &t);
	assert_null(tree_find(&t, "d"));
	store_free(s);
}

static void test_tree_totals_are_of_files_only(void **state)
{
	struct store *s = store_new();
	struct tree t;

	(void)state;
	small_tree(s, &t);
	assert_int_equal(t.bytes, 7);
	assert_int_equal(t.counts['a'], 2);
	assert_int_equal(t.counts['z'], 3);
	assert_int_equal(t.counts['/'], 0);	/* the symlink's target */
	assert_false(tree_is_empty(&t));
	tree_free(s, &t);
	add(s, &t, "l", NODE_SYMLINK, "target");
	add(s, &t, "f", NODE_FILE, "");
	tree_seal(&t);
	assert_true(tree_is_empty(&t));
	tree_free(s, &t);
	store_free(s);
}

static void test_tree_totals_over_long_holes(void **state)
{
	struct store *s = store_new();
	struct content *hole = content_resize(s, NULL, 10 * CHUNK_BYTES + 9);
	struct tree t = { 0 };

	(void)state;
	tree_add(&t, "f", NODE_FILE)->content =
		content_write(s, hole, 3 * CHUNK_BYTES, "x", 1);
	tree_seal(&t);
	assert_int_equal(t.counts[0], 10 * CHUNK_BYTES + 8);
	assert_int_equal(t.counts['x'], 1);
	tree_free(s, &t);
	content_unref(s, hole);
	store_free(s);
}

static void test_tree_hash_tells_trees_apart(void **state)
{
	struct store *s = store_new();
	struct tree a, b;

	(void)state;
	small_tree(s, &a);
	small_tree(s, &b);
	b.nodes[0].mtime_ns = 5;
	b.nodes[2].ino = 6;
	tree_seal(&b);
	assert_true(hash_equal(&a.hash, &b.hash));
	b.nodes[4].type = NODE_DIR;
	tree_seal(&b);
	assert_false(hash_equal(&a.hash, &b.hash));
	b.nodes[4].type = NODE_OTHER;
	b.nodes[2].content->unknown = true;
	tree_seal(&b);
	assert_true(b.unknown);
	assert_false(hash_equal(&a.hash, &b.hash));
	tree_free(s, &b);
	small_tree(s, &b);
	content_unref(s, b.nodes[5].content);
	b.nodes[5].content = content_from_bytes(s, "zzy", 3);
	tree_seal(&b);
	assert_false(hash_equal(&a.hash, &b.hash));
	tree_free(s, &a);
	tree_free(s, &b);
	store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_content_of_every_size_near_a_chunk),
		cmocka_unit_test(test_content_read_at_an_offset),
		cmocka_unit_test(test_writes_and_resizes_agree_with_an_array),
		cmocka_unit_test(test_untouched_chunks_are_shared),
		cmocka_unit_test(test_equal_chunks_are_held_once_and_let_go),
		cmocka_unit_test(test_contents_have_a_bound),
		cmocka_unit_test(test_unknown_content_stays_unknown),
		cmocka_unit_test(test_tree_is_sorted_and_found),
		cmocka_unit_test(test_tree_totals_are_of_files_only),
		cmocka_unit_test(test_tree_totals_over_long_holes),
		cmocka_unit_test(test_tree_hash_tells_trees_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
