/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Private to the pool: what a worker is made of, and what it and the pool say
 * to each other.
 *
 * Messages go over a stream socket: u32 length of the rest, then the rest.
 *   to the worker    u64 id, u32 n_units, u32 n_drop, u32 drop[n_drop]
 *   from the worker  u8 answer, s32 error, string log, answer bytes
 * A worker answers jobs in the order it got them. Its first message is
 * ANSWER_READY (log: what it must do without; answer bytes: u64 bytes of memory
 * its image takes) or ANSWER_FATAL.
 */
#ifndef BLKBOX_WORKER_H
#define BLKBOX_WORKER_H

#include "loop.h"
#include "pool.h"

enum answer {
	/* enum mount_outcome comes first */
	ANSWER_READY = 16,
	ANSWER_FATAL = 17,	/* ends the run; error, and log says why */
};

#define MESSAGE_BYTES_MAX (1U << 30)

/* An exit status of a worker's init: the worker was killed by this signal, or
 * exited with a status of its own. */
#define INIT_EXIT_STATUS 128

struct mount_spec;

struct worker_setup {
	const struct trace *trace;
	const struct image_index *index;
	const struct pool_opts *opts;
	const struct mount_spec *spec;
	u32 number;
	int sock;
	bool btrfs_alone;	/* no two disks of one btrfs at a time */
};

/*
 * Becomes a worker; the caller has just forked into a new process namespace
 * and has closed all sockets but setup->sock. Never returns.
 */
void worker_init(const struct worker_setup *setup) __attribute__((noreturn));

/* ---- mounting.c ---------------------------------------------------------- */

struct mount_spec {
	const char *fs_type;
	unsigned long flags;	/* MS_... */
	char *data;		/* for the file system */
};

/* Splits mount options into flags and what the file system gets, its defaults
 * included. Options that could take the machine down are refused. */
int mount_spec_parse(const char *fs_type, const char *options,
		     struct mount_spec *ret, struct errmsg *em);
/* Asks the kernel whether it knows the file system and the options. */
int mount_spec_check(const struct mount_spec *spec, struct errmsg *em);
void mount_spec_done(struct mount_spec *spec);

/* A mount namespace of our own, from which nothing gets out. */
int mount_namespace_new(struct errmsg *em);
/* In a mount namespace of our own: makes sure that there is a directory at
 * path (NULL: anywhere), visible only here. Heap text. */
int mount_point_make(const char *path, char **ret, struct errmsg *em);

/* ---- kmsg.c -------------------------------------------------------------- */

struct kmsg {
	int fd;			/* -1: cannot be read */
	int proc_fd;		/* of the host's /proc */
	char disk[16];		/* "loop7" */
	u64 own_pid_ns;
};

/* Before /proc is mounted over. Negative errno: messages cannot be read, and
 * kmsg_take() will find none. */
int kmsg_open(struct kmsg *k, const char *disk);
void kmsg_close(struct kmsg *k);
/* Appends what the kernel said since the last call to log (NULL: forgets it):
 * each line that concerns the disk, at level warning or worse. */
void kmsg_take(struct kmsg *k, struct buf *log);
/* Is a record of /dev/kmsg one of those? ret_text, ret_len: its message. */
bool kmsg_concerns(const struct kmsg *k, const char *record, size_t len,
		   const char **ret_text, size_t *ret_len);

#endif
