// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the kernel says while a worker's disk is mounted, read and unmounted.
 *
 * Kept is a message of level warning or worse (0 to 4) that
 *  - names the worker's loop device ("EXT4-fs (loop3): ...",
 *    "BTRFS warning (device loop3 state M): ...", "I/O error, dev loop3"), or
 *  - opens a kernel splat in the storage stack ("WARNING: CPU: 0 PID: 7 at
 *    fs/...", "BUG:", "kernel BUG at", "Oops", "general protection fault",
 *    "UBSAN:"), unless it names a process outside of the worker's namespace.
 * Recovery of a crashed ext4, xfs or btrfs says what it does at level notice or
 * info, so that nothing of it is kept; the few lines that are said as warnings
 * on healthy disks stand in the table below.
 */
#include "worker.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEVEL_WARNING 4

/* Said as a warning of a disk that has nothing wrong. */
static const char *const harmless[] = {
	"mounting filesystem with quotas",
	"supports timestamps until 2038",
	"Deprecated V4 format",
	"EXPERIMENTAL",
	/* a memfd cannot be zeroed in place, so the block layer writes */
	"operation not supported error",
};

static const char *const splats[] = {
	"WARNING: ", "BUG: ", "kernel BUG at ", "Oops", "general protection",
	"UBSAN: ",
};

/* Where in the kernel's source a splat is ours to report. */
static const char *const stack_dirs[] = {
	"fs/", "block/", "mm/", "lib/", "drivers/block/loop",
};

static u64 inode_of(int dirfd, const char *path)
{
	struct stat st;

	return fstatat(dirfd, path, &st, 0) < 0 ? 0 : st.st_ino;
}

int kmsg_open(struct kmsg *k, const char *disk)
{
	*k = (struct kmsg){ .fd = -1, .proc_fd = -1 };
	snprintf(k->disk, sizeof(k->disk), "%s", disk);
	k->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (k->proc_fd < 0)
		return -errno;
	k->own_pid_ns = inode_of(k->proc_fd, "self/ns/pid");
	k->fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (k->fd < 0)
		return -errno;
	if (lseek(k->fd, 0, SEEK_END) < 0) {
		int err = -errno;

		kmsg_close(k);
		return err;
	}
	return 0;
}

void kmsg_close(struct kmsg *k)
{
	if (k->fd >= 0)
		close(k->fd);
	if (k->proc_fd >= 0)
		close(k->proc_fd);
	k->fd = k->proc_fd = -1;
}

static bool contains(const char *text, size_t len, const char *what)
{
	return memmem(text, len, what, strlen(what)) != NULL;
}

/* Does text hold name, not as a part of a longer word ("loop1" in "loop12")? */
static bool names(const char *text, size_t len, const char *name)
{
	const char *end = text + len, *s = text;
	size_t n = strlen(name);

	while ((s = memmem(s, end - s, name, n))) {
		if ((s == text || !isalnum((unsigned char)s[-1])) &&
		    (s + n == end || !isalnum((unsigned char)s[n])))
			return true;
		s++;
	}
	return false;
}

/* The number after word, 0 when it is not there. */
static unsigned long number_after(const char *text, size_t len,
				  const char *word)
{
	const char *end = text + len;
	const char *s = memmem(text, len, word, strlen(word));
	unsigned long n = 0;

	if (!s)
		return 0;
	for (s += strlen(word); s < end && isdigit((unsigned char)*s); s++)
		n = n * 10 + (*s - '0');
	return n;
}

/* A process outside of our process namespace; the kernel's own threads, which
 * have no program, may be at work for us. */
static bool is_others(const struct kmsg *k, unsigned long pid)
{
	char path[48], exe[1];
	u64 ns;

	if (!pid || k->proc_fd < 0)
		return false;
	snprintf(path, sizeof(path), "%lu/ns/pid", pid);
	ns = inode_of(k->proc_fd, path);
	snprintf(path, sizeof(path), "%lu/exe", pid);
	return ns && ns != k->own_pid_ns &&
	       readlinkat(k->proc_fd, path, exe, sizeof(exe)) >= 0;
}

/*
 * What a splat says of where and who: "WARNING: CPU: 1 PID: 7 at fs/f.c:1 f()",
 * since Linux 6.19 "WARNING: fs/f.c:1 at f(), CPU#1: mount/7". The place is NULL
 * and the process 0 where it does not say.
 */
static const char *splat_place(const char *text, size_t len,
			       unsigned long *ret_pid)
{
	static const char warning[] = "WARNING: ";
	const size_t n = strlen(warning);
	const char *at = memmem(text, len, " at ", 4);
	const char *slash = memrchr(text, '/', len);

	*ret_pid = number_after(text, len, "PID: ");
	if (len < n || memcmp(text, warning, n))
		return NULL;
	if (contains(text, len, "WARNING: CPU: "))
		return at ? at + 4 : NULL;
	if (slash && contains(text, slash - text, " CPU#"))
		*ret_pid = number_after(slash, text + len - slash, "/");
	return text + n;
}

static bool is_splat(const struct kmsg *k, const char *text, size_t len)
{
	bool found = false;
	unsigned long pid;
	const char *at;

	for (size_t i = 0; i < ARRAY_SIZE(splats); i++) {
		size_t n = strlen(splats[i]);

		found |= len >= n && !memcmp(text, splats[i], n);
	}
	at = splat_place(text, len, &pid);
	if (!found || is_others(k, pid))
		return false;
	if (!at)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(stack_dirs); i++) {
		size_t n = strlen(stack_dirs[i]);

		if ((size_t)(text + len - at) >= n &&
		    !memcmp(at, stack_dirs[i], n))
			return true;
	}
	return false;
}

bool kmsg_concerns(const struct kmsg *k, const char *record, size_t len,
		   const char **ret_text, size_t *ret_len)
{
	/* "priority,number,time,flags[,...];message\n[ KEY=value\n]..." */
	const char *text = memchr(record, ';', len), *end;
	unsigned long level = strtoul(record, NULL, 10) & 7;
	size_t n;

	if (!text || level > LEVEL_WARNING)
		return false;
	text++;
	end = memchr(text, '\n', record + len - text);
	n = (end ? end : record + len) - text;
	if (!is_splat(k, text, n)) {
		if (!names(text, n, k->disk))
			return false;
		for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
			if (contains(text, n, harmless[i]))
				return false;
	}
	*ret_text = text;
	*ret_len = n;
	return true;
}

void kmsg_take(struct kmsg *k, struct buf *log)
{
	char record[8192 + 1];

	for (;;) {
		const char *text;
		ssize_t n;
		size_t len;

		if (k->fd < 0)
			return;
		n = read(k->fd, record, sizeof(record) - 1);
		/* EPIPE: the oldest were overwritten, the next read goes on
		 * with what is left */
		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue;
		if (n <= 0)
			return;
		record[n] = 0;
		if (!log || !kmsg_concerns(k, record, n, &text, &len))
			continue;
		buf_put(log, text, len);
		buf_put(log, "\n", 1);
	}
}
