// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Expected states: which operations make one, the two sources they come from,
 * and which of them crash states are not compared with.
 *
 * Invariants:
 *  1. states ascend by after_seq, without two of the same number but for the
 *     start.
 *  2. A state whose content is partly unknown, or without data, never judges.
 *  3. The first and the last state are never transitional.
 */
#include "expected.h"

#include <fcntl.h>
#include <string.h>

#include "fs_model.h"

bool op_makes_state(const struct rec_file_op *op)
{
	if (op->ret < 0)
		return false;
	switch (op->op) {
	case OP_OPEN:
		return op->flags & FOP_CREATED &&
		       (op->open_flags & O_TMPFILE) != O_TMPFILE;
	case OP_CLOSE:
		return op->flags & FOP_LAST_CLOSE && op->flags & FOP_WRITTEN;
	case OP_RENAME:
	case OP_LINK:
	case OP_UNLINK:
	case OP_SYMLINK:
	case OP_MKDIR:
	case OP_RMDIR:
	case OP_MKNOD:
	case OP_FSYNC:
	case OP_FDATASYNC:
	case OP_SYNC:
	case OP_SYNCFS:
	case OP_MSYNC:
		return true;
	}
	return false;
}

bool expected_judges(const struct expected *e, u32 i)
{
	if (e->left_out)
		return e->left_out[i] == STATE_JUDGES;
	return !tree_is_empty(&e->states[i].tree);
}

u64 expected_data_seq(const struct expected *e)
{
	for (u32 i = 0; i < e->n; i++)
		if (!tree_is_empty(&e->states[i].tree))
			return e->states[i].after_seq;
	return SEQ_NEVER;
}

void expected_free(struct expected *e)
{
	if (!e)
		return;
	for (u32 i = 0; i < e->n; i++)
		if (e->owns_states || (e->filled && e->filled[i]))
			rec_state_done(e->store, &e->states[i]);
	free(e->states);
	free(e->filled);
	free(e->left_out);
	free(e);
}

static struct expected *expected_new(struct store *s, enum state_source source)
{
	struct expected *e = xzalloc(sizeof(*e));

	e->store = s;
	e->source = source;
	e->lost_seq = SEQ_NEVER;
	return e;
}

/* Decides which states judge. */
static void seal(struct expected *e)
{
	free(e->left_out);
	e->left_out = xzalloc(e->n);
	for (u32 i = 0; i < e->n; i++) {
		const struct tree *t = &e->states[i].tree;

		if (t->unknown) {
			e->left_out[i] = STATE_UNKNOWN;
			e->n_unknown++;
		} else if (tree_is_empty(t)) {
			e->left_out[i] = STATE_HOLDS_NOTHING;
		}
	}
	expected_drop_transitional(e);
}

/* ---- from the recording -------------------------------------------------- */

int expected_from_recording(const struct trace *t, struct expected **ret,
			    struct errmsg *em)
{
	struct expected *e;

	if (!t->n_states)
		return errmsg_set(em, ENOENT,
				  "the recording holds no expected states");
	for (u32 i = 1; i < t->n_states; i++)
		if (t->states[i].after_seq <= t->states[i - 1].after_seq)
			return errmsg_set(em, EBADMSG,
					  "expected states out of order");
	e = expected_new(t->store, STATE_STOP);
	e->n = t->n_states;
	e->states = xreallocarray(NULL, e->n, sizeof(*e->states));
	memcpy(e->states, t->states, e->n * sizeof(*e->states));
	expected_fill(e, t);
	seal(e);
	*ret = e;
	return 0;
}

/* ---- from the operations ------------------------------------------------- */

char *op_title(const struct rec_file_op *op)
{
	const char *name = file_op_name(op->op);
	const char *path = op->path ?: op->file_path;

	if (op->op == OP_OPEN)
		name = "create";
	switch (op->op) {
	case OP_RENAME:
	case OP_LINK:
		return xasprintf("%s %s to %s", name, path ?: "?",
				 op->path2 ?: "?");
	case OP_SYMLINK:
		return xasprintf("%s %s", name, op->path2 ?: "?");
	}
	return path ? xasprintf("%s %s", name, path) : xstrdup(name);
}

static void add_state(struct expected *e, u32 *cap, struct fs_model *m,
		      u64 seq, char *what)
{
	struct rec_state st = {
		.after_seq = seq, .source = STATE_TRACE, .what = what,
	};

	fs_model_tree(m, &st.tree);
	GROW(e->states, e->n, *cap);
	e->states[e->n++] = st;
}

/* Events were lost at a number up to seq: what came after is not known. */
static bool past_gap(const struct trace *t, u64 seq)
{
	return t->lost_events && seq >= t->first_gap_seq;
}

static void note_lost(struct expected *e, const struct trace *t,
		      const struct fs_model *m, u64 seq)
{
	if (e->lost_why)
		return;
	e->lost_why = m->lost ? m->lost_why : "events were lost";
	e->lost_seq = m->lost ? seq : t->first_gap_seq;
}

static void run_ops(const struct trace *t, struct fs_model *m,
		    struct expected *e)
{
	u32 cap = 0;

	add_state(e, &cap, m, 0, xstrdup("the start"));
	for (u32 i = 0; i < t->n_ops; i++) {
		const struct trace_op *o = &t->ops[i];

		if (!past_gap(t, o->seq))
			fs_model_apply(m, o->seq, o->dev, &o->op);
		if (m->lost || past_gap(t, o->seq)) {
			note_lost(e, t, m, o->seq);
			e->n_unknown += op_makes_state(&o->op);
		} else if (op_makes_state(&o->op)) {
			add_state(e, &cap, m, o->seq, op_title(&o->op));
		}
	}
	for (u32 i = 0; i < e->n; i++)
		fs_model_number(m, &e->states[i].tree);
}

int expected_from_ops(const struct trace *t, const struct tree *start,
		      struct expected **ret, struct errmsg *em)
{
	struct expected *e;
	struct fs_model *m;

	for (u32 i = 1; i < t->n_ops; i++)
		if (t->ops[i].seq <= t->ops[i - 1].seq)
			return errmsg_set(em, EBADMSG,
					  "file operations out of order");
	e = expected_new(t->store, STATE_TRACE);
	e->owns_states = true;
	m = fs_model_new(t->store, start, t->fs_dev, t->mount_point);
	run_ops(t, m, e);
	fs_model_free(m);
	seal(e);
	*ret = e;
	return 0;
}

/* ---- states in the middle of a replacement ------------------------------- */

static bool holds_bytes(const struct node *n)
{
	return n && n->type == NODE_FILE && n->content && n->content->bytes;
}

/* Does tree t lack bytes that state had, path's among them? */
static bool lacks(const struct tree *t, const struct tree *state,
		  const struct node *file)
{
	if (state->unknown || t->unknown ||
	    !editing_distance(state->counts, t->counts))
		return false;
	for (u32 i = 0; i < t->n; i++)
		if (holds_bytes(&t->nodes[i]) &&
		    content_same(t->nodes[i].content, file->content))
			return false;
	return true;
}

/* path held bytes in state first - 1 and does not in first. */
static void drop_window(struct expected *e, u32 first, const struct node *file)
{
	const struct rec_state *st = e->states;
	const struct node *again = NULL;
	u32 end = first;

	if (!holds_bytes(tree_find(&st[e->n - 1].tree, file->path)))
		return;
	while (!holds_bytes(again = tree_find(&st[end].tree, file->path)))
		end++;
	for (u32 i = first; i < end; i++) {
		if (e->left_out[i] != STATE_JUDGES ||
		    !lacks(&st[i].tree, &st[first - 1].tree, file) ||
		    !lacks(&st[i].tree, &st[end].tree, again))
			continue;
		e->left_out[i] = STATE_TRANSITIONAL;
		e->n_transitional++;
	}
}

void expected_drop_transitional(struct expected *e)
{
	for (u32 i = 1; i + 1 < e->n; i++) {
		const struct tree *was = &e->states[i - 1].tree;
		const struct tree *is = &e->states[i].tree;
		u32 k = 0;

		for (u32 j = 0; j < was->n; j++) {
			const struct node *n = &was->nodes[j];
			int c = 1;

			while (k < is->n &&
			       (c = strcmp(is->nodes[k].path, n->path)) < 0)
				k++;
			if (k == is->n)
				c = 1;
			if (holds_bytes(n) &&
			    (c || !holds_bytes(&is->nodes[k])))
				drop_window(e, i, n);
		}
	}
}
