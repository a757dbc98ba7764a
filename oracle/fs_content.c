// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Content of the model's inodes.
 *
 * Invariants:
 *  1. bytes is the size, also where the content is unknown.
 *  2. A known inode's content is content with, when buf_dirty, chunk buf_chunk
 *     replaced by buf. content may be shorter than bytes only by what buf
 *     holds.
 *  3. Where a result would be dearer than the bounds below, it is unknown
 *     instead: sizes come from a recording.
 */
#include "fs_model.h"

#include <string.h>

#define FILE_MAX_BYTES MIN(UINT64_C(16) << 30, CONTENT_MAX_BYTES)
#define MOVE_MAX_BYTES (UINT64_C(256) << 20)

static void set_content(struct fs_model *m, struct fs_inode *i,
			struct content *c)
{
	if (i->content)
		content_unref(m->store, i->content);
	i->content = c;
}

static void drop_buf(struct fs_inode *i)
{
	free(i->buf);
	i->buf = NULL;
	i->buf_dirty = false;
}

static void flush(struct fs_model *m, struct fs_inode *i)
{
	u64 off = i->buf_chunk * CHUNK_BYTES;

	if (i->buf_dirty)
		set_content(m, i,
			    content_write(m->store, i->content, off, i->buf,
					  MIN(CHUNK_BYTES, i->bytes - off)));
	drop_buf(i);
}

void fs_content_unknown(struct fs_model *m, struct fs_inode *i)
{
	i->unknown = true;
	drop_buf(i);
	set_content(m, i, NULL);
}

/* Puts data, which lies within one chunk, into the buffer. */
static void write_buffered(struct fs_model *m, struct fs_inode *i, u64 off,
			   const void *data, u32 len)
{
	u64 chunk = off / CHUNK_BYTES;

	if (!i->buf || i->buf_chunk != chunk) {
		flush(m, i);
		i->buf = xzalloc(CHUNK_BYTES);
		i->buf_chunk = chunk;
		if (i->content)
			content_read(i->content, chunk * CHUNK_BYTES, i->buf,
				     CHUNK_BYTES);
	}
	memcpy(i->buf + off % CHUNK_BYTES, data, len);
	i->buf_dirty = true;
	i->bytes = MAX(i->bytes, off + len);
}

void fs_content_write(struct fs_model *m, struct fs_inode *i, u64 off,
		      const void *data, u64 len)
{
	const u8 *p = data;
	u64 end;

	if (!len)
		return;
	if (__builtin_add_overflow(off, len, &end))
		end = UINT64_MAX;
	if (end > FILE_MAX_BYTES)
		fs_content_unknown(m, i);
	if (i->unknown) {
		i->bytes = MAX(i->bytes, end);
		return;
	}
	if (len >= CHUNK_BYTES) {
		flush(m, i);
		set_content(m, i,
			    content_write(m->store, i->content, off, p, len));
		i->bytes = MAX(i->bytes, end);
		return;
	}
	while (len) {
		u32 n = MIN(len, CHUNK_BYTES - off % CHUNK_BYTES);

		write_buffered(m, i, off, p, n);
		off += n;
		p += n;
		len -= n;
	}
}

/* Cut to nothing, a file is known again, unless a mapping writes to it. */
void fs_content_resize(struct fs_model *m, struct fs_inode *i, u64 bytes)
{
	if (!bytes && !i->mapped)
		i->unknown = false;
	if (!i->unknown && bytes > FILE_MAX_BYTES)
		fs_content_unknown(m, i);
	if (!i->unknown && bytes != i->bytes) {
		flush(m, i);
		set_content(m, i,
			    content_resize(m->store, i->content, bytes));
	}
	i->bytes = bytes;
}

void fs_content_zero(struct fs_model *m, struct fs_inode *i, u64 off, u64 end)
{
	_cleanup_free_ u8 *zeroes = NULL;

	end = MIN(end, i->bytes);
	if (i->unknown || off >= end)
		return;
	if (end - off > MOVE_MAX_BYTES) {
		fs_content_unknown(m, i);
		return;
	}
	zeroes = xzalloc(end - off);
	fs_content_write(m, i, off, zeroes, end - off);
}

/* Reads what of [off, off + len) lies within the file, after flushing. */
static u8 *read_out(struct fs_model *m, struct fs_inode *i, u64 off, u64 len)
{
	u8 *data = xzalloc(len);

	flush(m, i);
	if (i->content)
		content_read(i->content, off, data, len);
	return data;
}

/* Moves the bytes from from to the end so that they begin at to. */
static void move_tail(struct fs_model *m, struct fs_inode *i, u64 from, u64 to)
{
	_cleanup_free_ u8 *tail = NULL;
	u64 len = i->bytes - from, bytes;

	if (__builtin_add_overflow(to, len, &bytes))
		bytes = UINT64_MAX;
	if (!i->unknown && (len > MOVE_MAX_BYTES || bytes > FILE_MAX_BYTES))
		fs_content_unknown(m, i);
	if (i->unknown) {
		i->bytes = bytes;
		return;
	}
	tail = read_out(m, i, from, len);
	fs_content_resize(m, i, MIN(from, to));
	fs_content_resize(m, i, bytes);
	fs_content_write(m, i, to, tail, len);
}

void fs_content_collapse(struct fs_model *m, struct fs_inode *i, u64 off,
			 u64 len)
{
	u64 end;

	/* the kernel refuses a range that reaches the end */
	if (__builtin_add_overflow(off, len, &end) || end >= i->bytes)
		fs_content_unknown(m, i);
	else
		move_tail(m, i, end, off);
}

void fs_content_insert(struct fs_model *m, struct fs_inode *i, u64 off,
		       u64 len)
{
	u64 to;

	if (__builtin_add_overflow(off, len, &to) || off >= i->bytes)
		fs_content_unknown(m, i);
	else
		move_tail(m, i, off, to);
}

void fs_content_copy(struct fs_model *m, struct fs_inode *to, u64 off,
		     struct fs_inode *from, u64 from_off, u64 len)
{
	_cleanup_free_ u8 *data = NULL;
	u64 end, from_end;

	if (__builtin_add_overflow(off, len, &end))
		end = UINT64_MAX;
	if (__builtin_add_overflow(from_off, len, &from_end))
		from_end = UINT64_MAX;
	if (!from || from->unknown || from_end > from->bytes ||
	    len > MOVE_MAX_BYTES)
		fs_content_unknown(m, to);
	if (to->unknown) {
		to->bytes = MAX(to->bytes, end);
		return;
	}
	data = read_out(m, from, from_off, len);
	fs_content_write(m, to, off, data, len);
}

/* Of unknown bytes: zeroes of the right length, marked. */
static struct content *unknown_content(struct fs_model *m,
				       const struct fs_inode *i)
{
	u64 bytes = i->bytes > FILE_MAX_BYTES ? 0 : i->bytes;
	struct content *c = content_resize(m->store, NULL, bytes);

	c->unknown = true;
	return c;
}

struct content *fs_content_take(struct fs_model *m, struct fs_inode *i)
{
	if (i->unknown)
		return unknown_content(m, i);
	if (i->buf_dirty)
		flush(m, i);
	if (!i->content)
		i->content = content_from_bytes(m->store, NULL, 0);
	return content_ref(i->content);
}
