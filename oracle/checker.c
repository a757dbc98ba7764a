// SPDX-License-Identifier: GPL-2.0-or-later
#include "checker.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The last CHECK_OUTPUT_BYTES of what came. */
struct tail {
	u64 total;
	char data[CHECK_OUTPUT_BYTES];
};

static void tail_put(struct tail *t, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		t->data[t->total++ % sizeof(t->data)] = data[i];
}

static char *tail_text(const struct tail *t)
{
	size_t n = MIN(t->total, (u64)sizeof(t->data));
	char *s = xmalloc(n + 1);
	size_t len = 0;

	for (u64 i = t->total - n; i < t->total; i++)
		if (t->data[i % sizeof(t->data)])
			s[len++] = t->data[i % sizeof(t->data)];
	while (len && s[len - 1] == '\n')
		len--;
	s[len] = 0;
	return s;
}

static void default_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void set_environment(const struct checker_opts *o)
{
	char number[24];

	snprintf(number, sizeof(number), "%llu",
		 (unsigned long long)o->crash_point);
	setenv("BLKBOX_CRASH_POINT", number, 1);
	setenv("BLKBOX_DROPPED", o->dropped ?: "", 1);
	setenv("BLKBOX_ROOT", o->root_path, 1);
	setenv("BLKBOX_MARKS", o->marks ?: "", 1);
}

static _Noreturn void run_command(const struct checker_opts *o, int out)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	default_signals();
	setsid();
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0 ||
	    fchdir(o->root_fd) < 0)
		_exit(126);
	/* Whoever started us may hold descriptors that are not close-on-exec */
	syscall(SYS_close_range, 3, ~0U, 0);
	set_environment(o);
	execl("/bin/sh", "sh", "-c", o->command, (char *)NULL);
	_exit(127);
}

/* First process of the namespace: reports how the command ended. */
static _Noreturn void run_warden(const struct checker_opts *o, int out,
				 int status_fd)
{
	pid_t pid, got;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	default_signals();
	pid = fork();
	if (pid == 0)
		run_command(o, out);
	if (pid < 0)
		_exit(1);
	close(out);
	do {
		got = waitpid(-1, &status, 0);
	} while (got != pid && (got > 0 || errno == EINTR));
	if (got == pid)
		(void)!write(status_fd, &status, sizeof(status));
	_exit(0);
}

static pid_t start_warden(const struct checker_opts *o, int out, int status_fd)
{
	pid_t pid;

	fflush(NULL);
	pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, 0);
	if (pid == 0)
		run_warden(o, out, status_fd);
	return pid < 0 ? -errno : pid;
}

static int ms_until(u64 deadline_ns)
{
	u64 now = now_ns();

	if (now >= deadline_ns)
		return 0;
	return MIN((deadline_ns - now) / 1000000 + 1, (u64)60000);
}

/* Reads output until the status arrives; 0, or -ETIMEDOUT. */
static int collect(int out, int status_fd, u64 deadline, struct tail *tail,
		   int *ret_status)
{
	struct pollfd p[] = {
		{ .fd = status_fd, .events = POLLIN },
		{ .fd = out, .events = POLLIN },
	};
	char data[4096];
	ssize_t n;

	for (;;) {
		int r = poll(p, ARRAY_SIZE(p), ms_until(deadline));

		if (r < 0 && errno != EINTR)
			return -errno;
		if (now_ns() >= deadline)
			return -ETIMEDOUT;
		if (r <= 0)
			continue;
		if (p[1].revents) {
			n = read(out, data, sizeof(data));
			if (n > 0)
				tail_put(tail, data, n);
			else if (n == 0)
				p[1].fd = -1;
		}
		if (p[0].revents)
			return read_full(status_fd, ret_status,
					 sizeof(*ret_status));
	}
}

/* Everybody who could write is gone: what is left in the pipe. */
static void drain(int out, struct tail *tail)
{
	char data[4096];
	ssize_t n;

	while ((n = read(out, data, sizeof(data))) > 0 ||
	       (n < 0 && errno == EINTR))
		if (n > 0)
			tail_put(tail, data, n);
}

static void set_result(int r, int status, const struct tail *tail,
		       struct check_result *ret)
{
	*ret = (struct check_result){ .output = tail_text(tail) };
	if (r == -ETIMEDOUT) {
		ret->outcome = CHECK_TIMED_OUT;
	} else if (WIFSIGNALED(status)) {
		ret->outcome = CHECK_KILLED;
		ret->status = WTERMSIG(status);
	} else {
		ret->status = WEXITSTATUS(status);
		ret->outcome = ret->status ? CHECK_FAILED : CHECK_PASSED;
	}
}

int checker_run(const struct checker_opts *o, struct check_result *ret)
{
	u64 deadline = now_ns() + (o->timeout_ns ?: CHECK_TIMEOUT_NS);
	int out[2] = { -1, -1 }, st[2] = { -1, -1 };
	struct tail tail = { 0 };
	int r, status = 0;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(st, O_CLOEXEC) < 0) {
		r = -errno;
		goto out;
	}
	pid = start_warden(o, out[1], st[1]);
	close(out[1]);
	close(st[1]);
	out[1] = st[1] = -1;
	if (pid < 0) {
		r = pid;
		goto out;
	}
	r = collect(out[0], st[0], deadline, &tail, &status);
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	drain(out[0], &tail);
	if (!r || r == -ETIMEDOUT) {
		set_result(r, status, &tail, ret);
		r = 0;
	}
out:
	for (int i = 0; i < 2; i++) {
		closep(&out[i]);
		closep(&st[i]);
	}
	return r;
}

void check_result_done(struct check_result *r)
{
	free(r->output);
	*r = (struct check_result){ 0 };
}
