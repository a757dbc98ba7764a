// SPDX-License-Identifier: GPL-2.0-or-later
#include "devices.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEPTH_MAX 16	/* loop on dm on loop on ... */

u32 kernel_dev(dev_t dev)
{
	return (u32)major(dev) << 20 | (u32)minor(dev);
}

/* Reads a small file below /sys/dev/block/MAJOR:MINOR into ret. */
static int sys_read(u32 dev, const char *file, char *ret, size_t bytes)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", dev >> 20,
		 dev & 0xfffff, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, ret, bytes - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return n;
	ret[n] = 0;
	ret[strcspn(ret, "\n")] = 0;
	return 0;
}

static u64 sys_number(u32 dev, const char *file, u64 otherwise)
{
	char text[64];

	if (sys_read(dev, file, text, sizeof(text)) < 0)
		return otherwise;
	return strtoull(text, NULL, 10);
}

/* The disk that dev is, or is a partition of; 0: not a block device. */
static u32 whole_disk(u32 dev)
{
	char text[64];
	u32 disk;

	if (sys_read(dev, "dev", text, sizeof(text)) < 0)
		return 0;
	if (sys_read(dev, "partition", text, sizeof(text)) < 0)
		return dev;
	if (sys_read(dev, "../dev", text, sizeof(text)) < 0 ||
	    parse_dev(text, &disk) < 0)
		return dev;
	return disk;
}

int device_by_dev(u32 dev, struct device_info *ret, struct errmsg *em)
{
	struct device_info d = { .dev = dev };
	char link[64], target[PATH_MAX], cache[64];
	const char *name;
	ssize_t n;

	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", dev >> 20,
		 dev & 0xfffff);
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return errmsg_set(em, errno, "finding the disk %u:%u in /sys",
				  dev >> 20, dev & 0xfffff);
	target[n] = 0;
	name = strrchr(target, '/');
	snprintf(d.name, sizeof(d.name), "%.31s", name ? name + 1 : target);
	d.sectors = sys_number(dev, "size", 0);
	d.logical_block_bytes = sys_number(dev, "queue/logical_block_size",
					   SECTOR_SIZE);
	/* Who does not say has one: that assumes less of the disk. */
	d.write_cache = sys_read(dev, "queue/write_cache", cache,
				 sizeof(cache)) < 0 ||
			!strcmp(cache, "write back");
	d.fua = sys_number(dev, "queue/fua", 0) != 0;
	*ret = d;
	return 0;
}

int device_by_path(const char *path, struct device_info *ret,
		   struct errmsg *em)
{
	struct device_info d;
	struct stat st;
	u32 dev, disk;

	if (stat(path, &st) < 0)
		return errmsg_set(em, errno, "looking at the device %s", path);
	if (!S_ISBLK(st.st_mode))
		return errmsg_set(em, ENOTBLK, "recording %s (a whole disk is "
				  "asked for)", path);
	dev = kernel_dev(st.st_rdev);
	disk = whole_disk(dev);
	if (disk && disk != dev) {
		if (device_by_dev(disk, &d, em) < 0)
			return -EINVAL;
		return errmsg_set(em, 0, "%s is a partition; a recording is of "
				  "a whole disk: --device /dev/%s", path,
				  d.name);
	}
	return device_by_dev(dev, ret, em);
}

void device_fs_type(const char *path, char ret[16])
{
	static const struct {
		const char *type;
		off_t at;
		const char *magic;
	} all[] = {
		{ "ext4", 0x438, "\x53\xef" },
		{ "xfs", 0, "XFSB" },
		{ "btrfs", 0x10040, "_BHRfS_M" },
	};
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char magic[8];

	ret[0] = 0;
	for (size_t i = 0; fd >= 0 && i < ARRAY_SIZE(all); i++) {
		size_t len = strlen(all[i].magic);

		if (!pread_full(fd, magic, len, all[i].at) &&
		    !memcmp(magic, all[i].magic, len))
			snprintf(ret, 16, "%s", all[i].type);
	}
}

/* ---- mounts -------------------------------------------------------------- */

/* \040 and its like, in place. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] &&
		    s[3]) {
			*to++ = (s[1] - '0') << 6 | (s[2] - '0') << 3 |
				(s[3] - '0');
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = 0;
}

void mount_info_done(struct mount_info *m)
{
	free(m->type);
	free(m->mount_point);
	free(m->source);
	free(m->options);
	*m = (struct mount_info){ 0 };
}

static u32 dev_of_source(const char *source)
{
	struct stat st;

	if (source[0] != '/' || stat(source, &st) < 0 || !S_ISBLK(st.st_mode))
		return 0;
	return kernel_dev(st.st_rdev);
}

/*
 * One line of mountinfo (proc(5)): id parent major:minor root mount-point
 * options [fields...] - type source super-options
 */
static int parse_mount(char *line, int *ret_id, struct mount_info *ret)
{
	char point[PATH_MAX], type[64], source[PATH_MAX], super[4096];
	struct mount_info m = { 0 };
	char *dash = strstr(line, " - ");
	unsigned int maj, min;
	u32 block;

	super[0] = 0;
	if (!dash ||
	    sscanf(line, "%d %*d %u:%u %*s %4095s", ret_id, &maj, &min,
		   point) != 4 ||
	    sscanf(dash, " - %63s %4095s %4095s", type, source, super) < 2)
		return -EINVAL;
	unescape(point);
	unescape(source);
	m.dev = maj << 20 | min;
	/* btrfs and its like have a number of their own. */
	block = maj ? m.dev : dev_of_source(source);
	m.block_dev = block ? whole_disk(block) : 0;
	m.whole_disk = m.block_dev == block;
	m.type = xstrdup(type);
	m.mount_point = xstrdup(point);
	m.source = xstrdup(source);
	m.options = xstrdup(super);
	*ret = m;
	return 0;
}

/* The newest mount that matches; a mount hides those before it. */
static int find_mount(bool (*match)(const struct mount_info *m, int id,
				    u64 what),
		      u64 what, struct mount_info *ret)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	struct mount_info m;
	size_t cap = 0;
	bool found = false;
	int id;

	if (!f)
		return -errno;
	while (getline(&line, &cap, f) > 0) {
		if (parse_mount(line, &id, &m) < 0)
			continue;
		if (!match(&m, id, what)) {
			mount_info_done(&m);
			continue;
		}
		if (found)
			mount_info_done(ret);
		*ret = m;
		found = true;
	}
	return found ? 0 : -ENOENT;
}

static bool is_id(const struct mount_info *m, int id, u64 what)
{
	(void)m;
	return (u64)id == what;
}

static bool is_on_disk(const struct mount_info *m, int id, u64 what)
{
	(void)id;
	return m->block_dev == what;
}

int mount_of_path(const char *path, struct mount_info *ret, struct errmsg *em)
{
	struct statx sx;
	int err;

	if (statx(AT_FDCWD, path, 0, STATX_MNT_ID, &sx) < 0)
		return errmsg_set(em, errno, "looking at %s", path);
	err = find_mount(is_id, sx.stx_mnt_id, ret);
	if (err < 0)
		return errmsg_set(em, err, "finding the mount of %s", path);
	return 0;
}

int mount_of_disk(u32 dev, struct mount_info *ret, struct errmsg *em)
{
	int err = find_mount(is_on_disk, dev, ret);

	if (err < 0 && err != -ENOENT)
		errmsg_set(em, err, "reading /proc/self/mountinfo");
	return err;
}

/* ---- what lies on what --------------------------------------------------- */

static bool lies_on(u32 dev, u32 disk, int depth);
static bool path_lies_on(const char *path, u32 disk, int depth);

static bool slaves_lie_on(u32 dev, u32 disk, int depth)
{
	char path[64], file[PATH_MAX], text[64];
	struct dirent *e;
	bool found = false;
	u32 below;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/slaves", dev >> 20,
		 dev & 0xfffff);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "slaves/%s/dev", e->d_name);
		found = !sys_read(dev, file, text, sizeof(text)) &&
			!parse_dev(text, &below) &&
			lies_on(below, disk, depth + 1);
	}
	closedir(dir);
	return found;
}

static bool loop_file_lies_on(u32 dev, u32 disk, int depth)
{
	char file[PATH_MAX];

	return !sys_read(dev, "loop/backing_file", file, sizeof(file)) &&
	       path_lies_on(file, disk, depth + 1);
}

static bool path_lies_on(const char *path, u32 disk, int depth)
{
	struct mount_info m;
	struct stat st;
	u32 below;

	if (stat(path, &st) < 0)
		return false;
	if (S_ISBLK(st.st_mode))
		return lies_on(kernel_dev(st.st_rdev), disk, depth);
	/* Not st_dev: btrfs has one per subvolume. */
	if (mount_of_path(path, &m, NULL) < 0)
		return false;
	below = m.block_dev;
	mount_info_done(&m);
	return below && lies_on(below, disk, depth);
}

static bool lies_on(u32 dev, u32 disk, int depth)
{
	if (depth > DEPTH_MAX)
		return false;
	dev = whole_disk(dev);
	if (!dev)
		return false;
	return dev == disk || slaves_lie_on(dev, disk, depth) ||
	       loop_file_lies_on(dev, disk, depth);
}

bool file_lies_on(const char *path, u32 disk)
{
	return path_lies_on(path, disk, 0);
}
