// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fileops_uring DIR EXPECTED: file operations through io_uring in DIR, an
 * empty directory at the root of its file system; writes down what a recording
 * of it must hold, a line each. Exits 77 where the kernel has no io_uring.
 */
#include "fileops_plan.h"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define ENTRIES 8
#define BIG_BYTES (200 * 1024 + 3)

struct uring {
	int fd;
	u32 *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static void uring_open(struct uring *u)
{
	struct io_uring_params p = { 0 };
	size_t bytes;
	u8 *rings;

	u->fd = syscall(SYS_io_uring_setup, ENTRIES, &p);
	if (u->fd < 0)
		exit(77);
	bytes = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	bytes = MAX(bytes, p.sq_off.array + p.sq_entries * sizeof(u32));
	rings = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd,
		     IORING_OFF_SQ_RING);
	u->sqes = mmap(NULL, p.sq_entries * sizeof(struct io_uring_sqe),
		       PROT_READ | PROT_WRITE, MAP_SHARED, u->fd,
		       IORING_OFF_SQES);
	if (rings == MAP_FAILED || u->sqes == MAP_FAILED ||
	    !(p.features & IORING_FEAT_SINGLE_MMAP))
		fail("io_uring");
	u->sq_tail = (u32 *)(rings + p.sq_off.tail);
	u->sq_mask = (u32 *)(rings + p.sq_off.ring_mask);
	u->sq_array = (u32 *)(rings + p.sq_off.array);
	u->cq_head = (u32 *)(rings + p.cq_off.head);
	u->cq_mask = (u32 *)(rings + p.cq_off.ring_mask);
	u->cqes = (struct io_uring_cqe *)(rings + p.cq_off.cqes);
}

static void queue(struct uring *u, const struct io_uring_sqe *q)
{
	u32 tail = *u->sq_tail, at = tail & *u->sq_mask;

	u->sqes[at] = *q;
	u->sq_array[at] = at;
	__atomic_store_n(u->sq_tail, tail + 1, __ATOMIC_RELEASE);
}

static void submit(struct uring *u, u32 n)
{
	if (syscall(SYS_io_uring_enter, u->fd, n, n, IORING_ENTER_GETEVENTS,
		    NULL, 0) != n)
		fail("io_uring_enter");
}

static long completed(struct uring *u)
{
	u32 head = *u->cq_head;
	long res = u->cqes[head & *u->cq_mask].res;

	__atomic_store_n(u->cq_head, head + 1, __ATOMIC_RELEASE);
	return res;
}

static long request(struct uring *u, struct io_uring_sqe q)
{
	queue(u, &q);
	submit(u, 1);
	return completed(u);
}

/* ---- data --------------------------------------------------------------------- */

static void did(struct plan *p, u8 op, long ret, int fd, u64 off, u64 len,
		u32 mode, const void *data)
{
	struct rec_file_op e = new_op(op, ret, fd);

	of_fd(&e, fd);
	e.flags = FOP_IO_URING;
	e.off = off;
	e.len = len;
	e.mode = mode;
	if (data && ret > 0) {
		e.data = data;
		e.data_bytes = ret;
	}
	expect(p, &e);
}

static void do_writes(struct plan *p, struct uring *u, int fd)
{
	struct iovec v[2] = { { "one,", 4 }, { "three", 5 } };
	char *big = xmalloc(BIG_BYTES);
	long r;

	for (u32 i = 0; i < BIG_BYTES; i++)
		big[i] = i * 11 + i / 4096;
	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_WRITE,
			.fd = fd, .addr = (u64)big, .len = BIG_BYTES,
			.off = 77 });
	did(p, OP_WRITE, r, fd, 77, BIG_BYTES, 0, big);
	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_WRITEV,
			.fd = fd, .addr = (u64)v, .len = 2, .off = 5000 });
	did(p, OP_WRITE, r, fd, 5000, 9, 0, "one,three");
	lseek(fd, 50, SEEK_SET);
	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_WRITE,
			.fd = fd, .addr = (u64)big, .len = 10, .off = -1 });
	did(p, OP_WRITE, r, fd, 50, 10, 0, big);
	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_WRITE,
			.fd = fd, .addr = 8, .len = 10 });
	did(p, OP_WRITE, r, fd, 0, 10, 0, NULL);
	v[0] = (struct iovec){ big, 8192 };
	if (syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_BUFFERS, v,
		    1))
		fail("io_uring_register");
	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_WRITE_FIXED,
			.fd = fd, .addr = (u64)big + 1, .len = 5000,
			.off = 300000 });
	did(p, OP_WRITE, r, fd, 300000, 5000, 0, big + 1);
	free(big);
}

static void do_others(struct plan *p, struct uring *u, int fd)
{
	long r;

	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_FALLOCATE,
			.fd = fd, .off = 100, .addr = 900000 });
	did(p, OP_FALLOCATE, r, fd, 100, 900000, 0, NULL);
	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_FSYNC,
			.fd = fd });
	did(p, OP_FSYNC, r, fd, 0, 0, 0, NULL);
	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_FSYNC,
			.fd = fd, .fsync_flags = IORING_FSYNC_DATASYNC });
	did(p, OP_FDATASYNC, r, fd, 0, 0, 0, NULL);
}

/* A write and an fsync of it, linked, by the number of a registered file. */
static void do_linked(struct plan *p, struct uring *u, int fd)
{
	struct io_uring_sqe w = { .opcode = IORING_OP_WRITE, .fd = 0,
				  .addr = (u64)"linked", .len = 6, .off = 9,
				  .flags = IOSQE_IO_LINK | IOSQE_FIXED_FILE };
	struct io_uring_sqe f = { .opcode = IORING_OP_FSYNC, .fd = 0,
				  .flags = IOSQE_FIXED_FILE };
	struct rec_file_op e = new_op(OP_WRITE, 6, FD_NONE);

	if (syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_FILES, &fd,
		    1))
		fail("io_uring_register");
	queue(u, &w);
	queue(u, &f);
	submit(u, 2);
	if (completed(u) != 6 || completed(u))
		fail("linked requests");
	of_fd(&e, fd);
	e.flags = FOP_IO_URING;
	e.off = 9;
	e.len = 6;
	e.data = "linked";
	e.data_bytes = 6;
	expect(p, &e);
	e.op = OP_FSYNC;
	e.ret = e.off = e.len = e.data_bytes = 0;
	expect(p, &e);
	if (syscall(SYS_io_uring_register, u->fd, IORING_UNREGISTER_FILES, NULL,
		    0))
		fail("io_uring_register");
}

/* ---- names -------------------------------------------------------------------- */

static void named(struct plan *p, u8 op, long ret, const char *path,
		  const char *path2, u32 mode)
{
	struct rec_file_op e = new_op(op, ret, FD_NONE);

	e.flags = FOP_IO_URING;
	e.mode = mode;
	e.path = (char *)path;
	e.path2 = (char *)path2;
	if (op != OP_SYMLINK) {
		e.dir_ino = p->dir_ino;
		e.dir_path = "";
	}
	if (path2) {
		e.dir2_ino = p->dir_ino;
		e.dir2_path = "";
	}
	expect(p, &e);
}

static int do_open(struct plan *p, struct uring *u)
{
	u32 flags = O_CREAT | O_RDWR;
	struct rec_file_op e;
	long r;

	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_OPENAT,
			.fd = AT_FDCWD, .addr = (u64)"f1", .len = 0640,
			.open_flags = flags });
	if (r < 0)
		fail("openat");
	e = new_op(OP_OPEN, r, r);
	of_fd(&e, r);
	e.flags = FOP_CREATED | FOP_IO_URING;
	e.open_flags = flags;
	e.mode = 0640;
	e.path = "f1";
	e.dir_ino = p->dir_ino;
	e.dir_path = "";
	e.file_path = "f1";
	expect(p, &e);
	return r;
}

static void do_names(struct plan *p, struct uring *u)
{
	u32 cwd = AT_FDCWD;
	long r;

	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_MKDIRAT,
			.fd = cwd, .addr = (u64)"dir", .len = 0755 });
	named(p, OP_MKDIR, r, "dir", NULL, 0755);
	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_LINKAT,
			.fd = cwd, .addr = (u64)"f1", .len = cwd,
			.addr2 = (u64)"f2" });
	named(p, OP_LINK, r, "f1", "f2", 0);
	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_RENAMEAT,
			.fd = cwd, .addr = (u64)"f2", .len = cwd,
			.addr2 = (u64)"f3" });
	named(p, OP_RENAME, r, "f2", "f3", 0);
	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_SYMLINKAT,
			.fd = cwd, .addr = (u64)"to/where",
			.addr2 = (u64)"s" });
	named(p, OP_SYMLINK, r, "to/where", "s", 0);
	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_UNLINKAT,
			.fd = cwd, .addr = (u64)"dir",
			.unlink_flags = AT_REMOVEDIR });
	named(p, OP_UNLINK, r, "dir", NULL, AT_REMOVEDIR);
	r = request(u, (struct io_uring_sqe){ .opcode = IORING_OP_UNLINKAT,
			.fd = cwd, .addr = (u64)"dir" });
	named(p, OP_UNLINK, r, "dir", NULL, 0);
}

int main(int argc, char **argv)
{
	struct plan p = { 0 };
	struct rec_file_op e;
	struct uring u;
	int fd;

	if (argc != 3 || chdir(argv[1]))
		fail("usage: fileops_uring DIR EXPECTED");
	umask(022);
	p.dir = realpath(".", NULL);
	p.dir_ino = ino_of(".");
	uring_open(&u);
	fd = do_open(&p, &u);
	do_writes(&p, &u, fd);
	do_others(&p, &u, fd);
	do_linked(&p, &u, fd);
	do_names(&p, &u);
	e = new_op(OP_CLOSE, 0, fd);
	of_fd(&e, fd);
	e.flags = FOP_IO_URING | FOP_WRITTEN | FOP_LAST_CLOSE;
	expect(&p, &e);
	if (request(&u, (struct io_uring_sqe){ .opcode = IORING_OP_CLOSE,
					       .fd = fd }))
		fail("close");
	return plan_write(&p, argv[2]);
}
