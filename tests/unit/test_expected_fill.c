// SPDX-License-Identifier: GPL-2.0-or-later
/* States that could not be taken while the program ran are rebuilt; and from
 * when on data is expected. */
#include "expected_fixture.h"

/* What was recorded: the start, and the states of the trace that keep() names
 * by number, as the stop source would have seen them. */
static void record_states(struct fixture *f, const u32 *numbers, u32 n)
{
	struct expected *all;

	build(f);
	all = f->e;
	f->k.t.states = xzalloc((n + 1) * sizeof(*f->k.t.states));
	for (u32 i = 0; i <= n; i++) {
		const struct rec_state *from =
			&all->states[i ? numbers[i - 1] : 0];
		struct rec_state *to = &f->k.t.states[f->k.t.n_states++];

		*to = *from;
		to->source = STATE_STOP;
		to->what = xstrdup(from->what);
		to->tree = (struct tree){ 0 };
		for (u32 k = 0; k < from->tree.n; k++) {
			const struct node *node = &from->tree.nodes[k];
			_cleanup_free_ char *text =
				kit_text(&from->tree, node->path);

			kit_node(&f->k, &to->tree, node->path, node->ino,
				 node->content && !node->content->unknown ?
					 text :
					 node->content ? "seen" : NULL);
		}
		tree_seal(&to->tree);
	}
	expected_free(all);
	f->e = NULL;
}

static int teardown_states(void **state)
{
	struct fixture *f = *state;

	expected_free(f->e);
	f->e = NULL;
	for (u32 i = 0; i < f->k.t.n_states; i++)
		rec_state_done(f->k.t.store, &f->k.t.states[i]);
	free(f->k.t.states);
	return teardown(state);
}

static void load(struct fixture *f)
{
	struct errmsg em;

	assert_int_equal(expected_from_recording(&f->k.t, &f->e, &em), 0);
}

static void nothing_is_added_where_nothing_is_missing(void **state)
{
	static const u32 all[] = { 1, 2, 3 };
	struct fixture *f = *state;

	start_file(f, "data", 11, OLD_TEXT);
	kit_save(&f->k, "data.gz", 12, "packed");
	unlink_path(f, "data");
	record_states(f, all, 3);
	load(f);
	assert_int_equal(f->e->n, 4);
	assert_null(f->e->filled);
}

/* A child ends without closing what it wrote, and the parent goes on. */
static void a_close_at_the_end_of_a_process_is_rebuilt(void **state)
{
	static const u32 seen[] = { 1, 3 };
	struct fixture *f = *state;

	start_file(f, "data", 11, OLD_TEXT);
	kit_save(&f->k, "copy", 12, NEW_TEXT);
	f->k.t.ops[f->k.t.n_ops - 1].op.flags |= FOP_AT_EXIT;
	kit_write(&f->k, 11, 0, "scribble");
	unlink_path(f, "copy");
	record_states(f, seen, 2);
	load(f);
	assert_int_equal(f->e->n, 4);
	assert_use(f, "jjjj");
	assert_int_equal(f->e->states[2].after_seq, 30);
	assert_string_equal(f->e->states[2].what, "close copy");
	kit_assert_text(tree_of(f, 2), "copy", NEW_TEXT);
	kit_assert_text(tree_of(f, 2), "data", OLD_TEXT);
	assert_int_equal(tree_find(tree_of(f, 2), "copy")->ino, 12);
	assert_null(tree_find(last(f), "copy"));
}

/* Not what the model makes of it: what was seen right before, or after. */
static void a_recorded_neighbour_is_better_than_the_model(void **state)
{
	static const u32 seen[] = { 1, 3 };
	struct fixture *f = *state;

	start_file(f, "data", 11, OLD_TEXT);
	kit_create(&f->k, "copy", 12);
	kit_write(&f->k, 12, 0, "?")->flags = FOP_DATA_UNREADABLE;
	kit_close(&f->k, "copy", 12);
	kit_on(&f->k, OP_FSYNC, 12);
	kit_on(&f->k, OP_FSYNC, 11);
	record_states(f, seen, 2);
	load(f);
	assert_int_equal(f->e->n, 5);
	assert_use(f, "jjjjj");
	kit_assert_text(tree_of(f, 2), "copy", "seen");
	kit_assert_text(tree_of(f, 4), "copy", "seen");
}

static void what_nobody_knows_is_marked_so(void **state)
{
	static const u32 seen[] = { 1 };
	struct fixture *f = *state;

	start_file(f, "data", 11, OLD_TEXT);
	kit_create(&f->k, "copy", 12);
	kit_write(&f->k, 12, 0, "?")->flags = FOP_DATA_UNREADABLE;
	kit_close(&f->k, "copy", 12);
	unlink_path(f, "data");
	record_states(f, seen, 1);
	load(f);
	assert_int_equal(f->e->n, 4);
	assert_use(f, "jjuu");
	assert_int_equal(f->e->n_unknown, 2);
}

static void past_a_gap_nothing_is_rebuilt(void **state)
{
	static const u32 seen[] = { 1 };
	struct fixture *f = *state;

	start_file(f, "data", 11, OLD_TEXT);
	kit_save(&f->k, "copy", 12, NEW_TEXT);
	unlink_path(f, "data");
	record_states(f, seen, 1);
	f->k.t.lost_events = 1;
	f->k.t.first_gap_seq = 25;
	load(f);
	assert_int_equal(f->e->n, 2);
	assert_int_equal(f->e->n_unknown, 2);
}

/* Before it a program that started from nothing has nothing to lose. */
static void when_data_is_expected_first(void **state)
{
	struct fixture *f = *state;

	kit_create(&f->k, "new", 12);
	kit_write(&f->k, 12, 0, NEW_TEXT);
	kit_on(&f->k, OP_FSYNC, 12);
	kit_close(&f->k, "new", 12);
	build(f);
	assert_int_equal(expected_data_seq(f->e), 30);
}

static void data_at_the_start_is_expected_always(void **state)
{
	struct fixture *f = *state;

	start_file(f, "data", 11, OLD_TEXT);
	unlink_path(f, "data");
	build(f);
	assert_int_equal(expected_data_seq(f->e), 0);
	assert_int_equal(f->e->n, 2);
}

#define S(f) cmocka_unit_test_setup_teardown(f, setup, teardown_states)

int main(void)
{
	const struct CMUnitTest tests[] = {
		S(nothing_is_added_where_nothing_is_missing),
		S(a_close_at_the_end_of_a_process_is_rebuilt),
		S(a_recorded_neighbour_is_better_than_the_model),
		S(what_nobody_knows_is_marked_so),
		S(past_a_gap_nothing_is_rebuilt),
		S(when_data_is_expected_first),
		S(data_at_the_start_is_expected_always),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
