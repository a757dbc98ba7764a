// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer target: bytes of a stranger as a recording.
 *
 * The first byte says how the others are taken: even, as a file as it is; odd,
 * as the raw bytes of frames, which are given the checksums they need, so that
 * what lies behind the checksums is reached: u32 length and bytes, each a
 * frame. HEAD is put before them.
 *
 * Whatever comes, reading ends, and what was read is a prefix that says so.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "../../replay/recording_layout.h"
#include "../../replay/tree.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* Reads every byte a decoder points at. */
static u32 touch(const void *data, size_t len)
{
	const u8 *p = data;
	u32 sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += p[i];
	return sum;
}

static u32 touch_str(const char *s)
{
	return s ? touch(s, strlen(s)) : 0;
}

static u32 use_block(const struct record *r)
{
	struct rec_issue i;
	struct rec_complete c;
	struct rec_requeue q;
	u32 sum = 0;

	if (rec_get_issue(r, &i) == 0) {
		if (i.data && i.data_bytes != (u64)i.sectors * SECTOR_SIZE)
			abort();
		sum += touch(i.data, i.data_bytes) + touch_str(i.comm);
		for (u32 n = 0; n < i.n_pages; n++)
			sum += i.pages[n].bytes;
		rec_issue_done(&i);
	}
	if (rec_get_complete(r, &c) == 0)
		sum += c.bytes;
	if (rec_get_requeue(r, &q) == 0)
		sum += q.issue_seq;
	return sum;
}

static u32 use_file_op(const struct record *r)
{
	struct rec_file_op op;
	u32 sum;

	if (rec_get_file_op(r, &op) < 0)
		return 0;
	if (!op.op || op.op >= OP_MAX || (op.data && op.data_bytes > op.ret))
		abort();
	sum = touch_str(op.path) + touch_str(op.path2) +
	      touch_str(op.dir_path) + touch_str(op.dir2_path) +
	      touch_str(op.file_path) + touch_str(op.comm) +
	      touch(op.data, op.data_bytes) + touch(op.stack, op.n_stack * 8);
	rec_file_op_done(&op);
	return sum;
}

static u32 use_small(const struct record *r)
{
	struct rec_base base;
	struct rec_mark m;
	struct rec_proc p;
	struct rec_gap g;
	struct rec_end e;
	u64 bytes;
	u32 sum = 0;

	if (rec_get_base(r, &base) == 0)
		sum += touch(base.data, base.bytes);
	if (rec_get_base_end(r, &bytes) == 0)
		sum += bytes;
	if (rec_get_mark(r, &m) == 0)
		sum += touch_str(m.text);
	if (rec_get_proc(r, &p) == 0)
		sum += touch_str(p.comm);
	if (rec_get_gap(r, &g) == 0 && g.last_seq < r->seq)
		abort();
	if (rec_get_end(r, &e) == 0)
		sum += e.events;
	return sum;
}

static u32 use_state(struct store *s, const struct record *r)
{
	struct rec_state st;
	u32 sum = 0;

	store_load_chunk(s, r);
	if (rec_get_state(s, r, &st) < 0)
		return 0;
	for (u32 i = 0; i < st.tree.n; i++) {
		const struct node *n = &st.tree.nodes[i];
		u8 block[64];

		if (i && strcmp(n[-1].path, n->path) >= 0)
			abort();
		if (tree_find(&st.tree, n->path) != n)
			abort();
		if (n->content)
			sum += content_read(n->content, n->content->bytes / 2,
					    block, sizeof(block));
	}
	rec_state_done(s, &st);
	return sum;
}

static u32 read_all(int fd)
{
	struct rec_reader *r = NULL;
	struct errmsg em = { "" };
	struct store *s;
	struct record rec;
	u64 last = 0;
	u32 sum = 0;
	int err;

	if (rec_open_fd(fd, "fuzz", &r, &em) < 0) {
		if (!em.text[0])
			abort();
		return 0;
	}
	s = store_new();
	sum += touch_str(rec_head(r));
	while ((err = rec_next(r, &rec, &em)) > 0) {
		if (rec_is_event(rec.type) && rec.seq) {
			if (rec.seq <= last)
				abort();
			last = rec.seq;
		}
		sum += touch(rec.body, rec.body_bytes) + use_block(&rec) +
		       use_file_op(&rec) + use_small(&rec) +
		       use_state(s, &rec);
	}
	if (err < 0 && (!em.text[0] || rec_is_closed(r)))
		abort();
	store_free(s);
	rec_reader_free(r);
	return sum;
}

/* Gives raw frames what they need to be read. */
static void dress(struct buf *out, const u8 *data, size_t size)
{
	struct cursor c = cursor_of(data, size);
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	struct record head = { .type = REC_HEAD, .body_bytes = 2 };
	struct buf raw = { 0 };
	u64 number = 0;

	preamble_encode(out, 1);
	record_header_encode(&raw, &head);
	buf_put(&raw, "{}", 2);
	if (frame_encode(out, zstd, 1, 1, number++, raw.data, raw.len) < 0)
		abort();
	while (cur_left(&c)) {
		size_t len = cur_u32(&c);
		const u8 *bytes;

		len = MIN(len, cur_left(&c));
		bytes = cur_bytes(&c, len);
		if (len < RECORD_HEADER_BYTES)
			break;
		if (frame_encode(out, zstd, 1, 1, number++, bytes, len) < 0)
			abort();
	}
	ZSTD_freeCCtx(zstd);
	buf_free(&raw);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct buf out = { 0 };
	volatile u32 sink;
	int fd;

	if (!size)
		return 0;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0)
		abort();
	if (data[0] & 1)
		dress(&out, data + 1, size - 1);
	else
		buf_put(&out, data + 1, size - 1);
	if (write_full(fd, out.data, out.len) < 0)
		abort();
	buf_free(&out);
	sink = read_all(fd);
	(void)sink;
	return 0;
}
