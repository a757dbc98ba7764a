// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A worker's process and socket, as the pool sees them.
 *
 * Invariants:
 *  1. The pool's end of a socket is held by the pool's process alone: each
 *     child closes its copies. So whoever loses the other side sees it.
 *  2. Nothing here blocks, but for waiting for a process that is dying, and
 *     that is bounded.
 */
#include "place.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define REAP_NS 2000000000ULL

void place_init(struct place *w)
{
	*w = (struct place){ .sock = -1, .pidfd = -1 };
}

void place_vacate(struct place *w)
{
	closep(&w->sock);
	closep(&w->pidfd);
	buf_free(&w->in);
	buf_free(&w->out);
	place_init(w);
}

/* Forks into a new process namespace; the caller's other children stay in its
 * own. Returns as fork() does, or a negative errno. */
static pid_t fork_namespace(void)
{
	_cleanup_close_ int own = -1;
	pid_t pid;
	int err;

	own = open("/proc/self/ns/pid_for_children", O_RDONLY | O_CLOEXEC);
	if (own < 0 || unshare(CLONE_NEWPID) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		return 0;
	if (pid < 0)
		pid = -errno;
	if (setns(own, CLONE_NEWPID) == 0)
		return pid;
	err = -errno;
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return err;
}

int place_start(struct place *w, struct worker_setup *setup,
		struct place *all, u32 n, struct errmsg *em)
{
	int sv[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return errmsg_set(em, errno, "starting a worker");
	pid = fork_namespace();
	if (pid == 0) {
		close(sv[0]);
		for (u32 i = 0; i < n; i++)
			place_vacate(&all[i]);
		setup->sock = sv[1];
		worker_init(setup);
	}
	close(sv[1]);
	if (pid < 0) {
		close(sv[0]);
		return errmsg_set(em, pid, "starting a worker in a process"
				  " namespace of its own (root is needed)");
	}
	w->state = STARTING;
	w->pid = pid;
	w->pidfd = syscall(SYS_pidfd_open, pid, 0);
	w->sock = sv[0];
	return 0;
}

bool place_receive(struct place *w)
{
	u8 data[65536];

	for (;;) {
		ssize_t n = recv(w->sock, data, sizeof(data), MSG_DONTWAIT);

		if (n > 0)
			buf_put(&w->in, data, n);
		else if (n < 0 && errno == EAGAIN)
			return true;
		else if (n == 0 || errno != EINTR)
			return false;
	}
}

int place_next_message(struct place *w, size_t *pos, const void **ret_data,
		       size_t *ret_len)
{
	size_t left = w->in.len - *pos;
	u32 len;

	if (left < sizeof(len))
		return 0;
	memcpy(&len, w->in.data + *pos, sizeof(len));
	if (left - sizeof(len) < len)
		return 0;
	*ret_data = w->in.data + *pos + sizeof(len);
	*ret_len = len;
	*pos += sizeof(len) + len;
	return 1;
}

void place_taken(struct place *w, size_t pos)
{
	if (!pos)
		return;
	memmove(w->in.data, w->in.data + pos, w->in.len - pos);
	w->in.len -= pos;
}

void place_put_job(struct place *w, const struct job *j)
{
	u32 len = 16 + 4 * j->st.n_drop;

	buf_put(&w->out, &len, sizeof(len));
	buf_put_u64(&w->out, j->id);
	buf_put_u32(&w->out, j->st.n_units);
	buf_put_u32(&w->out, j->st.n_drop);
	for (u32 i = 0; i < j->st.n_drop; i++)
		buf_put_u32(&w->out, j->st.drop[i]);
	place_transmit(w);
}

/* That the worker has ended is noticed when it is read from. */
void place_transmit(struct place *w)
{
	while (w->out_done < w->out.len) {
		ssize_t n = send(w->sock, w->out.data + w->out_done,
				 w->out.len - w->out_done,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		w->out_done += n;
	}
	buf_reset(&w->out);
	w->out_done = 0;
}

bool child_ended(pid_t pid, int *status)
{
	pid_t r;

	do {
		r = waitpid(pid, status, WNOHANG);
	} while (r < 0 && errno == EINTR);
	if (r < 0)	/* somebody else reaped it */
		*status = 0;
	return r != 0;
}

bool place_wait_end(struct place *w, int *status)
{
	struct pollfd end = { .fd = w->pidfd, .events = POLLIN };
	u64 until = now_ns() + REAP_NS;

	while (!child_ended(w->pid, status)) {
		if (now_ns() > until)
			return false;
		poll(&end, 1, w->pidfd < 0 ? 1 : 100);
	}
	return true;
}

int death_cause(int status)
{
	if (WIFSIGNALED(status))
		return WTERMSIG(status);
	if (WEXITSTATUS(status) < INIT_EXIT_STATUS)
		return WEXITSTATUS(status);
	return -(WEXITSTATUS(status) - INIT_EXIT_STATUS);
}
