// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Inodes and names of the model; invariants in fs_model.h. Content is in
 * fs_content.c, path walking in fs_path.c, operations in fs_apply.c.
 */
#include "fs_model.h"

#include <string.h>
#include <sys/stat.h>

/* Stand-in numbers: no file system hands out inode numbers this large, and
 * none this large is learnt. */
#define INO_STAND_IN (UINT64_C(1) << 63)

/* Deeper trees are not followed: the recording may be a stranger's. */
#define DEPTH_MAX 1024

static u32 ino_slot(const struct fs_model *m, u64 ino)
{
	return (u32)((ino * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
	       (m->n_slots - 1);
}

/* The slot of ino, or the free one where it would go. */
static struct fs_inode **find_slot(const struct fs_model *m, u64 ino)
{
	u32 s = ino_slot(m, ino);

	while (m->slots[s] && m->slots[s]->ino != ino)
		s = (s + 1) & (m->n_slots - 1);
	return &m->slots[s];
}

static void grow_slots(struct fs_model *m)
{
	_cleanup_free_ struct fs_inode **old = m->slots;
	u32 n = m->n_slots;

	m->n_slots = n ? n * 2 : 64;
	m->slots = xzalloc(m->n_slots * sizeof(*m->slots));
	for (u32 i = 0; i < n; i++)
		if (old[i])
			*find_slot(m, old[i]->ino) = old[i];
}

struct fs_inode *fs_inode_by_ino(const struct fs_model *m, u64 ino)
{
	return ino && m->n_slots ? *find_slot(m, ino) : NULL;
}

/* A number that was another's, which has no name left, changes hands. */
void fs_inode_learn(struct fs_model *m, struct fs_inode *i, u64 ino)
{
	struct fs_inode **slot;

	if (!ino || i->ino == ino || ino & INO_STAND_IN)
		return;
	if (i->ino) {
		fs_lose(m, "an inode number changed");
		return;
	}
	if (m->n_by_ino * 2 >= m->n_slots)
		grow_slots(m);
	slot = find_slot(m, ino);
	if (*slot && (*slot)->nlink)
		fs_lose(m, "an inode number is in use twice");
	if (!*slot)
		m->n_by_ino++;
	i->ino = ino;
	*slot = i;
}

struct fs_inode *fs_inode_new(struct fs_model *m, u8 type, u64 ino)
{
	struct fs_inode *i = xzalloc(sizeof(*i));

	i->id = m->n_inodes;
	i->type = type;
	GROW(m->inodes, m->n_inodes, m->cap_inodes);
	m->inodes[m->n_inodes++] = i;
	fs_inode_learn(m, i, ino);
	return i;
}

void fs_lose(struct fs_model *m, const char *why)
{
	fs_change_add(m, FS_CHANGE_ANY, NULL, 0, UINT64_MAX);
	if (m->lost)
		return;
	m->lost = true;
	m->lost_why = why;
}

struct fs_change *fs_change_add(struct fs_model *m, enum fs_change_kind kind,
				struct fs_inode *i, u64 off, u64 end)
{
	GROW(m->changes, m->n_changes, m->cap_changes);
	m->changes[m->n_changes] = (struct fs_change){
		.kind = kind, .inode = i, .off = off, .end = end,
	};
	return &m->changes[m->n_changes++];
}

/* Index of name, or of where it would go; *ret_found says which. */
static u32 name_index(const struct fs_inode *dir, const char *name,
		      bool *ret_found)
{
	u32 lo = 0, hi = dir->n_names;

	*ret_found = false;
	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;
		int c = strcmp(dir->names[mid].name, name);

		if (!c) {
			*ret_found = true;
			return mid;
		}
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct fs_inode *fs_lookup(const struct fs_inode *dir, const char *name)
{
	bool found;
	u32 at = name_index(dir, name, &found);

	return found ? dir->names[at].inode : NULL;
}

static void name_changed(struct fs_model *m, struct fs_inode *dir,
			 const char *name)
{
	fs_change_add(m, FS_CHANGE_NAME, dir, 0, 0)->name = xstrdup(name);
}

static void name_dropped(struct fs_model *m, struct fs_inode *i)
{
	if (i->nlink)
		i->nlink--;
	if (!i->nlink)
		fs_change_add(m, FS_CHANGE_GONE, i, 0, UINT64_MAX);
}

void fs_name_set(struct fs_model *m, struct fs_inode *dir, const char *name,
		 struct fs_inode *i)
{
	struct fs_inode *old;
	bool found;
	u32 at = name_index(dir, name, &found);

	name_changed(m, dir, name);
	i->nlink++;
	if (i->type == NODE_DIR)
		i->parent = dir;
	if (found) {
		old = dir->names[at].inode;
		dir->names[at].inode = i;
		name_dropped(m, old);
		return;
	}
	GROW(dir->names, dir->n_names, dir->cap_names);
	memmove(&dir->names[at + 1], &dir->names[at],
		(dir->n_names - at) * sizeof(*dir->names));
	dir->names[at] = (struct fs_name){ xstrdup(name), i };
	dir->n_names++;
}

struct fs_inode *fs_name_remove(struct fs_model *m, struct fs_inode *dir,
				const char *name)
{
	struct fs_inode *i;
	bool found;
	u32 at = name_index(dir, name, &found);

	if (!found)
		return NULL;
	i = dir->names[at].inode;
	free(dir->names[at].name);
	dir->n_names--;
	memmove(&dir->names[at], &dir->names[at + 1],
		(dir->n_names - at) * sizeof(*dir->names));
	name_changed(m, dir, name);
	name_dropped(m, i);
	return i;
}

/* ---- from a tree and to a tree ------------------------------------------- */

static void add_node(struct fs_model *m, const struct node *n)
{
	struct fs_inode *dir = m->root, *i;
	const char *at = n->path, *slash;
	char name[FS_NAME_BYTES];

	while ((slash = strchr(at, '/'))) {
		if (slash - at >= FS_NAME_BYTES)
			return;
		memcpy(name, at, slash - at);
		name[slash - at] = 0;
		dir = fs_lookup(dir, name);
		if (!dir || dir->type != NODE_DIR) {
			fs_lose(m, "the start has a file without a directory");
			return;
		}
		at = slash + 1;
	}
	if (strlen(at) >= FS_NAME_BYTES || !*at)
		return;
	i = n->type == NODE_DIR ? NULL : fs_inode_by_ino(m, n->ino);
	if (!i) {
		i = fs_inode_new(m, n->type, n->ino);
		i->mode = n->mode;
		if (n->content) {
			i->content = content_ref(n->content);
			i->bytes = n->content->bytes;
		}
		if (n->error || (n->content && n->content->unknown))
			fs_content_unknown(m, i);
	}
	fs_name_set(m, dir, at, i);
}

static void changes_done(struct fs_model *m)
{
	for (u32 i = 0; i < m->n_changes; i++)
		free(m->changes[i].name);
	m->n_changes = 0;
}

struct fs_model *fs_model_new(struct store *s, const struct tree *start,
			      u32 fs_dev, const char *mount_point)
{
	struct fs_model *m = xzalloc(sizeof(*m));
	size_t len;

	m->store = s;
	m->fs_dev = fs_dev;
	if (mount_point && mount_point[0] == '/') {
		m->mount_point = xstrdup(mount_point);
		len = strlen(mount_point);
		while (len > 1 && m->mount_point[len - 1] == '/')
			m->mount_point[--len] = 0;
	}
	m->root = fs_inode_new(m, NODE_DIR, 0);
	m->root->parent = m->root;
	m->root->nlink = 1;
	for (u32 i = 0; i < start->n; i++)
		add_node(m, &start->nodes[i]);
	changes_done(m);
	return m;
}

void fs_model_free(struct fs_model *m)
{
	if (!m)
		return;
	for (u32 i = 0; i < m->n_inodes; i++) {
		struct fs_inode *in = m->inodes[i];

		for (u32 j = 0; j < in->n_names; j++)
			free(in->names[j].name);
		free(in->names);
		free(in->buf);
		if (in->content)
			content_unref(m->store, in->content);
		free(in);
	}
	changes_done(m);
	free(m->changes);
	free(m->inodes);
	free(m->slots);
	free(m->mount_point);
	free(m);
}

static void tree_walk(struct fs_model *m, struct fs_inode *dir, u32 depth,
		      const char *prefix, struct tree *ret)
{
	if (depth > DEPTH_MAX) {
		fs_lose(m, "directories are nested too deeply");
		return;
	}
	for (u32 i = 0; i < dir->n_names; i++) {
		struct fs_inode *in = dir->names[i].inode;
		_cleanup_free_ char *path = xasprintf("%s%s", prefix,
						      dir->names[i].name);
		_cleanup_free_ char *below = NULL;
		struct node *n = tree_add(ret, path, in->type);

		n->mode = in->mode;
		n->nlink = in->nlink;
		n->ino = in->ino ?: INO_STAND_IN | in->id;
		if (in->type == NODE_FILE || in->type == NODE_SYMLINK)
			n->content = fs_content_take(m, in);
		if (in->type != NODE_DIR)
			continue;
		below = xasprintf("%s/", path);
		tree_walk(m, in, depth + 1, below, ret);
	}
}

void fs_model_tree(struct fs_model *m, struct tree *ret)
{
	tree_walk(m, m->root, 0, "", ret);
	tree_seal(ret);
}

void fs_model_number(const struct fs_model *m, struct tree *t)
{
	for (u32 i = 0; i < t->n; i++) {
		u64 ino = t->nodes[i].ino;

		if (ino & INO_STAND_IN)
			t->nodes[i].ino =
				m->inodes[ino & ~INO_STAND_IN]->ino;
	}
}
