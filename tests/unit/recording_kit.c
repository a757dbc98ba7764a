// SPDX-License-Identifier: GPL-2.0-or-later
#include "recording_kit.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <xxhash.h>

#include "../../replay/image.h"

const struct trace_opts kit_plain = { .model = MODEL_DEVICE };

int kit_setup(void **state)
{
	struct kit *d = xzalloc(sizeof(*d));

	snprintf(d->path, sizeof(d->path), "/tmp/blkbox_test.XXXXXX");
	if (!mkdtemp(d->path))
		return -1;
	snprintf(d->file, sizeof(d->file), "%s/r.bbx", d->path);
	snprintf(d->image, sizeof(d->image), "%s/image", d->path);
	snprintf(d->base, sizeof(d->base), "%s/base", d->path);
	*state = d;
	return 0;
}

int kit_teardown(void **state)
{
	struct kit *d = *state;

	if (d->w)
		rec_abandon(d->w);
	unlink(d->file);
	unlink(d->image);
	unlink(d->base);
	rmdir(d->path);
	free(d);
	return 0;
}

/* ---- making recordings ------------------------------------------------- */

void kit_begin(struct kit *d, const char *head)
{
	const struct rec_writer_opts o = { .overwrite = true };
	struct errmsg em = { "" };

	d->seq = 0;
	if (rec_create(d->file, head, &o, &d->w, &em))
		fail_msg("%s", em.text);
}

void kit_finish(struct kit *d)
{
	assert_int_equal(rec_close(d->w, NULL), 0);
	d->w = NULL;
}

u64 kit_put_issue(struct kit *d, u32 dev, u8 op, u64 sector, u32 sectors,
		     u8 fill, u32 flags)
{
	u32 bytes = op == BLK_WRITE ? sectors * SECTOR_SIZE : 0;
	_cleanup_free_ u8 *data = xmalloc(bytes);
	struct rec_page page = { .bytes = bytes, .ino = 12 };
	struct rec_issue i = { .op = op, .flags = flags, .sector = sector,
			       .sectors = sectors, .data = data,
			       .data_bytes = bytes,
			       .n_pages = bytes ? 1 : 0, .pages = &page };

	if (flags & BLK_PAYLOAD_MISSING) {
		i.data = NULL;
		i.data_bytes = 0;
	}
	memset(data, fill, bytes);
	assert_int_equal(rec_put_issue(d->w, ++d->seq, 0, dev, &i), 0);
	return d->seq;
}

u64 kit_put_write(struct kit *d, u64 sector, u32 sectors, u8 fill)
{
	return kit_put_issue(d, TB_DEV, BLK_WRITE, sector, sectors, fill, 0);
}

void kit_put_complete(struct kit *d, u64 issue)
{
	const struct rec_complete c = { .issue_seq = issue };

	assert_int_equal(rec_put_complete(d->w, ++d->seq, 0, TB_DEV, &c), 0);
}

void kit_put_flush(struct kit *d)
{
	kit_put_complete(d, kit_put_issue(d, TB_DEV, BLK_FLUSH, 0, 0, 0, 0));
}

u64 kit_put_mark(struct kit *d, const char *text)
{
	const struct rec_mark m = { .pid = 1, .text = text };

	assert_int_equal(rec_put_mark(d->w, ++d->seq, 0, &m), 0);
	return d->seq;
}

void kit_put_base(struct kit *d, u64 sector, u8 fill)
{
	u8 data[SECTOR_SIZE * 8];

	memset(data, fill, sizeof(data));
	assert_int_equal(rec_put_base(d->w, TB_DEV, sector * SECTOR_SIZE, data,
				      sizeof(data)), 0);
}

void kit_put_base_end(struct kit *d)
{
	assert_int_equal(rec_put_base_end(d->w, TB_DEV,
					  KIT_SECTORS * SECTOR_SIZE), 0);
}

void kit_put_op(struct kit *d, u32 dev, u8 op, const char *path)
{
	struct rec_file_op o = { .op = op, .path = (char *)path,
				 .data = "bytes" };

	if (op == OP_WRITE)
		o.ret = o.data_bytes = 5;
	assert_int_equal(rec_put_file_op(d->w, ++d->seq, 0, dev, &o), 0);
}

void kit_make_base(const struct kit *d, u32 sectors)
{
	_cleanup_close_ int fd = open(d->base, O_CREAT | O_TRUNC | O_WRONLY,
				      0600);
	u8 data[SECTOR_SIZE];

	memset(data, 3, sizeof(data));
	assert_int_equal(ftruncate(fd, sectors * SECTOR_SIZE), 0);
	assert_int_equal(pwrite_full(fd, data, sizeof(data), 5 * SECTOR_SIZE),
			 0);
}

void kit_begin_with_base(struct kit *d, const char *file, u32 sectors)
{
	u8 *data = xzalloc(sectors * SECTOR_SIZE);
	_cleanup_free_ char *base = NULL, *head = NULL;

	memset(data + 5 * SECTOR_SIZE, 3, SECTOR_SIZE);
	base = xasprintf("{\"file\":\"%s\",\"bytes\":%u,\"xxh3\":\"%016llx\"}",
			 file, sectors * SECTOR_SIZE, (unsigned long long)
			 XXH3_64bits(data, sectors * SECTOR_SIZE));
	free(data);
	head = xasprintf("{\"devices\":[{\"dev\":%u,\"sectors\":64,"
			 "\"write_cache\":true}],\"base\":%s}", TB_DEV, base);
	kit_begin(d, head);
	kit_put_write(d, 6, 1, 9);
	kit_finish(d);
}

struct trace *kit_load(const struct kit *d, const struct trace_opts *o)
{
	struct errmsg em = { "" };
	struct trace *t = NULL;

	if (trace_load(d->file, o, &t, &em))
		fail_msg("%s", em.text);
	return t;
}

void kit_load_fails(const struct kit *d, const struct trace_opts *o, int err,
		       const char *words)
{
	struct errmsg em = { "" };
	struct trace *t;

	assert_int_equal(trace_load(d->file, o, &t, &em), err);
	if (!strstr(em.text, words))
		fail_msg("'%s' does not say '%s'", em.text, words);
}

u8 kit_byte_at(const struct trace *t, u64 sector)
{
	const struct disk_state st = { .n_units = t->n_units };
	struct image_index *x = image_index_new(t);
	u8 data[SECTOR_SIZE];

	disk_sector(t, x, &st, sector, data);
	image_index_free(x);
	return data[0];
}
