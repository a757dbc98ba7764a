// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writing a recording. Layout: recording.c.
 *
 * Invariants:
 *  1. The file holds whole frames only, between calls. A frame is one write();
 *     when it fails, the file is cut back to the frame before.
 *  2. The first failure stays: each later call returns it, and END is not
 *     written, so the recording says of itself that it was cut.
 *  3. w->raw holds whole records between calls, fewer bytes than frame_bytes.
 */
#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "recording_layout.h"

#define DEFAULT_LEVEL 3

struct rec_writer {
	int fd;
	char *path;
	int level;
	u32 frame_bytes;
	ZSTD_CCtx *zstd;
	u64 id;
	u64 next_frame;
	u64 file_bytes;
	u64 last_seq;
	struct rec_end totals;
	struct buf raw;		/* records of the frame under way */
	struct buf out;
	size_t start;		/* of the record under way in raw */
	struct record hdr;	/* its header */
	int error;
};

static void writer_free(struct rec_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	ZSTD_freeCCtx(w->zstd);
	buf_free(&w->raw);
	buf_free(&w->out);
	free(w->path);
	free(w);
}

static int write_out(struct rec_writer *w)
{
	int err = write_full(w->fd, w->out.data, w->out.len);

	if (err < 0) {
		(void)!ftruncate(w->fd, w->file_bytes);
		w->error = err;
		return err;
	}
	w->file_bytes += w->out.len;
	return 0;
}

/* Writes the first bytes of raw as a frame; what follows moves up. */
static int close_frame(struct rec_writer *w, size_t bytes)
{
	int err;

	buf_reset(&w->out);
	err = frame_encode(&w->out, w->zstd, w->level, w->id, w->next_frame,
			   w->raw.data, bytes);
	if (err < 0)
		return w->error = err;
	err = write_out(w);
	if (err < 0)
		return err;
	w->next_frame++;
	memmove(w->raw.data, w->raw.data + bytes, w->raw.len - bytes);
	w->raw.len -= bytes;
	return 0;
}

struct buf *record_begin(struct rec_writer *w, const struct record *hdr,
			 u64 body_bytes_about)
{
	w->hdr = *hdr;
	w->hdr.body_bytes = 0;
	w->start = w->raw.len;
	if (w->error || body_bytes_about > RECORD_BODY_MAX)
		return NULL;
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
	if (w->error)
		return w->error;
	return w->raw.len ? close_frame(w, w->raw.len) : 0;
}

u64 rec_writer_bytes(const struct rec_writer *w)
{
	return w->file_bytes;
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

static int put_head(struct rec_writer *w, const char *json)
{
	struct record hdr = { .type = REC_HEAD };
	size_t len = strlen(json);
	struct buf *b;
	int err;

	preamble_encode(&w->out, w->id);
	err = write_out(w);
	if (err < 0)
		return err;
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
	w->level = opts->level ?: DEFAULT_LEVEL;
	w->frame_bytes = opts->frame_bytes ?: FRAME_RAW_TARGET;
	w->frame_bytes = MIN(w->frame_bytes, FRAME_RAW_MAX);
	w->zstd = ZSTD_createCCtx();
	if (!w->zstd)
		err = -ENOMEM;
	else if (getrandom(&w->id, sizeof(w->id), 0) != sizeof(w->id))
		err = -EIO;
	else
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

	if (close(w->fd) < 0 && err == 0)
		err = -errno;
	w->fd = -1;
	if (err < 0)
		errmsg_set(em, err, "writing the recording %s; it is whole up "
			   "to byte %llu", w->path,
			   (unsigned long long)w->file_bytes);
	writer_free(w);
	return err;
}

void rec_abandon(struct rec_writer *w)
{
	if (w)
		writer_free(w);
}
