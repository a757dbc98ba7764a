// SPDX-License-Identifier: GPL-2.0-or-later
#include "start.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../replay/loop.h"

/* ---- a tree as bytes ------------------------------------------------------ */

static int save_content(const struct content *c, int fd)
{
	_cleanup_free_ u8 *data = xmalloc(CHUNK_BYTES);
	size_t n;
	int r;

	for (u64 off = 0; off < c->bytes; off += n) {
		n = content_read(c, off, data, CHUNK_BYTES);
		if (!n)
			return -EIO;
		r = write_full(fd, data, n);
		if (r < 0)
			return r;
	}
	return 0;
}

static int save_node(const struct node *n, int fd)
{
	_cleanup_buf_ struct buf b = { 0 };
	int r;

	buf_put_u8(&b, 1);
	buf_put_str(&b, n->path);
	buf_put_u8(&b, n->type);
	buf_put_u32(&b, n->mode);
	buf_put_u32(&b, n->nlink);
	buf_put_u64(&b, n->ino);
	buf_put_u64(&b, n->mtime_ns);
	buf_put_u64(&b, n->ctime_ns);
	buf_put_u32(&b, n->error);
	buf_put_u8(&b, n->content != NULL);
	buf_put_u64(&b, n->content ? n->content->bytes : 0);
	r = write_full(fd, b.data, b.len);
	if (r < 0 || !n->content)
		return r;
	return save_content(n->content, fd);
}

int tree_save(const struct tree *t, int fd)
{
	static const u8 end;
	int r;

	for (u32 i = 0; i < t->n; i++) {
		r = save_node(&t->nodes[i], fd);
		if (r < 0)
			return r;
	}
	return write_full(fd, &end, 1);
}

static void restore_node(struct store *s, struct cursor *c, struct tree *t)
{
	_cleanup_free_ char *path = cur_str(c);
	u8 type = cur_u8(c);
	struct node v = { 0 }, *n;
	bool has_content;
	const void *data;
	u64 bytes;

	v.mode = cur_u32(c);
	v.nlink = cur_u32(c);
	v.ino = cur_u64(c);
	v.mtime_ns = cur_u64(c);
	v.ctime_ns = cur_u64(c);
	v.error = (s32)cur_u32(c);
	has_content = cur_u8(c);
	bytes = cur_u64(c);
	data = cur_bytes(c, bytes);
	if (c->bad)
		return;
	n = tree_add(t, path, type);
	n->mode = v.mode;
	n->nlink = v.nlink;
	n->ino = v.ino;
	n->mtime_ns = v.mtime_ns;
	n->ctime_ns = v.ctime_ns;
	n->error = v.error;
	if (has_content)
		n->content = content_from_bytes(s, data, bytes);
}

int tree_restore(struct store *s, const void *data, size_t len,
		 struct tree *ret)
{
	struct cursor c = cursor_of(data, len);
	struct tree t = { 0 };

	while (cur_u8(&c) == 1)
		restore_node(s, &c, &t);
	if (c.bad || cur_left(&c)) {
		tree_free(s, &t);
		return -EBADMSG;
	}
	tree_seal(&t);
	*ret = t;
	return 0;
}

/* ---- mounting it ---------------------------------------------------------- */

struct look {
	int fd;			/* the tree goes here, -1: not wanted */
	enum mount_outcome outcome;
	int error;
	char *log;
};

static int look_judge(void *ctx, const struct job *j, int root_fd,
		      const char *root_path, const char *recovery_log,
		      struct buf *ret)
{
	struct look *l = ctx;
	struct store *s;
	struct tree tree = { 0 };
	int r;

	(void)j;
	(void)root_path;
	(void)recovery_log;
	buf_put_u8(ret, 1);
	if (l->fd < 0)
		return 0;
	s = store_new();
	r = tree_read(s, root_fd, NULL, NULL, NULL, &tree, NULL);
	if (r < 0)
		goto out;
	r = ftruncate(l->fd, 0) < 0 || lseek(l->fd, 0, SEEK_SET) < 0 ?
		    -errno :
		    tree_save(&tree, l->fd);
	tree_free(s, &tree);
out:
	store_free(s);
	return r;
}

static int look_done(void *ctx, u64 id, enum mount_outcome outcome, int error,
		     const char *log, const void *answer, size_t len)
{
	struct look *l = ctx;

	(void)id;
	(void)answer;
	(void)len;
	l->outcome = outcome;
	l->error = error;
	free(l->log);
	l->log = xstrdup(log ?: "");
	return 0;
}

/*
 * A base taken from a live disk is a copy in which blocks are of different
 * moments; it is a disk again with what was written up to base_seq.
 */
static u32 units_at_start(const struct trace *t)
{
	u32 n = 0;

	while (t->base_seq && n < t->n_units &&
	       t->units[n].issue_seq <= t->base_seq)
		n++;
	return n;
}

static int look(const struct trace *t, const struct image_index *x,
		const char *mount_options, struct look *l, struct errmsg *em)
{
	struct pool_opts o = {
		.workers = 1,
		.fs_type = t->fs_type,
		.mount_point = t->mount_point,
		.mount_options = mount_options,
		.judge = look_judge,
		.done = look_done,
		.ctx = l,
	};
	struct job j = { .st = { .n_units = units_at_start(t) } };
	struct pool *p;
	int r = pool_new(t, x, &o, &p, em);

	if (r < 0)
		return r;
	r = pool_submit(p, &j, em);
	if (r >= 0)
		r = pool_drain(p, em);
	pool_free(p);
	return r;
}

static int start_failed(const struct trace *t, const struct look *l,
			struct errmsg *em)
{
	static const char what[] =
		"mounting the %s file system as it was when the recording"
		" began%s%s";
	const char *log = l->log ?: "";

	if (l->outcome == MOUNT_TIMED_OUT)
		return errmsg_set(em, ETIMEDOUT, what, t->fs_type, "", "");
	if (l->outcome == MOUNT_WORKER_DIED)
		return errmsg_set(em, EIO, what, t->fs_type,
				  " (the worker died)", "");
	return errmsg_set(em, l->error, what, t->fs_type,
			  *log ? "; the kernel said: " : "", log);
}

static int take_tree(const struct trace *t, int fd, struct tree *ret,
		     struct errmsg *em)
{
	struct stat st;
	void *data;
	int r;

	if (fstat(fd, &st) < 0)
		return errmsg_set(em, errno, "reading the tree at the start");
	if (st.st_size == 0)
		return errmsg_set(em, EBADMSG, "reading the tree at the start");
	data = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return errmsg_set(em, errno, "reading the tree at the start");
	r = tree_restore(t->store, data, st.st_size, ret);
	munmap(data, st.st_size);
	if (r < 0)
		return errmsg_set(em, r, "reading the tree at the start");
	return 0;
}

int start_read(const struct trace *t, const struct image_index *x,
	       const char *mount_options, bool want_tree, struct start *ret,
	       struct errmsg *em)
{
	_cleanup_close_ int fd = -1;
	struct start s = { 0 };
	struct look l = { .fd = -1 };
	int r;

	if (want_tree) {
		fd = memfd_new("blkbox-start", 0, em);
		if (fd < 0)
			return fd;
		l.fd = fd;
	}
	r = look(t, x, mount_options, &l, em);
	if (r >= 0 && l.outcome != MOUNT_OK)
		r = start_failed(t, &l, em);
	if (r >= 0 && want_tree)
		r = take_tree(t, fd, &s.tree, em);
	if (r < 0) {
		free(l.log);
		return r;
	}
	s.has_tree = want_tree;
	s.log = l.log ?: xstrdup("");
	*ret = s;
	return 0;
}

void start_done(const struct trace *t, struct start *s)
{
	if (s->has_tree)
		tree_free(t->store, &s->tree);
	free(s->log);
	*s = (struct start){ 0 };
}
