// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recorded operations applied to the model: those on the bytes of a file.
 *
 * Operations are applied in the order they returned. Where two were under way
 * at once and touched the same bytes, that order says nothing: the content is
 * unknown.
 */
#include "fs_apply.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/stat.h>

/* A mapping reaches to the end of its last page, whatever a page's size. */
#define PAGE_MAX_BYTES (64U << 10)

static u64 end_of(u64 off, u64 len)
{
	u64 end;

	return __builtin_add_overflow(off, len, &end) ? UINT64_MAX : end;
}

/* Notes that [off, end) of i changes; false when something that was under way
 * at the same time touched it too. */
static bool touch(const struct fs_model *m, const struct rec_file_op *op,
		  struct fs_inode *i, u64 off, u64 end)
{
	u64 start = op->start_seq ?: m->seq;
	u32 n = MIN(i->n_touches, (u32)FS_TOUCHES);
	bool alone = true;

	for (u32 t = 0; t < n; t++)
		if (i->touch[t].seq >= start && i->touch[t].off < end &&
		    off < i->touch[t].end)
			alone = false;
	i->touch[i->n_touches++ % FS_TOUCHES] =
		(struct fs_touch){ off, end, m->seq };
	return alone;
}

static void change(struct fs_model *m, const struct rec_file_op *op,
		   struct fs_inode *i, u64 off, u64 end)
{
	fs_change_add(m, FS_CHANGE_BYTES, i, off, end);
	if (!touch(m, op, i, off, end))
		fs_content_unknown(m, i);
}

void fs_truncate(struct fs_model *m, const struct rec_file_op *op,
		 struct fs_inode *i, u64 bytes)
{
	bool alone;

	fs_change_add(m, FS_CHANGE_SIZE, i, 0, bytes);
	alone = touch(m, op, i, MIN(bytes, i->bytes), UINT64_MAX);
	fs_content_resize(m, i, bytes);
	if (!alone)
		fs_content_unknown(m, i);
}

/* A file without a name that was opened before the recording began. */
static struct fs_inode *unnamed_inode(struct fs_model *m,
				      const struct rec_file_op *op)
{
	struct fs_inode *i = fs_inode_new(m, NODE_FILE, op->ino);

	i->bytes = op->size;
	fs_content_unknown(m, i);
	return i;
}

/* By its path: a truncate has no other, and a file that was made by something
 * else than an open has no number yet. */
static int inode_by_path(struct fs_model *m, const struct rec_file_op *op,
			 struct fs_inode **ret)
{
	const struct fs_start root = { .root = true };
	const struct fs_start dir = {
		.dev = op->dir_dev, .ino = op->dir_ino, .path = op->dir_path,
		.path_cut = op->flags & FOP_DIR_TRUNCATED,
		.absolute = op->flags & FOP_DIR_ABSOLUTE,
	};
	struct fs_place p;
	int err;

	if (op->file_path && !(op->flags & FOP_DIR_TRUNCATED))
		err = fs_resolve(m, &root, op->file_path, false, &p);
	else if (op->path && !(op->flags & FOP_PATH_UNREADABLE))
		err = fs_resolve(m, &dir, op->path, true, &p);
	else
		return -ENOENT;
	if (err < 0)
		return err;
	if (!p.inode ||
	    (op->ino && p.inode->ino && p.inode->ino != op->ino))
		return -ENOENT;
	fs_inode_learn(m, p.inode, op->ino);
	*ret = p.inode;
	return 0;
}

/* The file an operation changed. NULL: another file system's, or not known;
 * the model is then lost when it has a name, for its bytes would be stale. */
static struct fs_inode *inode_of(struct fs_model *m,
				 const struct rec_file_op *op)
{
	struct fs_inode *i = fs_inode_by_ino(m, op->ino);
	int err;

	if (i && (i->nlink || !op->nlink))
		return i;
	if (op->ino && op->file_mode && !op->nlink)
		return unnamed_inode(m, op);
	i = NULL;
	err = inode_by_path(m, op, &i);
	/* an msync does not always know its file */
	if (err == -EXDEV || (op->op == OP_MSYNC && !op->ino))
		m->n_ignored++;
	else if (err < 0)
		fs_lose(m, "a file was changed that is not known");
	return i;
}

static void apply_write(struct fs_model *m, const struct rec_file_op *op,
			struct fs_inode *i)
{
	u64 n = op->ret, end = end_of(op->off, n);

	if (!n)
		return;
	change(m, op, i, op->off, end);
	if (op->flags & (FOP_DATA_UNREADABLE | FOP_DATA_UNKNOWN) ||
	    !op->data || op->data_bytes < n)
		fs_content_unknown(m, i);
	if (i->unknown)
		i->bytes = MAX(i->bytes, end);
	else
		fs_content_write(m, i, op->off, op->data, n);
}

static void apply_truncate(struct fs_model *m,
			   const struct rec_file_op *op, struct fs_inode *i)
{
	fs_truncate(m, op, i, op->len);
}

static void apply_fallocate(struct fs_model *m,
			    const struct rec_file_op *op, struct fs_inode *i)
{
	u32 mode = op->mode & ~FALLOC_FL_KEEP_SIZE;
	bool keep = op->mode & FALLOC_FL_KEEP_SIZE;
	u64 end = end_of(op->off, op->len);

	switch (mode) {
	case 0:
	case FALLOC_FL_UNSHARE_RANGE:
		break;
	case FALLOC_FL_PUNCH_HOLE:
	case FALLOC_FL_ZERO_RANGE:
		change(m, op, i, op->off, end);
		fs_content_zero(m, i, op->off, end);
		break;
	case FALLOC_FL_COLLAPSE_RANGE:
		change(m, op, i, op->off, UINT64_MAX);
		fs_change_add(m, FS_CHANGE_SIZE, i, 0,
			      i->bytes - MIN(i->bytes, op->len));
		fs_content_collapse(m, i, op->off, op->len);
		return;
	case FALLOC_FL_INSERT_RANGE:
		change(m, op, i, op->off, UINT64_MAX);
		fs_content_insert(m, i, op->off, op->len);
		return;
	default:
		change(m, op, i, 0, UINT64_MAX);
		fs_content_unknown(m, i);
		return;
	}
	if (keep || end <= i->bytes)
		return;
	touch(m, op, i, i->bytes, end);
	fs_content_resize(m, i, end);
}

/* The source's bytes are those of now; something that was under way at the
 * same time may have changed them before they were read, or after. */
static bool source_settled(const struct fs_model *m,
			   const struct rec_file_op *op,
			   const struct fs_inode *from)
{
	u64 start = op->start_seq ?: m->seq, end = end_of(op->src_off, op->ret);
	u32 n = MIN(from->n_touches, (u32)FS_TOUCHES);

	for (u32 t = 0; t < n; t++)
		if (from->touch[t].seq >= start && from->touch[t].off < end &&
		    op->src_off < from->touch[t].end)
			return false;
	return true;
}

static void apply_copy(struct fs_model *m,
		       const struct rec_file_op *op, struct fs_inode *i)
{
	struct fs_inode *from = NULL;
	bool settled;

	if (op->data && op->data_bytes >= (u64)op->ret) {
		apply_write(m, op, i);
		return;
	}
	if (!op->ret)
		return;
	if (!op->src_dev || !m->fs_dev || op->src_dev == m->fs_dev)
		from = fs_inode_by_ino(m, op->src_ino);
	settled = from && !(op->flags & FOP_DATA_UNKNOWN) &&
		  source_settled(m, op, from);
	change(m, op, i, op->off, end_of(op->off, op->ret));
	fs_content_copy(m, i, op->off, settled ? from : NULL, op->src_off,
			op->ret);
}

/* An msync shows that there is a mapping, perhaps older than the recording. */
static void apply_mapping(struct fs_model *m,
			  const struct rec_file_op *op, struct fs_inode *i)
{
	u64 end = end_of(end_of(op->off, op->len), PAGE_MAX_BYTES - 1) /
		  PAGE_MAX_BYTES * PAGE_MAX_BYTES;

	if (op->len)
		fs_change_add(m, FS_CHANGE_MAPPED, i, op->off, end);
	else
		fs_change_add(m, FS_CHANGE_MAPPED, i, 0, UINT64_MAX);
	i->mapped = true;
	fs_content_unknown(m, i);
}

static void (*const byte_ops[OP_MAX])(struct fs_model *m,
				      const struct rec_file_op *op,
				      struct fs_inode *i) = {
	[OP_WRITE] = apply_write,
	[OP_TRUNCATE] = apply_truncate,
	[OP_FALLOCATE] = apply_fallocate,
	[OP_COPY] = apply_copy,
	[OP_MMAP_SHARED] = apply_mapping,
	[OP_MSYNC] = apply_mapping,
};

/* A call that failed may have written a part; the size may be another too. */
static void apply_failed(struct fs_model *m, const struct rec_file_op *op)
{
	struct fs_inode *i = fs_inode_by_ino(m, op->ino);

	if (!i)
		return;
	if (op->op == OP_TRUNCATE)
		fs_change_add(m, FS_CHANGE_SIZE, i, 0,
			      MIN(i->bytes, op->len));
	else
		change(m, op, i, 0, UINT64_MAX);
	switch (-op->ret) {
	case EIO:
	case ENOSPC:
	case EDQUOT:
	case EFAULT:
		fs_content_unknown(m, i);
	}
}

void fs_bytes_apply(struct fs_model *m, const struct rec_file_op *op)
{
	struct fs_inode *i;

	if (!byte_ops[op->op])
		return;
	if (op->ret < 0) {
		if (op_failed_halfway(op))
			apply_failed(m, op);
		return;
	}
	i = inode_of(m, op);
	if (i && i->type == NODE_FILE)
		byte_ops[op->op](m, op, i);
}
