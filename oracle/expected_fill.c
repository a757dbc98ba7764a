// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * States that the stop source could not take: a process was gone when its
 * files were closed, or another thread was faster to change them than it could
 * be stopped. They are rebuilt from the operations, so that which states are
 * expected does not depend on timing.
 *
 * Invariants:
 *  1. A recorded state is never touched: it was seen, a rebuilt one was not.
 *  2. Where no operation changed anything between a missing state and a
 *     recorded one next to it, the missing one is that. Only else it is the
 *     model's, with what the model does not know marked so.
 */
#include "expected.h"

#include <string.h>

#include "fs_model.h"

struct filler {
	const struct trace *t;
	struct expected *e;
	struct fs_model *m;
	struct rec_state *out;
	bool *filled;		/* of out: not from the recording */
	u32 n, cap, cap_filled;
	u32 next;		/* recorded state to be taken next */
	u32 asked;		/* out from here on waits for a recorded state
				 * to tell what is not known; n: none does */
	bool same;		/* as out[n - 1] still */
};

static struct rec_state *add(struct filler *f, const struct rec_state *st,
			     bool filled)
{
	u32 n = f->n;

	GROW(f->filled, n, f->cap_filled);
	GROW(f->out, f->n, f->cap);
	f->filled[f->n] = filled;
	f->out[f->n] = *st;
	return &f->out[f->n++];
}

static void copy_tree(const struct tree *from, struct tree *to)
{
	for (u32 i = 0; i < from->n; i++) {
		const struct node *n = &from->nodes[i];
		struct node *c = tree_add(to, n->path, n->type);
		char *path = c->path;

		*c = *n;
		c->path = path;
		if (c->content)
			content_ref(c->content);
	}
	tree_seal(to);
}

/* A recorded state: what was asked since the last change is answered. */
static void take_recorded(struct filler *f)
{
	const struct rec_state *st = &f->e->states[f->next++];

	for (; f->asked < f->n; f->asked++) {
		struct rec_state *o = &f->out[f->asked];

		if (!f->filled[f->asked] || !o->tree.unknown)
			continue;
		tree_free(f->e->store, &o->tree);
		copy_tree(&st->tree, &o->tree);
	}
	add(f, st, false);
	f->asked = f->n;
	f->same = true;
}

static bool model_knows(const struct filler *f, u64 seq)
{
	return !f->m->lost &&
	       !(f->t->lost_events && seq >= f->t->first_gap_seq);
}

static void fill(struct filler *f, const struct trace_op *o)
{
	struct rec_state st = {
		.after_seq = o->seq, .source = STATE_TRACE,
	};

	if (!f->same && !model_knows(f, o->seq)) {
		f->e->n_unknown++;
		return;
	}
	if (f->same)
		copy_tree(&f->out[f->n - 1].tree, &st.tree);
	else
		fs_model_tree(f->m, &st.tree);
	st.what = op_title(&o->op);
	add(f, &st, true);
	f->same = true;
}

static void follow(struct filler *f, const struct trace_op *o)
{
	const struct expected *e = f->e;

	while (f->next < e->n && e->states[f->next].after_seq < o->seq)
		take_recorded(f);
	if (model_knows(f, o->seq))
		fs_model_apply(f->m, o->seq, o->dev, &o->op);
	if (!model_knows(f, o->seq) || f->m->n_changes) {
		f->same = false;
		f->asked = f->n;
	}
	if (f->next < e->n && e->states[f->next].after_seq == o->seq)
		take_recorded(f);
	else if (op_makes_state(&o->op))
		fill(f, o);
}

static bool is_complete(const struct expected *e, const struct trace *t)
{
	u32 k = 0;

	for (u32 i = 0; i < t->n_ops; i++) {
		if (t->ops[i].seq <= e->states[0].after_seq ||
		    !op_makes_state(&t->ops[i].op))
			continue;
		while (k < e->n && e->states[k].after_seq < t->ops[i].seq)
			k++;
		if (k == e->n || e->states[k].after_seq != t->ops[i].seq)
			return false;
	}
	return true;
}

void expected_fill(struct expected *e, const struct trace *t)
{
	struct filler f = { .t = t, .e = e };

	if (is_complete(e, t))
		return;
	f.m = fs_model_new(e->store, &e->states[0].tree, t->fs_dev,
			   t->mount_point);
	take_recorded(&f);
	for (u32 i = 0; i < t->n_ops; i++)
		if (t->ops[i].seq > e->states[0].after_seq)
			follow(&f, &t->ops[i]);
	while (f.next < e->n)
		take_recorded(&f);
	for (u32 i = 0; i < f.n; i++)
		if (f.filled[i])
			fs_model_number(f.m, &f.out[i].tree);
	fs_model_free(f.m);
	free(e->states);
	e->states = f.out;
	e->filled = f.filled;
	e->n = f.n;
}
