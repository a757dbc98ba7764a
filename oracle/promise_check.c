// SPDX-License-Identifier: GPL-2.0-or-later
/* Which promises a recovered tree does not keep. */
#include "expected.h"

#include <string.h>

struct by_ino {
	u32 n;
	const struct node **nodes;	/* ascending ino */
};

void promises_free(struct promises *p)
{
	if (!p)
		return;
	for (u32 i = 0; i < p->n; i++) {
		free(p->p[i].path);
		content_unref(p->store, p->p[i].content);
	}
	free(p->p);
	free(p);
}

static int compare_ino(const void *a, const void *b)
{
	const struct node *p = *(const struct node *const *)a;
	const struct node *q = *(const struct node *const *)b;

	return p->ino < q->ino ? -1 : p->ino > q->ino;
}

static const struct node *find_ino(const struct by_ino *x, u64 ino)
{
	const struct node key = { .ino = ino }, *k = &key;
	const struct node **found = NULL;

	if (x->n)
		found = bsearch(&k, x->nodes, x->n, sizeof(*x->nodes),
				compare_ino);
	return found ? *found : NULL;
}

static bool same_chunk(const struct content *a, const struct content *b, u64 i)
{
	return i < a->n_chunks && i < b->n_chunks &&
	       a->chunks[i]->hash.lo == b->chunks[i]->hash.lo &&
	       a->chunks[i]->hash.hi == b->chunks[i]->hash.hi;
}

/* len bytes of a at a_off and of b at b_off, within both. */
static bool same_bytes(const struct content *a, u64 a_off,
		       const struct content *b, u64 b_off, u64 len)
{
	while (len) {
		u32 in_a = a_off % CHUNK_BYTES, in_b = b_off % CHUNK_BYTES;
		u64 n = MIN(len, CHUNK_BYTES - MAX(in_a, in_b));

		if (!(a_off == b_off &&
		      same_chunk(a, b, a_off / CHUNK_BYTES)) &&
		    memcmp(a->chunks[a_off / CHUNK_BYTES]->data + in_a,
			   b->chunks[b_off / CHUNK_BYTES]->data + in_b, n))
			return false;
		a_off += n;
		b_off += n;
		len -= n;
	}
	return true;
}

static bool bytes_kept(const struct promise *p, const struct node *n)
{
	if (!n || n->type != NODE_FILE || !n->content || n->error)
		return false;
	if (p->off + p->len > n->content->bytes)
		return false;
	return same_bytes(p->content, p->off - p->content_off, n->content,
			  p->off, p->len);
}

static bool size_kept(const struct promise *p, const struct node *n)
{
	if (!n || !p->len)
		return n;
	return n->content && n->content->bytes >= p->len;
}

/* The node that the promised name leads to now, wherever its directory is. */
static const struct node *named(const struct promise *p, const struct tree *t,
				const struct by_ino *x, bool *ret_dir)
{
	const char *slash = strrchr(p->path, '/');
	const char *name = slash ? slash + 1 : p->path;
	const struct node *dir = p->dir_ino ? find_ino(x, p->dir_ino) : NULL;
	_cleanup_free_ char *path = NULL;

	*ret_dir = !p->dir_ino || (dir && dir->type == NODE_DIR);
	if (!*ret_dir)
		return NULL;
	if (!dir)
		return tree_find(t, name);
	path = xasprintf("%s/%s", dir->path, name);
	return tree_find(t, path);
}

static bool kept(const struct promise *p, const struct tree *t,
		 const struct by_ino *x)
{
	const struct node *n;
	bool dir;

	switch (p->kind) {
	case PROMISE_BYTES:
		return bytes_kept(p, find_ino(x, p->ino));
	case PROMISE_SIZE:
		return size_kept(p, find_ino(x, p->ino));
	case PROMISE_NAME:
		n = named(p, t, x, &dir);
		return n && n->ino == p->ino;
	case PROMISE_NO_NAME:
		return !named(p, t, x, &dir);
	}
	return true;
}

u32 promises_broken(const struct promises *p, const struct tree *tree,
		    u32 *ret)
{
	struct by_ino x = { .n = tree->n };
	u32 n = 0;

	if (!p->n)
		return 0;
	x.nodes = xreallocarray(NULL, MAX(x.n, 1U), sizeof(*x.nodes));
	for (u32 i = 0; i < x.n; i++)
		x.nodes[i] = &tree->nodes[i];
	if (x.n)
		qsort(x.nodes, x.n, sizeof(*x.nodes), compare_ino);
	for (u32 i = 0; i < p->n; i++)
		if (!kept(&p->p[i], tree, &x))
			ret[n++] = i;
	free(x.nodes);
	return n;
}
