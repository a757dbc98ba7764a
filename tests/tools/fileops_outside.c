// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fileops_outside DIR EXPECTED: operations on names in DIR, an empty directory
 * at the root of its file system, that start in directories of other file
 * systems; writes down what a recording of them must hold, a line each.
 *
 * Besides DIR it uses DIR.out, an empty directory, for mounts that only it
 * sees.
 */
#include "fileops_plan.h"

#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#define DEEP_NAME "a-directory-with-a-name-of-some-length-so-that-it-adds-up"

/* A directory on another file system, and its path as the process sees it. */
struct out {
	u64 ino;
	const char *path;
};

static struct out enter(const char *dir, const char *seen_as)
{
	if (chdir(dir))
		fail(dir);
	return (struct out){ ino_of("."), seen_as };
}

static struct rec_file_op named(u8 op, long ret, struct out from,
				const char *path)
{
	struct rec_file_op e = new_op(op, ret, FD_NONE);

	e.flags = FOP_DIR_ABSOLUTE;
	e.dir_ino = from.ino;
	e.dir_path = (char *)from.path;
	e.path = (char *)path;
	return e;
}

static struct rec_file_op named2(u8 op, long ret, struct out from,
				 const char *path, const char *path2)
{
	struct rec_file_op e = named(op, ret, from, path);

	e.flags |= FOP_DIR2_ABSOLUTE;
	e.dir2_ino = from.ino;
	e.dir2_path = (char *)from.path;
	e.path2 = (char *)path2;
	return e;
}

/* ---- into DIR ------------------------------------------------------------ */

static void do_opens(struct plan *p, struct out from, const char *f)
{
	struct rec_file_op e;
	int fd = open(f, O_CREAT | O_WRONLY, 0644);

	if (fd < 0)
		fail(f);
	e = named(OP_OPEN, fd, from, f);
	e.fd = fd;
	of_fd(&e, fd);
	e.flags |= FOP_CREATED;
	e.open_flags = O_CREAT | O_WRONLY;
	e.mode = 0644;
	e.file_path = "f";
	expect(p, &e);
	close(fd);
	e = named(OP_OPEN, CALL(SYS_open, f, O_CREAT | O_EXCL | O_RDWR, 0600),
		  from, f);
	e.open_flags = O_CREAT | O_EXCL | O_RDWR;
	e.mode = 0600;
	expect(p, &e);
}

/* What can be done to names; all of them are taken away again. */
static void do_names(struct plan *p, struct out from, const char *to_dir)
{
	char *f = xasprintf("%s/f", to_dir), *g = xasprintf("%s/g", to_dir);
	char *d = xasprintf("%s/d", to_dir), *s = xasprintf("%s/s", to_dir);
	struct rec_file_op e;

	do_opens(p, from, f);
	e = named(OP_TRUNCATE, CALL(SYS_truncate, f, 100L), from, f);
	e.len = 100;
	expect(p, &e);
	e = named2(OP_LINK, CALL(SYS_link, f, g), from, f, g);
	expect(p, &e);
	e = named2(OP_RENAME, CALL(SYS_rename, f, s), from, f, s);
	expect(p, &e);
	e = named(OP_UNLINK, CALL(SYS_unlink, s), from, s);
	expect(p, &e);
	e = named2(OP_SYMLINK, CALL(SYS_symlink, "g", s), from, "g", s);
	e.flags &= ~FOP_DIR_ABSOLUTE;
	e.dir_ino = 0;
	e.dir_path = NULL;
	expect(p, &e);
	e = named(OP_MKDIR, CALL(SYS_mkdir, d, 0700), from, d);
	e.mode = 0700;
	expect(p, &e);
	e = named(OP_RMDIR, CALL(SYS_rmdir, d), from, d);
	expect(p, &e);
	e = named(OP_MKNOD, CALL(SYS_mknod, d, S_IFIFO | 0600, 0), from, d);
	e.mode = S_IFIFO | 0600;
	expect(p, &e);
	for (char **name = (char *[]){ d, s, g, NULL }; *name; name++) {
		e = named(OP_UNLINK, CALL(SYS_unlink, *name), from, *name);
		if (e.ret)
			fail(*name);
		expect(p, &e);
	}
	free(f);
	free(g);
	free(d);
	free(s);
}

/* From a directory of DIR to one outside of it. */
static void do_mixed(struct plan *p, struct out from, const char *to_dir)
{
	char *to = xasprintf("%s/to", to_dir);
	int d = open(to_dir, O_RDONLY | O_DIRECTORY);
	struct rec_file_op e;

	e = named(OP_MKDIR, CALL(SYS_mkdirat, d, "here", 0700), from, "here");
	e.flags = 0;
	e.mode = 0700;
	e.dir_ino = p->dir_ino;
	e.dir_path = "";
	expect(p, &e);
	e = named2(OP_RENAME, CALL(SYS_renameat, d, "here", AT_FDCWD, to),
		   from, "here", to);
	e.flags = FOP_DIR2_ABSOLUTE;
	e.dir_ino = p->dir_ino;
	e.dir_path = "";
	expect(p, &e);
	e = named(OP_RMDIR, CALL(SYS_rmdir, to), from, to);
	expect(p, &e);
	close(d);
	free(to);
}

/* ---- which may lead there, and which cannot ------------------------------ */

static void do_elsewhere(struct plan *p, struct out from)
{
	struct rec_file_op e;

	/* One component, not followed: it is the directory's own. */
	if (mkdir("own", 0700) || rename("own", "own2") || rmdir("own2") ||
	    symlink("/", "own") || open("own", O_CREAT | O_EXCL, 0600) >= 0 ||
	    link("own", "own2") || unlink("own") || unlink("own2"))
		fail("operations elsewhere");
	/* A last component that would be followed. */
	e = named(OP_TRUNCATE, CALL(SYS_truncate, "none", 5L), from, "none");
	e.len = 5;
	expect(p, &e);
	e = named(OP_OPEN, CALL(SYS_open, "none", O_RDWR, 0), from, "none");
	e.open_flags = O_RDWR;
	expect(p, &e);
	/* A symbolic link on the way, or nothing: not told apart. */
	e = named(OP_UNLINK, CALL(SYS_unlink, "no/where"), from, "no/where");
	expect(p, &e);
	e = named(OP_UNLINK, CALL(SYS_unlink, NULL), from, NULL);
	e.flags |= FOP_PATH_UNREADABLE;
	expect(p, &e);
}

/* As fileops_names does it inside: only so many components are recorded. */
static void do_too_deep(struct plan *p)
{
	const u32 fit = (PATH_MAX - 2) / sizeof(DEEP_NAME) + 1;
	struct buf from = { 0 };
	struct rec_file_op e;

	for (u32 i = 0; i <= fit; i++) {
		if (mkdir(DEEP_NAME, 0755) || chdir(DEEP_NAME))
			fail("mkdir");
		if (i)
			buf_put(&from, DEEP_NAME "/", sizeof(DEEP_NAME));
	}
	from.data[from.len - 1] = 0;
	e = named(OP_RMDIR, CALL(SYS_rmdir, "no/where"),
		  (struct out){ ino_of("."), (char *)from.data }, "no/where");
	e.flags |= FOP_DIR_TRUNCATED;
	expect(p, &e);
	buf_free(&from);
}

/* ---- mounts -------------------------------------------------------------- */

static void must_mount(const char *from, const char *to, const char *type,
		       unsigned long flags)
{
	if (mkdir(to, 0700) && errno != EEXIST)
		fail(to);
	if (mount(from, to, type, flags, NULL))
		fail(to);
}

/* OUT is a tmpfs, OUT/in/m is DIR, and OUT/in/side is another tmpfs. */
static char *make_mounts(struct plan *p)
{
	char *out = xasprintf("%s.out", p->dir);

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE,
					  NULL))
		fail("a mount namespace");
	must_mount("fileops", out, "tmpfs", 0);
	if (chdir(out) || mkdir("in", 0700))
		fail(out);
	must_mount(p->dir, "in/m", NULL, MS_BIND);
	must_mount("fileops", "in/side", "tmpfs", 0);
	if (mkdir("in/side/sub", 0700))
		fail("mkdir");
	return out;
}

/* The process's root is where paths begin. */
static void do_chrooted(struct plan *p, const char *root)
{
	int top = open("/", O_RDONLY | O_DIRECTORY);
	struct rec_file_op e;
	struct out from;

	if (chroot(root))
		fail("chroot");
	do_names(p, enter("/", "/"), "in/m");
	do_names(p, enter("/in/side/sub", "/in/side/sub"), "../../m");
	/* A directory that is not below it. */
	from = (struct out){ 0 };
	e = named(OP_UNLINK, CALL(SYS_unlinkat, top, "no/where", 0), from,
		  "no/where");
	if (fchdir(top) || chroot("."))
		fail("leaving chroot");
	close(top);
	e.dir_ino = ino_of("/");
	e.dir_path = "";
	e.flags |= FOP_DIR_TRUNCATED;
	expect(p, &e);
}

int main(int argc, char **argv)
{
	struct plan p = { 0 };
	char *out, *seen;
	struct out from;

	if (argc != 3 || chdir(argv[1]))
		fail("usage: fileops_outside DIR EXPECTED");
	umask(022);
	p.dir = realpath(".", NULL);
	p.dir_ino = ino_of(".");
	/* What is only prepared is not listed. */
	prctl(PR_SET_NAME, "preparing");
	out = make_mounts(&p);
	prctl(PR_SET_NAME, "fileops_outside");
	from = enter("/", "/");
	do_names(&p, from, p.dir + 1);
	seen = xasprintf("%s/in/side/sub", out);
	from = enter(seen, seen);
	do_names(&p, from, "../../m");
	do_mixed(&p, from, "../../m");
	do_elsewhere(&p, from);
	do_too_deep(&p);
	do_chrooted(&p, out);
	return plan_write(&p, argv[2]);
}
