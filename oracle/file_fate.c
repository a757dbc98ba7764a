// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What happened to a file, for a person to read. How its bytes compare with
 * what it held in the expected states is in file_blocks.c.
 */
#include "file_fate.h"

#include <string.h>

#include "file_blocks.h"

struct fates {
	const struct expected *e;
	u32 state;
	const struct tree *crash;
	u32 n, cap;
	struct file_finding *f;
};

static const char *type_words(u8 type)
{
	switch (type) {
	case NODE_FILE:
		return "a file";
	case NODE_DIR:
		return "a directory";
	case NODE_SYMLINK:
		return "a symbolic link";
	}
	return "a special file";
}

/* "after state 3 (rename tmp to data)"; heap. */
static char *after_state(const struct expected *e, u32 state)
{
	const struct rec_state *st = &e->states[state];

	if (!st->after_seq)
		return xstrdup("at the start");
	return xasprintf("after state %u (%s)", state, st->what ?: "?");
}

static u64 bytes_of(const struct node *n)
{
	return n && n->content ? n->content->bytes : 0;
}

static struct file_finding *add(struct fates *x, const char *path,
				enum file_fate fate, char *words)
{
	struct file_finding *f;

	GROW(x->f, x->n, x->cap);
	f = &x->f[x->n++];
	*f = (struct file_finding){
		.path = xstrdup(path), .fate = fate, .state = x->state,
		.words = words,
	};
	f->bytes = bytes_of(tree_find(x->crash, path));
	f->expected_bytes =
		bytes_of(tree_find(&x->e->states[x->state].tree, path));
	return f;
}

/*
 * The state nearest to the one compared with where path is there, and with
 * like, is the same; earlier ones come first. False: none.
 */
static bool find_state(const struct fates *x, const char *path,
		       const struct node *like, u32 *ret)
{
	for (u32 step = 0; step < x->e->n; step++) {
		u32 near[2] = { x->state - step, x->state + step };

		for (u32 i = 0; i < 2; i++) {
			const struct node *n;

			if (near[i] >= x->e->n)
				continue;
			n = tree_find(&x->e->states[near[i]].tree, path);
			if (!n || (like && !node_same(n, like)))
				continue;
			*ret = near[i];
			return true;
		}
	}
	return false;
}

/* Another file of tree with this content; NULL: none, or it has no bytes. */
static const struct node *find_content(const struct tree *t,
				       const struct node *n)
{
	if (n->type != NODE_FILE || !bytes_of(n))
		return NULL;
	for (u32 i = 0; i < t->n; i++)
		if (t->nodes[i].type == NODE_FILE && t->nodes[i].content &&
		    strcmp(t->nodes[i].path, n->path) &&
		    content_same(t->nodes[i].content, n->content))
			return &t->nodes[i];
	return NULL;
}

/* ---- the cases ----------------------------------------------------------- */

static void is_missing(struct fates *x, const struct node *was)
{
	const struct node *other = find_content(x->crash, was);
	char *words;

	if (was->type != NODE_FILE)
		words = xasprintf("is gone (it was %s)", type_words(was->type));
	else if (other)
		words = xasprintf("is gone, but %s holds what it held",
				  other->path);
	else if (!bytes_of(was))
		words = xstrdup("is gone (it was empty)");
	else
		words = xasprintf("is gone; the program had left %llu bytes "
				  "there",
				  (unsigned long long)bytes_of(was));
	add(x, was->path, FATE_MISSING, words);
}

/* As in some other state. False: in none. */
static bool is_of_other_state(struct fates *x, const struct node *n,
			      bool expected_there)
{
	_cleanup_free_ char *when = NULL;
	struct file_finding *f;
	u32 state;
	bool older;

	if (!find_state(x, n->path, n, &state))
		return false;
	older = state < x->state;
	when = after_state(x->e, state);
	f = add(x, n->path, older ? FATE_OLDER : FATE_NEWER, NULL);
	f->state = state;
	if (expected_there)
		f->words = xasprintf("%s content: as it was %s",
				     older ? "older" : "newer", when);
	else if (older)
		f->words = xasprintf("is still there: as it was %s", when);
	else
		f->words = xasprintf("is there already: as it was %s", when);
	return true;
}

static size_t stem_len(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && dot != name ? (size_t)(dot - name) : strlen(name);
}

/* The file that n is likely made from, foo.c of foo.o, when n looks newer:
 * make(1) will then leave n as it is. */
static const struct node *looks_newer_than(const struct tree *t,
					   const struct node *n)
{
	const char *slash = strrchr(n->path, '/');
	size_t dir = slash ? slash + 1 - n->path : 0;
	size_t stem = stem_len(n->path + dir);

	if (!n->path[dir + stem])
		return NULL;
	for (u32 i = 0; i < t->n; i++) {
		const struct node *o = &t->nodes[i];

		if (o == n || o->type != NODE_FILE || !o->mtime_ns ||
		    strncmp(o->path, n->path, dir + stem) ||
		    strchr(o->path + dir, '/') || !o->path[dir + stem] ||
		    stem_len(o->path + dir) != stem)
			continue;
		if (n->mtime_ns > o->mtime_ns)
			return o;
	}
	return NULL;
}

static char *damage_words(const struct fates *x, const struct node *n,
			  const struct node *was, u32 reference, char *what)
{
	_cleanup_free_ char *is = what;
	_cleanup_free_ char *when = after_state(x->e, reference);
	const struct node *newer = looks_newer_than(x->crash, n);
	unsigned long long had = bytes_of(was);
	_cleanup_free_ char *stamp = NULL;

	stamp = newer ? xasprintf(", with a newer time stamp than %s",
				  newer->path) : xstrdup("");
	if (reference == x->state)
		return xasprintf("%s%s; the program had left %llu bytes there",
				 is, stamp, had);
	return xasprintf("%s%s; it held %llu bytes %s", is, stamp, had, when);
}

/* Bytes that are as in no state, compared with those of state reference. */
static void is_damaged(struct fates *x, const struct node *n,
		       const struct node *was, u32 reference)
{
	const struct content *others[BLOCKS_OTHERS_MAX];
	struct blocks b = { .crash = n->content, .expected = was->content };
	enum file_fate fate;
	char *what;

	b.n_others = 0;
	for (u32 i = 0; i < x->e->n && b.n_others < BLOCKS_OTHERS_MAX; i++) {
		const struct node *o =
			tree_find(&x->e->states[i].tree, n->path);

		if (o && o->type == NODE_FILE && o->content &&
		    !o->content->unknown &&
		    (!b.n_others ||
		     !content_same(others[b.n_others - 1], o->content)))
			others[b.n_others++] = o->content;
	}
	b.others = others;
	fate = blocks_judge(&b, &what);
	add(x, n->path, fate, damage_words(x, n, was, reference, what));
}

/* A file that is there, with bytes of its own. */
static void compare_file(struct fates *x, const struct node *n,
			 const struct node *was, u32 reference)
{
	if (n->type != was->type)
		add(x, n->path, FATE_GARBAGE,
		    xasprintf("is %s, and was %s", type_words(n->type),
			      type_words(was->type)));
	else if (n->type != NODE_FILE || !n->content || !was->content)
		add(x, n->path, FATE_GARBAGE,
		    xasprintf("is %s with another content",
			      type_words(n->type)));
	else
		is_damaged(x, n, was, reference);
}

static void is_there(struct fates *x, const struct node *n,
		     const struct node *was)
{
	u32 reference = x->state;
	const struct node *ref = was;

	if (n->error) {
		add(x, n->path, FATE_UNREADABLE,
		    xasprintf("cannot be read: %s",
			      strerror(abs(n->error))));
		return;
	}
	if (was && node_same(n, was)) {
		add(x, n->path, FATE_SAME, xstrdup("as expected"));
		return;
	}
	/* no bytes at all is a loss, whatever state had none either */
	if (!(was && n->type == NODE_FILE && !bytes_of(n)) &&
	    is_of_other_state(x, n, was))
		return;
	if (!ref && find_state(x, n->path, NULL, &reference))
		ref = tree_find(&x->e->states[reference].tree, n->path);
	if (ref)
		compare_file(x, n, ref, reference);
	else
		add(x, n->path, FATE_EXTRA,
		    xasprintf("is %s that is in no expected state",
			      type_words(n->type)));
}

/* ---- all of them --------------------------------------------------------- */

static void drop_same(struct fates *x)
{
	u32 n = 0, same = 0;

	for (u32 i = 0; i < x->n; i++)
		same += x->f[i].fate == FATE_SAME;
	if (same == x->n)
		return;
	for (u32 i = 0; i < x->n; i++) {
		if (x->f[i].fate != FATE_SAME) {
			x->f[n++] = x->f[i];
			continue;
		}
		free(x->f[i].path);
		free(x->f[i].words);
	}
	x->n = n;
}

void file_fates(const struct expected *e, u32 state, const struct tree *crash,
		struct file_finding **ret, u32 *ret_n)
{
	struct fates x = { .e = e, .state = state, .crash = crash };
	u32 i = 0, j = 0;

	while (state < e->n) {
		const struct tree *t = &e->states[state].tree;
		const struct node *was = i < t->n ? &t->nodes[i] : NULL;
		const struct node *n = j < crash->n ? &crash->nodes[j] : NULL;
		int c;

		if (!was && !n)
			break;
		c = !was ? 1 : !n ? -1 : strcmp(was->path, n->path);
		if (c < 0)
			is_missing(&x, was);
		else
			is_there(&x, n, c ? NULL : was);
		i += c <= 0;
		j += c >= 0;
	}
	drop_same(&x);
	*ret = x.f;
	*ret_n = x.n;
}
