// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loop devices over memory and files of our own.
 *
 * Invariants:
 *  1. A device is bound with LO_FLAGS_AUTOCLEAR and its descriptor is held:
 *     between two mounts the descriptor keeps it bound, and when the last user
 *     is gone (we, or a mount of ours) the kernel unbinds it.
 *  2. A device that somebody else bound is never touched: LOOP_CONFIGURE binds
 *     only a free one, and fails with EBUSY otherwise.
 */
#include "loop.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Each round that loses a race was won by somebody: this many rivals at once
 * do not happen. */
#define SYS_CACHESTAT 451 /* the same on every architecture */
#define INVALIDATE_TIMEOUT_NS (5 * 1000000000ULL)
#define ATTACH_TRIES 4096

/* What it looks like when somebody else took the device at the same time. */
static bool lost_race(int err)
{
	return err == EBUSY || err == ENXIO || err == ENODEV || err == EINTR;
}

static int configure(int fd, int backing_fd, bool read_only)
{
	struct loop_config config = {
		.fd = backing_fd,
		.block_size = SECTOR_SIZE,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR |
				 (read_only ? LO_FLAGS_READ_ONLY : 0),
	};

	return ioctl(fd, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
}

/* 0 and a bound device, or a negative errno with em set to the step. */
static int attach_one(int control, int backing_fd, bool read_only,
		      struct loop *ret, struct errmsg *em)
{
	struct stat st;
	int number, fd, r;

	number = ioctl(control, LOOP_CTL_GET_FREE);
	if (number < 0)
		return errmsg_set(em, errno, "finding a free loop device");
	snprintf(ret->path, sizeof(ret->path), "/dev/loop%d", number);
	fd = open(ret->path, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	if (fd < 0)
		return errmsg_set(em, errno, "opening %s", ret->path);
	if (fstat(fd, &st) < 0) {
		r = errmsg_set(em, errno, "looking at %s", ret->path);
		close(fd);
		return r;
	}
	r = configure(fd, backing_fd, read_only);
	if (r < 0) {
		close(fd);
		return errmsg_set(em, r, "binding %s", ret->path);
	}
	ret->fd = fd;
	ret->dev = (u32)major(st.st_rdev) << 20 | minor(st.st_rdev);
	return 0;
}

int loop_attach(int backing_fd, bool read_only, struct loop *ret,
		struct errmsg *em)
{
	struct loop l = { .fd = -1 };
	_cleanup_close_ int control = -1;
	int r;

	control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		return errmsg_set(em, errno, "opening /dev/loop-control (the"
				  " loop module and root are needed)");
	for (int i = 0; i < ATTACH_TRIES; i++) {
		r = attach_one(control, backing_fd, read_only, &l, em);
		if (r == 0) {
			*ret = l;
			return 0;
		}
		if (!lost_race(-r))
			return r;
		sched_yield();
	}
	return r;
}

/*
 * Pages of the device that its cache still holds; 0 also where the kernel
 * (before 6.5) cannot tell.
 */
static u64 cached_pages(int fd)
{
	struct {
		u64 off, len;
	} all = { 0, 0 };
	struct {
		u64 cache, dirty, writeback, evicted, recently_evicted;
	} stat = { 0 };

	if (syscall(SYS_CACHESTAT, fd, &all, &stat, 0) < 0)
		return 0;
	return stat.cache;
}

/*
 * BLKFLSBUF passes over a page that somebody holds for a moment (reclaim,
 * compaction, another opener of the device). Such a page would be read as the
 * disk's content later, so it is asked for until none is left.
 */
int loop_invalidate(const struct loop *l)
{
	u64 end = now_ns() + INVALIDATE_TIMEOUT_NS;

	for (;;) {
		if (ioctl(l->fd, BLKFLSBUF, 0) < 0)
			return -errno;
		if (!cached_pages(l->fd))
			return 0;
		if (now_ns() > end)
			return -EBUSY;
		sched_yield();
	}
}

void loop_detach(struct loop *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

int memfd_new(const char *name, u64 bytes, struct errmsg *em)
{
	int fd, err;

	if (bytes > INT64_MAX)
		return errmsg_set(em, EFBIG, "making %s in memory", name);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0)
		return errmsg_set(em, errno, "making %s in memory", name);
	if (ftruncate(fd, bytes) < 0) {
		err = errno;
		close(fd);
		return errmsg_set(em, err, "making %s of %llu bytes in memory",
				  name, (unsigned long long)bytes);
	}
	return fd;
}
