// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fileops_close DIR EXPECTED: all the ways a file that was written through can
 * be closed, in DIR, an empty directory at the root of its file system; writes
 * down what a recording of it must hold, a line each.
 */
#include "fileops_plan.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

/* An open file that was written through. */
static int written(struct plan *p, const char *name)
{
	int fd = must_open(p, name, O_CREAT | O_RDWR);

	must_write(p, fd, name);
	return fd;
}

static void unlinked(struct plan *p, const char *name)
{
	struct rec_file_op e = new_op(OP_UNLINK, 0, FD_NONE);

	if (unlink(name))
		fail("unlink");
	e.path = (char *)name;
	e.dir_ino = p->dir_ino;
	e.dir_path = "";
	expect(p, &e);
}

/* ---- in one process ----------------------------------------------------------- */

static void do_close(struct plan *p)
{
	int fd = written(p, "dup"), ro;

	closed(p, dup(fd), 0);
	closed(p, fd, FOP_LAST_CLOSE);

	fd = written(p, "unlinked");
	unlinked(p, "unlinked");
	closed(p, fd, FOP_LAST_CLOSE);

	fd = must_open(p, "dup", O_RDWR);
	ro = open("dup", O_RDONLY);
	must_write(p, fd, "x");
	CALL(SYS_close, ro);	/* nothing was written through this one */
	closed(p, fd, FOP_LAST_CLOSE);
	fd = must_open(p, "dup", O_RDWR);
	CALL(SYS_close, fd);	/* nor through this */
}

static void do_dup2(struct plan *p)
{
	int other = open("/dev/null", O_RDONLY);
	int fd = written(p, "dup2");

	closing(p, -EBADF, fd, 0);
	if (CALL(SYS_dup2, 12345, fd) != -EBADF)
		fail("dup2");
	CALL(SYS_dup2, fd, fd);	/* closes nothing */
	closing(p, fd, fd, FOP_LAST_CLOSE);
	if (CALL(SYS_dup2, other, fd) != fd)
		fail("dup2");
	close(fd);
	fd = written(p, "dup3");
	closing(p, fd, fd, FOP_LAST_CLOSE);
	if (CALL(SYS_dup3, other, fd, O_CLOEXEC) != fd)
		fail("dup3");
	close(fd);
	close(other);
}

static void do_close_range(struct plan *p)
{
	int fd = written(p, "range"), more = fcntl(fd, F_DUPFD, 100);

	/* One of two: not the last. */
	closing(p, 0, fd, 0);
	if (CALL(SYS_close_range, fd, fd, 0))
		fail("close_range");
	/* Both at once: the last. */
	if (dup2(more, 101) != 101)
		fail("dup2");
	closing(p, 0, more, FOP_LAST_CLOSE);
	if (CALL(SYS_close_range, 100, ~0U, 0))
		fail("close_range");
	fd = written(p, "range2");
	CALL(SYS_close_range, fd, fd, 4 /* CLOSE_RANGE_CLOEXEC */);
	CALL(SYS_close_range, 5, 4, 0);	/* fails */
	/* A failing exec closes nothing. */
	if (execl("/missing", "missing", NULL) != -1)
		fail("exec");
	closed(p, fd, FOP_LAST_CLOSE);
}

/* ---- in children ----------------------------------------------------------------- */

/* Runs f in a child, and takes over what it expected. */
static void in_child(struct plan *p, void (*f)(struct plan *p, int out))
{
	char block[4096];
	int pipes[2];
	ssize_t n;
	pid_t pid;

	if (pipe(pipes))
		fail("pipe");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid) {
		close(pipes[0]);
		buf_reset(&p->lines);
		f(p, pipes[1]);
		_exit(3);
	}
	close(pipes[1]);
	while ((n = read(pipes[0], block, sizeof(block))) > 0)
		buf_put(&p->lines, block, n);
	close(pipes[0]);
	if (n < 0 || waitpid(pid, NULL, 0) != pid)
		fail("child");
}

static void tell(struct plan *p, int out)
{
	if (write_full(out, p->lines.data, p->lines.len))
		fail("pipe");
	close(out);
}

static void close_inherited(struct plan *p, int out)
{
	closed(p, p->fd, 0);
	tell(p, out);
	_exit(0);
}

static void exit_with_files(struct plan *p, int out)
{
	int own = written(p, "own");

	closing(p, 0, p->fd, FOP_AT_EXIT);
	closing(p, 0, own, FOP_AT_EXIT | FOP_LAST_CLOSE);
	tell(p, out);
	_exit(0);
}

static void die_with_file(struct plan *p, int out)
{
	int own = written(p, "killed");

	dup(own);
	closing(p, 0, p->fd, FOP_AT_EXIT);
	closing(p, 0, own, FOP_AT_EXIT | FOP_LAST_CLOSE);
	tell(p, out);
	kill(getpid(), SIGKILL);
}

static void *exit_from_thread(void *arg)
{
	_exit(0);
	return arg;
}

static void exit_threads(struct plan *p, int out)
{
	int own = written(p, "threads");
	pthread_t t;

	closing(p, 0, p->fd, FOP_AT_EXIT);
	closing(p, 0, own, FOP_AT_EXIT | FOP_LAST_CLOSE);
	tell(p, out);
	if (pthread_create(&t, NULL, exit_from_thread, NULL))
		fail("pthread_create");
	for (;;)
		pause();
}

static void exec_away(struct plan *p, int out)
{
	int goes = written(p, "cloexec"), stays = written(p, "stays");

	fcntl(goes, F_SETFD, FD_CLOEXEC);
	closing(p, 0, goes, FOP_LAST_CLOSE);
	closing(p, 0, p->fd, FOP_AT_EXIT);
	closing(p, 0, stays, FOP_AT_EXIT | FOP_LAST_CLOSE);
	tell(p, out);
	execl(p->self, p->self, "exit", NULL);
}

int main(int argc, char **argv)
{
	struct plan p = { 0 };

	if (argc == 2 && !strcmp(argv[1], "exit"))
		return 0;
	if (argc != 3 || chdir(argv[1]))
		fail("usage: fileops_close DIR EXPECTED");
	umask(022);
	p.dir = realpath(".", NULL);
	p.self = realpath("/proc/self/exe", NULL);
	p.dir_ino = ino_of(".");
	do_close(&p);
	do_dup2(&p);
	do_close_range(&p);
	p.fd = written(&p, "shared");
	in_child(&p, close_inherited);
	in_child(&p, exit_with_files);
	in_child(&p, die_with_file);
	in_child(&p, exit_threads);
	in_child(&p, exec_away);
	closed(&p, p.fd, FOP_LAST_CLOSE);
	return plan_write(&p, argv[2]);
}
