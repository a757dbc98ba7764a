/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the programs that do known file operations (fileops_*.c) and the one
 * that lists a recording (fileops_list.c) have in common: an operation as a
 * line of text, and the list of those that are expected.
 *
 * Invariant: what is expected comes from the calls' own results and from
 * fstat(), never from the recorder.
 */
#ifndef FILEOPS_PLAN_H
#define FILEOPS_PLAN_H

#include "../../replay/recording.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* By number, so that each hook is met; the kernel's own result. */
#define CALL(...) call_result(syscall(__VA_ARGS__))
#define SHARED __attribute__((unused)) static

struct plan {
	const char *dir;	/* absolute */
	const char *self;	/* the program's own path */
	u64 dir_ino;
	int fd;			/* a file that children inherit */
	struct buf lines;
};

SHARED long call_result(long r)
{
	return r < 0 ? -errno : r;
}

SHARED void fail(const char *what)
{
	perror(what);
	exit(2);
}

SHARED void put_text(struct buf *b, const char *name, const char *text)
{
	char *t = text ? xasprintf(" %s='%s'", name, text)
		       : xasprintf(" %s=-", name);

	buf_put(b, t, strlen(t));
	free(t);
}

SHARED u64 hash_of(const void *data, u32 bytes)
{
	u64 h = 14695981039346656037ULL;

	for (u32 i = 0; i < bytes; i++)
		h = (h ^ ((const u8 *)data)[i]) * 1099511628211ULL;
	return h;
}

/* One line, with everything but who did it and when. */
SHARED void put_op(struct buf *b, const struct rec_file_op *op)
{
	char *t = xasprintf(
		"%s ret=%lld fd=%d flags=%x oflags=%o mode=%o off=%lld "
		"len=%lld ino=%llu size=%llu nlink=%u fmode=%o dir=%llu "
		"dir2=%llu src=%llu@%lld data=%u:%llx",
		file_op_name(op->op), (long long)op->ret, op->fd, op->flags,
		op->open_flags, op->mode, (long long)op->off,
		(long long)op->len, (unsigned long long)op->ino,
		(unsigned long long)op->size, op->nlink, op->file_mode,
		(unsigned long long)op->dir_ino,
		(unsigned long long)op->dir2_ino,
		(unsigned long long)op->src_ino, (long long)op->src_off,
		op->data_bytes,
		(unsigned long long)hash_of(op->data, op->data_bytes));

	buf_put(b, t, strlen(t));
	free(t);
	put_text(b, "path", op->path);
	put_text(b, "path2", op->path2);
	put_text(b, "from", op->dir_path);
	put_text(b, "from2", op->dir2_path);
	put_text(b, "file", op->file_path);
	buf_put_u8(b, '\n');
}

SHARED void put_mark(struct buf *b, const char *text)
{
	char *t = xasprintf("mark '%s'\n", text);

	buf_put(b, t, strlen(t));
	free(t);
}

/* ---- expectations ----------------------------------------------------------- */

SHARED void expect(struct plan *p, const struct rec_file_op *op)
{
	put_op(&p->lines, op);
}

SHARED struct rec_file_op new_op(u8 op, long ret, int fd)
{
	struct rec_file_op e = { .op = op, .ret = ret, .fd = fd };

	return e;
}

/* The object as it is now. */
SHARED void of_fd(struct rec_file_op *e, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		fail("fstat");
	e->ino = st.st_ino;
	e->size = st.st_size;
	e->nlink = st.st_nlink;
	e->file_mode = st.st_mode;
	if (e->op != OP_OPEN)
		e->open_flags = fcntl(fd, F_GETFL);
}

SHARED void opened(struct plan *p, long fd, const char *path, u32 flags,
		   u32 mode, bool created, const char *file)
{
	struct rec_file_op e = new_op(OP_OPEN, fd, fd < 0 ? FD_NONE : fd);

	e.open_flags = flags;
	e.mode = mode;
	e.path = (char *)path;
	if (path[0] != '/') {
		e.dir_ino = p->dir_ino;
		e.dir_path = "";
	}
	if (fd >= 0) {
		of_fd(&e, fd);
		e.file_path = (char *)file;
	}
	e.flags = created ? FOP_CREATED : 0;
	if ((flags & O_SYNC) == O_SYNC)
		e.flags |= FOP_SYNC_WRITE;
	else if (flags & O_DSYNC)
		e.flags |= FOP_DSYNC_WRITE;
	expect(p, &e);
}

/* Opens anew, as most of the programs' opens are. */
SHARED int must_open(struct plan *p, const char *path, int flags)
{
	bool there = !access(path, F_OK);
	int fd = open(path, flags, 0644);

	if (fd < 0)
		fail(path);
	opened(p, fd, path, flags, flags & O_CREAT ? 0644 : 0, !there, path);
	return fd;
}

/* Writes so that the file counts as written. */
SHARED void must_write(struct plan *p, int fd, const char *text)
{
	struct rec_file_op e = new_op(OP_WRITE, strlen(text), fd);

	e.off = lseek(fd, 0, SEEK_CUR);
	if (write(fd, text, strlen(text)) != e.ret)
		fail("write");
	of_fd(&e, fd);
	e.len = e.ret;
	e.data = text;
	e.data_bytes = e.ret;
	expect(p, &e);
}

/* A close is about to be done: of fd, a file that was written through. */
SHARED void closing(struct plan *p, long ret, int fd, u32 flags)
{
	struct rec_file_op e = new_op(OP_CLOSE, ret, fd);

	of_fd(&e, fd);
	e.flags = flags | FOP_WRITTEN;
	if (flags & FOP_LAST_CLOSE && !e.nlink)
		e.size = 0;
	if (flags & FOP_AT_EXIT)
		e.syscall = UINT32_MAX;
	expect(p, &e);
}

SHARED void closed(struct plan *p, int fd, u32 flags)
{
	closing(p, 0, fd, flags);
	if (CALL(SYS_close, fd))
		fail("close");
}

SHARED u64 ino_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

SHARED int plan_write(struct plan *p, const char *path)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);

	if (fd < 0 || write_full(fd, p->lines.data, p->lines.len))
		fail(path);
	close(fd);
	buf_free(&p->lines);
	return 0;
}

#endif
