// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Base images in a recording: the used blocks of a device or image, and the
 * end that says how large it is. What lies in no extent is zeroes.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording_layout.h"

#define BLOCK_BYTES 4096U
#define PIECE_BYTES (256U << 10)	/* longest extent in one record */

static bool base_ok(const struct rec_base *b)
{
	return b->bytes && b->offset_bytes <= (u64)INT64_MAX - b->bytes;
}

int rec_put_base(struct rec_writer *w, u32 dev, u64 offset, const void *data,
		 u32 bytes)
{
	struct record hdr = { .type = REC_BASE, .dev = dev };
	struct rec_base base = { offset, data, bytes };
	struct buf *b;

	if (!base_ok(&base))
		return -EINVAL;
	b = record_begin(w, &hdr, 12 + (u64)bytes);
	if (b) {
		buf_put_u64(b, offset);
		buf_put_u32(b, bytes);
		buf_put(b, data, bytes);
	}
	return record_end(w);
}

int rec_get_base(const struct record *r, struct rec_base *ret)
{
	struct cursor c = record_body(r, REC_BASE);
	struct rec_base base = { .offset_bytes = cur_u64(&c) };

	base.bytes = cur_u32(&c);
	base.data = cur_bytes(&c, base.bytes);
	if (c.bad || !base_ok(&base))
		return -EBADMSG;
	*ret = base;
	return 0;
}

int rec_put_base_end(struct rec_writer *w, u32 dev, u64 device_bytes)
{
	struct record hdr = { .type = REC_BASE_END, .dev = dev };
	struct buf *b;

	if (device_bytes > INT64_MAX)
		return -EINVAL;
	b = record_begin(w, &hdr, 8);
	if (b)
		buf_put_u64(b, device_bytes);
	return record_end(w);
}

int rec_get_base_end(const struct record *r, u64 *ret_device_bytes)
{
	struct cursor c = record_body(r, REC_BASE_END);
	u64 bytes = cur_u64(&c);

	if (c.bad || bytes > INT64_MAX)
		return -EBADMSG;
	*ret_device_bytes = bytes;
	return 0;
}

static bool is_zero(const u8 *data, size_t len)
{
	return !data[0] && !memcmp(data, data + 1, len - 1);
}

/* Records a piece read at offset, without its zero blocks. */
static int put_used(struct rec_writer *w, u32 dev, u64 offset, const u8 *data,
		    u32 bytes)
{
	u32 from = 0;
	int err;

	while (from < bytes) {
		u32 to, len = MIN(BLOCK_BYTES, bytes - from);

		if (is_zero(data + from, len)) {
			from += len;
			continue;
		}
		for (to = from + len; to < bytes; to += len) {
			len = MIN(BLOCK_BYTES, bytes - to);
			if (is_zero(data + to, len))
				break;
		}
		err = rec_put_base(w, dev, offset + from, data + from,
				   to - from);
		if (err < 0)
			return err;
		from = to;
	}
	return 0;
}

/*
 * Where data begins at or after offset, in whole blocks; end when there is
 * none. sparse: the file can tell.
 */
static u64 next_data(int fd, bool sparse, u64 offset, u64 end)
{
	off_t at;

	if (!sparse)
		return offset;
	at = lseek(fd, offset, SEEK_DATA);
	if (at < 0)
		return errno == ENXIO ? end : offset;
	at -= at % BLOCK_BYTES;
	return MIN(MAX((u64)at, offset), end);
}

int rec_put_base_image(struct rec_writer *w, u32 dev, int fd, u64 device_bytes,
		       struct errmsg *em)
{
	_cleanup_free_ void *data = NULL;
	struct stat st;
	u64 end = device_bytes, offset = 0;
	bool sparse;
	int err = 0;

	if (fstat(fd, &st) < 0)
		return errmsg_set(em, errno, "reading the base image");
	sparse = S_ISREG(st.st_mode);
	if (sparse)
		end = MIN(end, (u64)st.st_size);
	/* aligned, so that fd may be open with O_DIRECT */
	if (posix_memalign(&data, BLOCK_BYTES, PIECE_BYTES))
		return errmsg_set(em, ENOMEM, "reading the base image");
	while (err == 0) {
		u32 len;

		offset = next_data(fd, sparse, offset, end);
		if (offset >= end)
			break;
		len = MIN(end - offset, PIECE_BYTES);
		err = pread_full(fd, data, len, offset);
		if (err < 0)
			return errmsg_set(em, err,
					  "reading the base image at byte %llu",
					  (unsigned long long)offset);
		err = put_used(w, dev, offset, data, len);
		offset += len;
	}
	if (err == 0)
		err = rec_put_base_end(w, dev, device_bytes);
	return err < 0 ? errmsg_set(em, err, "writing the base image") : 0;
}
