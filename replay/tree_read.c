// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reading a tree from a mounted file system, which may be damaged, and may be
 * the one that is being recorded: reading changes no access time, but that of
 * symlinks, for which the kernel has no such mode (mount it noatime).
 *
 * Invariants:
 *  1. One directory is open at a time, besides the root; depth costs memory
 *     only. Directories wait in a list, by path.
 *  2. No symlink is followed and no mount crossed, whatever changes meanwhile.
 *  3. An inode number is descended into once, so a directory that a damaged
 *     file system links below itself ends.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store.h"

struct walk {
	struct store *store;
	int root_fd;
	dev_t dev;
	const struct tree *prev;
	bool (*changed)(void *ctx, const struct node *n);
	void *ctx;
	struct tree *tree;
	char **dirs;		/* still to be read, relative to the root */
	size_t n_dirs, cap_dirs;
	u64 *seen;		/* inode numbers of directories; open-addressed
				 * hash, 0: free */
	size_t n_seen, cap_seen;
	struct buf path;
	u8 block[CHUNK_BYTES];
};

/* ---- directories seen ---------------------------------------------------- */

static bool seen_insert(u64 *slots, size_t cap, u64 ino)
{
	size_t i = (ino * 0x9e3779b97f4a7c15ULL) >> 32;

	for (i &= cap - 1; slots[i]; i = (i + 1) & (cap - 1)) {
		if (slots[i] == ino)
			return false;
	}
	slots[i] = ino;
	return true;
}

/* False when ino was there already. */
static bool seen_add(struct walk *w, u64 ino)
{
	if (w->n_seen * 2 >= w->cap_seen) {
		size_t cap = w->cap_seen ? w->cap_seen * 2 : 64;
		u64 *slots = xzalloc(cap * sizeof(*slots));

		for (size_t i = 0; i < w->cap_seen; i++) {
			if (w->seen[i])
				seen_insert(slots, cap, w->seen[i]);
		}
		free(w->seen);
		w->seen = slots;
		w->cap_seen = cap;
	}
	if (!seen_insert(w->seen, w->cap_seen, ino ?: UINT64_MAX))
		return false;
	w->n_seen++;
	return true;
}

/* ---- opening below the root ---------------------------------------------- */

static int open_beneath(int dirfd, const char *path, int flags)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_XDEV,
	};
	int fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* Opens as much of a long path as one call takes; *path becomes the rest. */
static int open_part(int dirfd, const char **path)
{
	char part[PATH_MAX];
	char *end;

	memcpy(part, *path, PATH_MAX - 1);
	part[PATH_MAX - 1] = 0;
	end = strrchr(part, '/');
	if (!end)
		return -ENAMETOOLONG;
	*end = 0;
	*path += end - part + 1;
	return open_beneath(dirfd, part, O_PATH | O_DIRECTORY);
}

/* A path of any length, in stretches of less than PATH_MAX. */
static int open_dir(int root_fd, const char *path)
{
	int fd = root_fd, next;

	while (strlen(path) >= PATH_MAX) {
		next = open_part(fd, &path);
		if (fd != root_fd)
			close(fd);
		if (next < 0)
			return next;
		fd = next;
	}
	next = open_beneath(fd, path, O_RDONLY | O_DIRECTORY | O_NOATIME);
	if (next == -EPERM)
		next = open_beneath(fd, path, O_RDONLY | O_DIRECTORY);
	if (fd != root_fd)
		close(fd);
	return next;
}

/* ---- files --------------------------------------------------------------- */

static int open_file(int dirfd, const char *name)
{
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = openat(dirfd, name, flags | O_NOATIME);

	if (fd < 0 && errno == EPERM)
		fd = openat(dirfd, name, flags);
	return fd < 0 ? -errno : fd;
}

/* Reads len bytes at off, or fewer at the end; how many. */
static ssize_t read_chunk(int fd, u64 off, u8 *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, data + done, len - done, off + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += n;
	}
	return done;
}

/* Where data begins at or after off. */
static u64 next_data(int fd, u64 off)
{
	off_t at = lseek(fd, off, SEEK_DATA);

	if (at < 0)
		return errno == ENXIO ? UINT64_MAX : off;
	return at;
}

/* Fills c's chunks from fd; *ret_n, how many, also on failure. Fewer bytes
 * than c->bytes when the file shrank meanwhile. */
static int read_chunks(struct walk *w, int fd, bool sparse, struct content *c,
		       u32 *ret_n, u64 *ret_bytes)
{
	u64 done = 0, data = 0;
	u32 n;

	for (n = 0; n < c->n_chunks; n++) {
		u32 len = chunk_len(c->bytes, n);
		ssize_t got;

		if (sparse && data <= done)
			data = next_data(fd, done);
		if (sparse && data >= done + len) {
			c->chunks[n] = store_zero_chunk(
				w->store, n ? c->chunks[n - 1] : NULL, len);
			done += len;
			continue;
		}
		got = read_chunk(fd, done, w->block, len);
		if (got < 0) {
			*ret_n = n;
			return got;
		}
		if (got)
			c->chunks[n] = store_chunk(w->store, w->block, got);
		done += got;
		if (got < (ssize_t)len) {
			n += got > 0;
			break;
		}
	}
	*ret_n = n;
	*ret_bytes = done;
	return 0;
}

static int read_content(struct walk *w, int fd, const struct stat *st,
			struct content **ret)
{
	struct content *c = content_new(st->st_size);
	bool sparse = (u64)st->st_blocks * 512 < (u64)st->st_size;
	u64 bytes = 0;
	u32 n = 0;
	int err;

	if (!c)
		return -EFBIG;
	err = read_chunks(w, fd, sparse, c, &n, &bytes);
	c->n_chunks = n;
	c->bytes = bytes;
	if (err < 0) {
		content_unref(w->store, c);
		return err;
	}
	content_seal(c);
	*ret = c;
	return 0;
}

static u64 ns_of(const struct timespec *ts)
{
	return (u64)ts->tv_sec * 1000000000 + ts->tv_nsec;
}

static void node_stat(struct node *n, const struct stat *st)
{
	n->mode = st->st_mode;
	n->nlink = st->st_nlink;
	n->ino = st->st_ino;
	n->mtime_ns = ns_of(&st->st_mtim);
	n->ctime_ns = ns_of(&st->st_ctim);
}

/* Content of prev that still holds; NULL: read it. */
static struct content *unchanged(struct walk *w, const struct node *n,
				 const struct stat *st)
{
	const struct node *old;

	if (!w->prev || !w->changed)
		return NULL;
	old = tree_find(w->prev, n->path);
	if (!old || old->type != NODE_FILE || !old->content || old->error ||
	    old->content->unknown || old->ino != n->ino ||
	    old->ctime_ns != n->ctime_ns ||
	    old->content->bytes != (u64)st->st_size)
		return NULL;
	return w->changed(w->ctx, n) ? NULL : old->content;
}

static void read_file(struct walk *w, int dirfd, const char *name,
		      struct node *n, const struct stat *st)
{
	struct content *same = unchanged(w, n, st);
	struct stat now;
	int fd;

	if (same) {
		n->content = content_ref(same);
		return;
	}
	fd = open_file(dirfd, name);
	if (fd < 0) {
		n->error = -fd;
		return;
	}
	if (fstat(fd, &now) < 0)
		n->error = errno;
	else if (now.st_dev != st->st_dev || now.st_ino != st->st_ino)
		n->error = ESTALE;
	else
		n->error = -read_content(w, fd, &now, &n->content);
	close(fd);
}

static void read_symlink(struct walk *w, int dirfd, const char *name,
			 struct node *n)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(dirfd, name, target, sizeof(target));

	if (len < 0)
		n->error = errno;
	else
		n->content = content_from_bytes(w->store, target, len);
}

/* ---- directories --------------------------------------------------------- */

static u8 type_of(mode_t mode)
{
	return S_ISREG(mode) ? NODE_FILE :
	       S_ISDIR(mode) ? NODE_DIR :
	       S_ISLNK(mode) ? NODE_SYMLINK : NODE_OTHER;
}

static void read_entry(struct walk *w, int dirfd, const char *name)
{
	const char *path = (const char *)w->path.data;
	struct stat st;
	struct node *n;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) <
	    0) {
		if (errno == ENOENT)	/* gone since readdir() */
			return;
		n = tree_add(w->tree, path, NODE_OTHER);
		n->error = errno;
		return;
	}
	n = tree_add(w->tree, path, type_of(st.st_mode));
	node_stat(n, &st);
	if (n->type == NODE_FILE) {
		read_file(w, dirfd, name, n, &st);
	} else if (n->type == NODE_SYMLINK) {
		read_symlink(w, dirfd, name, n);
	} else if (n->type == NODE_DIR && st.st_dev == w->dev) {
		if (!seen_add(w, st.st_ino)) {
			n->error = ELOOP;
			return;
		}
		GROW(w->dirs, w->n_dirs, w->cap_dirs);
		w->dirs[w->n_dirs++] = xstrdup(path);
	}
}

/* Reads all entries of the open directory, which is at prefix. Takes fd. */
static int read_entries(struct walk *w, int fd, const char *prefix)
{
	DIR *d = fdopendir(fd);
	struct dirent *e;
	int err;

	if (!d) {
		err = -errno;
		close(fd);
		return err;
	}
	while (errno = 0, (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (!*prefix && !strcmp(e->d_name, "lost+found"))
			continue;
		buf_reset(&w->path);
		if (*prefix) {
			buf_put(&w->path, prefix, strlen(prefix));
			buf_put_u8(&w->path, '/');
		}
		buf_put(&w->path, e->d_name, strlen(e->d_name) + 1);
		read_entry(w, fd, e->d_name);
	}
	err = -errno;
	closedir(d);
	return err;
}

static void dir_error(struct walk *w, const char *path, int err)
{
	for (u32 i = w->tree->n; i-- > 0;) {
		if (!strcmp(w->tree->nodes[i].path, path)) {
			w->tree->nodes[i].error = -err;
			return;
		}
	}
}

static int walk_all(struct walk *w)
{
	int fd = open_dir(w->root_fd, ".");
	int err = fd < 0 ? -errno : read_entries(w, fd, "");

	while (err == 0 && w->n_dirs) {
		char *path = w->dirs[--w->n_dirs];
		int dir_err;

		fd = open_dir(w->root_fd, path);
		dir_err = fd < 0 ? fd : read_entries(w, fd, path);
		if (dir_err < 0)
			dir_error(w, path, dir_err);
		free(path);
	}
	return err;
}

/* A damaged directory may hold a name twice; the second one is dropped, and
 * the first one says so. */
static void drop_doubles(struct store *s, struct tree *t)
{
	u32 to = 0;

	for (u32 i = 0; i < t->n; i++) {
		struct node *n = &t->nodes[i];

		if (to && !strcmp(t->nodes[to - 1].path, n->path)) {
			t->nodes[to - 1].error = EUCLEAN;
			free(n->path);
			content_unref(s, n->content);
		} else {
			t->nodes[to++] = *n;
		}
	}
	t->n = to;
}

int tree_read(struct store *s, int dirfd, const struct tree *prev,
	      bool (*changed)(void *ctx, const struct node *n), void *ctx,
	      struct tree *ret, struct errmsg *em)
{
	struct tree t = { 0 };
	struct walk *w;
	struct stat st;
	int err;

	if (fstat(dirfd, &st) < 0)
		return errmsg_set(em, errno, "reading the root directory");
	w = xmalloc(sizeof(*w));
	memset(w, 0, offsetof(struct walk, block));
	w->store = s;
	w->root_fd = dirfd;
	w->dev = st.st_dev;
	w->prev = prev;
	w->changed = changed;
	w->ctx = ctx;
	w->tree = &t;
	seen_add(w, st.st_ino);
	err = walk_all(w);
	while (w->n_dirs)
		free(w->dirs[--w->n_dirs]);
	free(w->dirs);
	free(w->seen);
	buf_free(&w->path);
	free(w);
	if (err < 0) {
		tree_free(s, &t);
		return errmsg_set(em, err, "reading the root directory");
	}
	tree_sort(&t);
	drop_doubles(s, &t);
	tree_seal(&t);
	*ret = t;
	return 0;
}
