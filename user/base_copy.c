// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Invariants:
 *  1. Read past the page cache: the disk's own cache of blocks does not know
 *     what the file system above wrote to them.
 *  2. A block that changes during the copy is in the stream whole, for a
 *     request is recorded before the disk can have it. What was in flight
 *     before is not; so nothing is read until it is done.
 *  3. BASE_END comes after every event that happened before the copy's end.
 */
#include "base_copy.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_BYTES (1U << 20)
#define BLOCK_BYTES 4096U
#define WAIT_NS 10000000000ULL

/* "reads writes" in flight at this moment. */
static int writes_in_flight(const char *name, u64 *ret)
{
	char path[96];
	_cleanup_fclose_ FILE *f = NULL;
	u64 reads;

	snprintf(path, sizeof(path), "/sys/block/%s/inflight", name);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	return fscanf(f, "%" SCNu64 " %" SCNu64, &reads, ret) == 2 ? 0 : -EIO;
}

static int wait_for_older(struct recorder *r, const struct recorder_dev *dev,
			  struct errmsg *em)
{
	u64 start = now_ns(), writes;
	int err;

	for (;;) {
		err = writes_in_flight(dev->name, &writes);
		if (err < 0)
			return errmsg_set(em, err, "reading /sys/block/%s/"
					  "inflight", dev->name);
		if (!writes)
			return 0;
		if (now_ns() - start > WAIT_NS)
			return errmsg_set(em, EBUSY, "waiting for the requests "
					  "%s had before the recording began "
					  "(it never was idle)", dev->name);
		err = recorder_poll(r, 1);
		if (err < 0)
			return errmsg_set(em, err, "recording");
	}
}

static bool is_zero(const u8 *data)
{
	return !data[0] && !memcmp(data, data + 1, BLOCK_BYTES - 1);
}

/* Blocks that are not all zeroes; what is not there is zeroes. */
static int put_used(struct rec_writer *w, u32 dev, u64 offset, const u8 *data,
		    u32 bytes)
{
	u32 at = 0;

	while (at < bytes) {
		u32 from = at;
		int err;

		while (at + BLOCK_BYTES <= bytes && !is_zero(data + at))
			at += BLOCK_BYTES;
		if (bytes - at < BLOCK_BYTES)
			at = bytes;
		err = at > from ? rec_put_base(w, dev, offset + from,
					       data + from, at - from) : 0;
		if (err < 0)
			return err;
		while (at + BLOCK_BYTES <= bytes && is_zero(data + at))
			at += BLOCK_BYTES;
	}
	return 0;
}

static int copy(struct recorder *r, const struct recorder_dev *dev, int fd,
		u64 bytes, void *chunk, struct errmsg *em)
{
	for (u64 at = 0; at < bytes; at += CHUNK_BYTES) {
		u32 len = MIN((u64)CHUNK_BYTES, bytes - at);
		int err = pread_full(fd, chunk, len, at);

		if (err < 0)
			return errmsg_set(em, err, "reading %s at byte %" PRIu64,
					  dev->name, at);
		err = put_used(recorder_writer(r), dev->dev, at, chunk, len);
		if (!err)
			err = recorder_poll(r, 0);
		if (err < 0)
			return errmsg_set(em, err, "recording the base of %s",
					  dev->name);
	}
	return 0;
}

int base_copy(struct recorder *r, const struct recorder_dev *dev,
	      struct errmsg *em)
{
	_cleanup_free_ char *path = xasprintf("/dev/%s", dev->name);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	_cleanup_free_ void *chunk = NULL;
	u64 bytes;
	int err;

	if (fd < 0 || ioctl(fd, BLKGETSIZE64, &bytes) < 0)
		return errmsg_set(em, errno, "opening %s to copy it", path);
	if (posix_memalign(&chunk, BLOCK_BYTES, CHUNK_BYTES))
		return errmsg_set(em, ENOMEM, "copying %s", path);
	err = wait_for_older(r, dev, em);
	if (!err)
		err = copy(r, dev, fd, bytes, chunk, em);
	if (err < 0)
		return err;
	err = recorder_fence(r);
	if (!err)
		err = rec_put_base_end(recorder_writer(r), dev->dev, bytes);
	return err < 0 ? errmsg_set(em, err, "recording the base of %s",
				    dev->name) : 0;
}
