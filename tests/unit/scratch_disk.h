/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Real crashes without a recorder, for tests and benches: a file system is made
 * and mounted on a loop device over memory, a workload runs on it, and after
 * each round whatever differs from the round before becomes the writes of that
 * round. Every state in between is a disk of a mounted file system, journal
 * and all.
 *
 * Round i writes file "f<i>" whole, fsyncs it, renames "f<i - 1>" to "old<i>"
 * and deletes "old<i - 2>", so that after round i a recovered disk holds f<i>
 * with its content.
 */
#ifndef BLKBOX_TESTS_SCRATCH_DISK_H
#define BLKBOX_TESTS_SCRATCH_DISK_H

#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../replay/image.h"
#include "../../replay/intake.h"
#include "../../replay/loop.h"
#include "../../replay/trace.h"

#define SCRATCH_FILE_BYTES 20000
#define SCRATCH_RUN_BYTES (16U << 10)	/* longest write */

struct scratch_fs {
	const char *type;
	u64 bytes;
	const char *mkfs[8];	/* without the device */
	const char *options;
};

static const struct scratch_fs scratch_fs[] = {
	{ "ext4", 16 << 20, { "mke2fs", "-q", "-F", "-t", "ext4" }, NULL },
	{ "xfs", 320 << 20, { "mkfs.xfs", "-q", "-f" }, "nouuid" },
	{ "btrfs", 128 << 20, { "mkfs.btrfs", "-q", "-f" }, NULL },
};

struct scratch {
	const struct scratch_fs *fs;
	struct loop loop;
	int memfd;
	u8 *before;		/* as it was when last looked at */
	u8 *base;		/* as it was at the start */
	u8 *stored;		/* per block: before is not a hole there */
	off_t data, hole;	/* extent of memfd that block_now() is in */
	struct intake *intake;
	u64 seq;
	char dir[32];		/* where it is mounted */
	u32 rounds;
	u32 *round_units;	/* units there are after each round */
	u32 n_units;
};

static inline void scratch_content(u32 i, u8 data[SCRATCH_FILE_BYTES])
{
	for (u32 b = 0; b < SCRATCH_FILE_BYTES; b++)
		data[b] = 'a' + (b / 7 + b * b / 1000 + i) % 26;
}

static inline int scratch_run(const char *const *argv, const char *last)
{
	extern char **environ;
	const char *args[10];
	int n = 0, status;
	pid_t pid;

	while (argv[n] && n < 8) {
		args[n] = argv[n];
		n++;
	}
	args[n++] = last;
	args[n] = NULL;
	if (posix_spawnp(&pid, args[0], NULL, NULL, (char **)args, environ))
		return -ENOENT;
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return status ? -EIO : 0;
}

/* Does a block of the image, now, hold something else than before? Holes of the
 * memfd are not touched: that would fill them. */
static inline bool scratch_changed(struct scratch *s, u64 at, u8 now[4096])
{
	if ((off_t)at >= s->hole) {
		s->data = lseek(s->memfd, at, SEEK_DATA);
		s->hole = s->data < 0 ? (off_t)s->fs->bytes :
					lseek(s->memfd, s->data, SEEK_HOLE);
		if (s->data < 0)
			s->data = s->fs->bytes;
	}
	memset(now, 0, 4096);
	if ((off_t)at >= s->data)
		(void)!pread_full(s->memfd, now, 4096, at);
	else if (!s->stored[at / 4096])
		return false;
	return memcmp(now, s->before + at, 4096);
}

/* Bytes at, which are in before already, as a write that completed. */
static inline int scratch_unit(struct scratch *s, u64 at, u32 bytes,
			       struct errmsg *em)
{
	struct rec_issue issue = {
		.op = BLK_WRITE,
		.sector = at / SECTOR_SIZE,
		.sectors = bytes / SECTOR_SIZE,
		.data = s->before + at,
		.data_bytes = bytes,
	};
	struct rec_complete done = { .issue_seq = ++s->seq, .bytes = bytes };
	int r = intake_issue(s->intake, s->seq, s->seq, &issue, em);

	s->n_units++;
	return r < 0 ? r : intake_complete(s->intake, ++s->seq, &done, em);
}

static inline int scratch_flush(struct scratch *s, struct errmsg *em)
{
	struct rec_issue flush = { .op = BLK_FLUSH };
	struct rec_complete done = { .issue_seq = ++s->seq };
	int r = intake_issue(s->intake, s->seq, s->seq, &flush, em);

	return r < 0 ? r : intake_complete(s->intake, ++s->seq, &done, em);
}

/* What changed since goes into before. With record, it becomes writes, and a
 * flush follows. */
static inline int scratch_take(struct scratch *s, bool record,
			       struct errmsg *em)
{
	u64 run = 0, run_bytes = 0;
	u8 now[4096];
	int r = 0;

	s->hole = 0;
	for (u64 at = 0; r == 0 && at < s->fs->bytes; at += 4096) {
		bool changed = scratch_changed(s, at, now);

		if (changed) {
			memcpy(s->before + at, now, 4096);
			s->stored[at / 4096] = 1;
			run = run_bytes ? run : at;
			run_bytes += 4096;
		}
		if (record && run_bytes &&
		    (!changed || run_bytes == SCRATCH_RUN_BYTES ||
		     at + 4096 == s->fs->bytes)) {
			r = scratch_unit(s, run, run_bytes, em);
			run_bytes = 0;
		}
	}
	return r < 0 || !record ? r : scratch_flush(s, em);
}

static inline int scratch_round(int dirfd, u32 i)
{
	u8 data[SCRATCH_FILE_BYTES];
	char name[32], to[32];
	int fd, r;

	scratch_content(i, data);
	snprintf(name, sizeof(name), "f%u", i);
	fd = openat(dirfd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	r = write_full(fd, data, sizeof(data));
	if (i > 0) {
		snprintf(name, sizeof(name), "f%u", i - 1);
		snprintf(to, sizeof(to), "old%u", i);
		renameat(dirfd, name, dirfd, to);
	}
	if (i > 1) {
		snprintf(to, sizeof(to), "old%u", i - 2);
		unlinkat(dirfd, to, 0);
	}
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	close(fd);
	/* half of the rounds leave more behind than their own file */
	if (r == 0 && i % 2 && syncfs(dirfd) < 0)
		r = -errno;
	return r;
}

static inline int scratch_rounds(struct scratch *s, struct errmsg *em)
{
	_cleanup_close_ int dirfd = -1;
	int r;

	if (mount(s->loop.path, s->dir, s->fs->type, 0, s->fs->options) < 0)
		return errmsg_set(em, errno, "mounting a new %s",
				  s->fs->type);
	dirfd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return errmsg_set(em, errno, "opening it");
	for (u32 i = 0; i < s->rounds; i++) {
		r = scratch_round(dirfd, i);
		if (r < 0)
			return errmsg_set(em, r, "working on it");
		r = scratch_take(s, true, em);
		if (r < 0)
			return r;
		s->round_units[i] = s->n_units;
	}
	return 0;
}

static inline int scratch_base(struct scratch *s, struct errmsg *em)
{
	int r = scratch_take(s, false, em);

	s->intake = intake_new(s->loop.dev, s->fs->bytes, true);
	for (u64 at = 0; r == 0 && at < s->fs->bytes; at += 4096) {
		struct rec_base b = { at, s->base + at, 4096 };

		if (!s->stored[at / 4096])
			continue;
		memcpy(s->base + at, s->before + at, 4096);
		r = intake_base(s->intake, &b, em);
	}
	intake_base_end(s->intake);
	intake_base_quiet(s->intake);
	return r;
}

static inline u8 *scratch_map(u64 bytes)
{
	u8 *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static inline int scratch_open(struct scratch *s, struct errmsg *em)
{
	int r;

	s->memfd = memfd_new("scratch disk", s->fs->bytes, em);
	if (s->memfd < 0)
		return s->memfd;
	r = loop_attach(s->memfd, false, &s->loop, em);
	if (r < 0)
		return r;
	r = scratch_run(s->fs->mkfs, s->loop.path);
	if (r < 0)
		return errmsg_set(em, r, "running %s", s->fs->mkfs[0]);
	fsync(s->loop.fd);
	s->before = scratch_map(s->fs->bytes);
	s->base = scratch_map(s->fs->bytes);
	s->stored = xzalloc(s->fs->bytes / 4096);
	if (!s->before || !s->base)
		return errmsg_set(em, ENOMEM, "mapping the disk");
	return scratch_base(s, em);
}

static inline void scratch_close(struct scratch *s)
{
	umount2(s->dir, MNT_DETACH);
	rmdir(s->dir);
	if (s->before)
		munmap(s->before, s->fs->bytes);
	if (s->base)
		munmap(s->base, s->fs->bytes);
	free(s->stored);
	intake_free(s->intake);
	loop_detach(&s->loop);
	closep(&s->memfd);
}

/* A trace, with the base it refers to. */
struct scratch_trace {
	const struct scratch_fs *fs;
	struct trace *t;
	struct image_index *index;
	u8 *base;
	u32 rounds;
	u32 *round_units;	/* so many units make the disk after round i */
};

static inline void scratch_trace_free(struct scratch_trace *st)
{
	if (!st)
		return;
	image_index_free(st->index);
	trace_free(st->t);
	munmap(st->base, st->fs->bytes);
	free(st->round_units);
	free(st);
}

/* -ENOENT: there is no mkfs for it. */
static inline int scratch_trace_new(const struct scratch_fs *fs, u32 rounds,
				    struct scratch_trace **ret,
				    struct errmsg *em)
{
	struct trace_opts opts = { .model = MODEL_DEVICE };
	struct scratch_trace *st = xzalloc(sizeof(*st));
	struct scratch s = {
		.fs = fs,
		.loop.fd = -1,
		.memfd = -1,
		.dir = "/tmp/blkbox-test-XXXXXX",
		.rounds = rounds,
		.round_units = xreallocarray(NULL, rounds, sizeof(u32)),
	};
	int r;

	if (!mkdtemp(s.dir))
		r = errmsg_set(em, errno, "making %s", s.dir);
	else
		r = scratch_open(&s, em);
	if (r == 0)
		r = scratch_rounds(&s, em);
	if (r == 0)
		r = intake_finish(s.intake, &opts, &st->t, em);
	if (r == 0) {
		*st = (struct scratch_trace){
			fs, st->t, image_index_new(st->t), s.base, rounds,
			s.round_units,
		};
		*ret = st;
		s.intake = NULL;
		s.base = NULL;
	} else {
		free(s.round_units);
		free(st);
	}
	scratch_close(&s);
	return r;
}

#endif
