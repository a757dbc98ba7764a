// SPDX-License-Identifier: GPL-2.0-or-later
#include "cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define FREEZE_TIMEOUT_NS (2 * 1000000000ULL)
#define EMPTY_TIMEOUT_NS  (5 * 1000000000ULL)

/* Our own place in the hierarchy, "/..." as our namespace has it; heap. */
static char *own_cgroup(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/cgroup", "re");
	_cleanup_free_ char *line = NULL;
	size_t cap = 0;

	while (f && getline(&line, &cap, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "0::", 3))
			return xstrdup(line + 3);
	}
	return NULL;
}

/* What follows root in path; NULL: path is not below root. */
static const char *below(const char *path, const char *root)
{
	size_t n = strcmp(root, "/") ? strlen(root) : 0;

	if (strncmp(path, root, n) || (path[n] && path[n] != '/'))
		return NULL;
	return strcmp(path + n, "/") ? path + n : "";
}

/* mountinfo writes blanks and the like as \040. */
static void unescape(char *text)
{
	char *to = text;
	unsigned int c;

	while (*text) {
		if (*text == '\\' && sscanf(text + 1, "%3o", &c) == 1) {
			*to++ = c;
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = 0;
}

/* Where our own cgroup is seen, in any mount of the hierarchy; heap, NULL:
 * nowhere. A mount may show a part of it only (containers). */
static char *find_own(const char *own)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	size_t cap = 0;
	char path[4096], root[4096];

	while (f && getline(&line, &cap, f) > 0) {
		const char *type = strstr(line, " - "), *rest;

		if (!type || strncmp(type, " - cgroup2 ", 11) ||
		    sscanf(line, "%*s %*s %*s %4095s %4095s", root, path) != 2)
			continue;
		unescape(root);
		unescape(path);
		rest = below(own, root);
		if (rest)
			return xasprintf("%s%s", path, rest);
	}
	return NULL;
}

static int open_files(struct cgroup *g, struct errmsg *em)
{
	const struct {
		const char *name;
		int *fd;
		int flags;
	} files[] = {
		{ "cgroup.procs", &g->procs_fd, O_RDWR },
		{ "cgroup.threads", &g->threads_fd, O_RDONLY },
		{ "cgroup.freeze", &g->freeze_fd, O_WRONLY },
		{ "cgroup.events", &g->events_fd, O_RDONLY },
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		*files[i].fd = openat(g->dir_fd, files[i].name,
				      files[i].flags | O_CLOEXEC);
		if (*files[i].fd < 0)
			return errmsg_set(em, errno, "opening %s/%s", g->path,
					  files[i].name);
	}
	return 0;
}

static int read_id(struct cgroup *g, struct errmsg *em)
{
	struct {
		struct file_handle h;
		u64 id;
	} fh = { .h.handle_bytes = sizeof(u64) };
	int mount_id;

	if (name_to_handle_at(g->dir_fd, "", &fh.h, &mount_id,
			      AT_EMPTY_PATH) < 0)
		return errmsg_set(em, errno, "finding the id of cgroup %s",
				  g->path);
	memcpy(&g->id, fh.h.f_handle, sizeof(g->id));
	return 0;
}

static int make_in(struct cgroup *g, const char *place)
{
	g->path = xasprintf("%s/blkbox-%d-%llx", place, getpid(),
			    (unsigned long long)now_ns());
	if (mkdir(g->path, 0755) == 0)
		return 0;
	free(g->path);
	g->path = NULL;
	return -errno;
}

/* Where our cgroup is not seen, or may not be written to. */
static int make_in_private(struct cgroup *g, const char *mount_point,
			   const char *own, struct errmsg *em)
{
	_cleanup_free_ char *place = xasprintf("%s%s", mount_point, own);
	int err;

	if (mkdir(mount_point, 0700) < 0 && errno != EEXIST)
		return errmsg_set(em, errno, "creating %s", mount_point);
	if (mount("blkbox", mount_point, "cgroup2",
		  MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return errmsg_set(em, errno, "mounting a cgroup v2 hierarchy");
	err = make_in(g, place);
	return err < 0 ? errmsg_set(em, err, "creating a cgroup in %s",
				    place) : 0;
}

int cgroup_new(const char *private_mount, struct cgroup *ret,
	       struct errmsg *em)
{
	struct cgroup g = { .dir_fd = -1, .procs_fd = -1, .threads_fd = -1,
			    .freeze_fd = -1, .events_fd = -1 };
	_cleanup_free_ char *own = own_cgroup(), *place = NULL;
	int err;

	if (!own)
		return errmsg_set(em, ENOENT,
				  "this kernel has no cgroup v2; looking up"
				  " our place in it");
	place = find_own(own);
	err = place ? make_in(&g, place) : -ENOENT;
	if (err < 0)
		err = make_in_private(&g, private_mount,
				      below(own, "/") ?: "", em);
	if (err < 0)
		return err;
	g.dir_fd = open(g.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = g.dir_fd < 0 ? errmsg_set(em, errno, "opening %s", g.path) :
			     open_files(&g, em);
	if (!err)
		err = read_id(&g, em);
	if (err < 0) {
		cgroup_remove(&g);
		return err;
	}
	*ret = g;
	return 0;
}

static int write_number(int fd, int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	return pwrite(fd, text, len, 0) < 0 ? -errno : 0;
}

int cgroup_add(const struct cgroup *g, pid_t pid)
{
	return write_number(g->procs_fd, pid);
}

int cgroup_threads(const struct cgroup *g, int limit)
{
	char text[512];
	int n = 0;
	ssize_t len;

	if (lseek(g->threads_fd, 0, SEEK_SET) < 0)
		return -errno;
	while (n < limit && (len = read(g->threads_fd, text, sizeof(text)))) {
		if (len < 0)
			return -errno;
		for (ssize_t i = 0; i < len; i++)
			n += text[i] == '\n';
	}
	return MIN(n, limit);
}

/* Waits until "name value" stands in the events file. */
static int wait_event(int fd, const char *want, u64 timeout_ns)
{
	u64 end = now_ns() + timeout_ns;
	char text[256];
	ssize_t len;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLPRI };

		len = pread(fd, text, sizeof(text) - 1, 0);
		if (len < 0)
			return -errno;
		text[len] = 0;
		if (strstr(text, want))
			return 0;
		if (now_ns() >= end)
			return -ETIMEDOUT;
		poll(&p, 1, 10);
	}
}

int cgroup_freeze(const struct cgroup *g)
{
	int err = write_number(g->freeze_fd, 1);

	if (err < 0)
		return err;
	return wait_event(g->events_fd, "frozen 1", FREEZE_TIMEOUT_NS);
}

int cgroup_thaw(const struct cgroup *g)
{
	return write_number(g->freeze_fd, 0);
}

/* Kernels before 5.14 have no cgroup.kill. */
static void kill_each(int dir_fd)
{
	int fd = openat(dir_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	int pid;

	while (f && fscanf(f, "%d", &pid) == 1)
		if (pid > 1)
			kill(pid, SIGKILL);
	if (f)
		fclose(f);
}

int cgroup_kill(const char *path)
{
	_cleanup_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int events = -1;
	_cleanup_close_ int fd = -1;

	if (dir < 0)
		return -errno;
	fd = openat(dir, "cgroup.kill", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "1", 1) < 0)
		kill_each(dir);
	events = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (events < 0)
		return -errno;
	return wait_event(events, "populated 0", EMPTY_TIMEOUT_NS);
}

void cgroup_remove_path(const char *path)
{
	if (rmdir(path) == 0 || errno == ENOENT)
		return;
	cgroup_kill(path);
	rmdir(path);
}

void cgroup_remove(struct cgroup *g)
{
	if (g->path)
		cgroup_remove_path(g->path);
	closep(&g->procs_fd);
	closep(&g->threads_fd);
	closep(&g->freeze_fd);
	closep(&g->events_fd);
	closep(&g->dir_fd);
	free(g->path);
	*g = (struct cgroup){ .dir_fd = -1, .procs_fd = -1, .threads_fd = -1,
			      .freeze_fd = -1, .events_fd = -1 };
}
