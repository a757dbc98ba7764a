/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traces and trees built by hand, for the tests of the oracle. Operations get
 * numbers 10, 20, 30, ...; each begins right after the one before returned.
 */
#ifndef BLKBOX_EXPECTED_KIT_H
#define BLKBOX_EXPECTED_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>

#include "../../oracle/expected.h"

#define KIT_DEV 0x700001
#define KIT_MOUNT "/mnt/kit"
#define KIT_UNUSED __attribute__((unused))

struct kit {
	struct trace t;
	u32 cap;
	u64 seq;
	struct tree start;
};

static KIT_UNUSED void kit_init(struct kit *k)
{
	*k = (struct kit){ 0 };
	k->t.store = store_new();
	k->t.fs_dev = KIT_DEV;
	k->t.mount_point = xstrdup(KIT_MOUNT);
	k->t.first_gap_seq = SEQ_NEVER;
}

static KIT_UNUSED void kit_done(struct kit *k)
{
	for (u32 i = 0; i < k->t.n_ops; i++) {
		struct rec_file_op *op = &k->t.ops[i].op;

		free(op->path);
		free(op->path2);
		free(op->dir_path);
		free(op->dir2_path);
		free(op->file_path);
		free((void *)op->data);
	}
	free(k->t.ops);
	tree_free(k->t.store, &k->start);
	store_free(k->t.store);
	free(k->t.mount_point);
}

/* A file of the tree; text NULL: a directory. */
static KIT_UNUSED struct node *kit_node(struct kit *k, struct tree *t,
					const char *path, u64 ino,
					const char *text)
{
	struct node *n = tree_add(t, path, text ? NODE_FILE : NODE_DIR);

	n->ino = ino;
	n->nlink = 1;
	if (text)
		n->content = content_from_bytes(k->t.store, text, strlen(text));
	return n;
}

static KIT_UNUSED struct rec_file_op *kit_op(struct kit *k, enum file_op op)
{
	struct trace_op *o;

	GROW(k->t.ops, k->t.n_ops, k->cap);
	o = &k->t.ops[k->t.n_ops++];
	*o = (struct trace_op){ .seq = k->seq + 10, .dev = KIT_DEV };
	o->op.op = op;
	o->op.start_seq = k->seq + 1;
	o->op.dir_dev = o->op.dir2_dev = KIT_DEV;
	o->op.dir_path = xstrdup("");
	o->op.dir2_path = xstrdup("");
	o->op.fd = FD_NONE;
	k->seq += 10;
	return &o->op;
}

static KIT_UNUSED char *kit_copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static KIT_UNUSED struct rec_file_op *kit_names(struct kit *k, enum file_op op,
						const char *path,
						const char *path2)
{
	struct rec_file_op *o = kit_op(k, op);

	o->path = kit_copy(path);
	o->path2 = kit_copy(path2);
	return o;
}

/* An operation on inode ino. */
static KIT_UNUSED struct rec_file_op *kit_on(struct kit *k, enum file_op op,
					     u64 ino)
{
	struct rec_file_op *o = kit_op(k, op);

	o->ino = ino;
	o->nlink = 1;
	o->file_mode = 0100644;
	return o;
}

static KIT_UNUSED struct rec_file_op *kit_create(struct kit *k,
						 const char *path, u64 ino)
{
	struct rec_file_op *o = kit_on(k, OP_OPEN, ino);

	o->path = xstrdup(path);
	o->file_path = xstrdup(path);
	o->flags = FOP_CREATED;
	o->open_flags = O_WRONLY | O_CREAT | O_TRUNC;
	return o;
}

static KIT_UNUSED struct rec_file_op *kit_write(struct kit *k, u64 ino,
						u64 off, const char *text)
{
	struct rec_file_op *o = kit_on(k, OP_WRITE, ino);

	o->off = off;
	o->len = o->ret = o->data_bytes = strlen(text);
	o->data = xstrdup(text);
	return o;
}

static KIT_UNUSED void kit_close(struct kit *k, const char *path, u64 ino)
{
	struct rec_file_op *o = kit_on(k, OP_CLOSE, ino);

	o->file_path = xstrdup(path);
	o->flags = FOP_LAST_CLOSE | FOP_WRITTEN;
}

/* Creates, writes, closes. */
static KIT_UNUSED void kit_save(struct kit *k, const char *path, u64 ino,
				const char *text)
{
	kit_create(k, path, ino);
	kit_write(k, ino, 0, text);
	kit_close(k, path, ino);
}

static KIT_UNUSED struct expected *kit_expected(struct kit *k)
{
	struct expected *e;
	struct errmsg em;

	tree_seal(&k->start);
	assert_int_equal(expected_from_ops(&k->t, &k->start, &e, &em), 0);
	return e;
}

/* The text of path in tree, NULL when it is not there; heap. */
static KIT_UNUSED char *kit_text(const struct tree *t, const char *path)
{
	const struct node *n = tree_find(t, path);
	char *text;

	if (!n || !n->content)
		return NULL;
	text = xzalloc(n->content->bytes + 1);
	content_read(n->content, 0, text, n->content->bytes);
	return text;
}

static KIT_UNUSED void kit_assert_text(const struct tree *t, const char *path,
				       const char *text)
{
	_cleanup_free_ char *is = kit_text(t, path);

	assert_non_null(is);
	assert_string_equal(is, text);
}

#endif
