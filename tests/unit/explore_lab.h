/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings made by hand, without a recorder: an ext4 on a loop device over
 * memory is mounted, a step is taken on it, and the blocks that differ then
 * become the writes of that step, in the order in which ext4 would have issued
 * them: everything, a flush, the journal's commit blocks, a flush.
 */
#ifndef BLKBOX_TESTS_EXPLORE_LAB_H
#define BLKBOX_TESTS_EXPLORE_LAB_H

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../replay/loop.h"
#include "../../replay/recording.h"
#include "../../replay/tree.h"

#define LAB_BYTES (16ULL << 20)
#define LAB_BLOCK 4096U
#define LAB_DEV (259U << 20 | 7)
#define LAB_DATA_BYTES 65536U

struct lab {
	char dir[32];		/* holds "mnt" and the recording */
	char mnt[48];
	char recording[48];
	int memfd, dirfd;
	struct loop loop;
	u8 *before;
	struct rec_writer *w;
	struct store *store;
	u64 seq;
	u64 ino;		/* of the file whose pages writes are said to be */
	struct errmsg em;
};

/* Text that is nowhere else on the disk; which tells versions apart. */
static inline void lab_text(char which, char text[LAB_DATA_BYTES])
{
	for (u32 i = 0; i < LAB_DATA_BYTES; i++)
		text[i] = i % 64 == 63 ? '\n' : which;
}

static inline int lab_mkfs(const char *path)
{
	extern char **environ;
	char *argv[] = { "mke2fs", "-q",   "-F",	 "-t",	"ext4", "-b",
			 "4096",   "-J",   "size=4",	 "-E",
			 "lazy_itable_init=0,nodiscard", (char *)path, NULL };
	int status;
	pid_t pid;

	if (posix_spawnp(&pid, "mke2fs", NULL, NULL, argv, environ))
		return -ENOENT;
	if (waitpid(pid, &status, 0) < 0 || status)
		return -EIO;
	return 0;
}

static inline int lab_mount(struct lab *l)
{
	if (mount(l->loop.path, l->mnt, "ext4", MS_NOATIME, NULL) < 0)
		return -errno;
	l->dirfd = open(l->mnt, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return l->dirfd < 0 ? -errno : 0;
}

static inline void lab_umount(struct lab *l)
{
	closep(&l->dirfd);
	l->dirfd = -1;
	umount2(l->mnt, 0);
}

static inline int lab_write(const struct lab *l, const char *name, int flags,
			    char which)
{
	static char text[LAB_DATA_BYTES];
	_cleanup_close_ int fd = openat(l->dirfd, name,
					O_WRONLY | O_CLOEXEC | flags, 0644);

	if (fd < 0)
		return -errno;
	lab_text(which, text);
	return write_full(fd, text, sizeof(text));
}

static inline int lab_truncate(const struct lab *l, const char *name)
{
	_cleanup_close_ int fd = openat(l->dirfd, name,
					O_WRONLY | O_TRUNC | O_CLOEXEC);

	return fd < 0 ? -errno : 0;
}

static inline u64 lab_ino(const struct lab *l, const char *name)
{
	struct stat st;

	return fstatat(l->dirfd, name, &st, 0) < 0 ? 0 : st.st_ino;
}

/* ---- events ----------------------------------------------------------------- */

static inline u64 lab_issue(struct lab *l, u8 op, u64 at, const void *data,
			    u32 bytes, bool is_data)
{
	struct rec_page page = {
		.bytes = bytes,
		.flags = is_data ? 0 : PAGE_BLOCKDEV,
		.fs_dev = LAB_DEV,
		.ino = is_data ? l->ino : 0,
	};
	struct rec_issue i = {
		.op = op,
		.sector = at >> SECTOR_SHIFT,
		.sectors = bytes >> SECTOR_SHIFT,
		.comm = "lab",
		.n_pages = bytes ? 1 : 0,
		.pages = &page,
		.data = data,
		.data_bytes = data ? bytes : 0,
	};

	l->seq++;
	if (rec_put_issue(l->w, l->seq, l->seq * 1000, LAB_DEV, &i) < 0)
		abort();
	return l->seq;
}

static inline void lab_complete(struct lab *l, u64 issue)
{
	struct rec_complete c = { .issue_seq = issue };

	l->seq++;
	if (rec_put_complete(l->w, l->seq, l->seq * 1000, LAB_DEV, &c) < 0)
		abort();
}

static inline void lab_flush(struct lab *l)
{
	lab_complete(l, lab_issue(l, BLK_FLUSH, 0, NULL, 0, false));
}

static inline void lab_put_write(struct lab *l, u64 at, const void *data,
				 u32 bytes, bool is_data)
{
	lab_complete(l, lab_issue(l, BLK_WRITE, at, data, bytes, is_data));
}

static inline void lab_mark(struct lab *l, const char *text)
{
	struct rec_mark m = { .text = text };

	l->seq++;
	if (rec_put_mark(l->w, l->seq, l->seq * 1000, &m) < 0)
		abort();
}

/* A successful operation in the root; the other fields are op's. */
static inline void lab_op(struct lab *l, struct rec_file_op op)
{
	if (op.path) {
		op.dir_dev = LAB_DEV;
		op.dir_ino = 2;
		op.dir_path = "";
	}
	if (op.path2) {
		op.dir2_dev = LAB_DEV;
		op.dir2_ino = 2;
		op.dir2_path = "";
	}
	op.start_seq = l->seq + 1;
	l->seq++;
	if (rec_put_file_op(l->w, l->seq, l->seq * 1000, LAB_DEV, &op) < 0)
		abort();
}

/* The tree as it is now is what that event made. */
static inline void lab_state(struct lab *l, u64 after_seq, const char *what)
{
	struct rec_state st = {
		.after_seq = after_seq,
		.source = STATE_STOP,
		.what = xstrdup(what),
	};

	if (tree_read(l->store, l->dirfd, NULL, NULL, NULL, &st.tree, &l->em) <
		    0 ||
	    rec_put_state(l->w, &st) < 0)
		abort();
	rec_state_done(l->store, &st);
}

/* ---- what a step left on the disk ------------------------------------------- */

static inline bool lab_is_commit(const u8 *b)
{
	static const u8 head[] = { 0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 2 };

	return !memcmp(b, head, sizeof(head));
}

static inline bool lab_is_data(const u8 *b)
{
	for (u32 i = 0; i < 63; i++)
		if (b[i] != b[0] || b[i] < 'A' || b[i] > 'Z')
			return false;
	return b[63] == '\n';
}

/* Writes of the blocks that differ, commit blocks or all others. */
static inline void lab_put_changed(struct lab *l, bool commits)
{
	u8 now[LAB_BLOCK];

	for (u64 at = 0; at < LAB_BYTES; at += LAB_BLOCK) {
		if (pread_full(l->memfd, now, LAB_BLOCK, at) < 0)
			abort();
		if (!memcmp(now, l->before + at, LAB_BLOCK) ||
		    lab_is_commit(now) != commits)
			continue;
		memcpy(l->before + at, now, LAB_BLOCK);
		lab_put_write(l, at, now, LAB_BLOCK, lab_is_data(now));
	}
}

/*
 * What an fsync of name does: its data, then the journal with all metadata.
 * (A sync would also write metadata in place, which ext4 allows only after the
 * commit.)
 */
static inline void lab_fsync(struct lab *l, const char *name)
{
	_cleanup_close_ int fd = openat(l->dirfd, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		abort();
	lab_put_changed(l, false);
	lab_flush(l);
	lab_put_changed(l, true);
	lab_flush(l);
}

/* ---- from start to end ------------------------------------------------------ */

static inline int lab_record(struct lab *l)
{
	static const struct rec_writer_opts opts = { .level = 1 };
	char head[512];
	int r;

	snprintf(head, sizeof(head),
		 "{\"format\":\"blkbox recording\",\"version\":\"test\","
		 "\"devices\":[{\"dev\":%u,\"name\":\"lab\",\"sectors\":%llu,"
		 "\"logical_block_bytes\":512,\"write_cache\":true,"
		 "\"fua\":false}],\"file_systems\":[{\"dev\":%u,"
		 "\"block_dev\":%u,\"type\":\"ext4\","
		 "\"mount_point\":\"%s\"}],\"base\":\"embedded\","
		 "\"payload\":\"full\",\"expected_states\":\"stop\"}",
		 LAB_DEV, LAB_BYTES >> SECTOR_SHIFT, LAB_DEV, LAB_DEV, l->mnt);
	r = rec_create(l->recording, head, &opts, &l->w, &l->em);
	if (r < 0)
		return r;
	r = rec_put_base_image(l->w, LAB_DEV, l->memfd, LAB_BYTES, &l->em);
	if (r < 0)
		return r;
	return pread_full(l->memfd, l->before, LAB_BYTES, 0);
}

static inline void lab_free(struct lab *l)
{
	lab_umount(l);
	if (l->w)
		rec_abandon(l->w);
	unlink(l->recording);
	rmdir(l->mnt);
	rmdir(l->dir);
	if (l->store)
		store_free(l->store);
	loop_detach(&l->loop);
	closep(&l->memfd);
	free(l->before);
	free(l);
}

static inline int lab_prepare(struct lab *l)
{
	int r;

	if (!mkdtemp(l->dir))
		return -errno;
	snprintf(l->mnt, sizeof(l->mnt), "%s/mnt", l->dir);
	snprintf(l->recording, sizeof(l->recording), "%s/lab.bbx", l->dir);
	if (mkdir(l->mnt, 0755) < 0)
		return -errno;
	l->memfd = memfd_new("lab", LAB_BYTES, &l->em);
	if (l->memfd < 0)
		return l->memfd;
	r = loop_attach(l->memfd, false, &l->loop, &l->em);
	if (r < 0)
		return r;
	r = lab_mkfs(l->loop.path);
	if (r < 0)
		return r;
	fsync(l->loop.fd);
	r = lab_mount(l);
	if (r < 0)
		return r;
	r = lab_write(l, "data", O_CREAT, 'A');
	lab_umount(l);
	fsync(l->loop.fd);
	return r;
}

/*
 * A file system with "data" (64 KiB of 'A') on it, unmounted: the base. Then
 * mounted, with all that its mount wrote flushed, and state 0 in the
 * recording. NULL, and a message on stderr, when that cannot be had.
 */
static inline struct lab *lab_new(void)
{
	struct lab *l = xzalloc(sizeof(*l));
	int r;

	l->memfd = l->dirfd = l->loop.fd = -1;
	strcpy(l->dir, "/tmp/blkbox-lab-XXXXXX");
	l->before = xzalloc(LAB_BYTES);
	l->store = store_new();
	r = lab_prepare(l);
	if (r >= 0)
		r = lab_record(l);
	if (r >= 0)
		r = lab_mount(l);
	if (r < 0) {
		fprintf(stderr, "making a file system for the test: %s (%s)\n",
			strerror(-r), l->em.text);
		lab_free(l);
		return NULL;
	}
	l->ino = lab_ino(l, "data");
	lab_fsync(l, ".");
	lab_state(l, 0, "the start");
	lab_mark(l, "blkbox: begin");
	return l;
}

static inline void lab_close(struct lab *l)
{
	if (rec_close(l->w, &l->em) < 0)
		abort();
	l->w = NULL;
}

#endif
