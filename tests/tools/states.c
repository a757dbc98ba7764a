// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * states RECORDING: the expected states, from both sources, one a line:
 *
 *   stop|trace AFTER HASH WHAT
 *
 * Of stops those that were taken; expected_fill() is not asked.
 *
 * states --compare RECORDING: do the sources agree? Exit status 1 and a line
 * that begins with "differs" or "alone" for each state where they do not:
 *
 *   - a state that both have is not the same tree. Where other processes were
 *     at work, the snapshot may be of a later moment than its number says; it
 *     must then be what the operations have made at some moment before the
 *     process that was stopped did the next thing;
 *   - a stop has no twin: nothing makes a state at that number, by the
 *     recorded operations. The state at the end of the program needs none: it
 *     is compared with the operations up to it.
 *
 * A state rebuilt may say of a file that it is unknown; the others count then.
 * That is legitimate only where a file was mapped, or where data is known not
 * to be there; elsewhere it is a difference. Last comes
 *
 *   agree N later N unknown N alone-in-trace N
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../oracle/expected.h"
#include "../../oracle/fs_model.h"
#include "../../oracle/start.h"

struct both {
	struct trace *t;
	struct start start;
	struct expected *trace;
	bool may_be_unknown;
	u32 n_agree, n_later, n_unknown, n_alone, n_bad;
};

static void print_states(const struct rec_state *states, u32 n,
			 const char *source)
{
	for (u32 i = 0; i < n; i++) {
		const struct rec_state *st = &states[i];

		printf("%s %" PRIu64 " %016" PRIx64 "%016" PRIx64 "%s %s\n",
		       source, st->after_seq, st->tree.hash.hi,
		       st->tree.hash.lo, st->tree.unknown ? " unknown" : "",
		       st->what);
	}
}

/* ---- two trees ------------------------------------------------------------ */

static bool nodes_agree(const struct node *stop, const struct node *trace)
{
	if (stop->type != trace->type || stop->error || trace->error)
		return false;
	if (trace->content && trace->content->unknown)
		return true;
	return node_same(stop, trace);
}

/* How many paths differ; with say, which. */
static u32 compare_trees(const struct tree *stop, const struct tree *trace,
			 bool say)
{
	u32 i = 0, k = 0, bad = 0;

	while (i < stop->n || k < trace->n) {
		const struct node *a = i < stop->n ? &stop->nodes[i] : NULL;
		const struct node *b = k < trace->n ? &trace->nodes[k] : NULL;
		int c = !a ? 1 : !b ? -1 : strcmp(a->path, b->path);

		i += c <= 0;
		k += c >= 0;
		if (c == 0 && nodes_agree(a, b))
			continue;
		bad++;
		if (say)
			printf("    %s: %s\n", c > 0 ? b->path : a->path,
			       c < 0 ? "not in the one rebuilt" :
			       c > 0 ? "only in the one rebuilt" :
				       "not the same");
	}
	return bad;
}

/* ---- moments -------------------------------------------------------------- */

static const struct trace_op *op_at(const struct trace *t, u64 seq)
{
	for (u32 i = 0; i < t->n_ops; i++)
		if (t->ops[i].seq == seq)
			return &t->ops[i];
	return NULL;
}

/* Whether stop is what the model holds now, and if so counts it. */
static bool is_now(struct both *b, struct fs_model *m,
		   const struct rec_state *stop, bool later)
{
	struct tree tree = { 0 };
	bool same;

	fs_model_tree(m, &tree);
	same = !m->lost && !compare_trees(&stop->tree, &tree, false) &&
	       (!tree.unknown || b->may_be_unknown);
	if (same && tree.unknown) {
		printf("unknown after %" PRIu64 ", %s\n", stop->after_seq,
		       stop->what);
		b->n_unknown++;
	} else if (same) {
		b->n_agree++;
		b->n_later += later;
	}
	tree_free(b->t->store, &tree);
	return same;
}

/* stop against the operations up to its number, and a while on. */
static bool was_a_moment(struct both *b, const struct rec_state *stop)
{
	const struct trace *t = b->t;
	const struct trace_op *own = op_at(t, stop->after_seq);
	struct fs_model *m = fs_model_new(t->store, &b->start.tree, t->fs_dev,
					  t->mount_point);
	bool found = false;
	u32 i = 0;

	for (; i < t->n_ops && t->ops[i].seq <= stop->after_seq; i++)
		fs_model_apply(m, t->ops[i].seq, t->ops[i].dev, &t->ops[i].op);
	found = is_now(b, m, stop, false);
	for (; !found && own && i < t->n_ops; i++) {
		if (t->ops[i].op.pid == own->op.pid)
			break;
		fs_model_apply(m, t->ops[i].seq, t->ops[i].dev, &t->ops[i].op);
		found = is_now(b, m, stop, true);
	}
	fs_model_free(m);
	return found;
}

static void compare(struct both *b, const struct rec_state *stop,
		    const struct tree *twin)
{
	if (was_a_moment(b, stop))
		return;
	printf("differs after %" PRIu64 ", %s%s\n", stop->after_seq,
	       stop->what, twin && twin->unknown ? " (unknown)" : "");
	if (twin)
		compare_trees(&stop->tree, twin, true);
	b->n_bad++;
}

/* ---- all of them ---------------------------------------------------------- */

static void compare_all(struct both *b)
{
	const struct expected *trace = b->trace;
	u32 k = 0;

	for (u32 i = 0; i < b->t->n_states; i++) {
		const struct rec_state *st = &b->t->states[i];
		const struct tree *twin = NULL;

		for (; k < trace->n &&
		       trace->states[k].after_seq < st->after_seq; k++) {
			printf("only in trace: after %" PRIu64 ", %s\n",
			       trace->states[k].after_seq,
			       trace->states[k].what);
			b->n_alone++;
		}
		if (k < trace->n && trace->states[k].after_seq == st->after_seq)
			twin = &trace->states[k++].tree;
		if (twin || !op_at(b->t, st->after_seq)) {
			compare(b, st, twin);
			continue;
		}
		printf("alone after %" PRIu64 ", %s\n", st->after_seq,
		       st->what);
		b->n_bad++;
	}
	if (trace->lost_why) {
		printf("lost after %" PRIu64 ": %s\n", trace->lost_seq,
		       trace->lost_why);
		b->n_bad++;
	}
}

/* Were there stores that no operation shows, or data that is not recorded? */
static bool has_unknown(const struct trace *t)
{
	for (u32 i = 0; i < t->n_ops; i++)
		if (t->ops[i].op.op == OP_MMAP_SHARED ||
		    t->ops[i].op.flags & FOP_DATA_UNKNOWN)
			return true;
	return false;
}

static int load(struct both *b, const char *path, struct errmsg *em)
{
	const struct trace_opts o = { 0 };
	struct image_index *index;
	int err = trace_load(path, &o, &b->t, em);

	if (err < 0)
		return err;
	if (!b->t->has_base || !b->t->fs_type)
		return errmsg_set(em, 0, "%s has no base to start from", path);
	index = image_index_new(b->t);
	err = start_read(b->t, index, NULL, true, &b->start, em);
	image_index_free(index);
	if (err < 0)
		return err;
	b->may_be_unknown = has_unknown(b->t);
	return expected_from_ops(b->t, &b->start.tree, &b->trace, em);
}

static void both_done(struct both *b)
{
	if (b->trace)
		expected_free(b->trace);
	if (b->t) {
		start_done(b->t, &b->start);
		trace_free(b->t);
	}
}

int main(int argc, char **argv)
{
	bool comparing = argc == 3 && !strcmp(argv[1], "--compare");
	struct errmsg em = { "" };
	struct both b = { 0 };
	int err, status = 0;

	if (argc != 2 + comparing) {
		fprintf(stderr, "Usage: states [--compare] RECORDING\n");
		return EXIT_CANNOT_RUN;
	}
	err = load(&b, argv[argc - 1], &em);
	if (err >= 0 && comparing && !b.t->n_states)
		err = errmsg_set(&em, 0, "%s holds no states", argv[argc - 1]);
	if (err < 0) {
		fprintf(stderr, "states: %s\n", em.text);
		status = EXIT_CANNOT_RUN;
	} else if (comparing) {
		compare_all(&b);
		printf("agree %u later %u unknown %u alone-in-trace %u\n",
		       b.n_agree, b.n_later, b.n_unknown, b.n_alone);
		status = b.n_bad ? EXIT_INCONSISTENT : EXIT_CONSISTENT;
	} else {
		print_states(b.t->states, b.t->n_states, "stop");
		print_states(b.trace->states, b.trace->n, "trace");
	}
	both_done(&b);
	return status;
}
