// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recorded operations applied to the model: those on names, and which
 * function takes which operation. Those on bytes are in fs_bytes.c.
 */
#include "fs_apply.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>

/* linux/fs.h has them only in newer versions. */
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE (1 << 1)
#define RENAME_WHITEOUT (1 << 2)
#endif

static struct fs_start start_1(const struct rec_file_op *op)
{
	return (struct fs_start){
		.dev = op->dir_dev, .ino = op->dir_ino, .path = op->dir_path,
		.path_cut = op->flags & FOP_DIR_TRUNCATED,
		.absolute = op->flags & FOP_DIR_ABSOLUTE,
	};
}

static struct fs_start start_2(const struct rec_file_op *op)
{
	return (struct fs_start){
		.dev = op->dir2_dev, .ino = op->dir2_ino,
		.path = op->dir2_path,
		.path_cut = op->flags & FOP_DIR_TRUNCATED,
		.absolute = op->flags & FOP_DIR2_ABSOLUTE,
	};
}

/* mkfs makes it at the root; trees do without it. */
static bool in_lost_and_found(const struct fs_model *m,
			      const struct fs_place *p)
{
	return p->dir == m->root && !strcmp(p->name, "lost+found");
}

/*
 * A path of an operation that succeeded. False when it is no affair of the
 * model: outside, or not to be placed, which loses the model.
 */
static bool place_of(struct fs_model *m, const struct fs_start *from,
		     const char *path, bool unreadable, bool follow,
		     struct fs_place *ret)
{
	int err;

	if (unreadable || !path) {
		fs_lose(m, "a path could not be read");
		return false;
	}
	err = fs_resolve(m, from, path, follow, ret);
	if (err == -EXDEV) {
		m->n_ignored++;
		return false;
	}
	if (err < 0)
		fs_lose(m, "a path leads where nothing is known to be");
	return !err && !in_lost_and_found(m, ret);
}

static bool place_1(struct fs_model *m, const struct rec_file_op *op,
		    bool follow, struct fs_place *ret)
{
	struct fs_start from = start_1(op);

	return place_of(m, &from, op->path, op->flags & FOP_PATH_UNREADABLE,
			follow, ret);
}

static bool place_2(struct fs_model *m, const struct rec_file_op *op,
		    struct fs_place *ret)
{
	struct fs_start from = start_2(op);

	return place_of(m, &from, op->path2, op->flags & FOP_PATH2_UNREADABLE,
			false, ret);
}

/* The object's number is that of where the path leads, if it is known. */
static void learn(struct fs_model *m, struct fs_inode *i, u64 ino)
{
	if (i && ino)
		fs_inode_learn(m, i, ino);
}

static void make(struct fs_model *m, const struct fs_place *p, u8 type,
		 const struct rec_file_op *op)
{
	struct fs_inode *i;

	if (!p->dir || p->inode) {
		fs_lose(m, "something was made where something is");
		return;
	}
	i = fs_inode_new(m, type, op->ino);
	i->mode = op->file_mode;
	fs_name_set(m, p->dir, p->name, i);
}

/* ---- open ---------------------------------------------------------------- */

/* The path the kernel found is surer than the one that was passed. */
static bool place_of_open(struct fs_model *m, const struct rec_file_op *op,
			  struct fs_place *ret)
{
	const struct fs_start root = { .root = true };

	if (op->file_path && !(op->flags & FOP_DIR_TRUNCATED))
		return place_of(m, &root, op->file_path, false, false, ret);
	return place_1(m, op, !(op->open_flags & O_NOFOLLOW), ret);
}

static u8 type_of_mode(u32 mode)
{
	switch (mode & S_IFMT) {
	case 0:
	case S_IFREG:
		return NODE_FILE;
	case S_IFDIR:
		return NODE_DIR;
	case S_IFLNK:
		return NODE_SYMLINK;
	}
	return NODE_OTHER;
}

static bool is_tmpfile(const struct rec_file_op *op)
{
	return (op->open_flags & O_TMPFILE) == O_TMPFILE;
}

static void open_existing(struct fs_model *m, const struct rec_file_op *op)
{
	struct fs_inode *i = fs_inode_by_ino(m, op->ino);
	struct fs_place p;

	/* a number whose file lost its last name may be another's now */
	if (i && !i->nlink && op->nlink)
		i = NULL;
	if (!i) {
		if (!place_of_open(m, op, &p))
			return;
		i = p.inode;
		if (!i) {
			fs_lose(m, "a file was opened that is not known");
			return;
		}
		learn(m, i, op->ino);
	}
	if (op->open_flags & O_TRUNC && i->type == NODE_FILE)
		fs_truncate(m, op, i, 0);
}

/* A file without a name. It may get one through its descriptor. */
static void open_tmpfile(struct fs_model *m, const struct rec_file_op *op)
{
	struct fs_inode *i = fs_inode_new(m, NODE_FILE, op->ino);

	i->mode = op->file_mode;
	i->tmp_pid = op->pid;
	i->tmp_fd = op->ret;
}

/* The file without a name that the process opened last as this descriptor. */
static struct fs_inode *tmpfile_of(const struct fs_model *m, u32 pid, s64 fd)
{
	for (u32 i = m->n_inodes; i-- > 0;)
		if (m->inodes[i]->tmp_pid == pid && pid &&
		    m->inodes[i]->tmp_fd == fd)
			return m->inodes[i];
	return NULL;
}

static void apply_open(struct fs_model *m, const struct rec_file_op *op)
{
	struct fs_inode *old = tmpfile_of(m, op->pid, op->ret);
	struct fs_place p;

	if (old)
		old->tmp_pid = 0;
	if (op->open_flags & O_PATH)
		return;
	if (is_tmpfile(op))
		open_tmpfile(m, op);
	else if (!(op->flags & FOP_CREATED))
		open_existing(m, op);
	else if (place_of_open(m, op, &p))
		make(m, &p, NODE_FILE, op);
}

/* ---- names --------------------------------------------------------------- */

static void apply_mkdir(struct fs_model *m, const struct rec_file_op *op)
{
	struct fs_place p;

	if (place_1(m, op, false, &p))
		make(m, &p, NODE_DIR, op);
}

static void apply_mknod(struct fs_model *m, const struct rec_file_op *op)
{
	struct fs_place p;

	if (place_1(m, op, false, &p))
		make(m, &p, type_of_mode(op->mode), op);
}

static void apply_symlink(struct fs_model *m, const struct rec_file_op *op)
{
	struct fs_place p;
	struct fs_inode *i;

	if (op->flags & FOP_PATH_UNREADABLE || !op->path) {
		fs_lose(m, "a symbolic link's target could not be read");
		return;
	}
	if (!place_2(m, op, &p))
		return;
	make(m, &p, NODE_SYMLINK, op);
	i = p.dir ? fs_lookup(p.dir, p.name) : NULL;
	if (i && i->type == NODE_SYMLINK)
		fs_content_write(m, i, 0, op->path, strlen(op->path));
}

/* Of "/proc/self/fd/3": 3; otherwise negative. */
static s64 fd_of_proc_path(const struct rec_file_op *op)
{
	char own[32];
	const char *p = op->path;
	int fd, end = 0;

	snprintf(own, sizeof(own), "/proc/%u/fd/", op->pid);
	if (!strncmp(p, "/proc/self/fd/", 14))
		p += 14;
	else if (!strncmp(p, own, strlen(own)))
		p += strlen(own);
	else
		return -1;
	return sscanf(p, "%9d%n", &fd, &end) == 1 && !p[end] ? fd : -1;
}

/* The object is named by path, or is an open file: AT_EMPTY_PATH, or a
 * symbolic link of /proc. */
static struct fs_inode *linked_inode(struct fs_model *m,
				     const struct rec_file_op *op)
{
	struct fs_inode *i = fs_inode_by_ino(m, op->ino);
	struct fs_place from;
	s64 fd;

	if (i || !op->path || op->flags & FOP_PATH_UNREADABLE)
		return i;
	if (op->mode & AT_EMPTY_PATH && !*op->path)
		return fs_inode_by_ino(m, op->dir_ino);
	fd = fd_of_proc_path(op);
	if (fd >= 0 && op->mode & AT_SYMLINK_FOLLOW)
		return tmpfile_of(m, op->pid, fd);
	return place_1(m, op, op->mode & AT_SYMLINK_FOLLOW, &from) ?
		       from.inode : NULL;
}

static void apply_link(struct fs_model *m, const struct rec_file_op *op)
{
	struct fs_inode *i;
	struct fs_place to;

	if (!place_2(m, op, &to))
		return;
	i = linked_inode(m, op);
	if (!i || i->type == NODE_DIR) {
		fs_lose(m, "a file was linked that is not known");
		return;
	}
	learn(m, i, op->ino);
	if (!to.dir || to.inode)
		fs_lose(m, "something was made where something is");
	else
		fs_name_set(m, to.dir, to.name, i);
}

static void apply_unlink(struct fs_model *m, const struct rec_file_op *op)
{
	bool dir = op->op == OP_RMDIR || op->mode & AT_REMOVEDIR;
	struct fs_place p;

	if (!place_1(m, op, false, &p))
		return;
	if (!p.dir || !p.inode || dir != (p.inode->type == NODE_DIR) ||
	    p.inode->n_names) {
		fs_lose(m, "something was removed that is not known");
		return;
	}
	learn(m, p.inode, op->ino);
	fs_name_remove(m, p.dir, p.name);
}

static bool is_below(const struct fs_inode *dir, const struct fs_inode *top)
{
	while (dir != top && dir != dir->parent)
		dir = dir->parent;
	return dir == top;
}

static void exchange(struct fs_model *m, const struct fs_place *a,
		     const struct fs_place *b)
{
	if (!b->dir || !b->inode ||
	    (b->inode->type == NODE_DIR && is_below(a->dir, b->inode))) {
		fs_lose(m, "names were exchanged that are not known");
		return;
	}
	/* a name more meanwhile, so that neither counts as gone */
	a->inode->nlink++;
	b->inode->nlink++;
	fs_name_set(m, a->dir, a->name, b->inode);
	fs_name_set(m, b->dir, b->name, a->inode);
	a->inode->nlink--;
	b->inode->nlink--;
}

static bool may_rename(const struct fs_place *a, const struct fs_place *b,
		       u32 flags)
{
	if (a->inode->type == NODE_DIR && is_below(b->dir, a->inode))
		return false;
	if (flags & RENAME_EXCHANGE || !b->inode)
		return true;
	return !(flags & RENAME_NOREPLACE) && !b->inode->n_names &&
	       (a->inode->type == NODE_DIR) == (b->inode->type == NODE_DIR);
}

static void apply_rename(struct fs_model *m, const struct rec_file_op *op)
{
	struct fs_place a, b;
	bool in_a, in_b;

	in_a = place_1(m, op, false, &a);
	in_b = place_2(m, op, &b);
	if (in_a != in_b && !m->lost)
		fs_lose(m, "a name came from outside, or went there");
	if (!in_a || !in_b)
		return;
	/* two names of one file: rename does nothing */
	if (a.inode && a.inode == b.inode)
		return;
	if (!a.dir || !a.inode || !b.dir || !may_rename(&a, &b, op->mode)) {
		fs_lose(m, "something was renamed that is not known");
		return;
	}
	learn(m, a.inode, op->ino);
	if (op->mode & RENAME_EXCHANGE) {
		exchange(m, &a, &b);
		return;
	}
	fs_name_set(m, b.dir, b.name, a.inode);
	fs_name_remove(m, a.dir, a.name);
	if (op->mode & RENAME_WHITEOUT)
		fs_name_set(m, a.dir, a.name,
			    fs_inode_new(m, NODE_OTHER, 0));
}

/* ---- which takes which --------------------------------------------------- */

/* Of the io_uring operations recorded as nothing better, those that leave
 * names and bytes alone: reads, sockets, polling, time-outs, attributes. */
static bool uring_harmless(u32 opcode)
{
	static const u8 changing[] = {
		2, 5, 23,		/* writev, write_fixed, write */
		17, 55,			/* fallocate, ftruncate */
		18, 28,			/* openat, openat2 */
		30,			/* splice */
		35, 36, 37, 38, 39,	/* renameat to linkat */
	};

	return opcode < 60 && !memchr(changing, opcode, sizeof(changing));
}

static void apply_uring(struct fs_model *m, const struct rec_file_op *op)
{
	if (!uring_harmless(op->mode))
		fs_lose(m, "an io_uring operation of an unknown kind");
}

static void (*const name_ops[OP_MAX])(struct fs_model *m,
				      const struct rec_file_op *op) = {
	[OP_OPEN] = apply_open,
	[OP_RENAME] = apply_rename,
	[OP_LINK] = apply_link,
	[OP_UNLINK] = apply_unlink,
	[OP_RMDIR] = apply_unlink,
	[OP_SYMLINK] = apply_symlink,
	[OP_MKDIR] = apply_mkdir,
	[OP_MKNOD] = apply_mknod,
	[OP_IO_URING] = apply_uring,
};

bool op_failed_halfway(const struct rec_file_op *op)
{
	if (op->ret >= 0)
		return false;
	switch (op->op) {
	case OP_WRITE:
	case OP_COPY:
	case OP_TRUNCATE:
	case OP_FALLOCATE:
		return op->ino != 0;
	}
	return false;
}

void fs_model_apply(struct fs_model *m, u64 seq, u32 dev,
		    const struct rec_file_op *op)
{
	for (u32 i = 0; i < m->n_changes; i++)
		free(m->changes[i].name);
	m->n_changes = 0;
	m->seq = seq;
	if (op->op >= OP_MAX || m->lost)
		return;
	if (name_ops[op->op]) {
		if (op->ret < 0)
			return;
		if (op->op == OP_OPEN && dev && m->fs_dev && dev != m->fs_dev)
			m->n_ignored++;
		else
			name_ops[op->op](m, op);
		return;
	}
	if (dev && m->fs_dev && dev != m->fs_dev)
		m->n_ignored++;
	else
		fs_bytes_apply(m, op);
}
