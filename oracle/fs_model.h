/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file system in memory, made of inodes and names, to which recorded
 * operations are applied one by one in the order they returned.
 *
 * Invariants:
 *  1. Nothing is guessed. Bytes that the recording does not have make the
 *     inode's content unknown until it is cut to nothing. An operation that
 *     succeeded and cannot be placed makes the whole model lost: from there on
 *     it says nothing about names (lost, lost_why).
 *  2. An inode lives as long as the model, also without a name: files are
 *     written after they were unlinked. Pointers to it stay valid.
 *  3. After fs_model_apply(), changes says what the operation may have altered
 *     on the file system, whether it succeeded or not.
 *  4. A directory's names are sorted by strcmp(), without duplicates.
 */
#ifndef BLKBOX_FS_MODEL_H
#define BLKBOX_FS_MODEL_H

#include "../replay/trace.h"
#include "../replay/tree.h"

#define FS_NAME_BYTES 256
#define FS_TOUCHES 16

struct fs_name {
	char *name;
	struct fs_inode *inode;
};

/* Where and when an inode's bytes were last changed. */
struct fs_touch {
	u64 off, end, seq;
};

struct fs_inode {
	u32 id;			/* index in fs_model.inodes */
	u64 ino;		/* the kernel's number, 0: not learnt yet */
	u8 type;		/* enum node_type */
	u32 mode;
	u32 nlink;		/* names, not the kernel's count */
	struct fs_inode *parent; /* of a directory; the root is its own */
	u32 n_names, cap_names;
	struct fs_name *names;
	u64 bytes;
	bool unknown;		/* content cannot be known */
	bool mapped;		/* stores may come at any time, for good */
	struct content *content; /* NULL: empty. Without the chunk in buf */
	u8 *buf;		/* a chunk being written, NULL: none */
	u64 buf_chunk;
	bool buf_dirty;
	u32 tmp_pid;		/* made by O_TMPFILE, as descriptor tmp_fd */
	s64 tmp_fd;
	struct fs_touch touch[FS_TOUCHES];
	u32 n_touches;
};

enum fs_change_kind {
	FS_CHANGE_BYTES = 1,	/* [off, end) of the inode's content */
	FS_CHANGE_SIZE,		/* the inode was cut down to end bytes */
	FS_CHANGE_GONE,		/* the inode's last name */
	FS_CHANGE_NAME,		/* where name in directory inode leads */
	FS_CHANGE_MAPPED,	/* stores to [off, end) may come any time */
	FS_CHANGE_ANY,		/* cannot be known */
};

struct fs_change {
	enum fs_change_kind kind;
	struct fs_inode *inode;
	u64 off, end;
	char *name;
};

struct fs_model {
	struct store *store;
	char *mount_point;	/* without "/" at its end; NULL: unknown */
	u32 fs_dev;		/* 0: any */
	struct fs_inode *root;
	u32 n_inodes, cap_inodes;
	struct fs_inode **inodes;
	u32 n_slots;		/* power of two */
	struct fs_inode **slots; /* by ino */
	u32 n_by_ino;
	u64 seq;		/* of the operation being applied */
	bool lost;
	const char *lost_why;
	u64 n_ignored;		/* operations outside of the file system */
	u32 n_changes, cap_changes;
	struct fs_change *changes;
};

/* start may be an unsealed tree with the root's children in any depth; parents
 * come before their children. It stays the caller's. */
struct fs_model *fs_model_new(struct store *s, const struct tree *start,
			      u32 fs_dev, const char *mount_point);
void fs_model_free(struct fs_model *m);

/* Applies one operation; see invariant 3. */
void fs_model_apply(struct fs_model *m, u64 seq, u32 dev,
		    const struct rec_file_op *op);

/* Fills the zeroed tree with what the model holds. An inode whose number is
 * not learnt yet gets a stand-in, which fs_model_number() replaces later. */
void fs_model_tree(struct fs_model *m, struct tree *ret);
void fs_model_number(const struct fs_model *m, struct tree *t);

/* May a call that failed have done a part of its work? */
bool op_failed_halfway(const struct rec_file_op *op);

/* ---- inodes and names (fs_model.c) --------------------------------------- */

struct fs_inode *fs_inode_new(struct fs_model *m, u8 type, u64 ino);
struct fs_inode *fs_inode_by_ino(const struct fs_model *m, u64 ino);
void fs_inode_learn(struct fs_model *m, struct fs_inode *i, u64 ino);
struct fs_inode *fs_lookup(const struct fs_inode *dir, const char *name);
void fs_name_set(struct fs_model *m, struct fs_inode *dir, const char *name,
		 struct fs_inode *i);
/* Takes the name away; the inode is returned and lives on. */
struct fs_inode *fs_name_remove(struct fs_model *m, struct fs_inode *dir,
				const char *name);
void fs_lose(struct fs_model *m, const char *why);
struct fs_change *fs_change_add(struct fs_model *m, enum fs_change_kind kind,
				struct fs_inode *i, u64 off, u64 end);

/* ---- content (fs_content.c) ---------------------------------------------- */

void fs_content_unknown(struct fs_model *m, struct fs_inode *i);
void fs_content_write(struct fs_model *m, struct fs_inode *i, u64 off,
		      const void *data, u64 len);
void fs_content_resize(struct fs_model *m, struct fs_inode *i, u64 bytes);
void fs_content_zero(struct fs_model *m, struct fs_inode *i, u64 off, u64 end);
void fs_content_collapse(struct fs_model *m, struct fs_inode *i, u64 off,
			 u64 len);
void fs_content_insert(struct fs_model *m, struct fs_inode *i, u64 off,
		       u64 len);
void fs_content_copy(struct fs_model *m, struct fs_inode *to, u64 off,
		     struct fs_inode *from, u64 from_off, u64 len);
/* A reference on the content as it is now; marked unknown where it is. */
struct content *fs_content_take(struct fs_model *m, struct fs_inode *i);

/* ---- paths (fs_path.c) --------------------------------------------------- */

struct fs_place {
	struct fs_inode *dir;	/* NULL: the place is a directory reached by
				 * "." or "..", or the root */
	char name[FS_NAME_BYTES];
	struct fs_inode *inode;	/* NULL: nothing there yet */
};

/* Where a relative path starts. */
struct fs_start {
	bool root;	/* at the file system's root, path beginning with "/"
			 * or not; the rest is not looked at */
	u32 dev;
	u64 ino;
	const char *path;
	bool path_cut;
	bool absolute;	/* path is no path of this file system, but one from the
			 * machine's root to a directory of another one */
};

/*
 * Where a path leads, as the kernel walks it: -EXDEV outside of this file
 * system, -ENOENT, -ENOTDIR, -ELOOP, -ENAMETOOLONG, -ESTALE when what the
 * recording says of the directory is not what the model has.
 */
int fs_resolve(struct fs_model *m, const struct fs_start *from,
	       const char *path, bool follow, struct fs_place *ret);

#endif
