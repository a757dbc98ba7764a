/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cgroup (v2) of our own for the program under test: it names the program
 * and all its descendants, freezes them for a snapshot, and ends them.
 */
#ifndef BLKBOX_CGROUP_H
#define BLKBOX_CGROUP_H

#include "../replay/base.h"

struct cgroup {
	char *path;
	int dir_fd;
	int procs_fd, threads_fd, freeze_fd, events_fd;
	u64 id;		/* as bpf_get_current_cgroup_id() has it */
};

/*
 * Makes a cgroup below the one we are in. Where no cgroup v2 hierarchy is
 * mounted one is mounted at private_mount, which is created; the caller is in
 * a mount namespace of its own.
 */
int cgroup_new(const char *private_mount, struct cgroup *ret,
	       struct errmsg *em);
int cgroup_add(const struct cgroup *g, pid_t pid);
/* How many threads are in it, counted up to limit. */
int cgroup_threads(const struct cgroup *g, int limit);
/* Returns when every process in it stands still; -ETIMEDOUT after 2 s. */
int cgroup_freeze(const struct cgroup *g);
int cgroup_thaw(const struct cgroup *g);
/* Ends every process in it (SIGKILL) and waits until it is empty. */
int cgroup_kill(const char *path);
/* Ends what is left in it and removes it. */
void cgroup_remove(struct cgroup *g);
/* The same by path, for who cleans up after us. */
void cgroup_remove_path(const char *path);

#endif
