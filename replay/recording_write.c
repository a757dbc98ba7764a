// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writing a recording. Layout: recording.c.
 *
 * Invariants:
 *  1. Frames reach the file by way of a queue (frame_queue.c), whole and in
 *     order. When one fails, the file is cut back to the frame before.
 *  2. The first failure stays: each call that comes to know of it returns it,
 *     and each one after that, at the latest rec_flush() and rec_close(). END
 *     is not written then, so the recording says of itself that it was cut.
 *  3. w->raw holds whole records between calls, fewer bytes than frame_bytes.
 */
#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frame_queue.h"
#include "recording_layout.h"

#define DEFAULT_LEVEL 3

struct rec_writer {
	int fd;
	char *path;
	u32 frame_bytes;
	struct frame_queue *queue;
	u64 last_seq;
	struct rec_end totals;
	struct buf raw;		/* records of the frame under way */
	size_t start;		/* of the record under way in raw */
	struct record hdr;	/* its header */
	int error;		/* of the queue, once it is known */
};

static void writer_free(struct rec_writer *w)
{
	frame_queue_free(w->queue);
	if (w->fd >= 0)
		close(w->fd);
	buf_free(&w->raw);
	free(w->path);
	free(w);
}

/* Room for bytes in all. An empty buffer has nothing to be moved. */
static void buf_reserve(struct buf *b, size_t bytes)
{
	if (b->cap >= bytes)
		return;
	if (!b->len)
		buf_free(b);
	b->cap = bytes + bytes / 4;
	b->data = xrealloc(b->data, b->cap);
}

/* Hands the first bytes of raw over as a frame; what follows moves up. */
static int close_frame(struct rec_writer *w, size_t bytes)
{
	struct buf tail = { 0 };

	buf_put(&tail, w->raw.data + bytes, w->raw.len - bytes);
	w->raw.len = bytes;
	w->error = frame_queue_put(w->queue, &w->raw);
	if (!w->error)
		buf_put(&w->raw, tail.data, tail.len);
	buf_free(&tail);
	return w->error;
}

struct buf *record_begin(struct rec_writer *w, const struct record *hdr,
			 u64 body_bytes_about)
{
	u64 bytes = RECORD_HEADER_BYTES + body_bytes_about;

	w->hdr = *hdr;
	w->hdr.body_bytes = 0;
	w->start = w->raw.len;
	if (!w->error)
		w->error = frame_queue_error(w->queue);
	if (w->error || body_bytes_about > RECORD_BODY_MAX)
		return NULL;
	/* So that it need not be moved when it is there. */
	if (w->start && w->start + bytes > w->frame_bytes) {
		if (close_frame(w, w->start) < 0)
			return NULL;
		w->start = 0;
	}
	buf_reserve(&w->raw, MAX(w->start + bytes, w->frame_bytes));
	record_header_encode(&w->raw, &w->hdr);
	return &w->raw;
}

/* Numbers ascend, each used once; UINT64_MAX means "never" elsewhere. */
static int check_seq(const struct rec_writer *w)
{
	if (w->hdr.seq == UINT64_MAX)
		return -EINVAL;
	if (rec_is_event(w->hdr.type) && w->hdr.seq &&
	    w->hdr.seq <= w->last_seq)
		return -EINVAL;
	return 0;
}

int record_end(struct rec_writer *w)
{
	size_t body;
	int err;

	if (w->error)
		return w->error;
	if (w->raw.len == w->start)
		return -EMSGSIZE;
	body = w->raw.len - w->start - RECORD_HEADER_BYTES;
	err = body > RECORD_BODY_MAX ? -EMSGSIZE : check_seq(w);
	if (err < 0) {
		w->raw.len = w->start;
		return err;
	}
	for (int i = 0; i < 4; i++)
		w->raw.data[w->start + i] = body >> (8 * i);
	if (rec_is_event(w->hdr.type) && w->hdr.seq) {
		w->last_seq = w->hdr.seq;
		w->totals.events++;
	}
	if (w->raw.len > w->frame_bytes && w->start) {
		err = close_frame(w, w->start);
		if (err < 0)
			return err;
	}
	return w->raw.len >= w->frame_bytes ? close_frame(w, w->raw.len) : 0;
}

bool record_parts_ok(const struct rec_bytes *parts, u32 n, u32 data_bytes)
{
	u64 sum = 0;

	for (u32 k = 0; k < n; k++)
		sum += parts[k].bytes;
	return !n || sum == data_bytes;
}

static void put_zeroes(struct buf *b, u32 bytes)
{
	static const u8 zeroes[4096];

	for (; bytes > sizeof(zeroes); bytes -= sizeof(zeroes))
		buf_put(b, zeroes, sizeof(zeroes));
	buf_put(b, zeroes, bytes);
}

void record_put_data(struct buf *b, const void *data, u32 bytes,
		     const struct rec_bytes *parts, u32 n_parts)
{
	if (!n_parts)
		buf_put(b, data, bytes);
	for (; n_parts && bytes; parts++, n_parts--) {
		u32 len = MIN(parts->bytes, bytes);

		if (parts->data)
			buf_put(b, parts->data, len);
		else
			put_zeroes(b, len);
		bytes -= len;
	}
}

void writer_count_gap(struct rec_writer *w, const struct rec_gap *g)
{
	w->totals.gaps++;
	w->totals.lost_events += g->events;
	w->totals.lost_bytes += g->bytes;
}

int rec_put(struct rec_writer *w, const struct record *r)
{
	struct rec_gap g;
	struct buf *b;
	int err;

	if (r->type == REC_HEAD || r->type == REC_END)
		return -EINVAL;
	if (r->type == REC_GAP && rec_get_gap(r, &g) < 0)
		return -EINVAL;
	b = record_begin(w, r, r->body_bytes);
	if (b)
		buf_put(b, r->body, r->body_bytes);
	err = record_end(w);
	if (err == 0 && r->type == REC_GAP)
		writer_count_gap(w, &g);
	return err;
}

int rec_flush(struct rec_writer *w)
{
	if (!w->error && w->raw.len)
		close_frame(w, w->raw.len);
	if (!w->error)
		w->error = frame_queue_wait(w->queue);
	return w->error;
}

void rec_writer_backlog(struct rec_writer *w, u64 bytes)
{
	frame_queue_backlog(w->queue, MIN(bytes, (u64)FRAME_QUEUE_BYTES));
}

u64 rec_writer_bytes(const struct rec_writer *w)
{
	return frame_queue_file_bytes(w->queue);
}

/*
 * Opens path for writing, empty, mode 0600. *ret_created: it was not there
 * before. A file that another recorder has open is left alone.
 */
static int open_output(const char *path, bool overwrite, bool *ret_created,
		       struct errmsg *em)
{
	struct stat st;
	bool created = true;
	int fd, err;

	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST && overwrite) {
		created = false;
		fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	}
	if (fd < 0 && errno == EEXIST)
		return errmsg_set(em, EEXIST,
				  "creating the recording %s (remove it, or "
				  "choose another name)", path);
	if (fd < 0)
		return errmsg_set(em, errno, "creating the recording %s", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return errmsg_set(em, EINVAL, "%s is not a regular file; a "
				  "recording needs one", path);
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
		close(fd);
		return errmsg_set(em, EBUSY, "%s is being written by another "
				  "recorder", path);
	}
	if (fchmod(fd, 0600) < 0 || ftruncate(fd, 0) < 0) {
		err = errmsg_set(em, errno, "emptying %s", path);
		close(fd);
		return err;
	}
	*ret_created = created;
	return fd;
}

/* The preamble, and behind it a queue for frames. */
static int start_file(struct rec_writer *w, const struct rec_writer_opts *opts)
{
	struct frame_queue_opts q = {
		.fd = w->fd,
		.level = opts->level ?: DEFAULT_LEVEL,
		.threads = opts->threads,
	};
	_cleanup_buf_ struct buf out = { 0 };
	int err;

	if (getrandom(&q.id, sizeof(q.id), 0) != sizeof(q.id))
		return -EIO;
	preamble_encode(&out, q.id);
	q.file_bytes = out.len;
	err = write_full(w->fd, out.data, out.len);
	return err < 0 ? err : frame_queue_new(&q, &w->queue);
}

static int put_head(struct rec_writer *w, const char *json)
{
	struct record hdr = { .type = REC_HEAD };
	size_t len = strlen(json);
	struct buf *b;
	int err;

	b = record_begin(w, &hdr, len);
	if (b)
		buf_put(b, json, len);
	err = record_end(w);
	return err < 0 ? err : rec_flush(w);
}

int rec_create(const char *path, const char *head_json,
	       const struct rec_writer_opts *opts, struct rec_writer **ret_w,
	       struct errmsg *em)
{
	static const struct rec_writer_opts defaults;
	struct rec_writer *w;
	bool created = false;
	int err;

	opts = opts ?: &defaults;
	err = open_output(path, opts->overwrite, &created, em);
	if (err < 0)
		return err;
	w = xzalloc(sizeof(*w));
	w->fd = err;
	w->path = xstrdup(path);
	w->frame_bytes = opts->frame_bytes ?: FRAME_RAW_TARGET;
	w->frame_bytes = MIN(w->frame_bytes, FRAME_RAW_MAX);
	err = start_file(w, opts);
	if (!err)
		err = put_head(w, head_json);
	if (err < 0) {
		errmsg_set(em, err, "writing the head of %s", path);
		if (created)
			unlink(path);
		writer_free(w);
		return err;
	}
	*ret_w = w;
	return 0;
}

static int put_end(struct rec_writer *w)
{
	struct record hdr = { .type = REC_END };
	struct buf *b;
	int err = rec_flush(w);

	if (err < 0)
		return err;
	b = record_begin(w, &hdr, 32);
	if (b) {
		buf_put_u64(b, w->totals.events);
		buf_put_u64(b, w->totals.gaps);
		buf_put_u64(b, w->totals.lost_events);
		buf_put_u64(b, w->totals.lost_bytes);
	}
	err = record_end(w);
	return err < 0 ? err : rec_flush(w);
}

int rec_close(struct rec_writer *w, struct errmsg *em)
{
	int err = put_end(w);
	u64 whole = rec_writer_bytes(w);

	frame_queue_free(w->queue);
	w->queue = NULL;
	if (close(w->fd) < 0 && err == 0)
		err = -errno;
	w->fd = -1;
	if (err < 0)
		errmsg_set(em, err, "writing the recording %s; it is whole up "
			   "to byte %llu", w->path,
			   (unsigned long long)whole);
	writer_free(w);
	return err;
}

void rec_abandon(struct rec_writer *w)
{
	if (w)
		writer_free(w);
}
