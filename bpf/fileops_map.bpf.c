// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shared mappings: mmap of a writable one, msync.
 *
 * Invariants:
 *  1. What is stored through a mapping is not seen. The file counts as written
 *     from the mapping on.
 *  2. msync gives the file range of the first mapping in its range. If the
 *     mapping cannot be looked at (its lock is taken), it gives the addresses
 *     and no inode.
 */
#include "fileops_hooks.h"
#include "fileops_put.h"

#define PROT_WRITE 2
#define MAP_TYPE 15
#define MAP_SHARED 1
#define MAP_SHARED_VALIDATE 3
#define PAGE_SHIFT 12

static __always_inline int enter_mapping(u32 nr, u64 len, u32 prot, u32 flags,
					 s32 fd, u64 off)
{
	u32 type = flags & MAP_TYPE;
	struct written *w;
	struct call c = {};
	struct file *f;

	if (fd < 0 || !in_pid_scope())
		return 0;
	f = file_of_fd(fd);
	if (!f || !file_in_scope(f))
		return 0;
	if (!(prot & PROT_WRITE) ||
	    (type != MAP_SHARED && type != MAP_SHARED_VALIDATE)) {
		w = written_of(f);
		if (w)
			__sync_fetch_and_add(&w->maps, 1);
		return 0;
	}
	call_start(&c, BOP_MMAP_SHARED, nr);
	call_file(&c, f);
	c.fd = fd;
	c.off = off;
	c.len = len;
	c.mode = prot;
	call_keep(&c);
	return 0;
}

ENTER(mmap)
{
	return enter_mapping(NR, ARG(1), ARG(2), ARG(3), ARG(4), ARG(5));
}

EXIT(mmap)
{
	struct scratch *s = call_take();
	s64 ret = ctx->ret;
	struct call *c;

	if (!s)
		return 0;
	c = &s->call;
	if (!(ret < 0 && ret > -4096) && call_file_stands(c))
		note_written((struct file *)c->file, true);
	op_begin(s, ret, c->dev);
	op_inode(s, (struct inode *)c->inode);
	put_stack(s, ctx);
	op_end(s);
	return 0;
}

ENTER(msync)
{
	struct call c = {};

	if (!in_pid_scope())
		return 0;
	call_start(&c, BOP_MSYNC, NR);
	c.addr = ARG(0);
	c.len = ARG(1);
	c.mode = ARG(2);
	call_keep(&c);
	return 0;
}

struct found_vma {
	u64 start, end, pgoff;
	u64 file;
};

static long found(struct task_struct *task, struct vm_area_struct *vma,
		  struct found_vma *v)
{
	v->start = BPF_CORE_READ(vma, vm_start);
	v->end = BPF_CORE_READ(vma, vm_end);
	v->pgoff = BPF_CORE_READ(vma, vm_pgoff);
	v->file = (u64)BPF_CORE_READ(vma, vm_file);
	return 0;
}

EXIT(msync)
{
	struct scratch *s = call_take();
	struct found_vma v = {};
	struct file *f;
	struct call *c;

	if (!s)
		return 0;
	c = &s->call;
	if (bpf_find_vma(bpf_get_current_task_btf(), c->addr, found, &v, 0)) {
		c->off = c->addr;
	} else {
		f = (struct file *)v.file;
		if (!f || !file_in_scope(f))
			return 0;
		call_file(c, f);
		c->off = (v.pgoff << PAGE_SHIFT) + (c->addr - v.start);
		if (c->len > v.end - c->addr)
			c->len = v.end - c->addr;
	}
	op_begin(s, ctx->ret, c->dev);
	op_inode(s, (struct inode *)c->inode);
	put_stack(s, ctx);
	op_end(s);
	return 0;
}
