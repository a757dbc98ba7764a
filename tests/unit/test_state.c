// SPDX-License-Identifier: GPL-2.0-or-later
/* Expected states in a recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../replay/recording_layout.h"
#include "../../replay/store.h"

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

/* ---- states in a recording ----------------------------------------------- */

struct recfile {
	char path[64];
	struct rec_writer *w;
};

static struct recfile recfile_new(void)
{
	struct recfile f = { "/tmp/blkbox-test-XXXXXX", NULL };
	struct rec_writer_opts opts = { .overwrite = true };
	int fd = mkstemp(f.path);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(rec_create(f.path, "{}", &opts, &f.w, NULL), 0);
	return f;
}

/* Closes it, and opens it for reading; the name is gone. */
static struct rec_reader *recfile_read(struct recfile *f)
{
	struct rec_reader *r = NULL;

	assert_int_equal(rec_close(f->w, NULL), 0);
	assert_int_equal(rec_open(f->path, &r, NULL), 0);
	unlink(f->path);
	return r;
}

static void test_states_come_back_and_share_chunks(void **state)
{
	struct store *s = store_new(), *s2 = store_new();
	struct rec_state st = { .after_seq = 7, .source = STATE_STOP,
				.what = (char *)"close d/a" };
	struct recfile f = recfile_new();
	u32 chunks = 0, states = 0;
	struct rec_reader *r;
	struct record rec;

	(void)state;
	small_tree(s, &st.tree);
	st.tree.nodes[2].mode = 0100600;
	st.tree.nodes[2].ino = 1ULL << 60;
	st.tree.nodes[2].mtime_ns = 11;
	st.tree.nodes[2].ctime_ns = 12;
	st.tree.nodes[2].nlink = 3;
	st.tree.nodes[4].error = EIO;
	tree_seal(&st.tree);
	assert_int_equal(rec_put_state(f.w, &st), 0);
	st.after_seq = 8;
	assert_int_equal(rec_put_state(f.w, &st), 0);
	r = recfile_read(&f);
	while (rec_next(r, &rec, NULL) > 0) {
		struct rec_state got;

		if (rec.type == REC_CHUNK) {
			assert_int_equal(store_load_chunk(s2, &rec), 0);
			chunks++;
		}
		if (rec.type != REC_STATE)
			continue;
		assert_int_equal(rec_get_state(s2, &rec, &got), 0);
		assert_int_equal(got.after_seq, 7 + states);
		assert_int_equal(got.source, STATE_STOP);
		assert_string_equal(got.what, "close d/a");
		assert_int_equal(got.tree.n, 6);
		assert_true(hash_equal(&got.tree.hash, &st.tree.hash));
		assert_int_equal(got.tree.bytes, 7);
		assert_int_equal(got.tree.nodes[2].mode, 0100600);
		assert_int_equal(got.tree.nodes[2].ino, 1ULL << 60);
		assert_int_equal(got.tree.nodes[2].mtime_ns, 11);
		assert_int_equal(got.tree.nodes[2].ctime_ns, 12);
		assert_int_equal(got.tree.nodes[2].nlink, 3);
		assert_int_equal(got.tree.nodes[4].error, EIO);
		rec_state_done(s2, &got);
		states++;
	}
	assert_int_equal(states, 2);
	assert_int_equal(chunks, 3);	/* "abca", "d/a", "zzz", once each */
	rec_reader_free(r);
	tree_free(s, &st.tree);
	store_free(s);
	store_free(s2);
}

static void put_test_node(struct buf *b, const char *path, u8 type, u8 kind)
{
	buf_put_str(b, path);
	buf_put_u8(b, type);
	buf_put_u32(b, 0);
	buf_put_u32(b, 1);
	buf_put_u64(b, 0);
	buf_put_u64(b, 0);
	buf_put_u64(b, 0);
	buf_put_u32(b, 0);
	buf_put_u8(b, kind);
}

static int decode_nodes(const char *const *paths, u32 n, u32 said, u8 type,
			u8 source)
{
	struct store *s = store_new();
	struct buf b = { 0 };
	struct record r = { .type = REC_STATE };
	struct rec_state st;
	int err;

	buf_put_u64(&b, 1);
	buf_put_u8(&b, source);
	buf_put_str(&b, "what");
	buf_put_u32(&b, said);
	for (u32 i = 0; i < n; i++)
		put_test_node(&b, paths[i], type, 0);
	r.body = b.data;
	r.body_bytes = b.len;
	err = rec_get_state(s, &r, &st);
	if (err == 0) {
		assert_int_equal(st.tree.n, n);
		rec_state_done(s, &st);
	}
	buf_free(&b);
	store_free(s);
	return err;
}

static int decode_paths(const char *a, const char *b)
{
	const char *const paths[] = { a, b };

	return decode_nodes(paths, b ? 2 : 1, b ? 2 : 1, NODE_DIR, STATE_STOP);
}

static void test_states_that_are_no_trees_are_refused(void **state)
{
	static const char *const bad[] = { "",	   "/a",   "a/",   "a//b", ".",
					   "..",   "a/..", "./a",  "a/./b",
					   "../a", "a/../b" };
	static const char *const one[] = { "a" };

	(void)state;
	assert_int_equal(decode_paths("a", "b"), 0);
	assert_int_equal(decode_paths("a", "a/..b"), 0);
	assert_int_equal(decode_paths("a", "a"), -EBADMSG);
	assert_int_equal(decode_paths("b", "a"), -EBADMSG);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(decode_paths(bad[i], NULL), -EBADMSG);
	assert_int_equal(decode_nodes(one, 1, 2, NODE_DIR, STATE_STOP),
			 -EBADMSG);
	assert_int_equal(decode_nodes(one, 1, UINT32_MAX, NODE_DIR,
				      STATE_STOP), -EBADMSG);
	assert_int_equal(decode_nodes(one, 1, 1, 0, STATE_STOP), -EBADMSG);
	assert_int_equal(decode_nodes(one, 1, 1, 5, STATE_STOP), -EBADMSG);
	assert_int_equal(decode_nodes(one, 1, 1, NODE_DIR, 3), -EBADMSG);
}

/* A state of one file of so many bytes, whose only chunk is k. */
static int decode_one_file(struct store *s, const struct chunk *k, u64 bytes,
			   u8 type)
{
	struct buf b = { 0 };
	struct record r = { .type = REC_STATE };
	struct rec_state st;
	int err;

	buf_put_u64(&b, 1);
	buf_put_u8(&b, STATE_STOP);
	buf_put_str(&b, "what");
	buf_put_u32(&b, 1);
	put_test_node(&b, "f", type, 1);
	buf_put_u64(&b, bytes);
	buf_put_u64(&b, k->hash.lo);
	buf_put_u64(&b, k->hash.hi);
	r.body = b.data;
	r.body_bytes = b.len;
	err = rec_get_state(s, &r, &st);
	if (err == 0)
		rec_state_done(s, &st);
	buf_free(&b);
	return err;
}

static void test_states_with_wrong_chunks_are_refused(void **state)
{
	struct store *s = store_new(), *empty = store_new();
	struct chunk *k = store_chunk(s, "hello", 5);

	(void)state;
	assert_int_equal(decode_one_file(s, k, 5, NODE_FILE), 0);
	assert_int_equal(decode_one_file(s, k, 4, NODE_FILE), -EBADMSG);
	assert_int_equal(decode_one_file(s, k, CHUNK_BYTES, NODE_FILE),
			 -EBADMSG);
	assert_int_equal(decode_one_file(s, k, CHUNK_BYTES + 5, NODE_FILE),
			 -EBADMSG);
	assert_int_equal(decode_one_file(s, k, UINT64_MAX, NODE_FILE),
			 -EBADMSG);
	assert_int_equal(decode_one_file(s, k, 5, NODE_DIR), -EBADMSG);
	assert_int_equal(decode_one_file(empty, k, 5, NODE_FILE), -EBADMSG);
	assert_int_equal(k->refs, 1);
	store_free(s);
	store_free(empty);
}

static void test_chunks_are_what_their_hash_says(void **state)
{
	struct store *s = store_new();
	struct hash128 h = hash_of("hello", 5);
	struct record r = { .type = REC_CHUNK };
	struct buf b = { 0 };

	(void)state;
	buf_put_u64(&b, h.lo);
	buf_put_u64(&b, h.hi);
	buf_put_u32(&b, 5);
	buf_put(&b, "hello", 5);
	r.body = b.data;
	r.body_bytes = b.len;
	assert_int_equal(store_load_chunk(s, &r), 0);
	assert_int_equal(store_load_chunk(s, &r), 0);	/* twice is no harm */
	for (size_t i = 0; i < b.len; i++) {
		b.data[i] ^= 1;
		assert_int_equal(store_load_chunk(s, &r), -EBADMSG);
		b.data[i] ^= 1;
	}
	for (r.body_bytes = 0; r.body_bytes < b.len; r.body_bytes++)
		assert_int_equal(store_load_chunk(s, &r), -EBADMSG);
	/* still there when nobody refers to it */
	assert_non_null(store_find(s, &h));
	buf_free(&b);
	store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states_come_back_and_share_chunks),
		cmocka_unit_test(test_states_that_are_no_trees_are_refused),
		cmocka_unit_test(test_states_with_wrong_chunks_are_refused),
		cmocka_unit_test(test_chunks_are_what_their_hash_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
