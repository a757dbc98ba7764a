// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Operations on open files: the write family with its data, ftruncate,
 * fallocate, the sync family, and copies inside the kernel.
 *
 * Invariants:
 *  1. The offset of a write by the file's position is that position after the
 *     call less what was written, which is right for O_APPEND too. Of a
 *     positioned write that appends, it is the size less what was written.
 *  2. Only regular files are written to: what goes into a FIFO or a device
 *     does not change a file system.
 */
#include "fileops_data.h"
#include "fileops_hooks.h"

#if defined(__TARGET_ARCH_x86)
#define NR_SYNC 162
#else
#define NR_SYNC 81	/* asm-generic */
#endif

#define FALLOC_FL_KEEP_SIZE 1

/* ---- write ----------------------------------------------------------------- */

struct write_args {
	u64 addr, len;
	u64 off;
	u32 iovs;
	u32 rwf;
	u32 flags;
};

static __always_inline int enter_writing(u32 nr, s32 fd, struct write_args *a)
{
	struct call c = {};
	struct file *f;

	if (!in_pid_scope())
		return 0;
	f = file_of_fd(fd);
	if (!f || !file_in_scope(f) || !is_regular(f))
		return 0;
	call_start(&c, BOP_WRITE, nr);
	call_file(&c, f);
	c.fd = fd;
	c.addr = a->addr;
	c.len = a->len;
	c.off = a->off;
	c.iovs = a->iovs;
	c.rwf = a->rwf;
	c.flags = a->flags;
	call_keep(&c);
	return 0;
}

ENTER(write)
{
	struct write_args a = { .addr = ARG(1), .len = ARG(2) };

	return enter_writing(NR, ARG(0), &a);
}

ENTER(pwrite64)
{
	struct write_args a = { .addr = ARG(1), .len = ARG(2), .off = ARG(3),
				.flags = CALL_OFF };

	return enter_writing(NR, ARG(0), &a);
}

ENTER(writev)
{
	struct write_args a = { .addr = ARG(1), .iovs = ARG(2),
				.flags = CALL_VEC };

	return enter_writing(NR, ARG(0), &a);
}

/* The offset's other half is for 32-bit machines. */
ENTER(pwritev)
{
	struct write_args a = { .addr = ARG(1), .iovs = ARG(2), .off = ARG(3),
				.flags = CALL_VEC | CALL_OFF };

	return enter_writing(NR, ARG(0), &a);
}

ENTER(pwritev2)
{
	struct write_args a = { .addr = ARG(1), .iovs = ARG(2), .off = ARG(3),
				.rwf = ARG(5), .flags = CALL_VEC };

	if (a.off != (u64)-1)
		a.flags |= CALL_OFF;
	return enter_writing(NR, ARG(0), &a);
}

EXIT(write)
{
	struct scratch *s = call_take();

	if (s)
		put_write(s, ctx->ret, ctx);
	return 0;
}

/* ---- operations without data ------------------------------------------------ */

static __always_inline int enter_fd(u32 nr, u32 op, s32 fd, u64 off, u64 len,
				    u32 mode)
{
	struct call c = {};
	struct file *f;

	if (!in_pid_scope())
		return 0;
	f = file_of_fd(fd);
	if (!f || !file_in_scope(f))
		return 0;
	call_start(&c, op, nr);
	call_file(&c, f);
	c.fd = fd;
	c.off = off;
	c.len = len;
	c.mode = mode;
	call_keep(&c);
	return 0;
}

ENTER(fsync)
{
	return enter_fd(NR, BOP_FSYNC, ARG(0), 0, 0, 0);
}

ENTER(fdatasync)
{
	return enter_fd(NR, BOP_FDATASYNC, ARG(0), 0, 0, 0);
}

ENTER(syncfs)
{
	return enter_fd(NR, BOP_SYNCFS, ARG(0), 0, 0, 0);
}

ENTER(sync_file_range)
{
	return enter_fd(NR, BOP_SYNC_FILE_RANGE, ARG(0), ARG(1), ARG(2),
			ARG(3));
}

ENTER(ftruncate)
{
	return enter_fd(NR, BOP_TRUNCATE, ARG(0), 0, ARG(1), 0);
}

ENTER(fallocate)
{
	return enter_fd(NR, BOP_FALLOCATE, ARG(0), ARG(2), ARG(3), ARG(1));
}

/* The context of a call without arguments ends before its number does. */
ENTER(sync)
{
	struct call c = {};

	if (!in_pid_scope())
		return 0;
	call_start(&c, BOP_SYNC, NR_SYNC);
	call_keep(&c);
	return 0;
}

EXIT(fd)
{
	struct scratch *s = call_take();
	struct call *c;

	if (!s)
		return 0;
	c = &s->call;
	/* Preallocation writes nothing through the file, punching does. */
	if (c->op == BOP_FALLOCATE && !ctx->ret &&
	    c->mode & ~FALLOC_FL_KEEP_SIZE && call_file_stands(c))
		note_written((struct file *)c->file, false);
	op_begin(s, ctx->ret, c->dev);
	op_inode(s, (struct inode *)c->inode);
	put_stack(s, ctx);
	op_end(s);
	return 0;
}

/* ---- copies inside the kernel ------------------------------------------------ */

struct copy_args {
	s32 in, out;
	u64 off_in, off_out;	/* addresses, 0: the file's position */
	u64 len;
	u32 mode;
};

static __always_inline int enter_copying(u32 nr, struct copy_args *a)
{
	struct file *in, *out;
	struct call c = {};

	if (!in_pid_scope())
		return 0;
	out = file_of_fd(a->out);
	if (!out || !file_in_scope(out) || !is_regular(out))
		return 0;
	call_start(&c, BOP_COPY, nr);
	call_file(&c, out);
	in = file_of_fd(a->in);
	if (in) {
		c.src_file = (u64)in;
		c.src_inode = (u64)BPF_CORE_READ(in, f_inode);
	}
	if (!in || !is_regular(in) || !file_in_scope(in))
		c.event_flags = BFOP_DATA_UNKNOWN;
	c.fd = a->out;
	c.src_off = a->off_in;
	c.off = a->off_out;
	c.len = a->len;
	c.mode = a->mode;
	call_keep(&c);
	return 0;
}

ENTER(sendfile64)
{
	struct copy_args a = { .out = ARG(0), .in = ARG(1), .off_in = ARG(2),
			       .len = ARG(3) };

	return enter_copying(NR, &a);
}

ENTER(splice)
{
	struct copy_args a = { .in = ARG(0), .off_in = ARG(1), .out = ARG(2),
			       .off_out = ARG(3), .len = ARG(4),
			       .mode = ARG(5) };

	return enter_copying(NR, &a);
}

ENTER(copy_file_range)
{
	struct copy_args a = { .in = ARG(0), .off_in = ARG(1), .out = ARG(2),
			       .off_out = ARG(3), .len = ARG(4),
			       .mode = ARG(5) };

	return enter_copying(NR, &a);
}

/* Where a copy began: its offset has been moved on by what was copied. */
static __always_inline u64 began_at(u64 addr, u64 file, s64 ret)
{
	struct file *f = (void *)file;
	u64 off = 0;

	if (addr)
		bpf_probe_read_user(&off, sizeof(off), (const void *)addr);
	else if (f)
		off = BPF_CORE_READ(f, f_pos);
	return ret > 0 ? off - ret : off;
}

/* c->off, src_off and src_inode are set. */
static __always_inline void put_copy(struct scratch *s, s64 ret, void *ctx)
{
	struct call *c = &s->call;
	struct inode *src = (struct inode *)c->src_inode;

	if (ret > 0 && call_file_stands(c))
		note_written((struct file *)c->file, false);
	op_begin(s, ret, c->dev);
	op_inode(s, (struct inode *)c->inode);
	if (src) {
		s->ev.src_dev = BPF_CORE_READ(src, i_sb, s_dev);
		s->ev.src_ino = BPF_CORE_READ(src, i_ino);
		if ((BPF_CORE_READ(src, i_mode) & S_IFMT) == S_IFREG)
			s->ev.src_off = c->src_off;
	}
	put_stack(s, ctx);
	op_end(s);
}

EXIT(copy)
{
	struct scratch *s = call_take();
	s64 ret = ctx->ret;
	struct call *c;

	if (!s)
		return 0;
	c = &s->call;
	c->off = began_at(c->off, c->file, ret);
	c->src_off = began_at(c->src_off, c->src_file, ret);
	put_copy(s, ret, ctx);
	return 0;
}

/* ---- clones: copies by ioctl(), which cp makes where it can --------------------- */

#define FICLONE 0x40049409
#define FICLONERANGE 0x4020940d

struct file_clone_range {
	s64 src_fd;
	u64 src_offset;
	u64 src_length;		/* 0: to the end */
	u64 dest_offset;
};

ENTER(ioctl)
{
	u32 cmd = ARG(1);
	struct call c = {};
	struct file *out;

	if ((cmd != FICLONE && cmd != FICLONERANGE) || !in_pid_scope())
		return 0;
	out = file_of_fd(ARG(0));
	if (!out || !file_in_scope(out) || !is_regular(out))
		return 0;
	call_start(&c, BOP_COPY, NR);
	call_file(&c, out);
	c.fd = ARG(0);
	c.how = ARG(2);
	if (cmd == FICLONERANGE)
		c.flags = CALL_HOW;
	call_keep(&c);
	return 0;
}

/* A clone returns 0; it is recorded as the copy of so many bytes that it is. */
EXIT(clone)
{
	struct scratch *s = call_take();
	struct file_clone_range r = {};
	s64 ret = ctx->ret;
	struct file *in;
	struct call *c;

	if (!s)
		return 0;
	c = &s->call;
	r.src_fd = (s32)c->how;
	if (c->flags & CALL_HOW &&
	    bpf_probe_read_user(&r, sizeof(r), (const void *)c->how))
		r.src_fd = -1;
	in = file_of_fd(r.src_fd);
	c->len = r.src_length;
	c->off = r.dest_offset;
	c->src_off = r.src_offset;
	if (!in || !is_regular(in) || !file_in_scope(in))
		c->event_flags = BFOP_DATA_UNKNOWN;
	if (in) {
		c->src_inode = (u64)BPF_CORE_READ(in, f_inode);
		if (!c->len)
			c->len = BPF_CORE_READ(in, f_inode, i_size) -
				 c->src_off;
	}
	put_copy(s, ret ?: (s64)c->len, ctx);
	return 0;
}
