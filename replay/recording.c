// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The layout of a recording in bytes. Invariants: recording.h. All integers
 * are little-endian, nothing is padded or aligned.
 *
 *  preamble, 32 bytes
 *     0  8  magic  89 'B' 'B' 'X' 0d 0a 1a 0a
 *     8  4  version, 1
 *    12  4  zero
 *    16  8  id, random: the seed of every checksum after this one, so that a
 *           frame of another recording is never taken for one of this
 *    24  8  XXH3-64 of bytes 0..23, seed 0
 *
 *  frame, 40 bytes and its body
 *     0  4  magic  'B' 'B' 'X' 'F'
 *     4  4  zero
 *     8  8  number: 0, 1, ...
 *    16  4  raw bytes, 28 .. 256 MiB
 *    20  4  body bytes
 *    24  8  XXH3-64 of the body, seed id
 *    32  8  XXH3-64 of bytes 0..31 of this header, seed id
 *    40     body: one zstd frame, which holds its content size
 *
 *  record, in the raw bytes of a frame: 28 bytes and its body
 *     0  4  body bytes
 *     4  2  type
 *     6  2  flags
 *     8  4  device
 *    12  8  sequence number, 0: none
 *    20  8  time, ns
 *    28     body, see recording_codec.c
 *
 * What a reader makes of the end of a file, at a place where a frame should
 * begin:
 *
 *    nothing left                               not closed, or the end
 *    fewer bytes than a header                  cut here
 *    header right, body past the end of file    cut here
 *    zeroes up to the end of file               cut here: what a file system
 *                                               leaves of a file that grew
 *                                               just before the power failed
 *    anything else that is not a right frame    damaged
 *
 * The header has a checksum of its own, so a changed length is damage, not a
 * cut.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <assert.h>
#include <string.h>
#include <zstd.h>

#include "recording_layout.h"

static const u8 preamble_magic[8] = { 0x89, 'B',  'B',	'X',
				      '\r', '\n', 0x1a, '\n' };
static const u8 frame_magic[4] = { 'B', 'B', 'X', 'F' };

void preamble_encode(struct buf *out, u64 id)
{
	size_t start = out->len;

	buf_put(out, preamble_magic, sizeof(preamble_magic));
	buf_put_u32(out, REC_VERSION);
	buf_put_u32(out, 0);
	buf_put_u64(out, id);
	buf_put_u64(out, XXH3_64bits(out->data + start, out->len - start));
	assert(out->len - start == PREAMBLE_BYTES);
}

int preamble_decode(const u8 p[PREAMBLE_BYTES], u64 *ret_id)
{
	struct cursor c = cursor_of(p, PREAMBLE_BYTES);
	const void *magic = cur_bytes(&c, sizeof(preamble_magic));
	u32 version = cur_u32(&c);
	u32 zero = cur_u32(&c);
	u64 id = cur_u64(&c);
	u64 hash = cur_u64(&c);

	if (memcmp(magic, preamble_magic, sizeof(preamble_magic)))
		return -EBADMSG;
	if (XXH3_64bits(p, PREAMBLE_BYTES - 8) != hash)
		return -EUCLEAN;
	if (version != REC_VERSION || zero)
		return -EPROTONOSUPPORT;
	*ret_id = id;
	return 0;
}

static u64 hash_seeded(const void *data, size_t len, u64 id)
{
	return XXH3_64bits_withSeed(data, len, id);
}

static void put_le(u8 *p, u64 v, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		p[i] = v >> (8 * i);
}

void frame_header_encode(u8 p[FRAME_HEADER_BYTES], u64 id,
			 const struct frame_header *h)
{
	memcpy(p, frame_magic, sizeof(frame_magic));
	put_le(p + 4, 0, 4);
	put_le(p + 8, h->number, 8);
	put_le(p + 16, h->raw_bytes, 4);
	put_le(p + 20, h->zstd_bytes, 4);
	put_le(p + 24, h->body_hash, 8);
	put_le(p + 32, hash_seeded(p, FRAME_HEADER_BYTES - 8, id), 8);
}

int frame_encode(struct buf *out, void *zstd, int level, u64 id, u64 number,
		 const void *raw, size_t raw_bytes)
{
	struct frame_header h = { .number = number, .raw_bytes = raw_bytes };
	size_t bound = ZSTD_compressBound(raw_bytes), n;
	size_t start = out->len;
	u8 *body;

	assert(raw_bytes >= RECORD_HEADER_BYTES && raw_bytes <= FRAME_RAW_MAX);
	if (out->cap - start < FRAME_HEADER_BYTES + bound) {
		out->cap = start + FRAME_HEADER_BYTES + bound;
		out->data = xrealloc(out->data, out->cap);
	}
	body = out->data + start + FRAME_HEADER_BYTES;
	n = ZSTD_compressCCtx(zstd, body, bound, raw, raw_bytes, level);
	if (ZSTD_isError(n))
		return -EIO;
	h.zstd_bytes = n;
	h.body_hash = hash_seeded(body, n, id);
	frame_header_encode(out->data + start, id, &h);
	out->len = start + FRAME_HEADER_BYTES + n;
	return 0;
}

static int unclean(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EUCLEAN;
}

int frame_header_decode(const u8 p[FRAME_HEADER_BYTES], u64 id, u64 number,
			struct frame_header *ret, const char **ret_why)
{
	struct cursor c = cursor_of(p, FRAME_HEADER_BYTES);
	const void *magic = cur_bytes(&c, sizeof(frame_magic));
	u32 zero = cur_u32(&c);
	struct frame_header h = {
		.number = cur_u64(&c),
		.raw_bytes = cur_u32(&c),
		.zstd_bytes = cur_u32(&c),
		.body_hash = cur_u64(&c),
	};

	if (memcmp(magic, frame_magic, sizeof(frame_magic)))
		return unclean(ret_why, "no frame begins there");
	if (hash_seeded(p, FRAME_HEADER_BYTES - 8, id) != cur_u64(&c))
		return unclean(ret_why, "the checksum of its header is wrong");
	if (zero)
		return unclean(ret_why, "its header has unknown flags");
	if (h.number != number)
		return unclean(ret_why, "it has the number of another frame");
	if (h.raw_bytes < RECORD_HEADER_BYTES || h.raw_bytes > FRAME_RAW_MAX ||
	    !h.zstd_bytes || h.zstd_bytes > ZSTD_compressBound(h.raw_bytes))
		return unclean(ret_why, "its sizes are out of bounds");
	*ret = h;
	return 0;
}

int frame_body_check(const struct frame_header *h, u64 id, const void *body,
		     const char **ret_why)
{
	if (hash_seeded(body, h->zstd_bytes, id) != h->body_hash)
		return unclean(ret_why, "the checksum of its data is wrong");
	if (ZSTD_findFrameCompressedSize(body, h->zstd_bytes) != h->zstd_bytes ||
	    ZSTD_getFrameContentSize(body, h->zstd_bytes) != h->raw_bytes)
		return unclean(ret_why, "it is not one zstd frame of its size");
	return 0;
}

int frame_body_decode(const struct frame_header *h, void *zstd,
		      const void *body, void *raw, const char **ret_why)
{
	size_t n = ZSTD_decompressDCtx(zstd, raw, h->raw_bytes, body,
				       h->zstd_bytes);

	if (ZSTD_isError(n) || n != h->raw_bytes)
		return unclean(ret_why, "it does not decompress");
	return 0;
}

void record_header_encode(struct buf *out, const struct record *r)
{
	buf_put_u32(out, r->body_bytes);
	buf_put_u16(out, r->type);
	buf_put_u16(out, r->flags);
	buf_put_u32(out, r->dev);
	buf_put_u64(out, r->seq);
	buf_put_u64(out, r->time_ns);
}

void record_decode(struct cursor *c, struct record *ret)
{
	struct record r = { .body_bytes = cur_u32(c) };

	r.type = cur_u16(c);
	r.flags = cur_u16(c);
	r.dev = cur_u32(c);
	r.seq = cur_u64(c);
	r.time_ns = cur_u64(c);
	r.body = cur_bytes(c, r.body_bytes);
	*ret = r;
}

bool rec_is_event(u16 type)
{
	return type == REC_ISSUE || type == REC_COMPLETE ||
	       type == REC_REQUEUE || type == REC_FILE_OP ||
	       type == REC_MARK || type == REC_PROC;
}

/* ---- names --------------------------------------------------------------- */

static const char *name_of(const char *const *names, size_t n, unsigned int i)
{
	return i < n && names[i] ? names[i] : "unknown";
}

const char *rec_type_name(u16 type)
{
	static const char *const names[] = {
		[REC_HEAD] = "head",	     [REC_BASE] = "base",
		[REC_BASE_END] = "base-end", [REC_ISSUE] = "issue",
		[REC_COMPLETE] = "complete", [REC_REQUEUE] = "requeue",
		[REC_FILE_OP] = "file-op",   [REC_MARK] = "mark",
		[REC_PROC] = "proc",	     [REC_GAP] = "gap",
		[REC_CHUNK] = "chunk",	     [REC_STATE] = "state",
		[REC_INDEX] = "index",	     [REC_END] = "end",
	};

	return name_of(names, ARRAY_SIZE(names), type);
}

const char *file_op_name(u8 op)
{
	static const char *const names[OP_MAX] = {
		[OP_OPEN] = "open",
		[OP_WRITE] = "write",
		[OP_TRUNCATE] = "truncate",
		[OP_FALLOCATE] = "fallocate",
		[OP_RENAME] = "rename",
		[OP_LINK] = "link",
		[OP_UNLINK] = "unlink",
		[OP_SYMLINK] = "symlink",
		[OP_MKDIR] = "mkdir",
		[OP_RMDIR] = "rmdir",
		[OP_MKNOD] = "mknod",
		[OP_CLOSE] = "close",
		[OP_FSYNC] = "fsync",
		[OP_FDATASYNC] = "fdatasync",
		[OP_SYNC] = "sync",
		[OP_SYNCFS] = "syncfs",
		[OP_SYNC_FILE_RANGE] = "sync_file_range",
		[OP_MSYNC] = "msync",
		[OP_MMAP_SHARED] = "mmap_shared",
		[OP_COPY] = "copy",
		[OP_IO_URING] = "io_uring",
	};

	return name_of(names, ARRAY_SIZE(names), op);
}

const char *blk_op_name(u8 op)
{
	static const char *const names[] = {
		[BLK_WRITE] = "write",
		[BLK_FLUSH] = "flush",
		[BLK_DISCARD] = "discard",
		[BLK_SECURE_ERASE] = "secure-erase",
		[BLK_WRITE_ZEROES] = "write-zeroes",
		[BLK_OTHER] = "other",
	};

	return name_of(names, ARRAY_SIZE(names), op);
}
