// SPDX-License-Identifier: GPL-2.0-or-later
/* Recordings into traces: what the head says, what the records say, and what
 * is refused. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording_kit.h"

/* ---- what is loaded ---------------------------------------------------- */

static void all_of_it_is_loaded(void **state)
{
	struct kit *d = *state;
	struct trace *t;
	u64 w;

	kit_begin(d, KIT_HEAD("\"embedded\""));
	kit_put_base(d, 8, 5);
	kit_put_base_end(d);
	kit_put_mark(d, MARK_BEGIN);
	w = kit_put_write(d, 10, 4, 7);
	kit_put_complete(d, w);
	kit_put_issue(d, KIT_OTHER_DEV, BLK_WRITE, 0, 1, 9, 0);
	kit_put_op(d, 41, OP_WRITE, NULL);
	kit_put_op(d, KIT_OTHER_DEV, OP_FSYNC, NULL);
	kit_put_op(d, 0, OP_UNLINK, "name");
	kit_put_op(d, 0, OP_SYNC, NULL);
	kit_put_flush(d);
	kit_put_issue(d, TB_DEV, BLK_OTHER, 0, 0, 0, 0);
	kit_put_mark(d, MARK_END);
	kit_finish(d);
	t = kit_load(d, &kit_plain);
	assert_int_equal(t->dev, TB_DEV);
	assert_int_equal(t->fs_dev, 41);
	assert_string_equal(t->name, "loop3");
	assert_string_equal(t->fs_type, "btrfs");
	assert_string_equal(t->mount_point, "/data");
	assert_int_equal(t->bytes, KIT_SECTORS * SECTOR_SIZE);
	assert_true(t->has_base && t->closed && t->write_cache && !t->fua);
	assert_int_equal(t->base_seq, 0);
	assert_int_equal(t->first_seq, 1);
	assert_int_equal(t->last_seq, d->seq);
	assert_int_equal(t->n_units, 1);
	/* nobody knows what such a request did */
	assert_int_equal(t->n_other, 1);
	assert_int_equal(t->lost_events, 1);
	assert_int_equal(t->first_gap_seq, d->seq - 1);
	assert_int_equal(t->writes[0].issue.n_pages, 1);
	assert_int_equal(t->writes[0].issue.pages[0].ino, 12);
	assert_int_equal(t->n_ops, 3);
	assert_memory_equal(t->ops[0].op.data, "bytes", 5);
	assert_string_equal(t->ops[1].op.path, "name");
	assert_int_equal(t->ops[2].op.op, OP_SYNC);
	assert_int_equal(t->n_marks, 2);
	assert_int_equal(kit_byte_at(t, 0), 0);
	assert_int_equal(kit_byte_at(t, 9), 5);
	assert_int_equal(kit_byte_at(t, 13), 7);
	assert_int_equal(kit_byte_at(t, 14), 5);
	assert_int_equal(t->unreadable_bytes + t->n_gaps + t->n_stray, 0);
	trace_free(t);
}

static void a_cut_recording_is_loaded_and_says_so(void **state)
{
	struct kit *d = *state;
	struct trace *t;

	kit_begin(d, KIT_HEAD("\"embedded\""));
	kit_put_base_end(d);
	kit_put_write(d, 1, 1, 1);
	assert_int_equal(rec_flush(d->w), 0);
	rec_abandon(d->w);
	d->w = NULL;
	t = kit_load(d, &kit_plain);
	assert_false(t->closed);
	assert_int_equal(t->n_units, 1);
	trace_free(t);
}

static void without_base_there_are_no_points(void **state)
{
	struct kit *d = *state;
	struct trace *t;

	kit_begin(d, KIT_HEAD("\"embedded\""));
	kit_put_base(d, 8, 5);	/* and no end */
	kit_put_write(d, 1, 1, 1);
	kit_finish(d);
	t = kit_load(d, &kit_plain);
	assert_false(t->has_base);
	assert_int_equal(t->n_points, 0);
	assert_int_equal(t->base_seq, SEQ_NEVER);
	trace_free(t);
}

static void losses_are_counted(void **state)
{
	const struct rec_gap g = { .reason = GAP_RING_FULL, .events = 3,
				   .bytes = 70, .last_seq = 9 };
	struct kit *d = *state;
	struct trace *t;

	kit_begin(d, KIT_HEAD("\"none\""));
	kit_put_issue(d, TB_DEV, BLK_WRITE, 0, 4, 0, BLK_PAYLOAD_MISSING);
	assert_int_equal(rec_put_gap(d->w, 5, 0, KIT_OTHER_DEV, &g), 0);
	assert_int_equal(rec_put_gap(d->w, 7, 0, TB_DEV, &g), 0);
	d->seq = 9;
	kit_put_complete(d, 4);
	kit_finish(d);
	t = kit_load(d, &kit_plain);
	assert_int_equal(t->unreadable_bytes, 4 * SECTOR_SIZE);
	assert_int_equal(t->n_gaps, 1);
	assert_int_equal(t->lost_events, 3);
	assert_int_equal(t->lost_bytes, 70);
	assert_int_equal(t->first_gap_seq, 7);
	assert_int_equal(t->n_stray, 1);
	trace_free(t);
}

static void expected_states_are_loaded(void **state)
{
	struct kit *d = *state;
	struct store *s = store_new();
	struct rec_state st = { .after_seq = 3, .source = STATE_STOP,
				.what = xstrdup("close data") };
	struct trace *t;
	struct node *n;

	n = tree_add(&st.tree, "data", NODE_FILE);
	n->content = content_from_bytes(s, "hello", 5);
	tree_seal(&st.tree);
	kit_begin(d, KIT_HEAD("\"none\""));
	assert_int_equal(rec_put_state(d->w, &st), 0);
	kit_finish(d);
	rec_state_done(s, &st);
	store_free(s);
	t = kit_load(d, &kit_plain);
	assert_int_equal(t->n_states, 1);
	assert_int_equal(t->states[0].after_seq, 3);
	assert_string_equal(t->states[0].what, "close data");
	assert_int_equal(tree_find(&t->states[0].tree, "data")->content->bytes,
			 5);
	trace_free(t);
}

/* ---- a base beside the recording --------------------------------------- */

static void base_file_is_found_and_verified(void **state)
{
	struct kit *d = *state;
	struct trace_opts o = kit_plain;
	struct trace *t;

	kit_make_base(d, KIT_SECTORS);
	/* relative to the recording */
	kit_begin_with_base(d, "base", KIT_SECTORS);
	t = kit_load(d, &kit_plain);
	assert_true(t->has_base);
	assert_int_equal(t->base_seq, 0);
	assert_int_equal(t->n_points, 1);
	assert_int_equal(kit_byte_at(t, 5), 3);
	assert_int_equal(kit_byte_at(t, 6), 9);
	assert_int_equal(kit_byte_at(t, 7), 0);
	trace_free(t);
	kit_begin_with_base(d, "elsewhere", KIT_SECTORS);
	kit_load_fails(d, &kit_plain, -ENOENT, "--base");
	o.base_file = d->base;
	t = kit_load(d, &o);
	assert_int_equal(kit_byte_at(t, 5), 3);
	trace_free(t);
}

static void base_file_that_changed_is_refused(void **state)
{
	struct kit *d = *state;
	int fd;

	kit_make_base(d, KIT_SECTORS);
	kit_begin_with_base(d, d->base, KIT_SECTORS);
	fd = open(d->base, O_WRONLY);
	assert_int_equal(pwrite_full(fd, "x", 1, 1000), 0);
	close(fd);
	kit_load_fails(d, &kit_plain, -ESTALE, "is not the base image");
	kit_make_base(d, KIT_SECTORS - 1);
	kit_load_fails(d, &kit_plain, -ESTALE, "bytes");
	kit_make_base(d, KIT_SECTORS + 8);
	kit_begin_with_base(d, d->base, KIT_SECTORS + 8);
	kit_load_fails(d, &kit_plain, -EINVAL, "the device");
}

/* ---- what is refused --------------------------------------------------- */

static void heads_that_say_too_little_are_refused(void **state)
{
	static const struct {
		const char *head, *words;
		int err;
	} cases[] = {
		{ "{}", "no block device", -EBADMSG },
		{ "{\"devices\":[]}", "no block device", -EBADMSG },
		{ "{\"devices\":[{\"dev\":9}]}", "how large", -EBADMSG },
		{ "{\"devices\":[{\"dev\":9,\"sectors\":-1}]}", "how large",
		  -EBADMSG },
		{ "{\"devices\":[{\"dev\":9,\"sectors\":1e300}]}", "how large",
		  -EBADMSG },
		{ "{\"devices\":[{\"dev\":9,\"sectors\":8.5}]}", "how large",
		  -EBADMSG },
		{ "{\"devices\":[{\"dev\":-3,\"sectors\":8}]}",
		  "no block device", -EBADMSG },
		{ "{\"devices\":[{\"dev\":9,\"sectors\":8},"
		  "{\"dev\":1048577,\"sectors\":8}]}", "0:9 1:1", -EINVAL },
		{ "{\"devices\":[{\"dev\":9,\"sectors\":8}],\"base\":{}}",
		  "reference", -EBADMSG },
	};
	struct trace_opts o = { .dev = 4 << 20 | 5 };
	struct kit *d = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		kit_begin(d, cases[i].head);
		kit_finish(d);
		kit_load_fails(d, &kit_plain, cases[i].err, cases[i].words);
	}
	kit_begin(d, KIT_HEAD("\"none\""));
	kit_finish(d);
	kit_load_fails(d, &o, -ENODEV, "4:5");
}

static void requests_past_the_device_are_refused(void **state)
{
	struct kit *d = *state;

	kit_begin(d, KIT_HEAD("\"none\""));
	kit_put_write(d, KIT_SECTORS - 1, 2, 1);
	kit_finish(d);
	kit_load_fails(d, &kit_plain, -EBADMSG, "past the device");
	kit_begin(d, KIT_HEAD("\"none\""));
	kit_put_base(d, KIT_SECTORS - 1, 2);
	kit_finish(d);
	kit_load_fails(d, &kit_plain, -EBADMSG, "past the device");
	kit_begin(d, KIT_HEAD("\"none\""));
	assert_int_equal(rec_put_base_end(d->w, TB_DEV, 4096), 0);
	kit_finish(d);
	kit_load_fails(d, &kit_plain, -EBADMSG, "4096");
}

/* As a program that mounts the recorded device itself leaves it. */
static void assert_mount_point(struct kit *d, const struct rec_file_op *ops,
			       u32 n, const char *mount_point)
{
	struct trace *t;

	kit_begin(d, "{\"format\":\"blkbox recording\",\"devices\":["
		     "{\"dev\":7340035,\"name\":\"loop3\",\"sectors\":64}],"
		     "\"file_systems\":[{\"dev\":7340035,"
		     "\"block_dev\":7340035,\"type\":\"ext4\","
		     "\"mount_point\":\"\",\"mount_options\":\"\"}],"
		     "\"base\":\"none\"}");
	for (u32 i = 0; i < n; i++)
		assert_int_equal(rec_put_file_op(d->w, ++d->seq, 0, TB_DEV,
						 &ops[i]), 0);
	kit_finish(d);
	t = kit_load(d, &kit_plain);
	assert_int_equal(t->n_ops, n);
	if (mount_point)
		assert_string_equal(t->mount_point, mount_point);
	else
		assert_null(t->mount_point);
	assert_null(t->mount_options);
	trace_free(t);
}

static void a_mount_point_nobody_named_is_found(void **state)
{
	static const struct rec_file_op ops[] = {
		{ .op = OP_OPEN, .ret = -2, .path = "/wrong/data",
		  .file_path = "data" },
		{ .op = OP_OPEN, .ret = 3, .path = "data",
		  .file_path = "data" },
		{ .op = OP_OPEN, .ret = 3, .path = "/elsewhere/mydata",
		  .file_path = "data" },
		{ .op = OP_OPEN, .ret = 3, .path = "/mnt/y/../x/data",
		  .file_path = "data" },
		{ .op = OP_OPEN, .ret = 3, .path = "/mnt/x/dir/data",
		  .file_path = "dir/data" },
	};

	assert_mount_point(*state, ops, ARRAY_SIZE(ops), "/mnt/x");
}

static void also_by_a_path_from_outside(void **state)
{
	static const struct rec_file_op inside = {
		.op = OP_OPEN, .ret = 3, .path = "x/data", .file_path = "data",
		.dir_path = "dir",
	};
	struct rec_file_op outside = inside;

	outside.dir_path = "/mnt";
	outside.flags = FOP_DIR_ABSOLUTE;
	assert_mount_point(*state, &inside, 1, NULL);
	assert_mount_point(*state, &outside, 1, "/mnt/x");
	outside.dir_path = "/";
	assert_mount_point(*state, &outside, 1, "/x");
	outside.flags |= FOP_DIR_TRUNCATED;
	assert_mount_point(*state, &outside, 1, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_mount_point_nobody_named_is_found),
		TEST(also_by_a_path_from_outside),
		TEST(all_of_it_is_loaded),
		TEST(a_cut_recording_is_loaded_and_says_so),
		TEST(without_base_there_are_no_points),
		TEST(losses_are_counted),
		TEST(expected_states_are_loaded),
		TEST(base_file_is_found_and_verified),
		TEST(base_file_that_changed_is_refused),
		TEST(heads_that_say_too_little_are_refused),
		TEST(requests_past_the_device_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
