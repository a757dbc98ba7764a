// SPDX-License-Identifier: GPL-2.0-or-later
/* The editing distance, and the nearest expected state. */
#include "expected_kit.h"

static u64 distance(const char *expected, const char *crash)
{
	u64 e[256] = { 0 }, c[256] = { 0 };

	for (; *expected; expected++)
		e[(u8)*expected]++;
	for (; *crash; crash++)
		c[(u8)*crash]++;
	return editing_distance(e, c);
}

static void counts_what_nothing_could_supply(void **state)
{
	(void)state;
	assert_int_equal(distance("", ""), 0);
	assert_int_equal(distance("abc", "cba"), 0);
	assert_int_equal(distance("abc", ""), 3);
	assert_int_equal(distance("", "abc"), 0);
	assert_int_equal(distance("aab", "abb"), 1);
	assert_int_equal(distance("hello", "hello world"), 0);
	assert_int_equal(distance("\xff\xff", "\x7f\x7f"), 2);
}

static void does_not_wrap_at_large_counts(void **state)
{
	u64 e[256] = { 0 }, c[256] = { 0 };

	(void)state;
	e[0] = UINT64_C(1) << 40;
	c[0] = 1;
	e[255] = 3;
	assert_int_equal(editing_distance(e, c), (UINT64_C(1) << 40) + 2);
	assert_int_equal(editing_distance(c, e), 0);
}

/* Expected states by hand; left_out is the kit's to free. */
struct fixture {
	struct kit k;
	struct expected e;
	struct rec_state states[8];
	struct tree crash;
};

static int setup(void **state)
{
	struct fixture *f = xzalloc(sizeof(*f));

	kit_init(&f->k);
	f->e.states = f->states;
	f->e.store = f->k.t.store;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (u32 i = 0; i < f->e.n; i++)
		tree_free(f->e.store, &f->states[i].tree);
	tree_free(f->e.store, &f->crash);
	free(f->e.left_out);
	kit_done(&f->k);
	free(f);
	return 0;
}

static struct tree *add_state(struct fixture *f)
{
	f->states[f->e.n].after_seq = f->e.n;
	return &f->states[f->e.n++].tree;
}

static u64 nearest(struct fixture *f, u32 *ret)
{
	for (u32 i = 0; i < f->e.n; i++)
		tree_seal(&f->states[i].tree);
	tree_seal(&f->crash);
	return expected_nearest(&f->e, &f->crash, ret);
}

static void finds_the_nearest_state(void **state)
{
	struct fixture *f = *state;
	u32 at = 99;

	kit_node(&f->k, add_state(f), "a", 1, "xxxxxxxx");
	kit_node(&f->k, add_state(f), "a", 1, "xxxy");
	kit_node(&f->k, add_state(f), "a", 1, "xyz");
	kit_node(&f->k, &f->crash, "b", 1, "xxyx");
	assert_int_equal(nearest(f, &at), 0);
	assert_int_equal(at, 1);
}

static void measures_over_all_files(void **state)
{
	struct fixture *f = *state;
	u32 at = 99;

	kit_node(&f->k, add_state(f), "a", 1, "0123456789");
	kit_node(&f->k, &f->crash, "a", 1, "");
	kit_node(&f->k, &f->crash, "b", 2, "01234");
	kit_node(&f->k, &f->crash, "c", 3, "89");
	assert_int_equal(nearest(f, &at), 3);
	assert_int_equal(at, 0);
}

static void a_state_without_data_is_not_expected(void **state)
{
	struct fixture *f = *state;
	u32 at = 99;

	kit_node(&f->k, add_state(f), "a", 1, "data");
	kit_node(&f->k, add_state(f), "a", 1, "");
	add_state(f);
	kit_node(&f->k, &f->crash, "a", 1, "");
	assert_int_equal(nearest(f, &at), 4);
	assert_int_equal(at, 0);
}

/* A program that starts from nothing and makes a: there is nothing at first,
 * and an empty a. Once there was data, having none is no state. */
static void nothing_yet_is_expected_as_it_was(void **state)
{
	struct fixture *f = *state;
	u32 at = 99;

	add_state(f);
	kit_node(&f->k, add_state(f), "a", 1, "");
	kit_node(&f->k, add_state(f), "a", 1, "data");
	add_state(f);
	assert_int_equal(nearest(f, &at), 0);
	assert_int_equal(at, 0);
	kit_node(&f->k, &f->crash, "a", 1, "");
	assert_int_equal(nearest(f, &at), 0);
	assert_int_equal(at, 1);
	kit_node(&f->k, &f->crash, "b", 1, "");
	assert_int_equal(nearest(f, &at), 4);
	assert_int_equal(at, 2);
}

static void a_state_left_out_is_not_expected(void **state)
{
	struct fixture *f = *state;
	u32 at = 99;

	kit_node(&f->k, add_state(f), "a", 1, "data");
	kit_node(&f->k, add_state(f), "a", 1, "d");
	f->e.left_out = xzalloc(2);
	f->e.left_out[1] = STATE_TRANSITIONAL;
	kit_node(&f->k, &f->crash, "a", 1, "d");
	assert_int_equal(nearest(f, &at), 3);
	assert_int_equal(at, 0);
}

static void without_any_expected_state_the_distance_is_zero(void **state)
{
	struct fixture *f = *state;
	u32 at = 99;

	kit_node(&f->k, &f->crash, "a", 1, "d");
	assert_int_equal(nearest(f, &at), 0);
	add_state(f);
	assert_int_equal(nearest(f, &at), 0);
}

static void of_equals_the_one_sharing_most_files(void **state)
{
	struct fixture *f = *state;
	struct tree *t;
	u32 at = 99;

	t = add_state(f);
	kit_node(&f->k, t, "a", 1, "one");
	kit_node(&f->k, t, "b", 2, "two");
	t = add_state(f);
	kit_node(&f->k, t, "a", 1, "one");
	kit_node(&f->k, t, "c", 2, "two");
	t = add_state(f);
	kit_node(&f->k, t, "d", 1, "two");
	kit_node(&f->k, t, "e", 2, "one");
	kit_node(&f->k, &f->crash, "a", 1, "one");
	kit_node(&f->k, &f->crash, "b", 2, "tw");
	kit_node(&f->k, &f->crash, "c", 2, "two");
	assert_int_equal(nearest(f, &at), 0);
	assert_int_equal(at, 1);
}

static void of_equals_sharing_as_much_the_latest(void **state)
{
	struct fixture *f = *state;
	u32 at = 99;

	for (u32 i = 0; i < 3; i++)
		kit_node(&f->k, add_state(f), "a", 1, "same");
	kit_node(&f->k, &f->crash, "a", 1, "sam");
	assert_int_equal(nearest(f, &at), 1);
	assert_int_equal(at, 2);
}

static void the_nearest_state_need_not_be_asked_for(void **state)
{
	struct fixture *f = *state;

	kit_node(&f->k, add_state(f), "a", 1, "abc");
	kit_node(&f->k, add_state(f), "a", 1, "abcdef");
	kit_node(&f->k, &f->crash, "a", 1, "a");
	assert_int_equal(nearest(f, NULL), 2);
	tree_free(f->e.store, &f->crash);
	kit_node(&f->k, &f->crash, "a", 1, "cab");
	assert_int_equal(nearest(f, NULL), 0);
}

/* Against the definition, on random trees. */
static void equals_the_minimum_over_all_states(void **state)
{
	struct fixture *f = *state;
	u32 dice = 1, at;
	u64 best = UINT64_MAX, d;

	for (u32 i = 0; i < 9; i++) {
		struct tree *t = i < 8 ? add_state(f) : &f->crash;
		char text[40];

		for (u32 j = 0; j < 5; j++) {
			u32 len = (dice = dice * 1103515245 + 12345) >> 27;

			for (u32 n = 0; n < len; n++)
				text[n] = 'a' + ((dice = dice * 1103515245 +
							 12345) >> 28);
			text[len] = 0;
			kit_node(&f->k, t, (char[]){ 'a' + j, 0 }, j + 1, text);
		}
	}
	d = nearest(f, &at);
	for (u32 i = 0; i < 8; i++)
		best = MIN(best, editing_distance(f->states[i].tree.counts,
						  f->crash.counts));
	assert_int_equal(d, best);
	assert_int_equal(d, editing_distance(f->states[at].tree.counts,
					     f->crash.counts));
	assert_true(d > 0);
}

#define WITH_FIXTURE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_what_nothing_could_supply),
		cmocka_unit_test(does_not_wrap_at_large_counts),
		WITH_FIXTURE(finds_the_nearest_state),
		WITH_FIXTURE(measures_over_all_files),
		WITH_FIXTURE(a_state_without_data_is_not_expected),
		WITH_FIXTURE(nothing_yet_is_expected_as_it_was),
		WITH_FIXTURE(a_state_left_out_is_not_expected),
		WITH_FIXTURE(without_any_expected_state_the_distance_is_zero),
		WITH_FIXTURE(of_equals_the_one_sharing_most_files),
		WITH_FIXTURE(of_equals_sharing_as_much_the_latest),
		WITH_FIXTURE(the_nearest_state_need_not_be_asked_for),
		WITH_FIXTURE(equals_the_minimum_over_all_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
