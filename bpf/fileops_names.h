/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names: where they start, whether they may lead into the scope, and the whole
 * of an operation that has nothing else.
 *
 * Invariants:
 *  1. A directory of a recorded file system is told by its path from that file
 *     system's root; any other one by its path from the process's root, through
 *     all mounts on the way (BFOP_DIR_ABSOLUTE).
 *  2. A name is left out only when it cannot lead into the scope: one
 *     component, in a directory outside, that is not followed if it is a
 *     symbolic link. Of the others user space decides.
 */
#ifndef BLKBOX_FILEOPS_NAMES_H
#define BLKBOX_FILEOPS_NAMES_H

#include "fileops_put.h"

/* Names are up to 255 bytes, but a path may be all short ones. */
#define MAX_DEPTH 2048
#define MAX_NAME 255

#define AT_SYMLINK_FOLLOW 0x400

/* ---- as passed ----------------------------------------------------------- */

/* Reads a path as passed into s->path.text; 0 when it cannot be read. */
static __always_inline u32 read_path(struct scratch *s, u64 addr, u32 kind)
{
	struct saved_key key = { .req = s->uring_req, .kind = kind };
	struct saved_path *p;
	long n = -1;

	if (s->call.flags & CALL_SAVED) {
		p = bpf_map_lookup_elem(&saved_paths, &key);
		if (p)
			n = bpf_probe_read_kernel_str(s->path.text, EV_PATH_MAX,
						      p->text);
	} else {
		n = bpf_probe_read_user_str(s->path.text, EV_PATH_MAX,
					    (const void *)addr);
	}
	if (n < 0 || n > EV_PATH_MAX) {
		s->path.text[0] = 0;
		return 0;
	}
	return n ?: 1;	/* older kernels count no NUL of an empty string */
}

static __noinline int put_user_path(struct scratch *s, u64 addr, u32 kind)
{
	u32 n, flags = 0;
	char last = 0;

	if (!s)
		return 0;
	n = read_path(s, addr, kind);
	if (!n) {
		s->ev.flags |= kind == EV_PATH_1 ? BFOP_PATH_UNREADABLE
						 : BFOP_PATH2_UNREADABLE;
		n = 1;
		flags = PATH_UNREADABLE;
	} else if (n == EV_PATH_MAX) {
		bpf_probe_read_user(&last, 1,
				    (const void *)(addr + EV_PATH_MAX - 1));
		if (last)
			flags = PATH_CUT;
	}
	put_path(s, kind, n, flags);
	return 0;
}

/* ---- ways up ------------------------------------------------------------- */

/* Goes up from d by one component; false where there is no room for it. */
static __always_inline bool push_name(struct scratch *s, struct dentry *d)
{
	const unsigned char *name;
	u32 pos = s->walk.pos;
	long n;

	if (pos >= EV_PATH_MAX - 1)
		return false;
	name = BPF_CORE_READ(d, d_name.name);
	n = bpf_probe_read_kernel_str(s->path.text + pos, MAX_NAME + 1, name);
	if (n <= 0 || n > MAX_NAME + 1)
		return false;
	s->walk.pos = pos + n;
	s->walk.dentry = (u64)BPF_CORE_READ(d, d_parent);
	return true;
}

/* To the root of the file system. */
static long walk_up(u32 i, void *ctx)
{
	struct scratch *s = get_scratch();
	struct dentry *d;

	if (!s)
		return 1;
	d = (void *)s->walk.dentry;
	if (!d || d == BPF_CORE_READ(d, d_parent)) {
		s->walk.done = 1;
		return 1;
	}
	return !push_name(s, d);
}

/* To the root of the process, from the root of a mount to what it is on. */
static long walk_up_mounts(u32 i, void *ctx)
{
	struct scratch *s = get_scratch();
	struct mount *m, *parent;
	struct vfsmount *mnt;
	struct dentry *d;

	if (!s)
		return 1;
	d = (void *)s->walk.dentry;
	mnt = (void *)s->walk.mnt;
	if ((u64)d == s->walk.root && (u64)mnt == s->walk.root_mnt) {
		s->walk.done = 1;
		return 1;
	}
	if (d != BPF_CORE_READ(mnt, mnt_root))
		return d == BPF_CORE_READ(d, d_parent) || !push_name(s, d);
	m = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
	parent = BPF_CORE_READ(m, mnt_parent);
	if (!parent || parent == m)	/* not below the process's root */
		return 1;
	s->walk.dentry = (u64)BPF_CORE_READ(m, mnt_mountpoint);
	s->walk.mnt = (u64)parent + bpf_core_field_offset(struct mount, mnt);
	return 0;
}

static __always_inline void put_walked(struct scratch *s, u32 kind)
{
	u32 pos = s->walk.pos;

	if (pos > EV_PATH_MAX + 255)
		return;
	s->path.text[pos] = 0;
	if (!s->walk.done)
		s->ev.flags |= BFOP_DIR_TRUNCATED;
	put_path(s, kind, pos + 1, s->walk.done ? 0 : PATH_CUT);
}

/* The way from a dentry to the root of its file system, as components. */
static __noinline int put_dentry_path(struct scratch *s, u64 dentry, u32 kind)
{
	if (!s)
		return 0;
	s->walk.dentry = dentry;
	s->walk.pos = 0;
	s->walk.done = 0;
	bpf_loop(MAX_DEPTH, walk_up, NULL, 0);
	put_walked(s, kind);
	return 0;
}

/* ... and to the root of the current process. */
static __noinline int put_absolute_path(struct scratch *s, u64 dentry, u64 mnt,
					u32 kind)
{
	struct task_struct *t = (void *)bpf_get_current_task();

	if (!s)
		return 0;
	s->walk.dentry = dentry;
	s->walk.mnt = mnt;
	s->walk.root = (u64)BPF_CORE_READ(t, fs, root.dentry);
	s->walk.root_mnt = (u64)BPF_CORE_READ(t, fs, root.mnt);
	s->walk.pos = 0;
	s->walk.done = 0;
	bpf_loop(MAX_DEPTH, walk_up_mounts, NULL, 0);
	put_walked(s, kind);
	return 0;
}

/* ---- where a path starts ------------------------------------------------- */

struct start {
	struct dentry *dentry;	/* NULL: at the root, or nowhere */
	struct vfsmount *mnt;
	bool in_scope;
};

static __always_inline void start_at_dfd(struct start *ret, s32 dfd)
{
	struct task_struct *t = (void *)bpf_get_current_task();
	struct dentry *d;
	struct file *f;

	if (dfd == AT_FDCWD) {
		d = BPF_CORE_READ(t, fs, pwd.dentry);
		ret->mnt = BPF_CORE_READ(t, fs, pwd.mnt);
	} else {
		f = file_of_fd(dfd);
		if (!f)
			return;
		d = BPF_CORE_READ(f, f_path.dentry);
		ret->mnt = BPF_CORE_READ(f, f_path.mnt);
	}
	ret->dentry = d;
	if (d)
		ret->in_scope = sb_in_scope(BPF_CORE_READ(d, d_sb));
}

/* Does the call's path start at the root? An unreadable one does not. */
static __always_inline bool is_absolute(struct call *c, u32 kind)
{
	u64 addr = kind == EV_PATH_1 ? c->path : c->path2;
	char first = 0;

	if (c->flags & CALL_SAVED)
		return c->flags & (kind == EV_PATH_1 ? CALL_ABS : CALL_ABS2);
	bpf_probe_read_user(&first, 1, (const void *)addr);
	return first == '/';
}

static long find_slash(u32 i, void *ctx)
{
	struct scratch *s = get_scratch();
	char c;

	if (!s || i > MAX_NAME)
		return 1;
	c = s->path.text[i];
	if (c == '/')
		s->walk.done = 1;
	return !c || c == '/';
}

/* May the call's path lead out of the directory it starts in? When it cannot
 * be read, it may. */
static __noinline int may_leave(struct scratch *s, u32 kind)
{
	struct call *c;

	if (!s)
		return 0;
	c = &s->call;
	if (kind == EV_PATH_1 &&
	    (c->op == BOP_TRUNCATE ||
	     (c->op == BOP_LINK && c->mode & AT_SYMLINK_FOLLOW) ||
	     (c->op == BOP_OPEN &&
	      (c->open_flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL))))
		return 1;
	if (!read_path(s, kind == EV_PATH_1 ? c->path : c->path2, kind))
		return 1;
	s->walk.done = 0;
	bpf_loop(MAX_NAME + 1, find_slash, NULL, 0);
	return s->walk.done;
}

/*
 * Where the call's path of that kind starts. True when the path may lead into
 * the scope.
 */
static __always_inline bool find_start(struct scratch *s, u32 kind,
				       struct start *ret)
{
	struct call *c = &s->call;

	if (is_absolute(c, kind))
		return true;
	start_at_dfd(ret, kind == EV_PATH_1 ? c->dfd : c->dfd2);
	if (!ret->dentry)
		return false;
	return ret->in_scope || may_leave(s, kind);
}

static __always_inline void put_dir(struct scratch *s, struct start *at,
				    bool second)
{
	u32 kind = second ? EV_PATH_DIR2 : EV_PATH_DIR;
	struct dentry *d = at->dentry;
	u32 dev = BPF_CORE_READ(d, d_sb, s_dev);
	u64 ino = BPF_CORE_READ(d, d_inode, i_ino);

	if (second) {
		s->ev.dir2_dev = dev;
		s->ev.dir2_ino = ino;
	} else {
		s->ev.dir_dev = dev;
		s->ev.dir_ino = ino;
	}
	if (at->in_scope) {
		put_dentry_path(s, (u64)d, kind);
		return;
	}
	s->ev.flags |= second ? BFOP_DIR2_ABSOLUTE : BFOP_DIR_ABSOLUTE;
	put_absolute_path(s, (u64)d, (u64)at->mnt, kind);
}

/* ---- operations on names ------------------------------------------------- */

static __always_inline u32 start_dev(struct start *at)
{
	struct dentry *d = at->dentry;

	return at->in_scope ? BPF_CORE_READ(d, d_sb, s_dev) : 0;
}

/*
 * The whole of an operation that has one name or two and no object. Nothing
 * when none of them may lead into the scope.
 */
static __always_inline void put_names(struct scratch *s, s64 ret, void *ctx)
{
	struct start from = {}, from2 = {};
	struct call *c = &s->call;
	u32 flags = c->flags;
	bool in = false;

	if (flags & CALL_PATH2)
		in |= find_start(s, EV_PATH_2, &from2);
	if (!(flags & CALL_TARGET))
		in |= find_start(s, EV_PATH_1, &from);
	if (!in)
		return;
	op_begin(s, ret, start_dev(&from) ?: start_dev(&from2));
	put_user_path(s, c->path, EV_PATH_1);
	if (from.dentry)
		put_dir(s, &from, false);
	if (flags & CALL_PATH2)
		put_user_path(s, c->path2, EV_PATH_2);
	if (from2.dentry)
		put_dir(s, &from2, true);
	put_stack(s, ctx);
	op_end(s);
}

#endif
