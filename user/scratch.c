// SPDX-License-Identifier: GPL-2.0-or-later
#include "scratch.h"

#include <fcntl.h>
#include <fts.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../replay/pool.h"
#include "spawn.h"

#define COPY_BYTES	   (1U << 20)
#define UNMOUNT_TIMEOUT_NS (5 * 1000000000ULL)

/* What a file system of each type is made with: no work left over for a
 * background thread, and the block size of real disks. */
static const struct fs_kind {
	const char *type;
	u64 least_bytes;
	const char *mkfs[10];
} kinds[] = {
	{ "ext4", 64ULL << 20,
	  { "mkfs.ext4", "-q", "-F", "-b", "4096", "-E",
	    "nodiscard,lazy_itable_init=0,lazy_journal_init=0" } },
	{ "xfs", 320ULL << 20, { "mkfs.xfs", "-q", "-f", "-K" } },
	{ "btrfs", 128ULL << 20, { "mkfs.btrfs", "-q", "-f", "-K" } },
};

static const struct fs_kind *find_kind(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].type, type))
			return &kinds[i];
	return NULL;
}

char *scratch_tmp_dir(void)
{
	const char *tmp = getenv("TMPDIR");
	/* As the program will see it: paths are compared with it. */
	char *dir = tmp && *tmp == '/' ? realpath(tmp, NULL) : NULL;

	return dir ?: xstrdup("/tmp");
}

int scratch_enter(struct janitor *j, struct scratch *ret, struct errmsg *em)
{
	_cleanup_free_ char *tmp = scratch_tmp_dir(), *dir = NULL;
	int err;

	if (unshare(CLONE_NEWNS) < 0)
		return errmsg_set(em, errno, "entering a mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return errmsg_set(em, errno, "making our mounts private");
	err = janitor_start(j, em);
	if (err < 0)
		return err;
	dir = xasprintf("%s/blkbox-XXXXXX", tmp);
	if (!mkdtemp(dir))
		return errmsg_set(em, errno, "creating a directory %s", dir);
	err = janitor_directory(j, dir);
	if (err < 0) {
		rmdir(dir);
		return errmsg_set(em, err, "handing %s to the janitor", dir);
	}
	if (mount("blkbox", dir, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") < 0)
		return errmsg_set(em, errno, "mounting a tmpfs at %s", dir);
	ret->mount_point = xasprintf("%s/fs", dir);
	if (mkdir(ret->mount_point, 0755) < 0)
		return errmsg_set(em, errno, "creating %s", ret->mount_point);
	ret->dir = dir;
	dir = NULL;
	ret->image_fd = -1;
	return 0;
}

/* Splits words at blanks into argv, after the n there. */
static int add_words(char **argv, size_t n, size_t room, char *words)
{
	char *save = NULL;

	for (char *w = strtok_r(words, " \t\n", &save); w;
	     w = strtok_r(NULL, " \t\n", &save)) {
		if (n + 2 > room)
			return -E2BIG;
		argv[n++] = w;
	}
	argv[n] = NULL;
	return n;
}

static int make_fs(const struct fs_kind *kind, const char *options,
		   char *device, struct errmsg *em)
{
	_cleanup_free_ char *words = xstrdup(options ?: "");
	char *argv[64];
	int n = 0, err;

	for (; kind->mkfs[n]; n++)
		argv[n] = (char *)kind->mkfs[n];
	n = add_words(argv, n, ARRAY_SIZE(argv) - 1, words);
	if (n < 0)
		return errmsg_set(em, n, "reading --mkfs-options");
	argv[n++] = device;
	argv[n] = NULL;
	err = spawn_wait(argv, NULL, em);
	if (err == -ENOENT)
		errmsg_set(em, 0, "%s is not installed (Debian: %s)", argv[0],
			   !strcmp(kind->type, "ext4") ? "e2fsprogs" :
			   !strcmp(kind->type, "xfs")  ? "xfsprogs" :
							 "btrfs-progs");
	return err;
}

static int mount_fs(const struct scratch *s, const struct loop *l,
		    struct errmsg *em)
{
	/* The flags a running system mounts with by default. */
	if (mount(l->path, s->mount_point, s->fs_type, MS_RELATIME,
		  s->mount_options) < 0)
		return errmsg_set(em, errno, "mounting the scratch %s%s%s",
				  s->fs_type, s->mount_options ? " with " : "",
				  s->mount_options ?: "");
	return 0;
}

/* A process that was just killed may still be letting go of its files. */
static int unmount_fs(const struct scratch *s, struct errmsg *em)
{
	u64 end = now_ns() + UNMOUNT_TIMEOUT_NS;

	while (umount2(s->mount_point, UMOUNT_NOFOLLOW) < 0) {
		if (errno != EBUSY || now_ns() > end)
			return errmsg_set(em, errno, "unmounting %s%s",
					  s->mount_point, errno == EBUSY ?
					  " (is something mounted below it?)" :
					  errno == EINVAL ?
					  " (it is not mounted any more)" : "");
		usleep(1000);
	}
	return 0;
}

static int run_shell(const char *command, const char *directory,
		     struct errmsg *em)
{
	char *argv[] = { "sh", "-c", (char *)command, NULL };

	return spawn_wait(argv, directory, em);
}

static int copy_inputs(const struct scratch *s,
		       const struct scratch_opts *o, struct errmsg *em)
{
	int err = 0;

	for (u32 i = 0; !err && i < o->n_inputs; i++) {
		char *argv[] = { "cp", "-a", "--", o->inputs[i],
				 s->mount_point, NULL };

		err = spawn_wait(argv, NULL, em);
	}
	if (!err && o->input_dir) {
		_cleanup_free_ char *from = xasprintf("%s/.", o->input_dir);
		char *argv[] = { "cp", "-a", "--", from, s->mount_point, NULL };

		err = spawn_wait(argv, NULL, em);
	}
	return err < 0 ? errmsg_wrap(em, err, "copying the inputs in") : 0;
}

static int fill(const struct scratch *s, const struct loop *l,
		const struct scratch_opts *o, struct errmsg *em)
{
	struct errmsg ignored;
	int err = mount_fs(s, l, em);

	if (err < 0)
		return err;
	err = copy_inputs(s, o, em);
	if (!err && o->setup) {
		err = run_shell(o->setup, s->mount_point, em);
		if (err < 0)
			errmsg_wrap(em, err, "setting up");
	}
	if (err < 0) {
		unmount_fs(s, &ignored);
		return err;
	}
	return unmount_fs(s, em);
}

/* Bytes of all files below the paths, what du --apparent-size would say. */
static u64 bytes_below(char *const *paths)
{
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	u64 bytes = 0;
	FTSENT *e;

	while (fts && (e = fts_read(fts)))
		if (e->fts_info == FTS_F)
			bytes += e->fts_statp->st_size;
	if (fts)
		fts_close(fts);
	return bytes;
}

/* Room for the inputs, several rewritten copies of them, and their metadata. */
static u64 bytes_needed(const struct scratch_opts *o, u64 least)
{
	char *dir[] = { (char *)o->input_dir, NULL };
	u64 bytes = o->input_dir ? bytes_below(dir) : 0;

	for (u32 i = 0; i < o->n_inputs; i++) {
		char *one[] = { o->inputs[i], NULL };

		bytes += bytes_below(one);
	}
	return (least + 4 * bytes + COPY_BYTES - 1) / COPY_BYTES * COPY_BYTES;
}

int scratch_build(struct scratch *s, const struct scratch_opts *o,
		  struct errmsg *em)
{
	const struct fs_kind *kind = find_kind(o->fs_type);
	struct loop l;
	int err;

	if (!kind)
		return errmsg_set(em, 0, "cannot make a file system of type"
				  " '%s': ext4, xfs and btrfs are known",
				  o->fs_type);
	s->fs_type = kind->type;
	s->mount_options = o->mount_options;
	s->bytes = o->bytes ?: bytes_needed(o, kind->least_bytes);
	s->image_fd = memfd_new("blkbox-scratch", s->bytes, em);
	if (s->image_fd < 0)
		return s->image_fd;
	err = loop_attach(s->image_fd, false, &l, em);
	if (err < 0)
		return err;
	err = make_fs(kind, o->mkfs_options, l.path, em);
	if (!err)
		err = fill(s, &l, o, em);
	loop_detach(&l);
	return err;
}

void scratch_done(struct scratch *s)
{
	if (s->dir) {
		umount2(s->dir, MNT_DETACH);
		rmdir(s->dir);
	}
	if (s->image_fd >= 0)
		close(s->image_fd);
	free(s->dir);
	free(s->mount_point);
	*s = (struct scratch){ .image_fd = -1 };
}

static int copy_sparse(int from, int to, u64 bytes, struct errmsg *em)
{
	_cleanup_free_ u8 *part = xmalloc(COPY_BYTES);
	off_t at = 0;

	while ((at = lseek(from, at, SEEK_DATA)) >= 0) {
		off_t end = lseek(from, at, SEEK_HOLE);

		while (at < end) {
			size_t n = MIN(end - at, (off_t)COPY_BYTES);
			int err = pread_full(from, part, n, at);

			if (!err)
				err = pwrite_full(to, part, n, at);
			if (err < 0)
				return errmsg_set(em, err,
						  "copying the scratch image");
			at += n;
		}
	}
	if (errno != ENXIO)
		return errmsg_set(em, errno, "reading the scratch image");
	if (ftruncate(to, bytes) < 0)
		return errmsg_set(em, errno, "sizing the scratch image");
	return 0;
}

int scratch_images_equal(int a, int b, u64 bytes)
{
	_cleanup_free_ u8 *in_a = xmalloc(COPY_BYTES);
	_cleanup_free_ u8 *in_b = xmalloc(COPY_BYTES);

	for (u64 at = 0; at < bytes; at += COPY_BYTES) {
		size_t n = MIN(bytes - at, (u64)COPY_BYTES);
		int err = pread_full(a, in_a, n, at);

		if (!err)
			err = pread_full(b, in_b, n, at);
		if (err < 0)
			return err;
		if (memcmp(in_a, in_b, n))
			return 0;
	}
	return 1;
}

/*
 * Data under writeback must not change between the recorder's look at it and
 * the device's: the block layer then holds writers back. Loop devices of older
 * kernels do not have the attribute; there the image comparison at the end of
 * the run tells.
 */
static void set_stable_writes(const struct loop *l, bool on)
{
	_cleanup_free_ char *path = xasprintf(
		"/sys/block/%s/queue/stable_writes", l->path + strlen("/dev/"));
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, on ? "1" : "0", 1);
}

/* The number of the mount that fd is in; negative errno. */
static int mount_id(int fd)
{
	_cleanup_free_ char *path = xasprintf("/proc/self/fdinfo/%d", fd);
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char line[128];
	int id;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "mnt_id: %d", &id) == 1)
			return id;
	return -ENOENT;
}

/* s_dev, which stat() does not tell on btrfs. */
static int find_fs_dev(const char *mount_point, u32 *ret, struct errmsg *em)
{
	_cleanup_close_ int dir = open(mount_point,
				       O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mountinfo", "re");
	int id = dir < 0 ? -errno : mount_id(dir), have;
	_cleanup_free_ char *line = NULL;
	unsigned int maj, min;
	size_t cap = 0;

	while (id >= 0 && f && getline(&line, &cap, f) > 0) {
		if (sscanf(line, "%d %*d %u:%u", &have, &maj, &min) != 3 ||
		    have != id)
			continue;
		*ret = maj << 20 | min;
		return 0;
	}
	return errmsg_set(em, ENOENT, "looking %s up in /proc/self/mountinfo",
			  mount_point);
}

int scratch_run_start(const struct scratch *s, struct scratch_run *ret,
		      struct errmsg *em)
{
	struct scratch_run r = { .image_fd = -1 };
	int err;

	r.image_fd = memfd_new("blkbox-run", s->bytes, em);
	if (r.image_fd < 0)
		return r.image_fd;
	err = copy_sparse(s->image_fd, r.image_fd, s->bytes, em);
	if (!err)
		err = loop_attach(r.image_fd, false, &r.loop, em);
	if (err < 0) {
		close(r.image_fd);
		return err;
	}
	set_stable_writes(&r.loop, true);
	err = mount_fs(s, &r.loop, em);
	r.mounted = !err;
	if (!err)
		err = find_fs_dev(s->mount_point, &r.fs_dev, em);
	if (err < 0) {
		scratch_run_done(s, &r);
		return err;
	}
	*ret = r;
	return 0;
}

int scratch_run_unmount(const struct scratch *s, struct scratch_run *r,
			struct errmsg *em)
{
	int err = unmount_fs(s, em);

	r->mounted = err < 0;
	return err;
}

void scratch_run_done(const struct scratch *s, struct scratch_run *r)
{
	if (r->mounted)
		umount2(s->mount_point, MNT_DETACH);
	/* The device outlives us, and would keep it. */
	if (r->loop.fd >= 0)
		set_stable_writes(&r->loop, false);
	loop_detach(&r->loop);
	if (r->image_fd >= 0)
		close(r->image_fd);
	*r = (struct scratch_run){ .image_fd = -1 };
}
