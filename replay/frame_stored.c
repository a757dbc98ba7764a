// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A frame whose zstd frame compresses nothing (RFC 8878: a header, and blocks
 * of type Raw), made without touching the records: they are hashed and written
 * where they are.
 *
 * Invariants:
 *  1. out holds the frame's header, the zstd frame's, and 3 bytes for each
 *     block, in the order in which they go to the file, each block's followed
 *     there by its bytes of raw.
 *  2. Blocks have 128 KiB, the most RFC 8878 allows, but for the last.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <assert.h>
#include <string.h>
#include <sys/uio.h>

#include "recording_layout.h"

#define BLOCK_BYTES (128U << 10)
#define BLOCK_HEADER_BYTES 3U
#define ZSTD_HEADER_BYTES 9U
#define ZSTD_MAGIC 0xfd2fb528U
/* Frame_Header_Descriptor: a content size of 4 bytes, and a single segment, so
 * that there is no window descriptor. */
#define ZSTD_DESCRIPTOR (2U << 6 | 1U << 5)
#define BLOCK_LAST 1U
#define IOVECS 64

static size_t n_blocks(size_t raw_bytes)
{
	return (raw_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
}

void stored_encode(struct buf *out, u64 id, u64 number, const void *raw,
		   size_t raw_bytes)
{
	struct frame_header h = { .number = number, .raw_bytes = raw_bytes };
	static const u8 room[FRAME_HEADER_BYTES];
	size_t start = out->len, at = 0;
	XXH3_state_t state;

	assert(raw_bytes >= RECORD_HEADER_BYTES && raw_bytes <= FRAME_RAW_MAX);
	XXH3_INITSTATE(&state);
	XXH3_64bits_reset_withSeed(&state, id);
	buf_put(out, room, sizeof(room));
	buf_put_u32(out, ZSTD_MAGIC);
	buf_put_u8(out, ZSTD_DESCRIPTOR);
	buf_put_u32(out, raw_bytes);
	XXH3_64bits_update(&state, out->data + start + FRAME_HEADER_BYTES,
			   ZSTD_HEADER_BYTES);
	while (at < raw_bytes) {
		u32 len = MIN(BLOCK_BYTES, raw_bytes - at);
		u32 head = len << 3 | (at + len == raw_bytes ? BLOCK_LAST : 0);

		buf_put_u16(out, head);
		buf_put_u8(out, head >> 16);
		XXH3_64bits_update(&state,
				   out->data + out->len - BLOCK_HEADER_BYTES,
				   BLOCK_HEADER_BYTES);
		XXH3_64bits_update(&state, (const u8 *)raw + at, len);
		at += len;
	}
	h.zstd_bytes = ZSTD_HEADER_BYTES +
		       n_blocks(raw_bytes) * BLOCK_HEADER_BYTES + raw_bytes;
	h.body_hash = XXH3_64bits_digest(&state);
	frame_header_encode(out->data + start, id, &h);
}

static int write_iovecs(int fd, struct iovec *v, int n)
{
	while (n) {
		ssize_t done = writev(fd, v, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		for (; n && (size_t)done >= v->iov_len; v++, n--)
			done -= v->iov_len;
		if (n) {
			v->iov_base = (u8 *)v->iov_base + done;
			v->iov_len -= done;
		}
	}
	return 0;
}

int stored_write(int fd, const struct buf *out, const void *raw,
		 size_t raw_bytes)
{
	u8 *head = out->data, *data = (u8 *)raw;
	size_t head_bytes = out->len - n_blocks(raw_bytes) * BLOCK_HEADER_BYTES;
	size_t at = 0;

	/* The headers of the frame go with the first block's. */
	head_bytes += BLOCK_HEADER_BYTES;
	while (at < raw_bytes) {
		struct iovec v[IOVECS];
		int n = 0, err;

		for (; n < IOVECS && at < raw_bytes; n += 2) {
			size_t len = MIN(BLOCK_BYTES, raw_bytes - at);

			v[n] = (struct iovec){ head, head_bytes };
			v[n + 1] = (struct iovec){ data + at, len };
			head += head_bytes;
			head_bytes = BLOCK_HEADER_BYTES;
			at += len;
		}
		err = write_iovecs(fd, v, n);
		if (err < 0)
			return err;
	}
	return 0;
}
