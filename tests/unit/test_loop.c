// SPDX-License-Identifier: GPL-2.0-or-later
/* Loop devices over memory, and the watch on what is written to them. */
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../replay/loop.h"

#define DISK_BYTES (16U << 20)
#define DISK_SECTORS (DISK_BYTES / SECTOR_SIZE)
#define WAIT_NS 10000000000ULL

struct disk {
	int memfd;
	struct loop loop;
	struct write_watch *watch;
	u8 touched[DISK_SECTORS];
	u64 n_touched;
};

static bool can_loop(void)
{
	if (geteuid() == 0 && access("/dev/loop-control", R_OK | W_OK) == 0)
		return true;
	print_message("skipped: loop devices need root and the loop module\n");
	return false;
}

static void disk_open(struct disk *d, bool read_only)
{
	struct errmsg em = { "" };

	memset(d, 0, sizeof(*d));
	d->memfd = memfd_new("test disk", DISK_BYTES, &em);
	assert_true(d->memfd >= 0);
	if (loop_attach(d->memfd, read_only, &d->loop, &em) < 0)
		fail_msg("%s", em.text);
}

static void disk_close(struct disk *d)
{
	write_watch_free(d->watch);
	loop_detach(&d->loop);
	close(d->memfd);
	free(d);
}

/* A disk with a watch, or NULL where there is no tracefs. */
static struct disk *watched_disk(void)
{
	struct disk *d = xzalloc(sizeof(*d));
	struct errmsg em = { "" };

	disk_open(d, false);
	if (write_watch_new(d->loop.dev, &d->watch, &em) == 0)
		return d;
	print_message("skipped: %s\n", em.text);
	disk_close(d);
	return NULL;
}

static void note(void *ctx, u64 sector, u64 sectors)
{
	struct disk *d = ctx;

	assert_true(sector <= DISK_SECTORS && sectors <= DISK_SECTORS - sector);
	memset(d->touched + sector, 1, sectors);
	d->n_touched += sectors;
}

static void drain(struct disk *d)
{
	memset(d->touched, 0, sizeof(d->touched));
	d->n_touched = 0;
	assert_int_equal(write_watch_drain(d->watch, note, d), 0);
}

/* Exactly these sectors were seen. */
static void assert_touched(const struct disk *d, u64 sector, u64 sectors)
{
	for (u64 s = 0; s < DISK_SECTORS; s++)
		if (d->touched[s] != (s >= sector && s - sector < sectors))
			fail_msg("sector %llu: seen %d", (unsigned long long)s,
				 d->touched[s]);
}

static void write_at(struct disk *d, u64 sector, u32 sectors, u8 fill)
{
	_cleanup_free_ u8 *data = xmalloc((size_t)sectors * SECTOR_SIZE);

	memset(data, fill, (size_t)sectors * SECTOR_SIZE);
	assert_int_equal(pwrite_full(d->loop.fd, data,
				     (size_t)sectors * SECTOR_SIZE,
				     sector * SECTOR_SIZE), 0);
	assert_int_equal(fsync(d->loop.fd), 0);
}

static bool is_bound(const char *path)
{
	char sys[96];

	snprintf(sys, sizeof(sys), "/sys/block/%s/loop/backing_file", path + 5);
	return access(sys, F_OK) == 0;
}

/* The backing files' names tell ours from what others may bind meanwhile. */
static bool is_bound_to(const char *path, const char *name)
{
	char sys[96], text[256] = "";
	int fd;

	snprintf(sys, sizeof(sys), "/sys/block/%s/loop/backing_file", path + 5);
	fd = open(sys, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return strstr(text, name);
}

static void wait_unbound(const char *path, const char *name)
{
	u64 end = now_ns() + WAIT_NS;

	while (is_bound_to(path, name)) {
		assert_true(now_ns() < end);
		poll(NULL, 0, 1);
	}
}

static void test_memfd_has_its_size(void **state)
{
	struct stat st;
	int fd = memfd_new("sized", 12345, NULL);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 12345);
	assert_int_equal(st.st_blocks, 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
	assert_true(memfd_new("too large", UINT64_MAX, NULL) < 0);
}

static void test_device_shows_its_file(void **state)
{
	struct disk *d = xzalloc(sizeof(*d));
	u8 sector[SECTOR_SIZE];
	struct stat st;
	u64 bytes;

	(void)state;
	if (!can_loop())
		skip();
	disk_open(d, false);
	assert_int_equal(stat(d->loop.path, &st), 0);
	assert_int_equal(d->loop.dev, (u32)major(st.st_rdev) << 20 |
				      minor(st.st_rdev));
	assert_int_equal(ioctl(d->loop.fd, BLKGETSIZE64, &bytes), 0);
	assert_int_equal(bytes, DISK_BYTES);
	write_at(d, 77, 1, 0xa5);
	assert_int_equal(pread_full(d->memfd, sector, sizeof(sector),
				    77 * SECTOR_SIZE), 0);
	assert_int_equal(sector[0], 0xa5);
	assert_int_equal(sector[511], 0xa5);
	disk_close(d);
}

static void test_read_only_device_takes_no_writes(void **state)
{
	struct disk *d = xzalloc(sizeof(*d));
	int fd, r;

	(void)state;
	if (!can_loop())
		skip();
	disk_open(d, true);
	fd = open(d->loop.path, O_RDWR | O_CLOEXEC);
	r = fd < 0 ? -errno : pwrite_full(fd, "x", 1, 0);
	if (fd >= 0)
		close(fd);
	assert_true(r == -EACCES || r == -EPERM || r == -EROFS);
	disk_close(d);
}

static void test_invalidate_shows_changes_behind_the_device(void **state)
{
	struct disk *d = xzalloc(sizeof(*d));
	u8 data[4096];

	(void)state;
	if (!can_loop())
		skip();
	disk_open(d, false);
	write_at(d, 0, 8, 1);
	assert_int_equal(pread_full(d->loop.fd, data, sizeof(data), 0), 0);
	assert_int_equal(data[0], 1);
	memset(data, 2, sizeof(data));
	assert_int_equal(pwrite_full(d->memfd, data, sizeof(data), 0), 0);
	assert_int_equal(pread_full(d->loop.fd, data, sizeof(data), 0), 0);
	assert_int_equal(data[0], 1);	/* the page cache still says so */
	assert_int_equal(loop_invalidate(&d->loop), 0);
	assert_int_equal(pread_full(d->loop.fd, data, sizeof(data), 0), 0);
	assert_int_equal(data[0], 2);
	disk_close(d);
}

static void test_detach_frees_the_device(void **state)
{
	struct disk *d = xzalloc(sizeof(*d));
	char path[32];

	(void)state;
	if (!can_loop())
		skip();
	disk_open(d, false);
	memcpy(path, d->loop.path, sizeof(path));
	assert_true(is_bound(path));
	disk_close(d);
	wait_unbound(path, "test disk");
}

/* Takes a device, says which, and waits to be killed. */
static void hold_device(int go_fd, int say_fd, const char *name)
{
	struct loop l;
	char c;
	int fd = memfd_new(name, DISK_BYTES, NULL);

	if (fd < 0 || read(go_fd, &c, 1) < 0)
		_exit(1);
	if (loop_attach(fd, false, &l, NULL) < 0)
		_exit(1);
	if (write_full(say_fd, l.path, sizeof(l.path)) < 0)
		_exit(1);
	pause();
	_exit(0);
}

/* Sixteen processes that start at the same moment each get a device of their
 * own, and none stays bound when they are killed. */
static void test_racing_processes_get_devices_of_their_own(void **state)
{
	enum { RIVALS = 16 };
	char path[RIVALS][32], name[64];
	int go[2], say[2], status;
	pid_t pid[RIVALS];
	bool all = true;

	(void)state;
	if (!can_loop())
		skip();
	snprintf(name, sizeof(name), "rival of %d", getpid());
	assert_int_equal(pipe2(go, O_CLOEXEC) | pipe2(say, O_CLOEXEC), 0);
	for (int i = 0; i < RIVALS; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (pid[i] == 0) {
			close(go[1]);
			close(say[0]);
			hold_device(go[0], say[1], name);
		}
	}
	close(go[1]);
	close(say[1]);
	for (int i = 0; i < RIVALS; i++)
		all = all && !read_full(say[0], path[i], sizeof(path[i]));
	for (int i = 0; all && i < RIVALS; i++)
		for (int j = 0; j < i; j++)
			all = all && strcmp(path[i], path[j]);
	for (int i = 0; i < RIVALS; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], &status, 0);
	}
	close(go[0]);
	close(say[0]);
	assert_true(all);
	for (int i = 0; i < RIVALS; i++)
		wait_unbound(path[i], name);
}

static void test_watch_sees_writes_and_nothing_else(void **state)
{
	struct disk *d = can_loop() ? watched_disk() : NULL;
	u8 data[64 * 1024];

	(void)state;
	if (!d) {
		skip();
		return;
	}
	drain(d);
	assert_int_equal(d->n_touched, 0);
	write_at(d, 4096, 128, 3);
	drain(d);
	assert_touched(d, 4096, 128);
	drain(d);
	assert_int_equal(d->n_touched, 0);
	assert_int_equal(loop_invalidate(&d->loop), 0);
	assert_int_equal(pread_full(d->loop.fd, data, sizeof(data), 0), 0);
	assert_int_equal(fsync(d->loop.fd), 0);
	drain(d);
	assert_int_equal(d->n_touched, 0);
	disk_close(d);
}

static void test_watch_sees_discard_and_zeroing(void **state)
{
	struct disk *d = can_loop() ? watched_disk() : NULL;
	u64 range[2] = { 1024 * SECTOR_SIZE, 256 * SECTOR_SIZE };

	(void)state;
	if (!d) {
		skip();
		return;
	}
	drain(d);
	assert_int_equal(ioctl(d->loop.fd, BLKDISCARD, range), 0);
	drain(d);
	assert_touched(d, 1024, 256);
	range[0] = 8192 * SECTOR_SIZE;
	assert_int_equal(ioctl(d->loop.fd, BLKZEROOUT, range), 0);
	drain(d);
	assert_touched(d, 8192, 256);
	disk_close(d);
}

static void test_watch_ignores_other_devices(void **state)
{
	struct disk *d = can_loop() ? watched_disk() : NULL;
	struct disk *other;

	(void)state;
	if (!d) {
		skip();
		return;
	}
	other = xzalloc(sizeof(*other));
	disk_open(other, false);
	drain(d);
	write_at(other, 0, 64, 1);
	drain(d);
	assert_int_equal(d->n_touched, 0);
	disk_close(other);
	disk_close(d);
}

/* Far more events than a ring holds, drained often: the rings wrap. */
static void test_watch_survives_wrapping(void **state)
{
	struct disk *d = can_loop() ? watched_disk() : NULL;

	(void)state;
	if (!d) {
		skip();
		return;
	}
	drain(d);
	for (u32 i = 0; i < 20000; i++) {
		u64 sector = i * 7919ULL % DISK_SECTORS & ~7ULL;

		write_at(d, sector, 8, i);
		if (i % 64 == 63 || i == 0) {
			drain(d);
			assert_true(d->n_touched >= (i ? 8 * 64 - 8 : 8));
			assert_true(d->touched[sector]);
		}
	}
	disk_close(d);
}

static void test_watch_says_when_events_were_lost(void **state)
{
	struct disk *d = can_loop() ? watched_disk() : NULL;

	(void)state;
	if (!d) {
		skip();
		return;
	}
	drain(d);
	for (u32 i = 0; i < 40000; i++)
		write_at(d, i * 8ULL % DISK_SECTORS, 8, i);
	assert_int_equal(write_watch_drain(d->watch, note, d), -EOVERFLOW);
	/* and goes on */
	drain(d);
	write_at(d, 16, 8, 1);
	drain(d);
	assert_touched(d, 16, 8);
	disk_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memfd_has_its_size),
		cmocka_unit_test(test_device_shows_its_file),
		cmocka_unit_test(test_read_only_device_takes_no_writes),
		cmocka_unit_test(test_invalidate_shows_changes_behind_the_device),
		cmocka_unit_test(test_detach_frees_the_device),
		cmocka_unit_test(test_racing_processes_get_devices_of_their_own),
		cmocka_unit_test(test_watch_sees_writes_and_nothing_else),
		cmocka_unit_test(test_watch_sees_discard_and_zeroing),
		cmocka_unit_test(test_watch_ignores_other_devices),
		cmocka_unit_test(test_watch_survives_wrapping),
		cmocka_unit_test(test_watch_says_when_events_were_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
