// SPDX-License-Identifier: GPL-2.0-or-later
/* The editing distance of C3, relaxed: how many bytes nothing could supply. */
#include "expected.h"

#include <string.h>

u64 editing_distance(const u64 expected[256], const u64 crash[256])
{
	u64 d = 0;

	for (u32 v = 0; v < 256; v++)
		d += expected[v] > crash[v] ? expected[v] - crash[v] : 0;
	return d;
}

bool content_same(const struct content *a, const struct content *b)
{
	return a->bytes == b->bytes && a->hash.lo == b->hash.lo &&
	       a->hash.hi == b->hash.hi && !a->unknown && !b->unknown;
}

bool node_same(const struct node *a, const struct node *b)
{
	if (a->type != b->type || a->error || b->error ||
	    !a->content != !b->content)
		return false;
	return !a->content || content_same(a->content, b->content);
}

/* How many entries of the same path, type and content both have. */
static u32 shared_nodes(const struct tree *a, const struct tree *b)
{
	u32 i = 0, j = 0, n = 0;

	while (i < a->n && j < b->n) {
		int c = strcmp(a->nodes[i].path, b->nodes[j].path);

		if (!c)
			n += node_same(&a->nodes[i], &b->nodes[j]);
		i += c <= 0;
		j += c >= 0;
	}
	return n;
}

static bool same_tree(const struct tree *a, const struct tree *b)
{
	return a->hash.lo == b->hash.lo && a->hash.hi == b->hash.hi;
}

/* Of the states with this distance, the one most like crash. */
static u32 most_alike(const struct expected *e, const struct tree *crash,
		      const u64 *distances, u64 d)
{
	u32 best = 0, best_shared = 0;
	bool found = false;

	for (u32 i = e->n; i-- > 0;) {
		u32 shared;

		if (distances[i] != d || !expected_judges(e, i))
			continue;
		if (same_tree(&e->states[i].tree, crash))
			return i;
		shared = shared_nodes(&e->states[i].tree, crash);
		if (!found || shared > best_shared) {
			best = i;
			best_shared = shared;
		}
		found = true;
	}
	return best;
}

/* A state that has so many bytes more than crash is at least that far. */
static u64 least_distance(const struct tree *state, const struct tree *crash)
{
	return state->bytes > crash->bytes ? state->bytes - crash->bytes : 0;
}

/* Is crash one of the states there were before there was any data? */
static bool before_data(const struct expected *e, const struct tree *crash,
			u32 *ret)
{
	for (u32 i = 0; i < e->n && tree_is_empty(&e->states[i].tree); i++)
		if (same_tree(&e->states[i].tree, crash)) {
			*ret = i;
			return true;
		}
	return false;
}

u64 expected_nearest(const struct expected *e, const struct tree *crash,
		     u32 *ret_state)
{
	_cleanup_free_ u64 *distances = NULL;
	u64 best = UINT64_MAX;
	u32 early;

	if (before_data(e, crash, &early)) {
		if (ret_state)
			*ret_state = early;
		return 0;
	}
	distances = xreallocarray(NULL, MAX(e->n, 1U), sizeof(*distances));
	for (u32 i = 0; i < e->n; i++) {
		const struct tree *t = &e->states[i].tree;

		distances[i] = UINT64_MAX;
		if (!expected_judges(e, i) || least_distance(t, crash) > best)
			continue;
		distances[i] = editing_distance(t->counts, crash->counts);
		best = MIN(best, distances[i]);
		if (!best && !ret_state)
			return 0;
	}
	if (best == UINT64_MAX)
		best = 0;
	if (ret_state)
		*ret_state = most_alike(e, crash, distances, best);
	return best;
}
