/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Expected states from the running program: at the exit of an operation that
 * makes one the program stops (the BPF side sends it SIGSTOP), its files are
 * read, and it goes on. No ptrace.
 *
 * Where the program has more than one thread its cgroup is frozen too, so
 * that a snapshot is one moment.
 *
 * A file closed by the end of its process cannot be looked at that way: the
 * process is gone. Such a state is taken when the recorder gets to it, and
 * kept only if nothing was changed in between; else the offline half rebuilds
 * it from the operations.
 */
#ifndef BLKBOX_STOPPER_H
#define BLKBOX_STOPPER_H

#include "../replay/tree.h"
#include "amplify.h"
#include "cgroup.h"
#include "recorder.h"

enum amplify { AMPLIFY_NONE, AMPLIFY_SYNC, AMPLIFY_COMMIT };

struct stopper {
	const struct cgroup *cgroup;
	struct amplifier *amplifier;
	enum amplify amplify;
	bool take_states;		/* else it only amplifies */
	struct recorder *recorder;	/* set once it is open */
	u32 fs_dev;
	struct store *store;
	struct tree last;		/* the newest snapshot */
	struct errmsg em;		/* why a callback failed */
	u64 *touched;			/* inodes changed since last */
	u32 n_touched, room_touched;
	u64 *mapped;			/* inodes with a writable mapping: they
					 * may change at any time */
	u32 n_mapped, room_mapped;
	u64 last_seq;			/* newest event of any kind */
	u64 last_change_seq;		/* newest operation that changed files */
	u64 exit_seq;			/* newest close by a process's end that
					 * has no snapshot yet; 0 */
	char *exit_what;
	u32 frozen;			/* depth */
	u64 stops, states;		/* totals */
};

/* Bits for recorder_opts.stop_ops: what is amplified, and with states what
 * may make an expected state. */
u32 stopper_ops(enum amplify amplify, bool states);

/* recorder_opts.stopped and .event; ctx is the stopper. */
int stopper_stopped(void *ctx, u64 seq, const struct rec_file_op *op);
int stopper_event(void *ctx, const struct record *r,
		  const struct rec_file_op *op);

/* Reads the files now and puts the state into the recording. */
int stopper_snapshot(struct stopper *s, u64 after_seq, const char *what,
		     struct errmsg *em);
/* Between two polls: takes the state of a close by the end of a process, if
 * one is due. */
int stopper_exits(struct stopper *s, struct errmsg *em);
void stopper_done(struct stopper *s);

#endif
