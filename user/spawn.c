// SPDX-License-Identifier: GPL-2.0-or-later
#include "spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

char *wait_status_words(int status)
{
	if (WIFEXITED(status))
		return xasprintf("exited with status %d", WEXITSTATUS(status));
	if (WIFSIGNALED(status))
		return xasprintf("was killed by signal %d (%s)",
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
	return xasprintf("ended in an unknown way (status 0x%x)", status);
}

static void __attribute__((noreturn))
child(char *const argv[], const char *directory, int out)
{
	int null = open("/dev/null", O_RDONLY);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	if (!directory || chdir(directory) == 0)
		execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* Keeps the last bytes that come through fd. */
static void read_tail(int fd, char *tail, size_t size)
{
	size_t have = 0;
	char part[512];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		if (have + n > size - 1) {
			size_t drop = MIN(have, have + n - (size - 1));

			memmove(tail, tail + drop, have - drop);
			have -= drop;
		}
		n = MIN((size_t)n, size - 1 - have);
		memcpy(tail + have, part, n);
		have += n;
	}
	while (have && tail[have - 1] == '\n')
		have--;
	tail[have] = 0;
}

int spawn_wait(char *const argv[], const char *directory, struct errmsg *em)
{
	_cleanup_free_ char *words = NULL;
	char tail[512];
	int fds[2], status;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return errmsg_set(em, errno, "making a pipe");
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		child(argv, directory, fds[1]);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return errmsg_set(em, errno, "starting %s", argv[0]);
	}
	read_tail(fds[0], tail, sizeof(tail));
	close(fds[0]);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errmsg_set(em, errno, "waiting for %s", argv[0]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	words = wait_status_words(status);
	errmsg_set(em, 0, "%s %s%s%s", argv[0], words, *tail ? ": " : "", tail);
	return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -ENOENT :
								 -ECHILD;
}
