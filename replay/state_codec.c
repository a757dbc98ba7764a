// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Expected states in a recording.
 *
 * CHUNK: hash (u64 low, u64 high), u32 bytes, the bytes.
 * STATE: u64 after_seq, u8 source, string what, u32 n, and n nodes in the
 * order of their paths: string path, u8 type, u32 mode, u32 nlink, u64 ino,
 * u64 mtime ns, u64 ctime ns, u32 error, u8 content (0 none, 1 known, 2
 * unknown); where there is content: u64 bytes, and the hash of each chunk.
 *
 * A chunk comes before the first state that uses it.
 */
#include <string.h>

#include "recording_layout.h"
#include "store.h"

enum content_kind { CONTENT_NONE, CONTENT_KNOWN, CONTENT_UNKNOWN };

#define HASH_BYTES 16U

/* ---- writing ------------------------------------------------------------- */

static void put_hash(struct buf *b, const struct hash128 *h)
{
	buf_put_u64(b, h->lo);
	buf_put_u64(b, h->hi);
}

static int put_chunk(struct rec_writer *w, struct chunk *k)
{
	struct record hdr = { .type = REC_CHUNK };
	struct buf *b;
	int err;

	if (k->saved)
		return 0;
	b = record_begin(w, &hdr, HASH_BYTES + 4 + (u64)k->bytes);
	if (b) {
		put_hash(b, &k->hash);
		buf_put_u32(b, k->bytes);
		buf_put(b, k->data, k->bytes);
	}
	err = record_end(w);
	k->saved = err == 0;
	return err;
}

static void put_node(struct buf *b, const struct node *n)
{
	const struct content *c = n->content;

	buf_put_str(b, n->path);
	buf_put_u8(b, n->type);
	buf_put_u32(b, n->mode);
	buf_put_u32(b, n->nlink);
	buf_put_u64(b, n->ino);
	buf_put_u64(b, n->mtime_ns);
	buf_put_u64(b, n->ctime_ns);
	buf_put_u32(b, n->error);
	if (!c) {
		buf_put_u8(b, CONTENT_NONE);
		return;
	}
	buf_put_u8(b, c->unknown ? CONTENT_UNKNOWN : CONTENT_KNOWN);
	buf_put_u64(b, c->bytes);
	for (u32 i = 0; i < c->n_chunks; i++)
		put_hash(b, &c->chunks[i]->hash);
}

int rec_put_state(struct rec_writer *w, const struct rec_state *st)
{
	struct record hdr = { .type = REC_STATE };
	const struct tree *t = &st->tree;
	struct buf *b;
	int err;

	for (u32 i = 0; i < t->n; i++) {
		const struct content *c = t->nodes[i].content;

		for (u32 k = 0; c && k < c->n_chunks; k++) {
			err = put_chunk(w, c->chunks[k]);
			if (err < 0)
				return err;
		}
	}
	b = record_begin(w, &hdr, 0);
	if (!b)
		return record_end(w);
	buf_put_u64(b, st->after_seq);
	buf_put_u8(b, st->source);
	buf_put_str(b, st->what ?: "");
	buf_put_u32(b, t->n);
	for (u32 i = 0; i < t->n; i++)
		put_node(b, &t->nodes[i]);
	return record_end(w);
}

/* ---- reading ------------------------------------------------------------- */

static struct hash128 get_hash(struct cursor *c)
{
	struct hash128 h = { .lo = cur_u64(c) };

	h.hi = cur_u64(c);
	return h;
}

int store_load_chunk(struct store *s, const struct record *r)
{
	struct cursor c = record_body(r, REC_CHUNK);
	struct hash128 said = get_hash(&c), is;
	u32 bytes = cur_u32(&c);
	const void *data = cur_bytes(&c, bytes);
	struct chunk *k;

	if (c.bad || !bytes || bytes > CHUNK_BYTES)
		return -EBADMSG;
	is = hash_of(data, bytes);
	if (!hash_equal(&said, &is))
		return -EBADMSG;
	k = store_find(s, &said);
	if (k && k->bytes != bytes)
		return -EBADMSG;
	store_chunk(s, data, bytes);	/* this reference keeps it */
	return 0;
}

static struct content *get_content(struct store *s, struct cursor *c)
{
	u64 bytes = cur_u64(c);
	struct content *n;

	if (c->bad || chunks_of(bytes) > cur_left(c) / HASH_BYTES)
		return NULL;
	n = content_new(bytes);
	if (!n)
		return NULL;
	for (u32 i = 0; i < n->n_chunks; i++) {
		struct hash128 h = get_hash(c);
		struct chunk *k = store_find(s, &h);

		if (!k || k->bytes != chunk_len(bytes, i)) {
			n->n_chunks = i;
			content_unref(s, n);
			return NULL;
		}
		k->refs++;
		n->chunks[i] = k;
	}
	content_seal(n);
	return n;
}

/* Relative, and every component a name. */
static bool path_ok(const char *path)
{
	for (;;) {
		size_t n = strcspn(path, "/");

		if (!n || (n == 1 && path[0] == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!path[n])
			return true;
		path += n + 1;
	}
}

static bool node_ok(const struct node *n, u8 kind)
{
	if (n->type < NODE_FILE || n->type > NODE_OTHER || kind > CONTENT_UNKNOWN)
		return false;
	return kind == CONTENT_NONE || n->type == NODE_FILE ||
	       n->type == NODE_SYMLINK;
}

static int get_node(struct store *s, struct cursor *c, struct tree *t)
{
	char *path = cur_str(c);
	const char *last = t->n ? t->nodes[t->n - 1].path : "";
	struct node *n;
	u8 kind;

	if (!path)
		return -EBADMSG;
	/* "" sorts before every path, and no path is empty */
	if (strcmp(last, path) >= 0 || !path_ok(path)) {
		free(path);
		return -EBADMSG;
	}
	GROW(t->nodes, t->n, t->cap);
	n = &t->nodes[t->n++];
	*n = (struct node){ .path = path };
	n->type = cur_u8(c);
	n->mode = cur_u32(c);
	n->nlink = cur_u32(c);
	n->ino = cur_u64(c);
	n->mtime_ns = cur_u64(c);
	n->ctime_ns = cur_u64(c);
	n->error = (int)(cur_u32(c) & INT32_MAX);
	kind = cur_u8(c);
	if (c->bad || !node_ok(n, kind))
		return -EBADMSG;
	if (kind == CONTENT_NONE)
		return 0;
	n->content = get_content(s, c);
	if (!n->content)
		return -EBADMSG;
	n->content->unknown = kind == CONTENT_UNKNOWN;
	return 0;
}

int rec_get_state(struct store *s, const struct record *r,
		  struct rec_state *ret)
{
	struct cursor c = record_body(r, REC_STATE);
	struct rec_state st = { .after_seq = cur_u64(&c) };
	u32 n;
	int err;

	st.source = cur_u8(&c);
	st.what = cur_str(&c);
	n = cur_u32(&c);
	err = c.bad ? -EBADMSG : 0;
	if (st.source != STATE_STOP && st.source != STATE_TRACE)
		err = -EBADMSG;
	for (u32 i = 0; err == 0 && i < n; i++)
		err = get_node(s, &c, &st.tree);
	if (err < 0) {
		rec_state_done(s, &st);
		return err;
	}
	tree_seal(&st.tree);
	*ret = st;
	return 0;
}

void rec_state_done(struct store *s, struct rec_state *st)
{
	free(st->what);
	tree_free(s, &st->tree);
	*st = (struct rec_state){ 0 };
}
