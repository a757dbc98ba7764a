// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fileops_data DIR EXPECTED: opens, writes, maps and copies files in DIR, an
 * empty directory at the root of its file system, with known arguments, also
 * failing ones, and writes down what a recording of it must hold, a line each.
 */
#include "fileops_plan.h"

#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define BIG_BYTES (300 * 1024 + 5)

/* ---- open ------------------------------------------------------------------ */

static void do_opens(struct plan *p)
{
	struct open_how how = { .flags = O_CREAT | O_WRONLY, .mode = 0640 };
	char *abs = xasprintf("%s/abs", p->dir);
	u32 rw = O_CREAT | O_RDWR | O_TRUNC;
	long fd;

	fd = CALL(SYS_open, "f1", rw, 0644);
	opened(p, fd, "f1", rw, 0644, true, "f1");
	close(fd);
	fd = CALL(SYS_openat, AT_FDCWD, "f1", O_WRONLY | O_SYNC, 0);
	opened(p, fd, "f1", O_WRONLY | O_SYNC, 0, false, "f1");
	close(fd);
	fd = CALL(SYS_openat, AT_FDCWD, "f1", O_WRONLY | O_DSYNC, 0);
	opened(p, fd, "f1", O_WRONLY | O_DSYNC, 0, false, "f1");
	close(fd);
	fd = CALL(SYS_creat, abs, 0600);
	opened(p, fd, abs, O_CREAT | O_WRONLY | O_TRUNC, 0600, true, "abs");
	close(fd);
	fd = CALL(SYS_openat2, AT_FDCWD, "f2", &how, sizeof(how));
	opened(p, fd, "f2", how.flags, how.mode, true, "f2");
	close(fd);
	fd = CALL(SYS_open, "f1", O_RDONLY, 0);	/* not recorded */
	close(fd);
	fd = CALL(SYS_open, "missing", O_WRONLY, 0);
	opened(p, fd, "missing", O_WRONLY, 0, false, NULL);
	fd = CALL(SYS_openat, AT_FDCWD, "f1", O_CREAT | O_EXCL | O_RDWR, 0644);
	opened(p, fd, "f1", O_CREAT | O_EXCL | O_RDWR, 0644, false, NULL);
	fd = CALL(SYS_openat, AT_FDCWD, "/blkbox:mark/half way", O_RDONLY, 0);
	put_mark(&p->lines, "half way");
	free(abs);
}

/* ---- write ----------------------------------------------------------------- */

struct wrote {
	u64 off, len;
	u32 flags;
	const void *data;
};

static void wrote(struct plan *p, long ret, int fd, struct wrote w)
{
	struct rec_file_op e = new_op(OP_WRITE, ret, fd);

	of_fd(&e, fd);
	e.off = w.off;
	e.len = w.len;
	e.flags = w.flags;
	if (ret > 0) {
		e.data = w.data;
		e.data_bytes = ret;
	}
	expect(p, &e);
}

static void do_positioned(struct plan *p, int fd)
{
	struct iovec v[3] = { { "one,", 4 }, { "", 0 }, { "three", 5 } };
	long r;

	r = CALL(SYS_pwrite64, fd, "seven", 5, 7L);
	wrote(p, r, fd, (struct wrote){ 7, 5, 0, "seven" });
	r = CALL(SYS_pwritev, fd, v, 3, 100L, 0L);
	wrote(p, r, fd, (struct wrote){ 100, 9, 0, "one,three" });
	r = CALL(SYS_pwritev2, fd, v, 3, 200L, 0L, RWF_DSYNC);
	wrote(p, r, fd, (struct wrote){ 200, 9, FOP_DSYNC_WRITE, "one,three" });
	r = CALL(SYS_pwritev2, fd, v, 1, 300L, 0L, RWF_SYNC);
	wrote(p, r, fd, (struct wrote){ 300, 4, FOP_SYNC_WRITE, "one," });
	lseek(fd, 400, SEEK_SET);
	r = CALL(SYS_pwritev2, fd, v, 1, -1L, -1L, 0);
	wrote(p, r, fd, (struct wrote){ 400, 4, 0, "one," });
	r = CALL(SYS_pwritev2, fd, v, 1, 0L, 0L, RWF_APPEND);
	wrote(p, r, fd, (struct wrote){ 404, 4, 0, "one," });
}

static void do_writes(struct plan *p)
{
	struct iovec v[3] = { { "one,", 4 }, { "", 0 }, { "three", 5 } };
	int fd = must_open(p, "f1", O_RDWR), ro = open("f1", O_RDONLY);
	char *big = xmalloc(BIG_BYTES + 3);
	long r;

	for (u32 i = 0; i < BIG_BYTES + 3; i++)
		big[i] = i * 7 + i / 4096;
	r = CALL(SYS_write, fd, "hello", 5);
	wrote(p, r, fd, (struct wrote){ 0, 5, 0, "hello" });
	r = CALL(SYS_writev, fd, v, 3);
	wrote(p, r, fd, (struct wrote){ 5, 9, 0, "one,three" });
	do_positioned(p, fd);
	r = CALL(SYS_pwrite64, fd, big + 3, BIG_BYTES, 1000L);
	wrote(p, r, fd, (struct wrote){ 1000, BIG_BYTES, 0, big + 3 });
	r = CALL(SYS_pwrite64, fd, NULL, 5, 0L);
	wrote(p, r, fd, (struct wrote){ 0, 5, 0, NULL });
	r = CALL(SYS_pwrite64, ro, "x", 1, 0L);
	wrote(p, r, ro, (struct wrote){ 0, 1, 0, NULL });
	/* The second buffer is not there: what was written is the first. */
	v[1] = (struct iovec){ (void *)8, 100 };
	lseek(fd, 50, SEEK_SET);
	r = CALL(SYS_writev, fd, v, 2);
	wrote(p, r, fd, (struct wrote){ 50, 104, 0, "one," });
	close(ro);
	closed(p, fd, FOP_LAST_CLOSE);
	free(big);
}

static void do_appends(struct plan *p)
{
	int fd = must_open(p, "f1", O_WRONLY | O_APPEND);
	u64 size;
	long r;

	size = lseek(fd, 0, SEEK_END);
	lseek(fd, 0, SEEK_SET);
	r = CALL(SYS_write, fd, "tail", 4);
	wrote(p, r, fd, (struct wrote){ size, 4, 0, "tail" });
	/* Linux appends wherever pwrite() is told to go. */
	r = CALL(SYS_pwrite64, fd, "end", 3, 0L);
	wrote(p, r, fd, (struct wrote){ size + 4, 3, 0, "end" });
	closed(p, fd, FOP_LAST_CLOSE);
}

/* ---- operations on an open file --------------------------------------------- */

static void did(struct plan *p, u8 op, long ret, int fd, u64 off, u64 len,
		u32 mode)
{
	struct rec_file_op e = new_op(op, ret, fd);

	of_fd(&e, fd);
	e.off = off;
	e.len = len;
	e.mode = mode;
	expect(p, &e);
}

static void do_fd_ops(struct plan *p)
{
	int fd = must_open(p, "f2", O_RDWR);
	struct rec_file_op e;
	long r;

	r = CALL(SYS_ftruncate, fd, 12345L);
	did(p, OP_TRUNCATE, r, fd, 0, 12345, 0);
	r = CALL(SYS_ftruncate, fd, -1L);
	did(p, OP_TRUNCATE, r, fd, 0, -1, 0);
	r = CALL(SYS_fallocate, fd, 0, 100L, 20000L);
	did(p, OP_FALLOCATE, r, fd, 100, 20000, 0);
	r = CALL(SYS_fsync, fd);
	did(p, OP_FSYNC, r, fd, 0, 0, 0);
	r = CALL(SYS_fdatasync, fd);
	did(p, OP_FDATASYNC, r, fd, 0, 0, 0);
	r = CALL(SYS_syncfs, fd);
	did(p, OP_SYNCFS, r, fd, 0, 0, 0);
	r = CALL(SYS_sync_file_range, fd, 4096L, 8192L,
		 SYNC_FILE_RANGE_WRITE);
	did(p, OP_SYNC_FILE_RANGE, r, fd, 4096, 8192, SYNC_FILE_RANGE_WRITE);
	r = CALL(SYS_sync);
	e = new_op(OP_SYNC, r, FD_NONE);
	expect(p, &e);
	close(fd);	/* nothing was written through it */
	fd = must_open(p, "f2", O_RDWR);
	r = CALL(SYS_fallocate, fd,
		 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096L, 4096L);
	did(p, OP_FALLOCATE, r, fd, 4096, 4096,
	    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
	closed(p, fd, FOP_LAST_CLOSE);
}

static void do_maps(struct plan *p)
{
	int fd = must_open(p, "f2", O_RDWR);
	struct rec_file_op e;
	char *map;
	long r;

	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	if (map == MAP_FAILED)
		fail("mmap");
	did(p, OP_MMAP_SHARED, (long)map, fd, 4096, 8192,
	    PROT_READ | PROT_WRITE);
	map[4096] = 'x';
	r = CALL(SYS_msync, map + 4096, 4096L, MS_SYNC);
	e = new_op(OP_MSYNC, r, FD_NONE);
	of_fd(&e, fd);
	e.off = 8192;
	e.len = 4096;
	e.mode = MS_SYNC;
	expect(p, &e);
	/* The mapping still holds the file. */
	closed(p, dup(fd), 0);
	munmap(map, 8192);
	closed(p, fd, FOP_LAST_CLOSE);
}

/* ---- copies inside the kernel ------------------------------------------------ */

static void copied(struct plan *p, long ret, int fd, u64 off, u64 len, int src,
		   u64 src_off)
{
	struct rec_file_op e = new_op(OP_COPY, ret, fd);
	struct stat st;

	of_fd(&e, fd);
	e.off = off;
	e.len = len;
	if (fstat(src, &st))
		fail("fstat");
	e.src_ino = st.st_ino;
	e.src_off = src_off;
	if (!S_ISREG(st.st_mode))
		e.flags = FOP_DATA_UNKNOWN;
	expect(p, &e);
}

/* Not every file system can: then it is a failed call, and recorded too. */
static void do_clones(struct plan *p, int in, int out)
{
	struct file_clone_range range = { .src_fd = in, .src_offset = 4096,
					  .src_length = 8192,
					  .dest_offset = 12288 };
	struct stat st;
	long r;

	if (fstat(in, &st))
		fail("fstat");
	r = CALL(SYS_ioctl, out, FICLONERANGE, &range);
	copied(p, r ?: 8192, out, 12288, 8192, in, 4096);
	r = CALL(SYS_ioctl, out, FICLONE, in);
	copied(p, r ?: st.st_size, out, 0, st.st_size, in, 0);
}

static void do_copies(struct plan *p)
{
	int in = open("f1", O_RDONLY), out = must_open(p, "f3", O_CREAT | O_RDWR);
	loff_t from = 10, to = 500;
	int pipes[2];
	long r;

	r = CALL(SYS_sendfile, out, in, &from, 20L);
	copied(p, r, out, 0, 20, in, 10);
	lseek(in, 5, SEEK_SET);
	r = CALL(SYS_copy_file_range, in, NULL, out, NULL, 7L, 0);
	copied(p, r, out, 20, 7, in, 5);
	from = 1000;
	r = CALL(SYS_copy_file_range, in, &from, out, &to, 5000L, 0);
	copied(p, r, out, 500, 5000, in, 1000);
	if (pipe(pipes) || write(pipes[1], "piped", 5) != 5)
		fail("pipe");
	to = 6000;
	r = CALL(SYS_splice, pipes[0], NULL, out, &to, 5L, 0);
	copied(p, r, out, 6000, 5, pipes[0], 0);
	close(pipes[0]);
	close(pipes[1]);
	do_clones(p, in, out);
	close(in);
	closed(p, out, FOP_LAST_CLOSE);
}

int main(int argc, char **argv)
{
	struct plan p = { 0 };

	if (argc != 3 || chdir(argv[1]))
		fail("usage: fileops_data DIR EXPECTED");
	umask(022);
	p.dir = realpath(".", NULL);
	p.dir_ino = ino_of(".");
	do_opens(&p);
	do_writes(&p);
	do_appends(&p);
	do_fd_ops(&p);
	do_maps(&p);
	do_copies(&p);
	return plan_write(&p, argv[2]);
}
