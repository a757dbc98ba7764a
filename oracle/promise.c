// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the calls of a recording promised to be durable, and until when.
 *
 * The operations go by in the order they returned, through a model of the file
 * system that tells which inode and which names each of them changes. A call
 * that synchronises promises what the snapshot taken at its return shows:
 *
 *   not promised yet --sync call returns--> promised, from its number on
 *   promised --operation that changes it begins--> taken back, from there on
 *
 * Bytes that are promised already are not promised again: the oldest promise
 * stands. So the promises of a log that is synced at each line are one line
 * long each.
 */
#include "promise_book.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct builder {
	const struct trace *t;
	const struct expected *e;
	struct fs_model *m;
	struct book book;
	u64 *least_start;	/* of ops[i] and all that return after it */
};

/* One call that promises. */
struct call {
	u32 op;
	u64 start, seq;
	const struct tree *tree;	/* at its return */
};

static u64 start_of(const struct trace_op *o)
{
	return MIN(o->op.start_seq, o->seq);
}

static const struct tree *tree_after(const struct expected *e, u64 seq)
{
	u32 lo = 0, hi = e->n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (e->states[mid].after_seq < seq)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < e->n && e->states[lo].after_seq == seq ?
		       &e->states[lo].tree : NULL;
}

/* ---- a file -------------------------------------------------------------- */

/* Takes out of r, and off size, what was under way during the call. */
static bool leave_out_concurrent(const struct builder *b, const struct call *c,
				 const struct fs_inode *i, struct ranges *r,
				 u64 *size)
{
	const struct book *k = &b->book;

	for (u32 n = k->n_log; n-- > 0 && k->log[n].seq >= c->start;) {
		const struct logged *l = &k->log[n];

		if (l->inode != i)
			continue;
		switch (l->kind) {
		case FS_CHANGE_GONE:
			return false;
		case FS_CHANGE_SIZE:
			ranges_subtract(r, l->end, UINT64_MAX);
			*size = MIN(*size, l->end);
			break;
		case FS_CHANGE_BYTES:
			ranges_subtract(r, l->off, l->end);
			break;
		default:
			break;
		}
	}
	return true;
}

/* What is promised already; ret_size: up to what length. False: nothing. */
static bool leave_out_promised(struct builder *b, const struct fs_inode *i,
			       struct ranges *r, u64 *ret_size)
{
	const struct inode_book *ib = book_inode(&b->book, i);
	struct ranges promised = { 0 };
	bool any = false;

	*ret_size = 0;
	for (u32 n = 0; n < ib->n_live; n++) {
		const struct promise *p = &b->book.p[ib->live[n]];

		if (p->until_seq != SEQ_NEVER || p->kind == PROMISE_NAME ||
		    p->kind == PROMISE_NO_NAME)
			continue;
		if (p->kind == PROMISE_BYTES)
			ranges_add(&promised, p->off, p->off + p->len);
		*ret_size = MAX(*ret_size, p->off + p->len);
		any = true;
	}
	ranges_subtract_all(r, &promised);
	free(promised.r);
	return any;
}

/* The model's inode of a node of the snapshot, whose number is learnt where
 * the operations did not tell it. */
static struct fs_inode *inode_of(struct builder *b, const struct node *n)
{
	const struct fs_start root = { .root = true };
	struct fs_inode *i = fs_inode_by_ino(b->m, n->ino);
	struct fs_place p;

	if (!i && n->ino && !fs_resolve(b->m, &root, n->path, false, &p) &&
	    p.inode && !p.inode->ino) {
		i = p.inode;
		fs_inode_learn(b->m, i, n->ino);
	}
	return i && i->type == n->type ? i : NULL;
}

static struct promise promise_of(const struct call *c, enum promise_kind kind,
				 u64 ino, const char *path)
{
	return (struct promise){
		.kind = kind, .from_seq = c->seq, .until_seq = SEQ_NEVER,
		.ino = ino, .path = (char *)path, .op = c->op,
	};
}

/* Bytes of r, of content (which begins at content_off), and the length. */
static void promise_file(struct builder *b, const struct call *c,
			 const struct fs_inode *i, const char *path,
			 struct ranges *r, u64 size, struct content *content,
			 u64 content_off)
{
	struct inode_book *ib = book_inode(&b->book, i);
	struct promise p;
	u64 known;
	bool any;

	if (!leave_out_concurrent(b, c, i, r, &size))
		return;
	ranges_subtract(r, ib->map_off, ib->map_end);
	any = leave_out_promised(b, i, r, &known);
	for (u32 n = 0; n < r->n; n++) {
		p = promise_of(c, PROMISE_BYTES, i->ino, path);
		p.off = r->r[n].off;
		p.len = r->r[n].end - p.off;
		p.content = content_ref(content);
		p.content_off = content_off;
		book_add(&b->book, i, &p);
		known = MAX(known, r->r[n].end);
		any = true;
	}
	if (any && size <= known)
		return;
	p = promise_of(c, PROMISE_SIZE, i->ino, path);
	p.len = size;
	book_add(&b->book, i, &p);
}

static void promise_node(struct builder *b, const struct call *c,
			 const struct fs_inode *i, const struct node *n,
			 bool bytes)
{
	struct ranges r = { 0 };

	if (n->error || (n->type == NODE_FILE && !n->content))
		return;
	if (n->type != NODE_FILE) {
		promise_file(b, c, i, n->path, &r, 0, NULL, 0);
		return;
	}
	if (bytes && !n->content->unknown)
		ranges_add(&r, 0, n->content->bytes);
	promise_file(b, c, i, n->path, &r, n->content->bytes, n->content, 0);
	free(r.r);
}

static void promise_written(struct builder *b, const struct call *c,
			    const struct rec_file_op *op)
{
	const struct fs_inode *i = fs_inode_by_ino(b->m, op->ino);
	struct ranges r = { 0 };
	struct content *content;
	u64 end;

	if (!i || !i->nlink || op->ret <= 0 || !op->data ||
	    op->data_bytes < (u64)op->ret ||
	    op->flags & (FOP_DATA_UNREADABLE | FOP_DATA_UNKNOWN) ||
	    __builtin_add_overflow(op->off, (u64)op->ret, &end))
		return;
	content = content_from_bytes(b->e->store, op->data, op->ret);
	ranges_add(&r, op->off, end);
	promise_file(b, c, i, op->file_path ?: op->path, &r, end, content,
		     op->off);
	content_unref(b->e->store, content);
	free(r.r);
}

/* ---- a directory --------------------------------------------------------- */

static bool name_concurrent(const struct builder *b, const struct call *c,
			    const struct fs_inode *dir, const char *name)
{
	const struct book *k = &b->book;

	for (u32 n = k->n_log; n-- > 0 && k->log[n].seq >= c->start;)
		if (k->log[n].kind == FS_CHANGE_NAME &&
		    k->log[n].inode == dir && !strcmp(k->log[n].name, name))
			return true;
	return false;
}

/* What the snapshot says of the name; false when nothing can be promised. */
static bool promise_name(struct builder *b, const struct call *c,
			 const struct fs_inode *dir, const char *dir_path,
			 const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s%s%s", dir_path,
					      *dir_path ? "/" : "", name);
	const struct node *n = tree_find(c->tree, path);
	const struct fs_inode *i = fs_lookup(dir, name);
	struct promise p;

	if (name_concurrent(b, c, dir, name))
		return false;
	/* snapshot and model contradict each other, or a number is missing */
	if (!n != !i || (n && (!n->ino || inode_of(b, n) != i)))
		return true;
	p = promise_of(c, n ? PROMISE_NAME : PROMISE_NO_NAME, n ? n->ino : 0,
		       path);
	p.dir_ino = dir == b->m->root ? 0 : dir->ino;
	book_add(&b->book, dir, &p);
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names changed since the last time; what cannot be promised yet, stays. */
static void promise_pending(struct builder *b, const struct call *c,
			    const struct fs_inode *dir, const char *dir_path)
{
	struct inode_book *ib = book_inode(&b->book, dir);
	bool all = !ib->names_promised;
	u32 n = ib->n_pending, kept = 0;

	if (n)
		qsort(ib->pending, n, sizeof(*ib->pending), by_name);
	for (u32 i = 0; i < n; i++) {
		char *name = ib->pending[i];
		bool again = i + 1 < n && !strcmp(name, ib->pending[i + 1]);

		if (!again && all && fs_lookup(dir, name) &&
		    !name_concurrent(b, c, dir, name))
			again = true;	/* among all names */
		if (again || promise_name(b, c, dir, dir_path, name))
			free(name);
		else
			ib->pending[kept++] = name;
	}
	ib->n_pending = kept;
}

static void promise_dir(struct builder *b, const struct call *c,
			const struct fs_inode *dir, const char *dir_path)
{
	struct inode_book *ib;

	promise_pending(b, c, dir, dir_path);
	ib = book_inode(&b->book, dir);
	if (ib->names_promised)
		return;
	ib->names_promised = true;
	for (u32 i = 0; i < dir->n_names; i++)
		promise_name(b, c, dir, dir_path, dir->names[i].name);
}

/* Is ino the root's? The root is no entry of a tree: it is the directory that
 * no entry is, when the number of each is known. */
static bool must_be_root(const struct tree *t, u64 ino)
{
	for (u32 i = 0; i < t->n; i++)
		if (t->nodes[i].type == NODE_DIR &&
		    (!t->nodes[i].ino || t->nodes[i].ino == ino))
			return false;
	return true;
}

static struct fs_inode *synced_inode(struct builder *b, const struct call *c,
				     const struct rec_file_op *op)
{
	struct fs_inode *i = fs_inode_by_ino(b->m, op->ino);
	const struct node *n;

	if (i || !op->ino)
		return i;
	n = tree_find_ino(c->tree, op->ino);
	if (n)
		return inode_of(b, n);
	if (!S_ISDIR(op->file_mode) || !op->nlink || b->m->root->ino ||
	    !must_be_root(c->tree, op->ino))
		return NULL;
	fs_inode_learn(b->m, b->m->root, op->ino);
	return b->m->root;
}

/* ---- calls --------------------------------------------------------------- */

static void promise_synced(struct builder *b, const struct call *c,
			   const struct rec_file_op *op)
{
	const struct fs_inode *i = synced_inode(b, c, op);
	const struct node *n;

	if (!i)
		return;
	if (i == b->m->root) {
		promise_dir(b, c, i, "");
		return;
	}
	n = tree_find_ino(c->tree, op->ino);
	if (!n || n->type != i->type)
		return;
	promise_node(b, c, i, n, op->op != OP_MSYNC);
	if (i->type == NODE_DIR)
		promise_dir(b, c, i, n->path);
}

static void promise_all(struct builder *b, const struct call *c)
{
	promise_dir(b, c, b->m->root, "");
	for (u32 k = 0; k < c->tree->n; k++) {
		const struct node *n = &c->tree->nodes[k];
		const struct fs_inode *i = inode_of(b, n);

		if (!i)
			continue;
		promise_node(b, c, i, n, true);
		if (i->type == NODE_DIR)
			promise_dir(b, c, i, n->path);
	}
}

static void promise(struct builder *b, u32 number)
{
	const struct trace_op *o = &b->t->ops[number];
	struct call c = {
		.op = number, .start = start_of(o), .seq = o->seq,
		.tree = tree_after(b->e, o->seq),
	};

	if (o->op.ret < 0 ||
	    (o->dev && b->t->fs_dev && o->dev != b->t->fs_dev &&
	     o->op.op != OP_SYNC))
		return;
	if (o->op.op == OP_WRITE &&
	    o->op.flags & (FOP_SYNC_WRITE | FOP_DSYNC_WRITE))
		promise_written(b, &c, &o->op);
	if (!c.tree)
		return;
	switch (o->op.op) {
	case OP_FSYNC:
	case OP_FDATASYNC:
		promise_synced(b, &c, &o->op);
		break;
	case OP_MSYNC:
		if (o->op.mode & MS_SYNC)
			promise_synced(b, &c, &o->op);
		break;
	case OP_SYNC:
	case OP_SYNCFS:
		promise_all(b, &c);
		break;
	}
}

/* ---- the run ------------------------------------------------------------- */

static void take_back(struct builder *b, u32 number)
{
	const struct trace_op *o = &b->t->ops[number];
	/* the mapping that an msync shows may be older than the recording */
	u64 start = o->op.op == OP_MSYNC ? 0 : start_of(o);
	u64 least = number + 1 < b->t->n_ops ? b->least_start[number + 1] :
					       SEQ_NEVER;

	for (u32 i = 0; i < b->m->n_changes; i++)
		book_take_back(&b->book, &b->m->changes[i], start,
			       MIN(start, least));
}

static void lose(struct builder *b, struct promises *p, u64 seq,
		 const char *why)
{
	book_take_back_all(&b->book, seq);
	p->lost_why = why;
	p->lost_seq = seq;
}

static void run(struct builder *b, struct promises *p)
{
	const struct trace *t = b->t;

	for (u32 i = 0; i < t->n_ops; i++) {
		const struct trace_op *o = &t->ops[i];

		if (t->lost_events && o->seq >= t->first_gap_seq)
			break;
		fs_model_apply(b->m, o->seq, o->dev, &o->op);
		take_back(b, i);
		if (b->m->lost) {
			lose(b, p, start_of(o), b->m->lost_why);
			return;
		}
		promise(b, i);
		for (u32 k = 0; k < b->m->n_changes; k++)
			book_log(&b->book, o->seq, &b->m->changes[k]);
	}
	if (t->lost_events)
		lose(b, p, t->first_gap_seq, "events were lost");
}

static void find_least_starts(struct builder *b)
{
	u64 least = SEQ_NEVER;

	b->least_start = xreallocarray(NULL, MAX(b->t->n_ops, 1U),
				       sizeof(*b->least_start));
	for (u32 i = b->t->n_ops; i-- > 0;) {
		const struct trace_op *o = &b->t->ops[i];

		least = MIN(least, o->op.op == OP_MSYNC ? 0 : start_of(o));
		b->least_start[i] = least;
	}
}

int promises_build(const struct trace *t, const struct expected *e,
		   struct promises **ret, struct errmsg *em)
{
	struct builder b = { .t = t, .e = e };
	struct promises *p;

	if (!e->n)
		return errmsg_set(em, ENOENT,
				  "there is no state to start from");
	p = xzalloc(sizeof(*p));
	p->store = e->store;
	p->lost_seq = SEQ_NEVER;
	b.book.store = e->store;
	find_least_starts(&b);
	b.m = fs_model_new(e->store, &e->states[0].tree, t->fs_dev,
			   t->mount_point);
	run(&b, p);
	book_close(&b.book, p);
	fs_model_free(b.m);
	free(b.least_start);
	*ret = p;
	return 0;
}
