// SPDX-License-Identifier: GPL-2.0-or-later
#include "janitor.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"

/* One line a thing: 'c' or 'd', and its path. Later things are removed first,
 * because directories nest. */
static void clean(char **lines, size_t n)
{
	while (n--) {
		const char *path = lines[n] + 1;

		if (lines[n][0] == 'c') {
			cgroup_remove_path(path);
			continue;
		}
		umount2(path, MNT_DETACH);
		rmdir(path);
	}
}

static void __attribute__((noreturn)) run(int fd)
{
	FILE *f = fdopen(fd, "r");
	char **lines = NULL, *line = NULL;
	size_t n = 0, room = 0, cap = 0;
	ssize_t len;

	while (f && (len = getline(&line, &cap, f)) > 0) {
		if (line[len - 1] != '\n')
			break;	/* cut off in the middle of a path */
		line[len - 1] = 0;
		GROW(lines, n, room);
		lines[n++] = xstrdup(line);
	}
	clean(lines, n);
	_exit(0);
}

int janitor_start(struct janitor *ret, struct errmsg *em)
{
	int fds[2];
	sigset_t all;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return errmsg_set(em, errno, "making a pipe");
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		close(fds[0]);
		close(fds[1]);
		return errmsg_set(em, errno, "starting a process");
	}
	if (pid == 0) {
		/* Out of reach of what ends our process group or terminal. */
		setsid();
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL);
		close(fds[1]);
		/* Nobody may wait for us to close their output. */
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		run(fds[0]);
	}
	close(fds[0]);
	*ret = (struct janitor){ .pipe_fd = fds[1], .pid = pid };
	return 0;
}

static int tell(struct janitor *j, char what, const char *path)
{
	_cleanup_free_ char *line = xasprintf("%c%s\n", what, path);

	if (strchr(path, '\n'))
		return -EINVAL;
	return write_full(j->pipe_fd, line, strlen(line));
}

int janitor_cgroup(struct janitor *j, const char *path)
{
	return tell(j, 'c', path);
}

int janitor_directory(struct janitor *j, const char *path)
{
	return tell(j, 'd', path);
}

void janitor_finish(struct janitor *j)
{
	close(j->pipe_fd);
	while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*j = (struct janitor){ .pipe_fd = -1 };
}
