// SPDX-License-Identifier: GPL-2.0-or-later
#include "mark.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/types.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../bpf/event.h"
#include "../bpf/fileops_abi.h"
#include "../replay/base.h"

int mark_put(const char *text)
{
	char path[sizeof(MARK_PREFIX) + sizeof(((struct ev_mark *)0)->text)];
	char comm[EV_COMM_BYTES];
	int fd;

	if (!*text || strlen(text) >= sizeof(((struct ev_mark *)0)->text))
		return -EINVAL;
	snprintf(path, sizeof(path), MARK_PREFIX "%s", text);
	prctl(PR_GET_NAME, comm);
	prctl(PR_SET_NAME, MARK_COMM);
	/* The system call itself: libc is free to use another. */
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	prctl(PR_SET_NAME, comm);
	if (fd >= 0)
		close(fd);
	return 0;
}

/* Between text and name: nothing that a command line is likely to hold. */
#define SEPARATOR '\037'

void mark_name(char ret[MARK_NAME_BYTES])
{
	u64 now = now_ns();

	if (getrandom(&now, sizeof(now), GRND_NONBLOCK) < 0)
		now ^= (u64)getpid() << 32;
	snprintf(ret, MARK_NAME_BYTES, "%016llx", (unsigned long long)now);
}

int mark_put_own(const char *text, const char *name)
{
	_cleanup_free_ char *whole = xasprintf("%s%c%s", text, SEPARATOR, name);

	return mark_put(whole);
}

char *mark_text(const char *text, const char *name)
{
	const size_t own = strlen(MARK_OWN);
	const char *end = strrchr(text, SEPARATOR);
	int len = end ? end - text : (int)strlen(text);

	if (strncmp(text, MARK_OWN, own))
		return xstrdup(text);
	if (end && name && !strcmp(end + 1, name))
		return xasprintf("%.*s", len, text);
	return xasprintf(MARK_OWN "another's %.*s", len - (int)own, text + own);
}
