// SPDX-License-Identifier: GPL-2.0-or-later
#include "stopper.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../oracle/expected.h"

#define STOP_TIMEOUT_NS (2 * 1000000000ULL)

#define OP(o) (1U << (o))
/* What changes names or sizes, beside open and truncate. */
#define NAME_OPS                                                               \
	(OP(OP_RENAME) | OP(OP_LINK) | OP(OP_UNLINK) | OP(OP_SYMLINK) |        \
	 OP(OP_MKDIR) | OP(OP_RMDIR) | OP(OP_MKNOD) | OP(OP_FALLOCATE))
/* The operations that op_makes_state() may say yes to. */
#define STATE_OPS                                                              \
	(OP(OP_OPEN) | OP(OP_RENAME) | OP(OP_LINK) | OP(OP_UNLINK) |           \
	 OP(OP_SYMLINK) | OP(OP_MKDIR) | OP(OP_RMDIR) | OP(OP_MKNOD) |         \
	 OP(OP_CLOSE) | OP(OP_FSYNC) | OP(OP_FDATASYNC) | OP(OP_SYNC) |        \
	 OP(OP_SYNCFS) | OP(OP_MSYNC))

u32 stopper_ops(enum amplify amplify, bool states)
{
	u32 ops = states ? STATE_OPS : 0;

	if (amplify == AMPLIFY_SYNC)
		ops |= OP(OP_TRUNCATE) | OP(OP_OPEN);
	if (amplify == AMPLIFY_COMMIT)
		ops |= NAME_OPS | OP(OP_TRUNCATE) | OP(OP_OPEN);
	return ops;
}

static bool truncates(const struct rec_file_op *op)
{
	return op->op == OP_TRUNCATE ||
	       (op->op == OP_OPEN && (op->open_flags & O_TRUNC) &&
		!(op->flags & FOP_CREATED));
}

static bool changes_names_or_sizes(const struct rec_file_op *op)
{
	return truncates(op) || (op->op == OP_OPEN &&
				 (op->flags & FOP_CREATED)) ||
	       (NAME_OPS & OP(op->op));
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash && slash[1] ? slash + 1 : path;
}

static char *describe(const struct stopper *s, const struct rec_file_op *op)
{
	const struct node *n = s->states ? tree_find_ino(&s->last, op->ino) :
					   NULL;
	const char *one = op->file_path ?: op->path;

	if (!one && n)
		one = n->path;
	if (op->path2)
		return xasprintf("%s %s to %s", file_op_name(op->op),
				 base_name(op->path), base_name(op->path2));
	return xasprintf("%s%s%s", file_op_name(op->op), one ? " " : "",
			 one ? base_name(one) : "");
}

/* The state letter of a process, 0: gone. */
static char process_state(pid_t pid)
{
	char path[32], text[256], *paren;
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	paren = strrchr(text, ')');
	return paren && paren[1] == ' ' ? paren[2] : 0;
}

/* The signal was sent before the event came through the ring, so this is a
 * matter of microseconds. */
static int wait_stopped(pid_t pid)
{
	u64 end = now_ns() + STOP_TIMEOUT_NS;

	for (;;) {
		char state = process_state(pid);

		if (state == 'T')
			return 0;
		if (!state || state == 'Z' || state == 'X')
			return -ESRCH;	/* somebody killed it */
		if (now_ns() > end)
			return -ETIMEDOUT;
		sched_yield();
	}
}

static bool is_in(const u64 *inodes, u32 n, u64 ino)
{
	for (u32 i = 0; i < n; i++)
		if (inodes[i] == ino)
			return true;
	return false;
}

static bool changed(void *ctx, const struct node *n)
{
	const struct stopper *s = ctx;

	return is_in(s->touched, s->n_touched, n->ino) ||
	       is_in(s->mapped, s->n_mapped, n->ino);
}

int stopper_snapshot(struct stopper *s, u64 after_seq, const char *what,
		     struct errmsg *em)
{
	struct rec_state st = { .after_seq = after_seq, .source = STATE_STOP,
				.what = (char *)what };
	int err = tree_read(s->store, s->amplifier->root_fd,
			    s->states ? &s->last : NULL, changed, s, &st.tree,
			    em);

	if (err < 0)
		return err;
	err = rec_put_state(recorder_writer(s->recorder), &st);
	tree_free(s->store, &s->last);
	s->last = st.tree;
	s->n_touched = 0;
	s->states++;
	if (err < 0)
		return errmsg_set(em, err, "writing the recording");
	return 0;
}

static int amplify(struct stopper *s, const struct rec_file_op *op)
{
	if (s->amplify == AMPLIFY_SYNC && truncates(op))
		return amplify_sync(s->amplifier, &s->em);
	if (s->amplify == AMPLIFY_COMMIT && changes_names_or_sizes(op))
		return amplify_commit(s->amplifier, &s->em);
	return 0;
}

/* What is done while everything stands still. */
static int look(struct stopper *s, u64 seq, const struct rec_file_op *op)
{
	_cleanup_free_ char *what = describe(s, op);
	int err = 0;

	if (s->take_states && op_makes_state(op))
		err = stopper_snapshot(s, seq, what, &s->em);
	return err < 0 ? err : amplify(s, op);
}

/* Nested: an exit's snapshot may meet a stop while it drains. */
static int freeze(struct stopper *s)
{
	int err = s->frozen ? 0 : cgroup_freeze(s->cgroup);

	if (err < 0)
		cgroup_thaw(s->cgroup);
	else
		s->frozen++;
	return err;
}

static void thaw(struct stopper *s)
{
	if (--s->frozen == 0)
		cgroup_thaw(s->cgroup);
}

/*
 * First the process that stops itself, then the others: a process that is
 * frozen before its SIGSTOP has taken effect would stand still as frozen and
 * never be seen as stopped. Where everything is frozen already that is as
 * good; SIGCONT takes a SIGSTOP back that is still pending.
 */
static int stand_still(struct stopper *s, pid_t pid)
{
	int err = s->frozen ? 0 : wait_stopped(pid);

	if (err == -ESRCH)
		return 0;	/* it was killed: there is nothing to stop */
	if (err < 0)
		return errmsg_set(&s->em, -err,
				  "waiting for process %d to stop", pid);
	if (s->frozen || cgroup_threads(s->cgroup, 2) > 1) {
		err = freeze(s);
		if (err < 0)
			return errmsg_set(&s->em, -err, "freezing the program"
					  " for a snapshot");
		return 1;
	}
	return 0;
}

int stopper_stopped(void *ctx, u64 seq, const struct rec_file_op *op)
{
	struct stopper *s = ctx;
	int frozen = stand_still(s, op->pid);
	int err = frozen < 0 ? frozen : look(s, seq, op);

	s->stops++;
	kill(op->pid, SIGCONT);
	if (frozen > 0)
		thaw(s);
	return err;
}

static void note_inode(u64 **inodes, u32 *n, u32 *room, u64 ino)
{
	if (!ino || is_in(*inodes, *n, ino))
		return;
	GROW(*inodes, *n, *room);
	(*inodes)[(*n)++] = ino;
}

int stopper_event(void *ctx, const struct record *r,
		  const struct rec_file_op *op)
{
	const u32 quiet = OP(OP_FSYNC) | OP(OP_FDATASYNC) | OP(OP_SYNC) |
			  OP(OP_SYNCFS) | OP(OP_SYNC_FILE_RANGE) |
			  OP(OP_MSYNC) | OP(OP_CLOSE);
	struct stopper *s = ctx;

	s->last_seq = r->seq;
	if (!op)
		return 0;
	note_inode(&s->touched, &s->n_touched, &s->room_touched, op->ino);
	if (op->op == OP_MMAP_SHARED)
		note_inode(&s->mapped, &s->n_mapped, &s->room_mapped, op->ino);
	if (op->op == OP_CLOSE && (op->flags & FOP_AT_EXIT) &&
	    (op->flags & FOP_LAST_CLOSE) && (op->flags & FOP_WRITTEN)) {
		free(s->exit_what);
		s->exit_what = describe(s, op);
		s->exit_seq = r->seq;
	} else if (!(quiet & OP(op->op))) {
		s->last_change_seq = r->seq;
	}
	return 0;
}

int stopper_exits(struct stopper *s, struct errmsg *em)
{
	bool frozen;
	u64 seq = s->exit_seq;
	int err = 0;

	if (!seq || !s->take_states)
		return 0;
	frozen = cgroup_threads(s->cgroup, 1) > 0;
	if (frozen && freeze(s) < 0) {
		s->exit_seq = 0;	/* not standing still: no snapshot */
		return 0;
	}
	/* What happened before the freeze is drained; a stop met on the way
	 * makes its own snapshot. */
	err = recorder_fence(s->recorder);
	if (err < 0)
		errmsg_set(em, err, "draining the recorder");
	else if (s->exit_seq == seq && s->last_change_seq < seq)
		err = stopper_snapshot(s, seq, s->exit_what, em);
	if (s->exit_seq == seq)
		s->exit_seq = 0;
	if (frozen)
		thaw(s);
	return err;
}

void stopper_done(struct stopper *s)
{
	tree_free(s->store, &s->last);
	free(s->touched);
	free(s->mapped);
	free(s->exit_what);
	s->touched = s->mapped = NULL;
	s->exit_what = NULL;
}
