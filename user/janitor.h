/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process that outlives us, to remove what the kernel would not take back by
 * itself when we are killed: cgroups (with the processes in them) and
 * directories. Loop devices and mounts go by themselves, with the last
 * descriptor and the mount namespace.
 *
 * It is told before a thing is made, and does nothing for things that are gone
 * when its time comes: the end of our end of its pipe.
 */
#ifndef BLKBOX_JANITOR_H
#define BLKBOX_JANITOR_H

#include "../replay/base.h"

struct janitor {
	int pipe_fd;
	pid_t pid;
};

int janitor_start(struct janitor *ret, struct errmsg *em);
int janitor_cgroup(struct janitor *j, const char *path);
/* A directory that is empty once what we mounted on it is off. We are in a
 * mount namespace of our own when this is used. */
int janitor_directory(struct janitor *j, const char *path);
/* Lets it do its work, and waits for that. */
void janitor_finish(struct janitor *j);

#endif
