/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Expected states: what the developer takes the files to be after each
 * operation that changes metadata (C3, section 4: directory operations, close,
 * fsync). The crash states are compared with these.
 *
 * Which operations make one: create by open, rename, link, unlink, symlink,
 * mkdir, rmdir, mknod, the last close of a file that was written, fsync,
 * fdatasync, sync, syncfs, msync; all only when they succeeded. Truncation
 * makes none, by itself or by open; a plain open makes none.
 * State 0 is the start.
 */
#ifndef BLKBOX_EXPECTED_H
#define BLKBOX_EXPECTED_H

#include "../replay/trace.h"
#include "../replay/tree.h"

struct expected {
	u32 n;
	struct rec_state *states;	/* ascending after_seq */
	enum state_source source;
	struct store *store;		/* the trace's */
	u32 n_unknown;			/* states left out: content unknown */
};

/* One place says which operations make an expected state. */
bool op_makes_state(const struct rec_file_op *op);

/* The states found in the recording (stop). They stay the trace's. */
int expected_from_recording(const struct trace *t, struct expected **ret,
			    struct errmsg *em);
/*
 * Rebuilt by applying the recorded operations, with their data, to the tree
 * the recording started from (trace). start is that tree, with inode numbers;
 * it stays the caller's.
 */
int expected_from_ops(const struct trace *t, const struct tree *start,
		      struct expected **ret, struct errmsg *em);
void expected_free(struct expected *e);

/* ---- editing distance ---------------------------------------------------- */

/*
 * C3's relaxed editing distance, in bytes: what of the expected state nothing
 * in the crash state could supply: the sum over byte values of
 * max(0, expected - crash). Linear in the number of byte values.
 */
u64 editing_distance(const u64 expected[256], const u64 crash[256]);

/* The smallest distance over all expected states that are not empty; 0 when
 * there are none. ret_state: the nearest; of equals the one sharing most files
 * with crash, then the latest. */
u64 expected_nearest(const struct expected *e, const struct tree *crash,
		     u32 *ret_state);

/* ---- durability ---------------------------------------------------------- */

enum promise_kind {
	PROMISE_BYTES = 1,	/* content of inode ino at off, len bytes */
	PROMISE_SIZE,		/* inode ino is at least len bytes long */
	PROMISE_NAME,		/* path leads to inode ino */
	PROMISE_NO_NAME,	/* path is gone */
};

/*
 * What an fsync, fdatasync, sync, syncfs, msync or O_SYNC write promised when
 * it returned. It binds at crash points t with from_seq <= t < until_seq;
 * until_seq is the start of the first later operation that changed what was
 * promised (SEQ_NEVER: none).
 */
struct promise {
	enum promise_kind kind;
	u64 from_seq, until_seq;
	u64 ino;
	u64 off, len;
	struct content *content;	/* PROMISE_BYTES: of the whole file */
	char *path;			/* as it was then */
	u32 op;				/* index into trace.ops */
};

struct promises {
	u32 n;
	struct promise *p;
	struct store *store;
};

/* Needs the file's content when the call was made: taken from the expected
 * state that the very call made. Calls without one promise nothing here. */
int promises_build(const struct trace *t, const struct expected *e,
		   struct promises **ret, struct errmsg *em);
void promises_free(struct promises *p);
/* Numbers of the promises that tree does not keep, whenever they bind.
 * ret holds room for p->n. Returns how many. */
u32 promises_broken(const struct promises *p, const struct tree *tree,
		    u32 *ret);

#endif
