// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fileops_names DIR EXPECTED: operations on names in DIR, an empty directory
 * at the root of its file system, with known arguments, also failing ones;
 * writes down what a recording of it must hold, a line each.
 */
#include "fileops_plan.h"

#include <limits.h>
#include <linux/fs.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>

#define DEPTH 60
#define DEEP_NAME "a-directory-with-a-name-of-some-length-so-that-it-adds-up"

/* ---- one name ----------------------------------------------------------------- */

struct from {
	u64 ino;
	const char *path;
};

static void named(struct plan *p, u8 op, long ret, struct from from,
		  const char *path, u32 mode, u64 len)
{
	struct rec_file_op e = new_op(op, ret, FD_NONE);

	e.mode = mode;
	e.len = len;
	e.path = (char *)path;
	if (path && path[0] != '/') {
		e.dir_ino = from.ino;
		e.dir_path = (char *)from.path;
	}
	expect(p, &e);
}

static void unreadable(struct plan *p, u8 op, long ret)
{
	struct rec_file_op e = new_op(op, ret, FD_NONE);

	e.flags = FOP_PATH_UNREADABLE;
	e.dir_ino = p->dir_ino;
	e.dir_path = "";
	expect(p, &e);
}

static void do_single(struct plan *p)
{
	struct from cwd = { p->dir_ino, "" }, sub;
	char *abs = xasprintf("%s/by-root", p->dir);
	long r;
	int d;

	r = CALL(SYS_mkdir, "sub", 0755);
	named(p, OP_MKDIR, r, cwd, "sub", 0755, 0);
	d = open("sub", O_RDONLY | O_DIRECTORY);
	sub = (struct from){ ino_of("sub"), "sub" };
	r = CALL(SYS_mkdirat, d, "below", 0700);
	named(p, OP_MKDIR, r, sub, "below", 0700, 0);
	r = CALL(SYS_mkdir, "sub", 0755);
	named(p, OP_MKDIR, r, cwd, "sub", 0755, 0);
	r = CALL(SYS_mkdir, abs, 0755);
	named(p, OP_MKDIR, r, cwd, abs, 0755, 0);
	r = CALL(SYS_mknod, "fifo", S_IFIFO | 0600, 0);
	named(p, OP_MKNOD, r, cwd, "fifo", S_IFIFO | 0600, 0);
	r = CALL(SYS_mknodat, d, "null", S_IFCHR | 0600, makedev(1, 3));
	named(p, OP_MKNOD, r, sub, "null", S_IFCHR | 0600, 0);
	r = CALL(SYS_rmdir, "sub");
	named(p, OP_RMDIR, r, cwd, "sub", 0, 0);
	r = CALL(SYS_rmdir, abs);
	named(p, OP_RMDIR, r, cwd, abs, 0, 0);
	r = CALL(SYS_unlinkat, d, "below", AT_REMOVEDIR);
	named(p, OP_UNLINK, r, sub, "below", AT_REMOVEDIR, 0);
	r = CALL(SYS_unlinkat, d, "null", 0);
	named(p, OP_UNLINK, r, sub, "null", 0, 0);
	r = CALL(SYS_unlink, "fifo");
	named(p, OP_UNLINK, r, cwd, "fifo", 0, 0);
	r = CALL(SYS_unlink, "fifo");
	named(p, OP_UNLINK, r, cwd, "fifo", 0, 0);
	r = CALL(SYS_unlink, NULL);
	unreadable(p, OP_UNLINK, r);
	r = CALL(SYS_unlinkat, 12345, "nowhere", 0);	/* whose? not recorded */
	r = CALL(SYS_truncate, "sub", 5L);
	named(p, OP_TRUNCATE, r, cwd, "sub", 0, 5);
	close(d);
	free(abs);
}

/* ---- two names ---------------------------------------------------------------- */

struct two {
	u64 ino, ino2;
	const char *path, *path2, *from, *from2;
	u32 mode;
};

static void named2(struct plan *p, u8 op, long ret, struct two t)
{
	struct rec_file_op e = new_op(op, ret, FD_NONE);

	e.mode = t.mode;
	e.dir_ino = t.ino;
	e.dir2_ino = t.ino2;
	e.path = (char *)t.path;
	e.path2 = (char *)t.path2;
	e.dir_path = (char *)t.from;
	e.dir2_path = (char *)t.from2;
	expect(p, &e);
}

static void do_links(struct plan *p, int fd, int d)
{
	u64 here = p->dir_ino, sub = ino_of("sub"), ino = ino_of("f1");
	char *abs = xasprintf("%s/f1", p->dir);
	long r;

	r = CALL(SYS_link, "f1", "l1");
	named2(p, OP_LINK, r, (struct two){ here, here, "f1", "l1", "", "", 0 });
	r = CALL(SYS_linkat, AT_FDCWD, "f1", d, "l2", AT_SYMLINK_FOLLOW);
	named2(p, OP_LINK, r, (struct two){ here, sub, "f1", "l2", "", "sub",
					    AT_SYMLINK_FOLLOW });
	/* An empty name is the open file itself. */
	r = CALL(SYS_linkat, fd, "", d, "l3", AT_EMPTY_PATH);
	named2(p, OP_LINK, r, (struct two){ ino, sub, "", "l3", "f1", "sub",
					    AT_EMPTY_PATH });
	r = CALL(SYS_link, "f1", "l1");
	named2(p, OP_LINK, r, (struct two){ here, here, "f1", "l1", "", "", 0 });
	r = CALL(SYS_symlink, "/any/where", "s1");
	named2(p, OP_SYMLINK, r, (struct two){ 0, here, "/any/where", "s1",
					       NULL, "", 0 });
	r = CALL(SYS_symlinkat, "f1", d, "s2");
	named2(p, OP_SYMLINK, r, (struct two){ 0, sub, "f1", "s2", NULL, "sub",
					       0 });
	r = CALL(SYS_rename, abs, "f1b");
	named2(p, OP_RENAME, r, (struct two){ 0, here, abs, "f1b", NULL, "",
					      0 });
	free(abs);
}

static void do_renames(struct plan *p, int d)
{
	u64 here = p->dir_ino, sub = ino_of("sub");
	long r;

	r = CALL(SYS_rename, "l1", "l1b");
	named2(p, OP_RENAME, r, (struct two){ here, here, "l1", "l1b", "", "",
					      0 });
	r = CALL(SYS_renameat, d, "l2", AT_FDCWD, "l2b");
	named2(p, OP_RENAME, r, (struct two){ sub, here, "l2", "l2b", "sub", "",
					      0 });
	r = CALL(SYS_renameat2, d, "l3", d, "s2", RENAME_EXCHANGE);
	named2(p, OP_RENAME, r, (struct two){ sub, sub, "l3", "s2", "sub",
					      "sub", RENAME_EXCHANGE });
	r = CALL(SYS_renameat2, d, "l3", d, "s2", RENAME_NOREPLACE);
	named2(p, OP_RENAME, r, (struct two){ sub, sub, "l3", "s2", "sub",
					      "sub", RENAME_NOREPLACE });
	r = CALL(SYS_rename, "missing", "there");
	named2(p, OP_RENAME, r, (struct two){ here, here, "missing", "there",
					      "", "", 0 });
}

/* ---- long names and deep directories ----------------------------------------- */

static void do_long_name(struct plan *p)
{
	struct from cwd = { p->dir_ino, "" };
	struct rec_file_op e;
	char path[PATH_MAX + 2];
	long r;

	for (u32 i = 0; i < sizeof(path); i++)
		path[i] = i % 2 ? '/' : '.';
	memcpy(path + PATH_MAX - 1 - 4, "long", 5);
	r = CALL(SYS_mkdir, path, 0755);
	if (r)
		fail("mkdir of a long path");
	named(p, OP_MKDIR, r, cwd, path, 0755, 0);
	r = CALL(SYS_rmdir, path);
	named(p, OP_RMDIR, r, cwd, path, 0, 0);
	/* One byte more than the kernel takes. */
	path[PATH_MAX - 1] = 'x';
	path[PATH_MAX] = 0;
	r = CALL(SYS_rmdir, path);
	path[PATH_MAX - 1] = 0;
	e = new_op(OP_RMDIR, r, FD_NONE);
	e.flags = FOP_PATH_UNREADABLE;
	e.dir_ino = p->dir_ino;
	e.dir_path = "";
	e.path = path;
	expect(p, &e);
}

static void do_deep(struct plan *p)
{
	struct from at = { p->dir_ino, "" };
	char path[DEPTH * sizeof(DEEP_NAME) + 1];
	size_t len = 0;
	long r;

	path[0] = 0;
	for (int i = 0; i < DEPTH; i++) {
		at.path = path;
		r = CALL(SYS_mkdir, DEEP_NAME, 0755);
		named(p, OP_MKDIR, r, at, DEEP_NAME, 0755, 0);
		if (chdir(DEEP_NAME))
			fail("chdir");
		at.ino = ino_of(".");
		len += sprintf(path + len, "%s%s", i ? "/" : "", DEEP_NAME);
	}
	if (chdir(p->dir))
		fail("chdir");
}

/*
 * In a directory that is further from the root than a path can be long, as
 * many components are recorded as begin in the room there is.
 */
static void do_too_deep(struct plan *p)
{
	const u32 fit = (PATH_MAX - 2) / sizeof(DEEP_NAME) + 1;
	struct buf from = { 0 };
	struct rec_file_op e;
	long r;

	prctl(PR_SET_NAME, "preparing");
	for (u32 i = 0; i <= fit; i++) {
		if (mkdir(DEEP_NAME, 0755) && errno != EEXIST)
			fail("mkdir");
		if (chdir(DEEP_NAME))
			fail("chdir");
		if (i)
			buf_put(&from, DEEP_NAME "/", sizeof(DEEP_NAME));
	}
	prctl(PR_SET_NAME, "fileops_names");
	from.data[from.len - 1] = 0;
	r = CALL(SYS_rmdir, "missing");
	e = new_op(OP_RMDIR, r, FD_NONE);
	e.flags = FOP_DIR_TRUNCATED;
	e.path = "missing";
	e.dir_ino = ino_of(".");
	e.dir_path = (char *)from.data;
	expect(p, &e);
	buf_free(&from);
	if (chdir(p->dir))
		fail("chdir");
}

int main(int argc, char **argv)
{
	struct plan p = { 0 };
	int fd, d;

	if (argc != 3 || chdir(argv[1]))
		fail("usage: fileops_names DIR EXPECTED");
	umask(022);
	p.dir = realpath(".", NULL);
	p.dir_ino = ino_of(".");
	fd = must_open(&p, "f1", O_CREAT | O_RDWR);
	do_single(&p);
	d = open("sub", O_RDONLY | O_DIRECTORY);
	do_links(&p, fd, d);
	do_renames(&p, d);
	do_long_name(&p);
	do_deep(&p);
	do_too_deep(&p);
	return plan_write(&p, argv[2]);
}
