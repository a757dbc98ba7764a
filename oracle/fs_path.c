// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Walking paths in the model, as the kernel does.
 *
 * A walk is at a directory of the model, or outside of the file system, where
 * only the text of the path is known (out, normalised). It comes in again when
 * that text is the mount point. Symbolic links outside are not seen.
 *
 * A walk that starts outside, at or below the mount point, is on a file system
 * mounted there. Where that one begins is not known, so when such a walk goes
 * up and ends below the mount point, it may be in either: nothing is guessed.
 */
#include "fs_model.h"

#include <limits.h>
#include <string.h>

#define LINKS_MAX 40

struct walk {
	struct fs_model *m;
	struct fs_inode *at;	/* NULL: outside */
	char out[PATH_MAX];	/* "" is the machine's root */
	char *rest;		/* heap */
	u32 links;
	size_t start_len;	/* of out, of a walk that starts outside */
	bool rose;		/* to above there */
	bool covered;		/* ours is below another one, out of reach */
	bool too_long;		/* out is not whole */
};

static void out_step(struct walk *w, const char *name)
{
	size_t len = strlen(w->out);
	char *slash;
	int n;

	if (!strcmp(name, ".") || !*name)
		return;
	if (!strcmp(name, "..")) {
		slash = strrchr(w->out, '/');
		if (slash)
			*slash = 0;
		w->rose |= strlen(w->out) < w->start_len;
		return;
	}
	n = snprintf(w->out + len, sizeof(w->out) - len, "/%s", name);
	if ((size_t)n >= sizeof(w->out) - len)
		w->too_long = true;
}

static bool at_mount_point(const struct walk *w)
{
	const char *mp = w->m->mount_point;

	return mp && !strcmp(*w->out ? w->out : "/", mp);
}

static void enter_if_mount_point(struct walk *w)
{
	if (!w->at && !w->covered && at_mount_point(w))
		w->at = w->m->root;
}

/* What a walk that ended outside comes to. */
static int outside(const struct walk *w)
{
	const char *mp = w->m->mount_point;
	size_t len = mp && strcmp(mp, "/") ? strlen(mp) : 0;

	if (w->too_long)
		return -ESTALE;
	if (mp && w->rose && !w->covered && !strncmp(w->out, mp, len) &&
	    w->out[len] == '/')
		return -ESTALE;
	return -EXDEV;
}

static int leave_by_dotdot(struct walk *w)
{
	const char *mp = w->m->mount_point;

	if (!mp)
		return -EXDEV;
	if (!strcmp(mp, "/"))
		return 0;
	w->at = NULL;
	snprintf(w->out, sizeof(w->out), "%s", mp);
	out_step(w, "..");
	return 0;
}

/* The next component; 0 when there is none. Repeated slashes count as one. */
static int next_name(struct walk *w, char name[FS_NAME_BYTES], bool *ret_last,
		     bool *ret_slash)
{
	char *p = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(p, "/");

	if (!len)
		return 0;
	if (len >= FS_NAME_BYTES)
		return -ENAMETOOLONG;
	memcpy(name, p, len);
	name[len] = 0;
	p += len;
	*ret_slash = *p == '/';
	*ret_last = !p[strspn(p, "/")];
	memmove(w->rest, p, strlen(p) + 1);
	return 1;
}

static int follow_link(struct walk *w, struct fs_inode *link)
{
	char target[PATH_MAX];
	struct content *c;
	char *rest;
	size_t n;

	if (++w->links > LINKS_MAX)
		return -ELOOP;
	if (link->unknown)
		return -ESTALE;
	c = fs_content_take(w->m, link);
	n = content_read(c, 0, target, sizeof(target) - 1);
	content_unref(w->m->store, c);
	target[n] = 0;
	rest = xasprintf("%s%s%s", target, *w->rest ? "/" : "", w->rest);
	free(w->rest);
	w->rest = rest;
	if (*target == '/') {
		w->at = NULL;
		w->out[0] = 0;
		enter_if_mount_point(w);
	}
	return 0;
}

/* One step inside. 1: the place is found; 0: go on. */
static int in_step(struct walk *w, const char *name, bool last, bool slash,
		   bool follow, struct fs_place *ret)
{
	struct fs_inode *i;

	if (!strcmp(name, "."))
		return 0;
	if (!strcmp(name, "..")) {
		if (w->at == w->m->root)
			return leave_by_dotdot(w);
		w->at = w->at->parent;
		return 0;
	}
	i = fs_lookup(w->at, name);
	if (i && i->type == NODE_SYMLINK && (!last || follow || slash))
		return follow_link(w, i);
	if (last) {
		ret->dir = w->at;
		ret->inode = i;
		snprintf(ret->name, sizeof(ret->name), "%s", name);
		return 1;
	}
	if (!i)
		return -ENOENT;
	if (i->type != NODE_DIR)
		return -ENOTDIR;
	w->at = i;
	return 0;
}

static int walk(struct walk *w, bool follow, struct fs_place *ret)
{
	char name[FS_NAME_BYTES];
	bool last, slash;
	int err;

	for (;;) {
		err = next_name(w, name, &last, &slash);
		if (err < 0)
			return err;
		if (!err)
			break;
		if (!w->at) {
			out_step(w, name);
			enter_if_mount_point(w);
			continue;
		}
		err = in_step(w, name, last, slash, follow, ret);
		if (err)
			return err < 0 ? err : 0;
	}
	if (!w->at)
		return outside(w);
	*ret = (struct fs_place){ .inode = w->at };
	return 0;
}

/* At a directory of another file system, also where ours lies on its way. */
static void start_outside(struct walk *w, const char *dir)
{
	_cleanup_free_ char *copy = xstrdup(dir);
	char *save = NULL, *name;

	for (name = strtok_r(copy, "/", &save); name;
	     name = strtok_r(NULL, "/", &save))
		out_step(w, name);
	w->start_len = strlen(w->out);
	w->covered = at_mount_point(w);
}

/* Where a relative path starts: sets at, or out. */
static int start_of(struct walk *w, const struct fs_start *from)
{
	struct fs_place place;
	const struct fs_start root = { .root = true };
	int err;

	if (from->absolute) {
		if (!from->path || from->path_cut)
			return -ESTALE;
		start_outside(w, from->path);
		return 0;
	}
	if (from->dev && w->m->fs_dev && from->dev != w->m->fs_dev)
		return -EXDEV;
	w->at = fs_inode_by_ino(w->m, from->ino);
	if (w->at)
		return w->at->type == NODE_DIR ? 0 : -ESTALE;
	if (!from->path || from->path_cut)
		return -ESTALE;
	err = fs_resolve(w->m, &root, from->path, false, &place);
	if (err < 0)
		return -ESTALE;
	if (!place.inode || place.inode->type != NODE_DIR)
		return -ESTALE;
	if (from->ino && place.inode->ino && place.inode->ino != from->ino)
		return -ESTALE;
	fs_inode_learn(w->m, place.inode, from->ino);
	w->at = place.inode;
	return 0;
}

static int resolve_in(struct walk *w, const struct fs_start *from,
		      const char *path, bool follow, struct fs_place *ret)
{
	char *rest;
	int err;

	w->rest = xstrdup("");
	if (*path == '/') {
		enter_if_mount_point(w);
	} else {
		err = start_of(w, from);
		if (err < 0)
			return err;
	}
	rest = xasprintf("%s%s%s", w->rest, *w->rest ? "/" : "", path);
	free(w->rest);
	w->rest = rest;
	return walk(w, follow, ret);
}

int fs_resolve(struct fs_model *m, const struct fs_start *from,
	       const char *path, bool follow, struct fs_place *ret)
{
	struct walk w = { .m = m };
	int err;

	*ret = (struct fs_place){ 0 };
	if (from->root) {
		w.at = m->root;
		w.rest = xstrdup(path);
		err = walk(&w, follow, ret);
	} else {
		err = resolve_in(&w, from, path, follow, ret);
	}
	free(w.rest);
	return err;
}
