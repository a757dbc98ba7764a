/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Expected states from the running program: at the exit of an operation that
 * makes one the program stops (the BPF side sends it SIGSTOP), its files are
 * read, and it goes on. No ptrace.
 *
 * Invariants:
 *  1. Where the program has more than one thread its cgroup is frozen, and what
 *     happened before that is drained, so that a snapshot is one moment.
 *  2. A state is put into the recording only when no operation changed files
 *     between the one it belongs to and that moment. What another thread was
 *     faster to change is not what the first one left; the offline half
 *     rebuilds such a state from the operations (oracle/expected.h).
 *  3. States ascend by number.
 *  4. Every process that was sent SIGSTOP is sent SIGCONT once all that was
 *     drained has been dealt with, never before: SIGCONT takes back every
 *     SIGSTOP, also those that another thread of it caused meanwhile.
 *
 * A file closed by the end of its process cannot be looked at in time: the
 * process is gone. Such a state is taken when the recorder gets to it, under
 * the same conditions.
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
	u64 last_state_seq;		/* of the newest snapshot */
	struct pending_stop *pending;	/* ascending seq */
	u32 n_pending, room_pending;
	bool still;			/* stands still; somebody looks */
	bool foreign_pids;		/* our process numbers are not those
					 * of the first namespace */
	u64 idle_ns;			/* next time to look for who is stuck */
	u64 idle_stops;
	bool idle_stuck;		/* it was, the last time */
	u64 stops, states;		/* totals */
};

/* An operation that is to be looked at. */
struct pending_stop {
	u64 seq;
	pid_t pid;			/* stopped for it; 0: it is gone */
	bool state, sync, commit;	/* what is to be done */
	char *what;
};

/* Call it first; what the caller sets is set before or after. */
void stopper_init(struct stopper *s);

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
/*
 * Between two polls: continues a program that is stopped as a whole although
 * no stop of ours is under way. su(1) and its like stop themselves when they
 * see their child stopped, and nobody else would ever continue them.
 */
void stopper_unstick(struct stopper *s);
void stopper_done(struct stopper *s);

#endif
