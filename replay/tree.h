/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A snapshot of a directory tree: what a program's files were at one moment.
 * Expected states and recovered crash sites are both trees.
 *
 * File content is a list of chunks (64 KiB) held once each in a store, so that
 * snapshots share what did not change. A chunk knows how often each byte value
 * occurs in it, which is all the editing distance asks for.
 *
 * Invariants:
 *  1. A tree's entries are sorted by path (strcmp), without duplicates. Paths
 *     are relative to the tree's root, without leading "/"; the root itself
 *     is not an entry. "lost+found" at the root is left out.
 *  2. A chunk in the store is immutable, and found by XXH3-128 of its bytes.
 *  3. A tree holds one reference on each content, a content one on each chunk.
 */
#ifndef BLKBOX_TREE_H
#define BLKBOX_TREE_H

#include "base.h"
#include "recording.h"

#define CHUNK_BYTES (64U << 10)
#define CONTENT_MAX_BYTES (1ULL << 40)	/* what may be held as a content */

struct hash128 {
	u64 lo, hi;
};

struct chunk {
	struct hash128 hash;
	u32 bytes;
	u32 refs;
	u32 counts[256];
	bool saved;	/* already in the recording being written */
	u8 *data;
};

struct store;	/* the chunks, by hash */
struct store *store_new(void);
void store_free(struct store *s);

struct content {
	u32 refs;
	bool unknown;		/* trace source: the bytes cannot be known
				 * (stores through a mapping, splice) */
	u64 bytes;
	struct hash128 hash;	/* over size and the chunks' hashes */
	u32 n_chunks;
	struct chunk **chunks;
};

enum node_type { NODE_FILE = 1, NODE_DIR = 2, NODE_SYMLINK = 3, NODE_OTHER = 4 };

struct node {
	char *path;
	u8 type;		/* enum node_type */
	u32 mode;
	u32 nlink;
	u64 ino;
	u64 mtime_ns, ctime_ns;
	struct content *content; /* files, and a symlink's target */
	int error;		/* errno met when reading it, 0 */
};

struct tree {
	u32 n, cap;
	struct node *nodes;
	u64 counts[256];	/* over the content of all files */
	u64 bytes;
	struct hash128 hash;	/* of names, types and contents, not times or
				 * inode numbers */
	bool unknown;		/* some content is */
};

/* Those that make a content return it with one reference, or NULL when it
 * would be larger than CONTENT_MAX_BYTES. */
struct content *content_from_bytes(struct store *s, const void *data,
				   size_t len);
struct content *content_ref(struct content *c);
void content_unref(struct store *s, struct content *c);
/* Copies up to len bytes from off; returns how many. */
size_t content_read(const struct content *c, u64 off, void *data, size_t len);
/* A new content: c with len bytes at off replaced, grown with zeroes when
 * needed. c may be NULL (empty). c keeps its reference. */
struct content *content_write(struct store *s, const struct content *c, u64 off,
			      const void *data, size_t len);
struct content *content_resize(struct store *s, const struct content *c,
			       u64 bytes);

/*
 * Reads the tree under directory dirfd. It does not cross into other file
 * systems. With prev, a regular file that the caller's changed() says is
 * untouched, and whose inode, size and ctime are those of prev, shares prev's
 * content and is not read again; changed NULL reads every file. A file that
 * cannot be read stays in the tree with its error.
 */
int tree_read(struct store *s, int dirfd, const struct tree *prev,
	      bool (*changed)(void *ctx, const struct node *n), void *ctx,
	      struct tree *ret, struct errmsg *em);

/* Building by hand; content's reference passes to the tree. Order is free
 * until tree_seal(), which sorts and totals. */
struct node *tree_add(struct tree *t, const char *path, u8 type);
void tree_seal(struct tree *t);
/* NULL when it is not there; t sealed. */
const struct node *tree_find(const struct tree *t, const char *path);
const struct node *tree_find_ino(const struct tree *t, u64 ino);
void tree_free(struct store *s, struct tree *t);
/* No file holds a byte: such a state is not an expected state. */
bool tree_is_empty(const struct tree *t);

/* ---- expected states in a recording ------------------------------------- */

enum state_source { STATE_STOP = 1, STATE_TRACE = 2 };

struct rec_state {
	u64 after_seq;	/* the event whose outcome it shows; 0: the start */
	u8 source;	/* enum state_source */
	char *what;	/* "close data.gz", for people */
	struct tree tree;
};

/*
 * Appends the chunks not yet in the recording, then the state. seq is the
 * record's own number (0 as for all bulk records).
 */
int rec_put_state(struct rec_writer *w, const struct rec_state *st);
/* CHUNK records must be given to store_load_chunk() as they come; the loaded
 * chunks stay in the store until store_free(). */
int store_load_chunk(struct store *s, const struct record *r);
int rec_get_state(struct store *s, const struct record *r,
		  struct rec_state *ret);
void rec_state_done(struct store *s, struct rec_state *st);

#endif
