// SPDX-License-Identifier: GPL-2.0-or-later
#include "stopper.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../oracle/expected.h"

#define STOP_TIMEOUT_NS 500000000ULL

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

static FILE *open_procs(const struct stopper *s)
{
	_cleanup_free_ char *path = xasprintf("%s/cgroup.procs",
					      s->cgroup->path);

	return fopen(path, "re");
}

static void signal_all(const struct stopper *s, int sig)
{
	_cleanup_fclose_ FILE *f = open_procs(s);
	int pid;

	while (f && fscanf(f, "%d", &pid) == 1)
		if (pid > 0)	/* 0: not of our namespace */
			kill(pid, sig);
}

/* Do processes have other numbers for us than for the kernel? */
static bool pids_are_foreign(void)
{
	struct stat st;

	/* PROC_PID_INIT_INO: the first namespace's, on every kernel */
	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != 0xEFFFFFFC;
}

void stopper_init(struct stopper *s)
{
	s->foreign_pids = pids_are_foreign();
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
	s->last_state_seq = after_seq;
	s->states++;
	if (err < 0)
		return errmsg_set(em, err, "writing the recording");
	return 0;
}

/* ---- what waits to be looked at ------------------------------------------ */

static void note_stop(struct stopper *s, u64 seq, pid_t pid,
		      const struct rec_file_op *op)
{
	struct pending_stop *p;

	GROW(s->pending, s->n_pending, s->room_pending);
	p = &s->pending[s->n_pending++];
	*p = (struct pending_stop){
		.seq = seq,
		.pid = pid,
		.state = s->take_states && op_makes_state(op),
		.sync = pid && s->amplify == AMPLIFY_SYNC && truncates(op),
		.commit = pid && s->amplify == AMPLIFY_COMMIT &&
			  changes_names_or_sizes(op),
	};
	p->what = p->state ? describe(s, op) : NULL;
}

static void forget_stops(struct stopper *s)
{
	for (u32 i = 0; i < s->n_pending; i++)
		free(s->pending[i].what);
	s->n_pending = 0;
}

/* States only where everything stands still. */
static int look(struct stopper *s, bool states)
{
	bool sync = false, commit = false;
	int err = 0;

	for (u32 i = 0; i < s->n_pending && err >= 0; i++) {
		const struct pending_stop *p = &s->pending[i];

		sync |= p->sync;
		commit |= p->commit;
		if (states && p->state && s->last_change_seq <= p->seq &&
		    s->last_state_seq < p->seq)
			err = stopper_snapshot(s, p->seq, p->what, &s->em);
	}
	if (sync && err >= 0)
		err = amplify_sync(s->amplifier, &s->em);
	if (commit && err >= 0)
		err = amplify_commit(s->amplifier, &s->em);
	return err;
}

/* ---- standing still ------------------------------------------------------ */

/* Does the only thread there is stand still? Nothing follows its stop then. */
static bool is_alone(const struct stopper *s, pid_t pid)
{
	return pid && !s->foreign_pids && cgroup_threads(s->cgroup, 2) == 1 &&
	       wait_stopped(pid) == 0;
}

/* Freezes the program and deals with what it did before that. A process that
 * hangs in the kernel cannot be frozen in time; then nothing is sure. */
static int freeze_and_look(struct stopper *s)
{
	int frozen = cgroup_threads(s->cgroup, 1) ? cgroup_freeze(s->cgroup) :
						    0;
	int err;

	if (frozen < 0 && frozen != -ETIMEDOUT)
		return errmsg_set(&s->em, frozen, "freezing the program for a"
				  " snapshot");
	err = recorder_fence(s->recorder);
	if (err < 0)
		return *s->em.text ? err : errmsg_set(&s->em, err, "draining"
						      " the recorder");
	return look(s, !frozen);
}

/* Continues who was stopped. The kernel names processes by their numbers in
 * the first namespace; where that is not ours, all are meant. */
static void go_on(struct stopper *s)
{
	for (u32 i = 0; i < s->n_pending; i++)
		if (s->pending[i].pid && !s->foreign_pids)
			kill(s->pending[i].pid, SIGCONT);
	if (s->foreign_pids)
		signal_all(s, SIGCONT);
	cgroup_thaw(s->cgroup);
	forget_stops(s);
}

/* Nobody is stopped any more when this returns. */
static int settle(struct stopper *s, pid_t pid)
{
	int err;

	s->still = true;
	err = is_alone(s, pid) ? look(s, true) : freeze_and_look(s);
	go_on(s);
	s->still = false;
	return err;
}

int stopper_stopped(void *ctx, u64 seq, const struct rec_file_op *op)
{
	struct stopper *s = ctx;

	s->stops++;
	note_stop(s, seq, op->pid, op);
	/* met while draining for another stop: looked at with that one */
	return s->still ? 0 : settle(s, op->pid);
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
	if (!(quiet & OP(op->op)))
		s->last_change_seq = r->seq;
	else if (op->flags & FOP_AT_EXIT && s->take_states &&
		 op_makes_state(op))
		note_stop(s, r->seq, 0, op);
	return 0;
}

int stopper_exits(struct stopper *s, struct errmsg *em)
{
	int err = s->n_pending ? settle(s, 0) : 0;

	if (err < 0)
		*em = s->em;
	return err;
}

/* ---- stuck --------------------------------------------------------------- */

#define IDLE_NS 100000000

/* Is everybody in it stopped, and somebody there? */
static bool all_stopped(const struct stopper *s)
{
	_cleanup_fclose_ FILE *f = open_procs(s);
	bool any = false;
	int pid;

	while (f && fscanf(f, "%d", &pid) == 1) {
		char state = pid > 0 ? process_state(pid) : 0;

		if (!state || state == 'Z' || state == 'X')
			continue;
		if (state != 'T')
			return false;
		any = true;
	}
	return any;
}

void stopper_unstick(struct stopper *s)
{
	bool stuck;

	if (now_ns() < s->idle_ns)
		return;
	stuck = all_stopped(s);
	/* twice, with all drained in between: then it is no stop of ours */
	if (stuck && s->idle_stuck && s->idle_stops == s->stops)
		signal_all(s, SIGCONT);
	s->idle_stuck = stuck;
	s->idle_stops = s->stops;
	s->idle_ns = now_ns() + IDLE_NS;
}

void stopper_done(struct stopper *s)
{
	tree_free(s->store, &s->last);
	free(s->touched);
	free(s->mapped);
	forget_stops(s);
	free(s->pending);
	s->touched = s->mapped = NULL;
	s->pending = NULL;
}
