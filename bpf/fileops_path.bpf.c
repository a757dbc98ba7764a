// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Operations on names: rename, link, unlink, symlink, mkdir, rmdir, mknod,
 * truncate.
 *
 * Invariant: an operation is recorded when one of its names starts in a
 * directory of a file system in scope, or may lead into one (fileops_names.h).
 */
#include "fileops_hooks.h"
#include "fileops_names.h"

static __always_inline int enter_name(u32 nr, u32 op, s32 dfd, u64 path,
				      u32 mode, u64 len)
{
	struct call c = {};

	if (!in_pid_scope())
		return 0;
	call_start(&c, op, nr);
	c.flags = CALL_PATH;
	c.dfd = dfd;
	c.path = path;
	c.mode = mode;
	c.len = len;
	call_keep(&c);
	return 0;
}

static __always_inline int enter_names(u32 nr, u32 op, s32 dfd, u64 path,
				       s32 dfd2, u64 path2, u32 mode)
{
	struct call c = {};

	if (!in_pid_scope())
		return 0;
	call_start(&c, op, nr);
	c.flags = CALL_PATH | CALL_PATH2;
	if (op == BOP_SYMLINK)
		c.flags |= CALL_TARGET;
	c.dfd = dfd;
	c.path = path;
	c.dfd2 = dfd2;
	c.path2 = path2;
	c.mode = mode;
	call_keep(&c);
	return 0;
}

ENTER(rename)
{
	return enter_names(NR, BOP_RENAME, AT_FDCWD, ARG(0), AT_FDCWD, ARG(1),
			   0);
}

ENTER(renameat)
{
	return enter_names(NR, BOP_RENAME, ARG(0), ARG(1), ARG(2), ARG(3), 0);
}

ENTER(renameat2)
{
	return enter_names(NR, BOP_RENAME, ARG(0), ARG(1), ARG(2), ARG(3),
			   ARG(4));
}

ENTER(link)
{
	return enter_names(NR, BOP_LINK, AT_FDCWD, ARG(0), AT_FDCWD, ARG(1), 0);
}

ENTER(linkat)
{
	return enter_names(NR, BOP_LINK, ARG(0), ARG(1), ARG(2), ARG(3),
			   ARG(4));
}

ENTER(symlink)
{
	return enter_names(NR, BOP_SYMLINK, AT_FDCWD, ARG(0), AT_FDCWD, ARG(1),
			   0);
}

ENTER(symlinkat)
{
	return enter_names(NR, BOP_SYMLINK, AT_FDCWD, ARG(0), ARG(1), ARG(2),
			   0);
}

ENTER(unlink)
{
	return enter_name(NR, BOP_UNLINK, AT_FDCWD, ARG(0), 0, 0);
}

ENTER(unlinkat)
{
	return enter_name(NR, BOP_UNLINK, ARG(0), ARG(1), ARG(2), 0);
}

ENTER(mkdir)
{
	return enter_name(NR, BOP_MKDIR, AT_FDCWD, ARG(0), ARG(1), 0);
}

ENTER(mkdirat)
{
	return enter_name(NR, BOP_MKDIR, ARG(0), ARG(1), ARG(2), 0);
}

ENTER(rmdir)
{
	return enter_name(NR, BOP_RMDIR, AT_FDCWD, ARG(0), 0, 0);
}

ENTER(mknod)
{
	return enter_name(NR, BOP_MKNOD, AT_FDCWD, ARG(0), ARG(1), 0);
}

ENTER(mknodat)
{
	return enter_name(NR, BOP_MKNOD, ARG(0), ARG(1), ARG(2), 0);
}

ENTER(truncate)
{
	return enter_name(NR, BOP_TRUNCATE, AT_FDCWD, ARG(0), 0, ARG(1));
}

EXIT(path)
{
	struct scratch *s = call_take();

	if (!s)
		return 0;
	put_names(s, ctx->ret, ctx);
	return 0;
}
