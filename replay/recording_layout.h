/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files recording*.c share, and the fuzzer: sizes of the layout that
 * recording.c describes, and the way from raw records to a frame and back.
 */
#ifndef BLKBOX_RECORDING_LAYOUT_H
#define BLKBOX_RECORDING_LAYOUT_H

#include "recording.h"

#define REC_VERSION 1U
#define PREAMBLE_BYTES 32U
#define FRAME_HEADER_BYTES 40U
#define RECORD_HEADER_BYTES 28U
#define FRAME_RAW_TARGET (1U << 20)
#define FRAME_RAW_MAX (256U << 20)
#define RECORD_BODY_MAX (FRAME_RAW_MAX - RECORD_HEADER_BYTES)
#define STR_NONE UINT32_MAX	/* length of a string that is not there */

/* ---- recording.c --------------------------------------------------------- */

struct frame_header {
	u64 number;
	u32 raw_bytes;
	u32 zstd_bytes;
	u64 body_hash;
};

void preamble_encode(struct buf *out, u64 id);
/* -EBADMSG: not a recording; -EPROTONOSUPPORT: of another version;
 * -EUCLEAN: its checksum is wrong. */
int preamble_decode(const u8 p[PREAMBLE_BYTES], u64 *ret_id);

void frame_header_encode(u8 p[FRAME_HEADER_BYTES], u64 id,
			 const struct frame_header *h);
/* Appends a whole frame of raw records. zstd is a ZSTD_CCtx. */
int frame_encode(struct buf *out, void *zstd, int level, u64 id, u64 number,
		 const void *raw, size_t raw_bytes);
/* 0, or -EUCLEAN with *ret_why saying what is wrong. Sizes are bounded. */
int frame_header_decode(const u8 p[FRAME_HEADER_BYTES], u64 id, u64 number,
			struct frame_header *ret, const char **ret_why);
/* raw has room for h->raw_bytes. zstd is a ZSTD_DCtx. */
int frame_body_check(const struct frame_header *h, u64 id, const void *body,
		     const char **ret_why);
int frame_body_decode(const struct frame_header *h, void *zstd,
		      const void *body, void *raw, const char **ret_why);

void record_header_encode(struct buf *out, const struct record *r);
/* Reads header and body. c->bad when they do not fit. */
void record_decode(struct cursor *c, struct record *ret);

/* Does a record of this type take part in the order of numbers? */
bool rec_is_event(u16 type);

/* ---- frame_stored.c ------------------------------------------------------ */

/* Appends all of a frame of raw records but the records. */
void stored_encode(struct buf *out, u64 id, u64 number, const void *raw,
		   size_t raw_bytes);
/* Writes the frame that is in out alone, and its records. */
int stored_write(int fd, const struct buf *out, const void *raw,
		 size_t raw_bytes);

/* ---- recording_codec.c --------------------------------------------------- */

/* bad when r is not of this type. */
struct cursor record_body(const struct record *r, u16 type);

/* ---- recording_write.c --------------------------------------------------- */

/*
 * A record is built in place: record_begin() gives the buffer to append the
 * body to, record_end() finishes it. Nothing may come between. NULL when the
 * writer has failed or the body is too large; then record_end() returns why.
 */
struct buf *record_begin(struct rec_writer *w, const struct record *hdr,
			 u64 body_bytes_about);
int record_end(struct rec_writer *w);
/* Do the parts, if there are any, add up to data_bytes? */
bool record_parts_ok(const struct rec_bytes *parts, u32 n, u32 data_bytes);
/* Appends the first bytes of data, or of its parts if there are any. */
void record_put_data(struct buf *b, const void *data, u32 bytes,
		     const struct rec_bytes *parts, u32 n_parts);
/* A GAP is on its way; for the totals. */
void writer_count_gap(struct rec_writer *w, const struct rec_gap *g);

#endif
