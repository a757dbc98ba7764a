// SPDX-License-Identifier: GPL-2.0-or-later
/* Sites in words, and the replay verb. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../replay/site_spec.h"
#include "../../replay/verbs.h"
#include "recording_kit.h"

/* ---- sites in words ---------------------------------------------------- */

static void sites_are_found_by_their_words(void **state)
{
	struct trace_opts o = { .torn_bytes = 512 };
	struct trace_build b;
	struct disk_state st;
	struct trace *t;

	(void)state;
	/* 1 W1, 2 W2, 3 C1, 4 Fi, 5 Fc, 6 W3, 7 mark, 8 R3, 9 W3 */
	tb_script(&b, "W1 W2@2+3 C1 Fi Fc W3 mark R3 W3");
	t = tb_trace(&b, &kit_plain);
	assert_int_equal(site_state(t, 7, "2", &st, NULL), 0);
	assert_int_equal(st.n_units, 2);
	assert_int_equal(st.n_drop, 1);
	assert_int_equal(st.drop[0], 1);
	free((void *)st.drop);
	assert_int_equal(site_state(t, 9, "9,2,2", &st, NULL), 0);
	assert_int_equal(st.n_drop, 2);
	assert_int_equal(st.drop[0], 1);
	assert_int_equal(st.drop[1], 2);
	free((void *)st.drop);
	assert_int_equal(site_state(t, 0, NULL, &st, NULL), 0);
	assert_int_equal(st.n_units + st.n_drop, 0);
	trace_free(t);
	t = tb_trace(&b, &o);
	assert_int_equal(site_state(t, 5, "2:3,2+4", &st, NULL), 0);
	assert_int_equal(st.n_units, 4);
	assert_int_equal(st.n_drop, 2);
	assert_int_equal(st.drop[0], 2);
	assert_int_equal(st.drop[1], 3);
	free((void *)st.drop);
	trace_free(t);
}

static void sites_that_cannot_be_are_refused(void **state)
{
	static const struct {
		u64 seq;
		const char *drops, *words;
	} cases[] = {
		{ 7, "1", "event 5 made it durable" },
		{ 7, "9", "not issued yet" },
		{ 7, "6", "requeued" },
		{ 7, "4", "not a write" },
		{ 7, "77", "not a write" },
		{ 7, "2:9", "no part" },
		{ 7, "", "no list" },
		{ 7, "2,", "no list" },
		{ 7, "2;3", "no list" },
		{ 7, "-2", "no list" },
		{ 7, "99999999999999999999", "no list" },
		{ 10, "2", "no event 10" },
	};
	struct trace_opts keep = { .discard = DISCARD_KEEP };
	struct errmsg em;
	struct trace_build b;
	struct disk_state st;
	struct trace *t;

	(void)state;
	tb_script(&b, "W1 W2@2+3 C1 Fi Fc W3 mark R3 W3");
	t = tb_trace(&b, &kit_plain);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(site_state(t, cases[i].seq, cases[i].drops,
					    &st, &em), -EINVAL);
		if (!strstr(em.text, cases[i].words))
			fail_msg("'%s' does not say '%s'", em.text,
				 cases[i].words);
	}
	trace_free(t);
	tb_script(&b, "D1");
	t = tb_trace(&b, &keep);
	assert_int_equal(site_state(t, 1, "1", &st, &em), -EINVAL);
	assert_non_null(strstr(em.text, "--discard keep"));
	trace_free(t);
}

static void marks_are_found(void **state)
{
	struct trace_build b;
	struct errmsg em;
	struct trace *t;
	u64 seq;

	(void)state;
	tb_script(&b, "W1 begin mark W2 mark");
	t = tb_trace(&b, &kit_plain);
	assert_int_equal(site_mark(t, MARK_BEGIN, &seq, &em), 0);
	assert_int_equal(seq, 2);
	assert_int_equal(site_mark(t, "nothing", &seq, &em), -ENOENT);
	assert_int_equal(site_mark(t, "mark", &seq, &em), -EINVAL);
	assert_non_null(strstr(em.text, "3, 5"));
	trace_free(t);
}

/* ---- the verb ---------------------------------------------------------- */

#define REPLAY(...) replay_args((char *[]){ "replay", __VA_ARGS__, NULL })

static int replay_args(char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	return verb_replay(argc, argv);
}

static void assert_image(const struct kit *d, u64 sector, u8 byte)
{
	_cleanup_close_ int fd = open(d->image, O_RDONLY);
	struct stat st;
	u8 have;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, KIT_SECTORS * SECTOR_SIZE);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(pread_full(fd, &have, 1, sector * SECTOR_SIZE), 0);
	assert_int_equal(have, byte);
}

/* 1 mark, 2 W, 3 W, 4 C2, 5 Fi, 6 Fc */
static void record_two_writes(struct kit *d)
{
	kit_begin(d, KIT_HEAD("\"embedded\""));
	kit_put_base(d, 8, 5);
	kit_put_base_end(d);
	kit_put_mark(d, MARK_BEGIN);
	kit_put_write(d, 1, 1, 7);
	kit_put_write(d, 9, 1, 8);
	kit_put_complete(d, 2);
	kit_put_flush(d);
	kit_finish(d);
}

static void replay_writes_an_image(void **state)
{
	struct kit *d = *state;

	record_two_writes(d);
	assert_int_equal(REPLAY(d->file, "--end", "-o", d->image), 0);
	assert_image(d, 1, 7);
	assert_image(d, 9, 8);
	/* it is not overwritten unless asked to */
	assert_int_equal(REPLAY(d->file, "--at", "2", "-o", d->image), 2);
	assert_image(d, 9, 8);
	assert_int_equal(REPLAY(d->file, "--at", "2", "-o", d->image,
				"--force"), 0);
	assert_image(d, 1, 7);
	assert_image(d, 9, 5);
	assert_int_equal(REPLAY(d->file, "--at-mark", MARK_BEGIN, "-o",
				d->image, "--force"), 0);
	assert_image(d, 1, 0);
	assert_int_equal(REPLAY(d->file, "--end", "--drop", "3", "-o",
				d->image, "--force"), 0);
	assert_image(d, 9, 5);
	/* what is durable is not lost, and the old image stays */
	assert_int_equal(REPLAY(d->file, "--end", "--drop", "2", "-o",
				d->image, "--force"), 2);
	assert_image(d, 9, 5);
	assert_int_equal(REPLAY(d->file, "--end", "--drop", "2",
				"--ignore-flushes", "-o", d->image,
				"--force"), 0);
	assert_image(d, 1, 0);
}

static void replay_spares_what_it_reads(void **state)
{
	struct kit *d = *state;

	record_two_writes(d);
	assert_int_equal(REPLAY(d->file, "--end", "-o", d->file, "--force"),
			 2);
	assert_int_equal(REPLAY(d->file, "--end", "-o", "/dev/null",
				"--force"), 2);
	assert_int_equal(REPLAY(d->file, "--end", "-o", d->image), 0);
	kit_make_base(d, KIT_SECTORS);
	kit_begin_with_base(d, d->base, KIT_SECTORS);
	assert_int_equal(REPLAY(d->file, "--end", "-o", d->base, "--force"),
			 2);
	assert_int_equal(REPLAY(d->file, "--end", "-o", d->image, "--force"),
			 0);
	assert_image(d, 5, 3);
}

static void replay_past_a_loss_is_incomplete(void **state)
{
	const struct rec_gap g = { .reason = GAP_RING_FULL, .events = 1,
				   .last_seq = 3 };
	struct kit *d = *state;

	kit_begin(d, KIT_HEAD("\"embedded\""));
	kit_put_base_end(d);
	kit_put_mark(d, MARK_BEGIN);
	kit_put_write(d, 1, 1, 7);
	assert_int_equal(rec_put_gap(d->w, 3, 0, TB_DEV, &g), 0);
	d->seq = 3;
	kit_put_write(d, 2, 1, 7);
	kit_put_issue(d, TB_DEV, BLK_WRITE, 4, 1, 0, BLK_PAYLOAD_MISSING);
	kit_finish(d);
	assert_int_equal(REPLAY(d->file, "--at", "2", "-o", d->image), 0);
	assert_int_equal(REPLAY(d->file, "--at", "4", "-o", d->image,
				"--force"), 3);
	assert_image(d, 2, 7);
	/* no base */
	kit_begin(d, KIT_HEAD("\"none\""));
	kit_put_write(d, 1, 1, 7);
	kit_finish(d);
	assert_int_equal(REPLAY(d->file, "--end", "-o", d->image, "--force"),
			 3);
	/* cut off */
	kit_begin(d, KIT_HEAD("\"embedded\""));
	kit_put_base_end(d);
	kit_put_write(d, 1, 1, 7);
	rec_flush(d->w);
	rec_abandon(d->w);
	d->w = NULL;
	assert_int_equal(REPLAY(d->file, "--end", "-o", d->image, "--force"),
			 3);
	/* payload */
	kit_begin(d, KIT_HEAD("\"embedded\""));
	kit_put_base_end(d);
	kit_put_write(d, 1, 1, 7);
	kit_put_issue(d, TB_DEV, BLK_WRITE, 4, 1, 0, BLK_PAYLOAD_MISSING);
	kit_finish(d);
	assert_int_equal(REPLAY(d->file, "--at", "1", "-o", d->image,
				"--force"), 0);
	assert_int_equal(REPLAY(d->file, "--at", "2", "-o", d->image,
				"--force"), 3);
}

static void replay_of_a_live_base_is_exact_from_its_end(void **state)
{
	struct kit *d = *state;

	kit_begin(d, KIT_HEAD("\"embedded\""));
	kit_put_write(d, 1, 1, 7);
	kit_put_base(d, 8, 5);
	kit_put_write(d, 2, 1, 7);
	kit_put_base_end(d);
	kit_put_write(d, 3, 1, 7);
	kit_finish(d);
	assert_int_equal(REPLAY(d->file, "--at", "1", "-o", d->image), 3);
	assert_int_equal(REPLAY(d->file, "--at", "2", "-o", d->image,
				"--force"), 0);
}

static bool can_mount(void)
{
	if (geteuid() == 0 && access("/dev/loop-control", R_OK | W_OK) == 0 &&
	    unshare(CLONE_NEWNS) == 0 &&
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
		return true;
	print_message("skipped: mounting needs root and loop devices\n");
	return false;
}

/* A recording of a file system nothing happened to. */
static void record_ext4(struct kit *d)
{
	const u64 bytes = 4 << 20;
	_cleanup_free_ char *mkfs = NULL, *head = NULL;
	_cleanup_close_ int fd = -1;

	fd = open(d->base, O_CREAT | O_RDWR, 0600);
	assert_int_equal(ftruncate(fd, bytes), 0);
	mkfs = xasprintf("mke2fs -q -F -t ext4 %s >/dev/null 2>&1", d->base);
	assert_int_equal(system(mkfs), 0);
	head = xasprintf("{\"devices\":[{\"dev\":%u,\"sectors\":%llu,"
			 "\"write_cache\":true}],\"base\":\"embedded\","
			 "\"file_systems\":[{\"dev\":%u,\"block_dev\":%u,"
			 "\"type\":\"ext4\",\"mount_options\":"
			 "\"journal_path=/nonexistent\"}]}", TB_DEV,
			 (unsigned long long)bytes / SECTOR_SIZE, TB_DEV,
			 TB_DEV);
	kit_begin(d, head);
	assert_int_equal(rec_put_base_image(d->w, TB_DEV, fd, bytes, NULL), 0);
	kit_put_mark(d, MARK_BEGIN);
	kit_finish(d);
}

static void replay_mounts_and_stays_mounted(void **state)
{
	struct kit *d = *state;
	_cleanup_free_ char *dir = xasprintf("%s/mnt", d->path);
	_cleanup_free_ char *lost = xasprintf("%s/lost+found", dir);
	struct statvfs vfs;
	int status, found;

	if (!can_mount())
		skip();
	record_ext4(d);
	assert_int_equal(mkdir(dir, 0700), 0);
	/* the recording's own mount options are not used */
	status = REPLAY(d->file, "--end", "--mount", dir);
	found = access(lost, F_OK);
	assert_int_equal(statvfs(dir, &vfs), 0);
	if (status == 0)
		assert_int_equal(umount(dir), 0);
	rmdir(dir);
	assert_int_equal(status, 0);
	assert_int_equal(found, 0);
	assert_int_equal(vfs.f_flag & (ST_NOSUID | ST_NODEV),
			 ST_NOSUID | ST_NODEV);
	assert_int_equal(REPLAY(d->file, "--end", "--mount", dir), 2);
}

static void wrong_usage_is_refused(void **state)
{
	struct kit *d = *state;

	record_two_writes(d);
	assert_int_equal(REPLAY("--help"), 0);
	assert_int_equal(REPLAY(d->file), 2);
	assert_int_equal(REPLAY(d->file, "--end"), 2);
	assert_int_equal(REPLAY(d->file, "--end", "--at", "1", "-o",
				d->image), 2);
	assert_int_equal(REPLAY(d->file, "--at", "1x", "-o", d->image), 2);
	assert_int_equal(REPLAY(d->file, "--end", "--torn", "700", "-o",
				d->image), 2);
	assert_int_equal(REPLAY(d->file, "--end", "--crash-model", "x", "-o",
				d->image), 2);
	assert_int_equal(REPLAY(d->file, "--end", "--dev", "7", "-o",
				d->image), 2);
	assert_int_equal(REPLAY("/nonexistent/r", "--end", "-o", d->image),
			 2);
	assert_int_equal(access(d->image, F_OK), -1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
	const struct CMUnitTest tests[] = {
		TEST(sites_are_found_by_their_words),
		TEST(sites_that_cannot_be_are_refused),
		TEST(marks_are_found),
		TEST(replay_writes_an_image),
		TEST(replay_spares_what_it_reads),
		TEST(replay_past_a_loss_is_incomplete),
		TEST(replay_of_a_live_base_is_exact_from_its_end),
		TEST(replay_mounts_and_stays_mounted),
		TEST(wrong_usage_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
