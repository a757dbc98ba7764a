// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reading a recording that may come from a stranger. Layout, and what is a cut
 * and what is damage: recording.c.
 *
 * Invariants:
 *  1. A frame's bytes are used only after its header's checksum, its bounds,
 *     its body's checksum and its decompressed size have been found right.
 *  2. r->pos is where a frame begins; all before it was whole and right.
 *  3. Memory is bounded by the file's size and by FRAME_RAW_MAX.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "recording_layout.h"

struct rec_reader {
	int fd;
	char *path;
	u64 size;		/* of the file, when it was opened */
	u64 pos;		/* the next frame begins here */
	u64 frame_pos;		/* the present one began there */
	u64 id;
	u64 next_frame;
	u64 last_seq;
	struct rec_end seen;	/* counted while reading */
	bool closed;
	bool failed;
	ZSTD_DCtx *zstd;
	struct buf body;
	struct buf raw;
	struct cursor cur;	/* in raw */
	char *head;
};

void rec_reader_free(struct rec_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	ZSTD_freeDCtx(r->zstd);
	buf_free(&r->body);
	buf_free(&r->raw);
	free(r->head);
	free(r->path);
	free(r);
}

const char *rec_head(const struct rec_reader *r)
{
	return r->head;
}

bool rec_is_closed(const struct rec_reader *r)
{
	return r->closed;
}

u64 rec_whole_bytes(const struct rec_reader *r)
{
	return r->pos;
}

static int damaged(struct rec_reader *r, u64 frame, u64 pos, const char *why,
		   struct errmsg *em)
{
	r->failed = true;
	errmsg_set(em, 0, "%s is damaged: frame %llu at byte %llu: %s; what is "
		   "before byte %llu is whole ('head -c %llu' keeps it)",
		   r->path, (unsigned long long)frame, (unsigned long long)pos,
		   why, (unsigned long long)pos, (unsigned long long)pos);
	return -EUCLEAN;
}

static int read_failed(struct rec_reader *r, int err, struct errmsg *em)
{
	r->failed = true;
	return errmsg_set(em, err, "reading %s at byte %llu", r->path,
			  (unsigned long long)r->pos);
}

static void buf_resize(struct buf *b, size_t len)
{
	if (len > b->cap) {
		free(b->data);
		b->data = xmalloc(len);
		b->cap = len;
	}
	b->len = len;
}

/* 1: zeroes from pos to the end of the file. */
static int zeroes_to_end(struct rec_reader *r, u64 pos)
{
	u8 block[4096];

	while (pos < r->size) {
		size_t n = MIN(r->size - pos, sizeof(block));
		int err = pread_full(r->fd, block, n, pos);

		if (err < 0)
			return err;
		if (block[0] || memcmp(block, block + 1, n - 1))
			return 0;
		pos += n;
	}
	return 1;
}

/* 1: the next frame is in r->raw; 0: end of the whole frames. */
static int next_frame(struct rec_reader *r, struct errmsg *em)
{
	u8 head[FRAME_HEADER_BYTES];
	struct frame_header h;
	const char *why = "";
	int err;

	if (r->size - r->pos < FRAME_HEADER_BYTES)
		return 0;
	err = pread_full(r->fd, head, sizeof(head), r->pos);
	if (err < 0)
		return read_failed(r, err, em);
	if (frame_header_decode(head, r->id, r->next_frame, &h, &why) < 0) {
		err = zeroes_to_end(r, r->pos);
		if (err < 0)
			return read_failed(r, err, em);
		return err ? 0 : damaged(r, r->next_frame, r->pos, why, em);
	}
	if (r->size - r->pos - FRAME_HEADER_BYTES < h.zstd_bytes)
		return 0;
	buf_resize(&r->body, h.zstd_bytes);
	err = pread_full(r->fd, r->body.data, h.zstd_bytes,
			 r->pos + FRAME_HEADER_BYTES);
	if (err < 0)
		return read_failed(r, err, em);
	if (frame_body_check(&h, r->id, r->body.data, &why) < 0)
		return damaged(r, r->next_frame, r->pos, why, em);
	buf_resize(&r->raw, h.raw_bytes);
	if (frame_body_decode(&h, r->zstd, r->body.data, r->raw.data, &why) < 0)
		return damaged(r, r->next_frame, r->pos, why, em);
	r->cur = cursor_of(r->raw.data, h.raw_bytes);
	r->frame_pos = r->pos;
	r->pos += FRAME_HEADER_BYTES + h.zstd_bytes;
	r->next_frame++;
	return 1;
}

/* A frame that is right in itself holds what no writer puts there. */
static int bad_record(struct rec_reader *r, const char *why, struct errmsg *em)
{
	return damaged(r, r->next_frame - 1, r->frame_pos, why, em);
}

/* The first record of the first frame, copied. */
static int read_head(struct rec_reader *r, struct errmsg *em)
{
	struct record rec;
	int err = next_frame(r, em);

	if (err < 0)
		return err;
	if (err == 0) {
		r->failed = true;
		errmsg_set(em, 0, "%s was cut off before the end of its head; "
			   "nothing can be had from it", r->path);
		return -ENODATA;
	}
	record_decode(&r->cur, &rec);
	if (r->cur.bad || rec.type != REC_HEAD)
		return bad_record(r, "it does not begin with HEAD", em);
	if (memchr(rec.body, 0, rec.body_bytes))
		return bad_record(r, "its HEAD is not text", em);
	r->head = xmalloc((size_t)rec.body_bytes + 1);
	memcpy(r->head, rec.body, rec.body_bytes);
	r->head[rec.body_bytes] = 0;
	return 0;
}

static int read_preamble(struct rec_reader *r, struct errmsg *em)
{
	u8 p[PREAMBLE_BYTES];
	int err;

	if (r->size < PREAMBLE_BYTES) {
		errmsg_set(em, 0, "%s is too short to be a blkbox recording",
			   r->path);
		return -EBADMSG;
	}
	err = pread_full(r->fd, p, sizeof(p), 0);
	if (err < 0)
		return read_failed(r, err, em);
	err = preamble_decode(p, &r->id);
	if (err == -EBADMSG)
		errmsg_set(em, 0, "%s is not a blkbox recording", r->path);
	else if (err == -EUCLEAN)
		errmsg_set(em, 0, "%s is damaged: the checksum of its first %u "
			   "bytes is wrong", r->path, PREAMBLE_BYTES);
	else if (err < 0)
		errmsg_set(em, 0, "%s was written by a newer blkbox; read it "
			   "with that one", r->path);
	r->pos = PREAMBLE_BYTES;
	return err;
}

static int open_input(struct rec_reader *r, struct errmsg *em)
{
	struct stat st;
	int err;

	if (fstat(r->fd, &st) < 0)
		return errmsg_set(em, errno, "reading %s", r->path);
	if (!S_ISREG(st.st_mode))
		return errmsg_set(em, EINVAL, "%s is not a regular file",
				  r->path);
	r->size = st.st_size;
	r->zstd = ZSTD_createDCtx();
	if (!r->zstd)
		return errmsg_set(em, ENOMEM, "reading %s", r->path);
	err = read_preamble(r, em);
	return err < 0 ? err : read_head(r, em);
}

int rec_open_fd(int fd, const char *name, struct rec_reader **ret_r,
		struct errmsg *em)
{
	struct rec_reader *r = xzalloc(sizeof(*r));
	int err;

	r->fd = fd;
	r->path = xstrdup(name);
	err = open_input(r, em);
	if (err < 0) {
		rec_reader_free(r);
		return err;
	}
	*ret_r = r;
	return 0;
}

int rec_open(const char *path, struct rec_reader **ret_r, struct errmsg *em)
{
	/* O_NONBLOCK: path may be a FIFO, which is refused, not waited for */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return errmsg_set(em, errno, "opening the recording %s", path);
	return rec_open_fd(fd, path, ret_r, em);
}

/* END: alone in its frame, last in the file, with the totals counted here. */
static int check_end(struct rec_reader *r, const struct record *rec,
		     struct errmsg *em)
{
	struct rec_end e;

	if (rec_get_end(rec, &e) < 0)
		return bad_record(r, "its END is not one", em);
	if ((const u8 *)rec->body - RECORD_HEADER_BYTES != r->cur.data ||
	    cur_left(&r->cur))
		return bad_record(r, "END is not alone in it", em);
	if (r->pos != r->size)
		return bad_record(r, "the file goes on after END", em);
	if (e.events != r->seen.events || e.gaps != r->seen.gaps ||
	    e.lost_events != r->seen.lost_events ||
	    e.lost_bytes != r->seen.lost_bytes)
		return bad_record(r, "its totals are not those of the records "
				  "before it", em);
	r->closed = true;
	return 0;
}

static int check_record(struct rec_reader *r, const struct record *rec,
			struct errmsg *em)
{
	struct rec_gap g;

	if (rec->seq == UINT64_MAX)
		return bad_record(r, "a record has an impossible number", em);
	if (rec->type == REC_HEAD)
		return bad_record(r, "it holds a second HEAD", em);
	if (rec->type == REC_END)
		return check_end(r, rec, em);
	if (rec->type == REC_GAP) {
		if (rec_get_gap(rec, &g) < 0)
			return bad_record(r, "it holds a GAP that is none", em);
		r->seen.gaps++;
		r->seen.lost_events += g.events;
		r->seen.lost_bytes += g.bytes;
	}
	if (!rec_is_event(rec->type) || !rec->seq)
		return 0;
	if (rec->seq <= r->last_seq)
		return bad_record(r, "its records are out of order", em);
	r->last_seq = rec->seq;
	r->seen.events++;
	return 0;
}

int rec_next(struct rec_reader *r, struct record *ret, struct errmsg *em)
{
	struct record rec;
	int err;

	if (r->failed)
		return errmsg_set(em, EUCLEAN, "reading on in %s", r->path);
	if (r->closed)
		return 0;
	if (!cur_left(&r->cur)) {
		err = next_frame(r, em);
		if (err <= 0)
			return err;
	}
	record_decode(&r->cur, &rec);
	if (r->cur.bad)
		return bad_record(r, "a record is longer than its frame", em);
	rec.frame = r->next_frame - 1;
	err = check_record(r, &rec, em);
	if (err < 0)
		return err;
	*ret = rec;
	return 1;
}
