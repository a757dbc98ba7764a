// SPDX-License-Identifier: GPL-2.0-or-later
/* The crash model: what is durable at which event, and where crash points
 * stand. The examples of the design's crash-model section are tests here and
 * in test_enumerate.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../replay/intake.h"
#include "trace_build.h"

static struct trace *load(const char *script, const struct trace_opts *opts,
			  bool write_cache)
{
	struct trace_build b;

	tb_script(&b, script);
	b.write_cache = write_cache;
	return tb_trace(&b, opts);
}

static struct trace *device(const char *script)
{
	return load(script, &(struct trace_opts){ .model = MODEL_DEVICE },
		    true);
}

static struct trace *epoch(const char *script)
{
	return load(script, &(struct trace_opts){ .model = MODEL_EPOCH }, true);
}

/* The unit whose issue is event seq. */
static const struct unit *unit_at(const struct trace *t, u64 seq)
{
	for (u32 i = 0; i < t->n_units; i++)
		if (t->units[i].issue_seq == seq)
			return &t->units[i];
	return NULL;
}

#define assert_durable(t, issue, at)                                           \
	do {                                                                   \
		const struct unit *unit_ = unit_at(t, issue);                  \
		assert_non_null(unit_);                                        \
		assert_int_equal(unit_->durable_seq, at);                      \
	} while (0)

/* ---- the design's examples --------------------------------------------- */

#define EXAMPLE "W1 W2 W3 C3 C2 Fi C1 Fc"

static void design_flush_makes_durable_what_completed_before_it(void **state)
{
	struct trace *t = device(EXAMPLE);

	(void)state;
	assert_durable(t, 2, 8);
	assert_durable(t, 3, 8);
	/* it completed, but after the flush was issued */
	assert_int_equal(unit_at(t, 1)->complete_seq, 7);
	assert_durable(t, 1, SEQ_NEVER);
	trace_free(t);
}

static void design_epoch_takes_every_write_before_the_flush(void **state)
{
	struct trace *t = epoch(EXAMPLE);

	(void)state;
	assert_durable(t, 1, 8);
	assert_durable(t, 2, 8);
	assert_durable(t, 3, 8);
	trace_free(t);
}

static void design_prefix_drops_nothing(void **state)
{
	const struct trace_opts o = { .model = MODEL_PREFIX };
	struct trace *t = load(EXAMPLE " W4 X4", &o, true);

	(void)state;
	assert_int_equal(t->n_units, 4);
	for (u32 i = 0; i < t->n_units; i++)
		assert_int_equal(t->units[i].durable_seq,
				 t->units[i].issue_seq);
	trace_free(t);
}

static void design_fua_is_durable_when_it_completes(void **state)
{
	struct trace *t = device("WF1 W2 C2 C1");

	(void)state;
	assert_durable(t, 1, 4);
	assert_durable(t, 2, SEQ_NEVER);
	trace_free(t);
}

static void design_without_cache_durable_once_completed(void **state)
{
	const struct trace_opts o = { .model = MODEL_DEVICE };
	struct trace *t = load("W1 W2 C2 C1 W3", &o, false);

	(void)state;
	assert_durable(t, 1, 4);
	assert_durable(t, 2, 3);
	assert_durable(t, 5, SEQ_NEVER);
	trace_free(t);
}

static void design_pending_includes_writes_that_completed(void **state)
{
	struct trace *t = device("W1 C1 W2 C2");

	(void)state;
	assert_int_equal(unit_at(t, 1)->complete_seq, 2);
	assert_durable(t, 1, SEQ_NEVER);
	assert_durable(t, 3, SEQ_NEVER);
	trace_free(t);
}

static void design_discard_and_write_zeroes_are_writes_of_zeroes(void **state)
{
	struct trace *t = device("D1@0+4 Z2@4+4 E3@8+4 C1 C2 C3 Fi Fc");
	u8 data[SECTOR_SIZE * 4], zeroes[sizeof(data)] = { 0 };

	(void)state;
	assert_int_equal(t->n_units, 3);
	for (u32 i = 0; i < 3; i++) {
		const struct unit *u = &t->units[i];

		assert_true(trace_unit_is_zero(t, u));
		memset(data, 1, sizeof(data));
		trace_unit_read(t, u, u->sector, data, 4);
		assert_memory_equal(data, zeroes, sizeof(data));
		assert_int_equal(u->durable_seq, 8);
	}
	trace_free(t);
}

static void design_discard_keep_and_random(void **state)
{
	struct trace_opts o = { .discard = DISCARD_KEEP };
	struct trace *t = load("D1@0+4 Z2@4+4 E3@8+4", &o, true);
	u8 a[SECTOR_SIZE], b[SECTOR_SIZE], c[SECTOR_SIZE];

	(void)state;
	assert_int_equal(t->n_units, 1);
	assert_int_equal(t->units[0].op, BLK_WRITE_ZEROES);
	assert_int_equal(t->n_writes, 3);
	trace_free(t);

	o.discard = DISCARD_RANDOM;
	t = load("D1@0+4 Z2@4+4 E3@0+4", &o, true);
	assert_int_equal(t->n_units, 3);
	assert_false(trace_unit_is_zero(t, &t->units[0]));
	assert_true(trace_unit_is_zero(t, &t->units[1]));
	trace_unit_read(t, &t->units[0], 2, a, 1);
	trace_unit_read(t, &t->units[2], 2, b, 1);
	trace_unit_read(t, &t->units[0], 3, c, 1);
	assert_memory_equal(a, b, sizeof(a));
	assert_memory_not_equal(a, c, sizeof(a));
	trace_free(t);
}

static void design_torn_cuts_writes_into_sectors(void **state)
{
	struct trace_opts o = { .torn_bytes = 512 };
	struct trace *t = load("W1@3+3 C1 Fi Fc", &o, true);

	(void)state;
	assert_int_equal(t->n_units, 3);
	for (u32 i = 0; i < 3; i++) {
		assert_int_equal(t->units[i].sector, 3 + i);
		assert_int_equal(t->units[i].sectors, 1);
		assert_int_equal(t->units[i].durable_seq, 4);
		assert_int_equal(t->units[i].write, 0);
		assert_ptr_equal(t->units[i].data,
				 (const u8 *)t->writes[0].issue.data +
				 i * SECTOR_SIZE);
	}
	trace_free(t);
	/* larger parts are cut where the disk's own boundaries are */
	o.torn_bytes = 1024;
	t = load("W1@3+4", &o, true);
	assert_int_equal(t->n_units, 3);
	assert_int_equal(t->units[0].sectors, 1);
	assert_int_equal(t->units[1].sectors, 2);
	assert_int_equal(t->units[2].sectors, 1);
	trace_free(t);
}

/* ---- flushes ----------------------------------------------------------- */

static void flush_that_failed_makes_nothing_durable(void **state)
{
	struct trace *t = device("W1 C1 Fi Fx W2");

	(void)state;
	assert_durable(t, 1, SEQ_NEVER);
	trace_free(t);
	t = epoch("W1 C1 Fi Fx W2");
	assert_durable(t, 1, SEQ_NEVER);
	trace_free(t);
}

static void flush_after_a_failed_one_takes_all(void **state)
{
	struct trace *t = device("W1 C1 Fi Fx F1i F1c");

	(void)state;
	assert_durable(t, 1, 6);
	trace_free(t);
}

static void flush_that_was_requeued_did_not_happen(void **state)
{
	/* reissued after C2: the second sending counts */
	struct trace *t = device("W1 W2 C1 Fi Fr C2 Fi Fc");

	(void)state;
	assert_durable(t, 1, 8);
	assert_durable(t, 2, 8);
	trace_free(t);
}

static void flush_never_seen_to_complete_does_nothing(void **state)
{
	struct trace *t = device("W1 C1 Fi W2");

	(void)state;
	assert_durable(t, 1, SEQ_NEVER);
	trace_free(t);
}

static void the_earliest_of_two_flushes_counts(void **state)
{
	struct trace *t = device("W1 C1 F1i W2 C2 F2i F2c F1c");

	(void)state;
	assert_durable(t, 1, 7);
	assert_durable(t, 4, 7);
	trace_free(t);
	t = device("W1 C1 F1i W2 C2 F2i F1c F2c");
	assert_durable(t, 1, 7);
	assert_durable(t, 4, 8);
	trace_free(t);
}

static void preflush_acts_as_a_flush_before_its_write(void **state)
{
	struct trace *t = device("W1 W2 C1 WP3 C2 C3");

	(void)state;
	assert_durable(t, 1, 6);
	assert_durable(t, 2, SEQ_NEVER);
	assert_durable(t, 4, SEQ_NEVER);
	trace_free(t);
	t = device("W1 C1 WFP3 C3");
	assert_durable(t, 1, 4);
	assert_durable(t, 3, 4);
	trace_free(t);
	t = epoch("W1 W2 C1 WP3 C2 C3");
	assert_durable(t, 2, 6);
	assert_durable(t, 4, SEQ_NEVER);
	trace_free(t);
}

static void preflush_write_that_failed_flushed_nothing(void **state)
{
	struct trace *t = device("W1 C1 WFP3 X3");

	(void)state;
	assert_durable(t, 1, SEQ_NEVER);
	assert_durable(t, 3, SEQ_NEVER);
	trace_free(t);
}

static void empty_preflush_write_is_a_flush_and_no_unit(void **state)
{
	struct trace *t = device("W1 C1 WP2+0 C2");

	(void)state;
	assert_int_equal(t->n_units, 1);
	assert_durable(t, 1, 4);
	trace_free(t);
}

static void dropped_flushes_make_nothing_durable(void **state)
{
	const char *script = "W1 C1 Fi Fc WFP2 C2";
	struct trace_opts o = { .drop_flushes = true };
	struct trace *t;

	(void)state;
	for (int cache = 0; cache < 2; cache++) {
		for (int m = MODEL_DEVICE; m <= MODEL_EPOCH; m++) {
			o.model = m;
			t = load(script, &o, cache);
			assert_durable(t, 1, SEQ_NEVER);
			assert_durable(t, 5, SEQ_NEVER);
			trace_free(t);
		}
	}
}

/* ---- writes ------------------------------------------------------------ */

static void write_that_failed_is_never_durable(void **state)
{
	const struct trace_opts o = { .model = MODEL_DEVICE };
	struct trace *t = device("W1 X1 WF2 X2 Fi Fc");

	(void)state;
	assert_durable(t, 1, SEQ_NEVER);
	assert_durable(t, 3, SEQ_NEVER);
	trace_free(t);
	t = load("W1 X1", &o, false);
	assert_durable(t, 1, SEQ_NEVER);
	trace_free(t);
	/* also when an epoch had taken it before it failed */
	t = epoch("W1 Fi Fc X1");
	assert_durable(t, 1, SEQ_NEVER);
	trace_free(t);
}

static void requeued_issue_is_gone_and_the_next_counts(void **state)
{
	struct trace *t = device("W1 R1 W2 C2 W1 C1 Fi Fc");

	(void)state;
	assert_int_equal(t->n_units, 2);
	assert_null(unit_at(t, 1));
	assert_durable(t, 3, 8);
	assert_durable(t, 5, 8);
	trace_free(t);
}

static void part_that_completed_before_a_requeue_stays(void **state)
{
	struct trace *t = device("W1@4+3 H1 R1 W2@5+2 C2 Fi Fc");

	(void)state;
	assert_int_equal(t->n_units, 2);
	assert_int_equal(t->units[0].sector, 4);
	assert_int_equal(t->units[0].sectors, 1);
	assert_durable(t, 1, 7);
	assert_durable(t, 4, 7);
	trace_free(t);
}

static void write_completed_in_parts_completes_with_the_last(void **state)
{
	struct trace *t = device("W1+2 H1 Fi Fc H1 F1i F1c");

	(void)state;
	assert_int_equal(unit_at(t, 1)->complete_seq, 5);
	assert_durable(t, 1, 7);
	trace_free(t);
}

static void completions_of_unknown_issues_are_counted(void **state)
{
	struct trace *t = device("C5 X6 R7 W1 C1 C1 Fi Fc");

	(void)state;
	assert_int_equal(t->n_stray, 4);
	assert_int_equal(t->n_units, 1);
	assert_durable(t, 4, 8);
	trace_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			design_flush_makes_durable_what_completed_before_it),
		cmocka_unit_test(
			design_epoch_takes_every_write_before_the_flush),
		cmocka_unit_test(design_prefix_drops_nothing),
		cmocka_unit_test(design_fua_is_durable_when_it_completes),
		cmocka_unit_test(design_without_cache_durable_once_completed),
		cmocka_unit_test(design_pending_includes_writes_that_completed),
		cmocka_unit_test(
			design_discard_and_write_zeroes_are_writes_of_zeroes),
		cmocka_unit_test(design_discard_keep_and_random),
		cmocka_unit_test(design_torn_cuts_writes_into_sectors),
		cmocka_unit_test(flush_that_failed_makes_nothing_durable),
		cmocka_unit_test(flush_after_a_failed_one_takes_all),
		cmocka_unit_test(flush_that_was_requeued_did_not_happen),
		cmocka_unit_test(flush_never_seen_to_complete_does_nothing),
		cmocka_unit_test(the_earliest_of_two_flushes_counts),
		cmocka_unit_test(preflush_acts_as_a_flush_before_its_write),
		cmocka_unit_test(preflush_write_that_failed_flushed_nothing),
		cmocka_unit_test(empty_preflush_write_is_a_flush_and_no_unit),
		cmocka_unit_test(dropped_flushes_make_nothing_durable),
		cmocka_unit_test(write_that_failed_is_never_durable),
		cmocka_unit_test(requeued_issue_is_gone_and_the_next_counts),
		cmocka_unit_test(part_that_completed_before_a_requeue_stays),
		cmocka_unit_test(
			write_completed_in_parts_completes_with_the_last),
		cmocka_unit_test(completions_of_unknown_issues_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
