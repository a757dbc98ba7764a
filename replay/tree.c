// SPDX-License-Identifier: GPL-2.0-or-later
/* Trees in memory: building, sorting, totals, lookup. Invariants: tree.h. */
#include <assert.h>
#include <string.h>

#include "store.h"

struct node *tree_add(struct tree *t, const char *path, u8 type)
{
	struct node *n;

	GROW(t->nodes, t->n, t->cap);
	n = &t->nodes[t->n++];
	*n = (struct node){ .path = xstrdup(path), .type = type };
	return n;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct node *)a)->path,
		      ((const struct node *)b)->path);
}

static void count_content(struct tree *t, const struct content *c)
{
	t->bytes += c->bytes;
	t->unknown |= c->unknown;
	for (u32 i = 0, run; i < c->n_chunks; i += run) {
		const struct chunk *k = c->chunks[i];

		/* a hole is the same chunk many times */
		for (run = 1; i + run < c->n_chunks; run++) {
			if (c->chunks[i + run] != k)
				break;
		}
		for (unsigned int v = 0; v < 256; v++)
			t->counts[v] += (u64)k->counts[v] * run;
	}
}

static void hash_node(struct buf *b, const struct node *n)
{
	buf_put(b, n->path, strlen(n->path) + 1);
	buf_put_u8(b, n->type);
	buf_put_u32(b, n->error);
	buf_put_u8(b, n->content ? 1 + n->content->unknown : 0);
	if (!n->content)
		return;
	buf_put_u64(b, n->content->hash.lo);
	buf_put_u64(b, n->content->hash.hi);
}

void tree_sort(struct tree *t)
{
	if (t->n)
		qsort(t->nodes, t->n, sizeof(*t->nodes), by_path);
}

void tree_seal(struct tree *t)
{
	_cleanup_buf_ struct buf b = { 0 };

	tree_sort(t);
	memset(t->counts, 0, sizeof(t->counts));
	t->bytes = 0;
	t->unknown = false;
	for (u32 i = 0; i < t->n; i++) {
		const struct node *n = &t->nodes[i];

		assert(!i || strcmp(n[-1].path, n->path));
		if (n->type == NODE_FILE && n->content)
			count_content(t, n->content);
		hash_node(&b, n);
	}
	t->hash = hash_of(b.data, b.len);
}

const struct node *tree_find(const struct tree *t, const char *path)
{
	struct node key = { .path = (char *)path };

	if (!t->n)
		return NULL;
	return bsearch(&key, t->nodes, t->n, sizeof(*t->nodes), by_path);
}

const struct node *tree_find_ino(const struct tree *t, u64 ino)
{
	for (u32 i = 0; i < t->n; i++) {
		if (t->nodes[i].ino == ino)
			return &t->nodes[i];
	}
	return NULL;
}

void tree_free(struct store *s, struct tree *t)
{
	for (u32 i = 0; i < t->n; i++) {
		free(t->nodes[i].path);
		content_unref(s, t->nodes[i].content);
	}
	free(t->nodes);
	*t = (struct tree){ 0 };
}

bool tree_is_empty(const struct tree *t)
{
	for (u32 i = 0; i < t->n; i++) {
		const struct node *n = &t->nodes[i];

		if (n->type == NODE_FILE && n->content &&
		    (n->content->bytes || n->content->unknown))
			return false;
	}
	return true;
}
