// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How a worker mounts: options, a mount namespace, and a place to mount at.
 *
 * Invariants:
 *  1. Nothing mounted here is seen outside: the namespace takes part in what
 *     happens to the host's mounts (an unmount there must not be held up by
 *     us) but gives nothing back.
 *  2. No directory is made on a file system of the host. Where a mount point
 *     is missing, the deepest directory of its path that exists is covered by
 *     a tmpfs that shows the same entries, by bind mounts, and the missing
 *     directories are made in the tmpfs.
 */
#include "worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* A directory with more is not mirrored: each entry takes a mount. */
#define MIRROR_ENTRIES_MAX 4096

/* Where a directory of our own is put: the first there is. */
static const char *const own_dirs[] = {
	"/mnt", "/media", "/srv", "/run", "/tmp",
};

struct flag {
	const char *name;
	unsigned long set;
};

/* Options that are flags, not the file system's. nosuid, nodev and noatime
 * are always set, so what would unset them is left out too. */
static const struct flag flags[] = {
	{ "ro", MS_RDONLY },	   { "noexec", MS_NOEXEC },
	{ "sync", MS_SYNCHRONOUS }, { "dirsync", MS_DIRSYNC },
	{ "nodiratime", MS_NODIRATIME }, { "lazytime", MS_LAZYTIME },
	{ "rw", 0 },	    { "exec", 0 },	 { "suid", 0 },
	{ "nosuid", 0 },    { "dev", 0 },	 { "nodev", 0 },
	{ "async", 0 },	    { "atime", 0 },	 { "noatime", 0 },
	{ "relatime", 0 },  { "norelatime", 0 }, { "strictatime", 0 },
	{ "nostrictatime", 0 }, { "diratime", 0 }, { "nolazytime", 0 },
	{ "defaults", 0 },  { "auto", 0 },	 { "noauto", 0 },
	{ "user", 0 },	    { "nouser", 0 },	 { "users", 0 },
	{ "nofail", 0 },    { "_netdev", 0 },	 { "loop", 0 },
	{ "seclabel", 0 },	/* shown, but not accepted */
};

static const char *const refused[] = { "errors=panic", "fatal_errors=panic" };

/*
 * errors=continue: a crashed disk may say "panic on errors" in its super
 * block. nobarrier: flushes mean nothing to an image in memory, and cost a
 * quarter of the time. noinit_itable: nothing is to write behind our back.
 */
static const struct {
	const char *fs_type, *options;
} defaults[] = {
	{ "ext4", "errors=continue,nobarrier,noinit_itable" },
	{ "ext3", "errors=continue,nobarrier" },
	{ "ext2", "errors=continue" },
	{ "xfs", "nouuid" },
	{ "btrfs", "nobarrier" },
};

const char *pool_default_mount_options(const char *fs_type)
{
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++)
		if (!strcmp(fs_type, defaults[i].fs_type))
			return defaults[i].options;
	return "";
}

static void add_option(struct mount_spec *spec, const char *option)
{
	char *old = spec->data;

	spec->data = old ? xasprintf("%s,%s", old, option) : xstrdup(option);
	free(old);
}

static int take_option(struct mount_spec *spec, const char *option,
		       struct errmsg *em)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (!strcmp(option, refused[i]))
			return errmsg_set(em, 0, "mount option '%s' is refused:"
					  " a crashed disk would take the"
					  " machine down", option);
	if (!*option || !strncmp(option, "x-", 2))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		if (strcmp(option, flags[i].name))
			continue;
		spec->flags |= flags[i].set;
		return 0;
	}
	add_option(spec, option);
	return 0;
}

int mount_spec_parse(const char *fs_type, const char *options,
		     struct mount_spec *ret, struct errmsg *em)
{
	struct mount_spec spec = {
		.fs_type = fs_type,
		.flags = MS_NOSUID | MS_NODEV | MS_NOATIME,
	};
	_cleanup_free_ char *text = NULL;
	char *save = NULL;
	int r = 0;

	if (!fs_type || !*fs_type)
		return errmsg_set(em, 0, "the type of the file system is not"
				  " known");
	text = xasprintf("%s,%s", pool_default_mount_options(fs_type),
			 options ? options : "");
	for (char *s = strtok_r(text, ",", &save); s && r == 0;
	     s = strtok_r(NULL, ",", &save))
		r = take_option(&spec, s, em);
	if (r < 0) {
		mount_spec_done(&spec);
		return r;
	}
	*ret = spec;
	return 0;
}

void mount_spec_done(struct mount_spec *spec)
{
	free(spec->data);
	spec->data = NULL;
}

/* The kernel's words about a file system context, into text. */
static void context_words(int fd, char *text, size_t room)
{
	ssize_t n = read(fd, text, room - 1);

	text[n > 0 ? n : 0] = 0;
}

int mount_spec_check(const struct mount_spec *spec, struct errmsg *em)
{
	_cleanup_free_ char *data = xstrdup(spec->data ? spec->data : "");
	_cleanup_close_ int fd = fsopen(spec->fs_type, FSOPEN_CLOEXEC);
	char *save = NULL, words[256];

	if (fd < 0 && errno == ENOSYS)
		return 0;
	if (fd < 0)
		return errmsg_set(em, errno, "this kernel cannot mount %s",
				  spec->fs_type);
	for (char *s = strtok_r(data, ",", &save); s;
	     s = strtok_r(NULL, ",", &save)) {
		char *value = strchr(s, '=');
		int r, err;

		if (value)
			*value++ = 0;
		r = fsconfig(fd, value ? FSCONFIG_SET_STRING :
					 FSCONFIG_SET_FLAG, s, value, 0);
		if (r == 0)
			continue;
		err = errno;
		context_words(fd, words, sizeof(words));
		return errmsg_set(em, err, "%s does not take the mount option"
				  " '%s%s%s' (%s)", spec->fs_type, s,
				  value ? "=" : "", value ? value : "", words);
	}
	return 0;
}

int mount_namespace_new(struct errmsg *em)
{
	if (unshare(CLONE_NEWNS) < 0)
		return errmsg_set(em, errno, "making a mount namespace (root"
				  " is needed)");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return errmsg_set(em, errno, "cutting the mount namespace off");
	return 0;
}

/* ---- a place to mount at ------------------------------------------------- */

/* Makes in dir what stands for entry name of old: a bind mount, or the same
 * symbolic link. An entry that is gone by now is left out. */
static int mirror_entry(int old, const char *dir, const char *name)
{
	_cleanup_free_ char *from = xasprintf("/proc/self/fd/%d/%s", old, name);
	_cleanup_free_ char *to = xasprintf("%s/%s", dir, name);
	_cleanup_close_ int fd = -1;
	char target[4096];
	struct stat st;
	ssize_t n;

	if (fstatat(old, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(old, name, target, sizeof(target) - 1);
		if (n < 0)
			return errno == ENOENT ? 0 : -errno;
		target[n] = 0;
		return symlink(target, to) < 0 ? -errno : 0;
	}
	if (S_ISDIR(st.st_mode)) {
		if (mkdir(to, 0700) < 0)
			return -errno;
	} else {
		fd = open(to, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
		if (fd < 0)
			return -errno;
	}
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return errno == ENOENT ? 0 : -errno;
	return 0;
}

/* Makes dir, a new tmpfs, show what the directory old shows, save skip. */
static int mirror_entries(int old, const char *dir, const char *skip)
{
	int fd = openat(old, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0, n = 0;

	if (!d) {
		r = -errno;
		closep(&fd);
		return r;
	}
	while (r == 0 && (errno = 0, e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    (skip && !strcmp(e->d_name, skip)))
			continue;
		r = n++ == MIRROR_ENTRIES_MAX ?
			    -E2BIG : mirror_entry(old, dir, e->d_name);
	}
	if (r == 0 && errno)
		r = -errno;
	closedir(d);
	return r;
}

static int mount_tmpfs(const char *dir, const struct stat *like)
{
	char data[64];

	snprintf(data, sizeof(data), "mode=%o,uid=%u,gid=%u",
		 like->st_mode & 07777, like->st_uid, like->st_gid);
	return mount("blkbox", dir, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOATIME,
		     data) < 0 ? -errno : 0;
}

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static const char *own_dir(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(own_dirs); i++)
		if (is_dir(own_dirs[i]))
			return own_dirs[i];
	return own_dirs[0];
}

/*
 * The root directory cannot be covered, only left: its mirror is built over
 * own_dir() and becomes our root. What that itself shows is cloned before.
 */
static int mirror_root(void)
{
	const char *top = own_dir();
	_cleanup_close_ int old = -1, clone = -1;
	_cleanup_free_ char *inner = xasprintf("%s%s", top, top);
	struct stat st;
	int r;

	old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	clone = open_tree(AT_FDCWD, top, OPEN_TREE_CLONE | AT_RECURSIVE |
			  OPEN_TREE_CLOEXEC);
	if (old < 0 || clone < 0 || fstat(old, &st) < 0)
		return -errno;
	r = mount_tmpfs(top, &st);
	if (r == 0)
		r = mirror_entries(old, top, top + 1);
	if (r < 0)
		return r;
	if (mkdir(inner, 0755) < 0 ||
	    move_mount(clone, "", AT_FDCWD, inner, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return chroot(top) < 0 || chdir("/") < 0 ? -errno : 0;
}

/* Covers dir with a tmpfs that shows the same. */
static int mirror(const char *dir)
{
	_cleanup_close_ int old = -1;
	struct stat st;
	int r;

	if (!strcmp(dir, "/"))
		return mirror_root();
	old = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (old < 0 || fstat(old, &st) < 0)
		return -errno;
	r = mount_tmpfs(dir, &st);
	return r < 0 ? r : mirror_entries(old, dir, NULL);
}

/* Makes the directories of path below its first done bytes. */
static int make_dirs(const char *path, size_t done)
{
	_cleanup_free_ char *p = xstrdup(path);

	for (char *s = p + done; *s; s++) {
		if (*s != '/' || s == p)
			continue;
		*s = 0;
		if (!is_dir(p) && mkdir(p, 0755) < 0)
			return -errno;
		*s = '/';
	}
	return is_dir(p) || mkdir(p, 0755) == 0 ? 0 : -errno;
}

/* An own directory that hides nothing: /mnt if that is empty, or one in it. */
static char *own_mount_point(void)
{
	const char *top = own_dir();
	DIR *d = opendir(top);
	bool empty = d;
	struct dirent *e;

	while (d && (e = readdir(d)))
		empty = empty && (!strcmp(e->d_name, ".") ||
				  !strcmp(e->d_name, ".."));
	if (d)
		closedir(d);
	return empty ? xstrdup(top) : xasprintf("%s/blkbox", top);
}

int mount_point_make(const char *path, char **ret, struct errmsg *em)
{
	/* The root itself cannot be mounted over where programs run from. */
	_cleanup_free_ char *p = path && strcmp(path, "/") ?
					 xstrdup(path) : own_mount_point();
	_cleanup_free_ char *dir = xstrdup(p);
	char *slash;
	int r;

	if (*p != '/')
		return errmsg_set(em, 0, "mount point '%s' does not begin at"
				  " the root", p);
	while (!is_dir(dir)) {
		slash = strrchr(dir, '/');
		if (access(dir, F_OK) == 0)
			return errmsg_set(em, ENOTDIR, "mount point %s: %s", p,
					  dir);
		slash[slash == dir] = 0;
	}
	if (strcmp(dir, p)) {
		r = mirror(dir);
		if (r == 0)
			r = make_dirs(p, strlen(dir));
		if (r < 0)
			return errmsg_set(em, r, "making mount point %s (below"
					  " %s) for this process alone", p,
					  dir);
	}
	*ret = p;
	p = NULL;
	return 0;
}
