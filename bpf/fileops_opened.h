/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of an open, whichever way it came.
 *
 * Invariant: an open that can change nothing (no O_CREAT, no O_TRUNC, not for
 * writing) is not recorded.
 */
#ifndef BLKBOX_FILEOPS_OPENED_H
#define BLKBOX_FILEOPS_OPENED_H

#include "fileops_names.h"

#define O_PATH_ONLY 010000000

static __always_inline bool can_change(u32 flags)
{
	u32 mode = flags & O_ACCMODE;

	if (flags & O_PATH_ONLY)
		return false;
	return flags & (O_CREAT | O_TRUNC | O_TMPFILE_ONLY) ||
	       mode == O_WRONLY || mode == O_RDWR;
}

static __always_inline void read_how(struct call *c)
{
	struct open_how how = {};

	if (bpf_probe_read_user(&how, sizeof(how), (const void *)c->how))
		return;
	c->open_flags = how.flags;
	c->mode = how.mode;
}

static __always_inline u32 open_sync_flags(u32 open_flags)
{
	if (open_flags & O_SYNC_ONLY)
		return BFOP_SYNC_WRITE;
	return open_flags & O_DSYNC ? BFOP_DSYNC_WRITE : 0;
}

/* The file that was opened; flags stay as they were passed. */
static __always_inline void call_opened(struct call *c, struct file *f, s64 fd)
{
	u32 open_flags = c->open_flags;
	u64 key = (u64)f;

	call_file(c, f);
	c->open_flags = open_flags;
	c->fd = fd;
	if (BPF_CORE_READ(f, f_mode) & FMODE_CREATED)
		c->event_flags |= BFOP_CREATED;
	/* What an earlier file at this address had. */
	bpf_map_delete_elem(&written_files, &key);
}

/* The whole of an open, if it could change anything and is in scope. */
static __always_inline void put_open(struct scratch *s, s64 ret, void *ctx)
{
	struct call *c = &s->call;
	struct start dir = {};
	struct file *f = NULL;
	bool in;

	if (c->flags & CALL_HOW)
		read_how(c);
	if (c->flags & CALL_MARK || !can_change(c->open_flags))
		return;
	in = find_start(s, EV_PATH_1, &dir);
	if (ret >= 0 && !(c->flags & CALL_DIRECT)) {
		f = file_of_fd(ret);
		if (!f || !file_in_scope(f))
			return;
		call_opened(c, f, ret);
	} else {
		if (!in)
			return;
		c->dev = start_dev(&dir);
	}
	c->event_flags |= open_sync_flags(c->open_flags);
	op_begin(s, ret, c->dev);
	put_user_path(s, c->path, EV_PATH_1);
	if (dir.dentry)
		put_dir(s, &dir, false);
	if (f) {
		op_inode(s, BPF_CORE_READ(f, f_inode));
		put_dentry_path(s, (u64)BPF_CORE_READ(f, f_path.dentry),
				EV_PATH_FILE);
	}
	put_stack(s, ctx);
	op_end(s);
}

#endif
