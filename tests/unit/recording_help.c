// SPDX-License-Identifier: GPL-2.0-or-later
#include "recording_help.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int setup(void **state)
{
	struct dir *d = xzalloc(sizeof(*d));

	strcpy(d->path, "/tmp/blkbox-test-XXXXXX");
	if (!mkdtemp(d->path))
		return -1;
	snprintf(d->file, sizeof(d->file), "%s/a.bbx", d->path);
	*state = d;
	return 0;
}

int teardown(void **state)
{
	struct dir *d = *state;

	unlink(d->file);
	rmdir(d->path);
	free(d);
	return 0;
}

struct rec_writer *create(const char *path, u32 frame_bytes)
{
	struct rec_writer_opts opts = { .frame_bytes = frame_bytes };
	struct rec_writer *w = NULL;
	struct errmsg em = { "" };

	if (rec_create(path, HEAD, &opts, &w, &em) < 0)
		fail_msg("%s", em.text);
	return w;
}

struct rec_reader *open_ok(const char *path)
{
	struct rec_reader *r = NULL;
	struct errmsg em = { "" };

	if (rec_open(path, &r, &em) < 0)
		fail_msg("%s", em.text);
	return r;
}

struct record next_ok(struct rec_reader *r, u16 type)
{
	struct record rec;
	struct errmsg em = { "" };

	if (rec_next(r, &rec, &em) != 1)
		fail_msg("no record: %s", em.text);
	assert_int_equal(rec.type, type);
	return rec;
}

struct buf slurp(const char *path)
{
	struct buf b = { 0 };
	u8 block[4096];
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	while ((n = read(fd, block, sizeof(block))) > 0)
		buf_put(&b, block, n);
	close(fd);
	return b;
}

/* Marsaglia's xorshift. */
u32 next_random(u32 *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

void fill_random(u8 *data, size_t bytes, u32 *x)
{
	for (size_t i = 0; i < bytes; i += sizeof(*x)) {
		u32 v = next_random(x);

		memcpy(data + i, &v, MIN(sizeof(v), bytes - i));
	}
}

const struct rec_issue an_issue = {
	.op = BLK_WRITE,
	.flags = BLK_FUA | BLK_META,
	.raw_flags = 0x80001,
	.sector = 1ULL << 33,
	.sectors = 3,
	.pid = 42,
	.comm = "jbd2/loop3-8",
	.n_pages = 2,
	.pages = (struct rec_page[]){
		{ 1024, PAGE_BLOCKDEV, DEV, 0, 4096 },
		{ 512, PAGE_UNREADABLE, DEV, 77, 1ULL << 40 },
	},
	.data_bytes = 1536,
};

const struct rec_file_op an_op = {
	.op = OP_WRITE,
	.flags = FOP_STOPPED,
	.syscall = 1,
	.start_seq = 2,
	.start_ns = 99,
	.pid = 10,
	.tid = 11,
	.comm = "sort",
	.ret = 5,
	.fd = FD_NONE,
	.open_flags = O_WRONLY | O_APPEND,
	.mode = 0644,
	.off = 1ULL << 50,
	.len = 6,
	.ino = 12,
	.size = 13,
	.nlink = 2,
	.file_mode = 0100644,
	.dir_dev = 14,
	.dir2_dev = 15,
	.dir_ino = 16,
	.dir2_ino = 17,
	.src_dev = 18,
	.src_ino = 19,
	.src_off = 20,
	.file_path = "file",
	.dir_path = "",
	.path = "a\xff\n/b",
	.data = "hello!",
	.data_bytes = 6,
	.n_stack = 2,
	.stack = (u64[]){ 0x1000, UINT64_MAX },
};

/* One record of each kind. Numbers from 1. */
void put_each(struct rec_writer *w)
{
	static u8 data[1536];
	struct rec_issue issue = an_issue;

	memset(data, 0xa5, sizeof(data));
	data[1000] = 1;
	issue.data = data;
	assert_int_equal(rec_put_base(w, DEV, 8192, "base", 4), 0);
	assert_int_equal(rec_put_base_end(w, DEV, 1 << 20), 0);
	assert_int_equal(rec_put_issue(w, 1, 1001, DEV, &issue), 0);
	assert_int_equal(rec_put_requeue(w, 2, 1002, DEV,
					 &(struct rec_requeue){ 1 }), 0);
	assert_int_equal(rec_put_complete(
		w, 3, 1003, DEV, &(struct rec_complete){ 1, -5, 1536 }), 0);
	assert_int_equal(rec_put_file_op(w, 4, 1004, DEV, &an_op), 0);
	assert_int_equal(rec_put_mark(w, 5, 1005,
				      &(struct rec_mark){ 6, "a mark" }), 0);
	assert_int_equal(rec_put_proc(
		w, 6, 1006, &(struct rec_proc){ PROC_EXIT, 7, 8, -1, "x" }), 0);
	assert_int_equal(rec_put_gap(
		w, 7, 1007, DEV,
		&(struct rec_gap){ GAP_RING_FULL, REC_ISSUE, 3, 4096, 9 }), 0);
	assert_int_equal(rec_put(w, &(struct record){
		.type = 1000, .flags = 3, .body = "future", .body_bytes = 6 }),
		0);
}
