// SPDX-License-Identifier: GPL-2.0-or-later
/* The recording as a file: its mode, a full disk, base images. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recording_help.h"

/* ---- the file ------------------------------------------------------------ */

static void test_mode_and_overwriting(void **state)
{
	struct dir *d = *state;
	struct rec_writer_opts over = { .overwrite = true };
	struct rec_writer *w = create(d->file, 0), *w2 = NULL;
	struct errmsg em = { "" };
	struct rec_reader *r;
	struct stat st;

	assert_int_equal(stat(d->file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(rec_create(d->file, HEAD, NULL, &w2, &em), -EEXIST);
	assert_non_null(strstr(em.text, d->file));
	/* not while somebody else writes it */
	assert_int_equal(rec_create(d->file, HEAD, &over, &w2, &em), -EBUSY);
	assert_int_equal(rec_put_mark(w, 1, 1, &(struct rec_mark){ 1, "a" }),
			 0);
	assert_int_equal(rec_close(w, NULL), 0);
	assert_int_equal(chmod(d->file, 0644), 0);
	assert_int_equal(rec_create(d->file, HEAD, &over, &w2, &em), 0);
	assert_int_equal(rec_close(w2, NULL), 0);
	assert_int_equal(stat(d->file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	r = open_ok(d->file);
	next_ok(r, REC_END);
	rec_reader_free(r);
}

static void test_what_is_no_recording_is_refused(void **state)
{
	struct dir *d = *state;
	struct errmsg em = { "" };
	struct rec_reader *r = NULL;
	struct rec_writer *w = NULL;
	int fd;

	assert_int_equal(rec_open(d->file, &r, &em), -ENOENT);
	assert_int_equal(mkfifo(d->file, 0600), 0);
	assert_int_equal(rec_open(d->file, &r, &em), -EINVAL);
	assert_int_equal(unlink(d->file), 0);
	fd = open(d->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(rec_open(d->file, &r, &em), -EBADMSG);
	for (int i = 0; i < 100; i++)
		assert_int_equal(write_full(fd, "not a recording", 15), 0);
	close(fd);
	assert_int_equal(rec_open(d->file, &r, &em), -EBADMSG);
	assert_int_equal(rec_create("/dev/null", HEAD,
				    &(struct rec_writer_opts){
					    .overwrite = true },
				    &w, &em), -EINVAL);
}

/* The disk is full: the error comes out, stays, and what is there is whole. */
static void disk_full_child(const char *path)
{
	struct rlimit limit = { 4000, RLIM_INFINITY };
	struct rec_writer *w = create(path, 500);
	struct rec_issue i = { .op = BLK_WRITE, .sectors = 1,
			       .data_bytes = 512 };
	u8 data[512];
	u32 x = 1;
	int err = 0;

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	i.data = data;
	for (u64 seq = 1; seq < 100 && err == 0; seq++) {
		for (size_t k = 0; k < sizeof(data); k++)
			data[k] = (x = x * 1103515245 + 12345) >> 16;
		err = rec_put_issue(w, seq, seq, DEV, &i);
	}
	/* there is room again, but a record is lost: the error stays */
	limit.rlim_cur = RLIM_INFINITY;
	setrlimit(RLIMIT_FSIZE, &limit);
	if (err != -EFBIG || rec_flush(w) != -EFBIG ||
	    rec_put_requeue(w, 200, 1, DEV, &(struct rec_requeue){ 1 }) !=
		    -EFBIG || rec_close(w, NULL) != -EFBIG)
		_exit(1);
	_exit(0);
}

static void test_full_disk_leaves_a_whole_prefix(void **state)
{
	struct dir *d = *state;
	struct rec_reader *r;
	struct record rec;
	struct stat st;
	int status, n = 0;
	pid_t pid = fork();

	if (pid == 0)
		disk_full_child(d->file);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	r = open_ok(d->file);
	while (rec_next(r, &rec, NULL) > 0) {
		assert_int_equal(rec.type, REC_ISSUE);
		assert_int_equal(rec.seq, ++n);
	}
	assert_true(n >= 4);
	assert_false(rec_is_closed(r));
	/* not even a cut tail: the file was taken back to its last frame */
	assert_int_equal(stat(d->file, &st), 0);
	assert_int_equal(rec_whole_bytes(r), st.st_size);
	rec_reader_free(r);
}

/* ---- base images --------------------------------------------------------- */

#define IMAGE_BYTES (40ULL << 20)

static void put_image(int fd)
{
	u8 block[4096];

	assert_int_equal(ftruncate(fd, IMAGE_BYTES), 0);
	memset(block, 0x11, sizeof(block));
	/* the first block, a run over a piece's border, one with a single
	 * byte, and the last */
	assert_int_equal(pwrite_full(fd, block, 4096, 0), 0);
	for (u64 at = (256 << 10) - 8192; at < (256 << 10) + 8192; at += 4096)
		assert_int_equal(pwrite_full(fd, block, 4096, at), 0);
	assert_int_equal(pwrite_full(fd, "x", 1, (20 << 20) + 4095), 0);
	assert_int_equal(pwrite_full(fd, block, 100, IMAGE_BYTES - 100), 0);
	/* zeroes that are stored */
	memset(block, 0, sizeof(block));
	assert_int_equal(pwrite_full(fd, block, 4096, 30 << 20), 0);
}

static void test_base_image_keeps_used_blocks_only(void **state)
{
	struct dir *d = *state;
	struct rec_writer *w = create(d->file, 0);
	int fd = memfd_create("image", MFD_CLOEXEC);
	u8 *image = xzalloc(IMAGE_BYTES), *rebuilt = xzalloc(IMAGE_BYTES);
	struct errmsg em = { "" };
	struct rec_reader *r;
	struct rec_base b;
	struct record rec;
	u64 stored = 0, bytes = 0;

	put_image(fd);
	assert_int_equal(pread_full(fd, image, IMAGE_BYTES, 0), 0);
	assert_int_equal(rec_put_base_image(w, DEV, fd, IMAGE_BYTES, &em), 0);
	assert_int_equal(rec_close(w, NULL), 0);
	r = open_ok(d->file);
	while (rec_next(r, &rec, NULL) > 0) {
		if (rec.type == REC_BASE) {
			assert_int_equal(rec_get_base(&rec, &b), 0);
			assert_int_equal(rec.dev, DEV);
			assert_true(b.offset_bytes + b.bytes <= IMAGE_BYTES);
			memcpy(rebuilt + b.offset_bytes, b.data, b.bytes);
			stored += b.bytes;
		} else if (rec.type == REC_BASE_END) {
			assert_int_equal(rec_get_base_end(&rec, &bytes), 0);
		}
	}
	assert_int_equal(bytes, IMAGE_BYTES);
	assert_int_equal(stored, 7 * 4096);
	assert_memory_equal(image, rebuilt, IMAGE_BYTES);
	rec_reader_free(r);
	close(fd);
	free(image);
	free(rebuilt);
}

static void test_base_image_smaller_than_its_device(void **state)
{
	struct dir *d = *state;
	struct rec_writer *w = create(d->file, 0);
	int fd = memfd_create("image", MFD_CLOEXEC);
	struct errmsg em = { "" };
	struct rec_reader *r;
	struct record rec;
	struct rec_base b;
	u64 bytes;

	assert_int_equal(pwrite_full(fd, "abc", 3, 0), 0);
	assert_int_equal(rec_put_base_image(w, DEV, fd, 1 << 20, &em), 0);
	assert_int_equal(rec_close(w, NULL), 0);
	r = open_ok(d->file);
	rec = next_ok(r, REC_BASE);
	assert_int_equal(rec_get_base(&rec, &b), 0);
	assert_int_equal(b.bytes, 3);
	rec = next_ok(r, REC_BASE_END);
	assert_int_equal(rec_get_base_end(&rec, &bytes), 0);
	assert_int_equal(bytes, 1 << 20);
	rec_reader_free(r);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_mode_and_overwriting),
		T(test_what_is_no_recording_is_refused),
		T(test_full_disk_leaves_a_whole_prefix),
		T(test_base_image_keeps_used_blocks_only),
		T(test_base_image_smaller_than_its_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
