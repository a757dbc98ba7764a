// SPDX-License-Identifier: GPL-2.0-or-later
/* Which of two findings is the worse one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../oracle/findings.h"

static struct finding lost(struct file_finding *file, u64 distance, u32 dropped)
{
	return (struct finding){
		.kind = FIND_DISTANCE, .distance_bytes = distance,
		.n_dropped = dropped, .n_files = 1, .files = file,
	};
}

static void the_larger_loss_comes_first(void **state)
{
	struct file_finding gone = { .fate = FATE_MISSING };
	struct file_finding empty = { .fate = FATE_EMPTY };
	struct finding a = lost(&gone, 11, 0), b = lost(&empty, 10, 0);

	(void)state;
	assert_true(finding_compare(&a, &b) < 0);
	assert_true(finding_compare(&b, &a) > 0);
}

static void of_equal_losses_what_looks_whole_comes_first(void **state)
{
	static const enum file_fate there[] = {
		FATE_EMPTY, FATE_TRUNCATED, FATE_ZERO_FILLED, FATE_MIXED,
		FATE_GARBAGE,
	};
	struct file_finding gone = { .fate = FATE_MISSING };

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(there); i++) {
		struct file_finding f = { .fate = there[i] };
		struct finding a = lost(&f, 10, 2), b = lost(&gone, 10, 0);

		assert_true(finding_compare(&a, &b) < 0);
		assert_true(finding_compare(&b, &a) > 0);
	}
}

static void then_the_one_with_fewer_writes_lost(void **state)
{
	struct file_finding empty = { .fate = FATE_EMPTY };
	struct file_finding cut = { .fate = FATE_TRUNCATED };
	struct finding a = lost(&empty, 10, 0), b = lost(&cut, 10, 1);

	(void)state;
	assert_true(finding_compare(&a, &b) < 0);
	assert_int_equal(finding_compare(&a, &a), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_larger_loss_comes_first),
		cmocka_unit_test(of_equal_losses_what_looks_whole_comes_first),
		cmocka_unit_test(then_the_one_with_fewer_writes_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
