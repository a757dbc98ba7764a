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

/* Why a state is none that a crash may be compared with. It stays in states
 * all the same: later states and promises refer to it. */
enum state_left_out {
	STATE_JUDGES = 0,
	STATE_HOLDS_NOTHING,	/* no file has a byte */
	STATE_UNKNOWN,		/* some content is not known (trace) */
	STATE_TRANSITIONAL,	/* see expected_drop_transitional() */
};

struct expected {
	u32 n;
	struct rec_state *states;	/* ascending after_seq */
	u8 *left_out;			/* enum state_left_out of each state;
					 * NULL: only those without data are */
	enum state_source source;
	struct store *store;		/* the trace's */
	u32 n_unknown;			/* states left out, or not built at
					 * all: content unknown */
	u32 n_transitional;
	const char *lost_why;		/* trace: what could not be followed
					 * from some operation on; NULL */
	u64 lost_seq;			/* that operation; SEQ_NEVER: none */
	bool owns_states;		/* all of them, or else ... */
	bool *filled;			/* ... those; NULL: none */
};

/* One place says which operations make an expected state. */
bool op_makes_state(const struct rec_file_op *op);

/* What an operation did, "rename a to b"; heap. */
char *op_title(const struct rec_file_op *op);

/* The states found in the recording (stop), which stay the trace's, filled up
 * by expected_fill(). */
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
/*
 * Adds what the recording has no state of, though an operation made one: taken
 * from a state next to it where nothing changed in between, and else rebuilt
 * from the operations after the first state.
 */
void expected_fill(struct expected *e, const struct trace *t);

/* May crash states be compared with state i? */
bool expected_judges(const struct expected *e, u32 i);

/*
 * Leaves out the states that show a program in the middle of replacing a file
 * (both sources have it done). as(1), for one, unlinks the old object file,
 * creates it anew and writes it; taken for expected, "no foo.o" and "foo.o is
 * empty" would excuse the very loss that a crash makes lasting.
 *
 * A state is transitional on account of a path that held bytes in the state
 * before, is gone or empty in this one, holds bytes again in a later one and
 * also in the last, when bytes are missing in between: compared with the last
 * state that had the file, and also with the first that has it again, the
 * distance is above 0 and no file has that file's very content.
 *
 * So a program that keeps a whole copy, old or new, under another name all the
 * while loses no expected state (write new, delete old, rename new to old; a
 * log moved aside), nor does one whose file comes and goes (a rollback
 * journal, a lock): that is not there in the end. Half-written states are not
 * seen as such. A file deleted on purpose and made again later is taken for
 * replaced: what it held is what a crash in between costs.
 */
void expected_drop_transitional(struct expected *e);

/* ---- editing distance ---------------------------------------------------- */

/*
 * C3's relaxed editing distance, in bytes: what of the expected state nothing
 * in the crash state could supply: the sum over byte values of
 * max(0, expected - crash). Linear in the number of byte values.
 */
u64 editing_distance(const u64 expected[256], const u64 crash[256]);

/* The same known bytes? The same type and content, both read well? */
bool content_same(const struct content *a, const struct content *b);
bool node_same(const struct node *a, const struct node *b);

/*
 * The smallest distance over all expected states that judge; 0 when there are
 * none, and when crash is the same tree as one of the states before the first
 * that had any data: a program that starts from nothing may be crashed before
 * it made something. ret_state (may be NULL): the nearest; of equals the one sharing most
 * files with crash, then the latest.
 */
u64 expected_nearest(const struct expected *e, const struct tree *crash,
		     u32 *ret_state);

/*
 * The first state with data in it was made by this event; 0: the start had
 * some, SEQ_NEVER: there is none. Whoever crashes a program before that, which
 * started from nothing, takes nothing away: what is half written then (a new
 * file in the middle of its first fsync) was never expected to be there.
 */
u64 expected_data_seq(const struct expected *e);

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
 *
 * A file's bytes and size go by its inode, under whatever name: Linux file
 * systems keep a new file's name when the file is synced. Names go by the
 * directory's inode.
 */
struct promise {
	enum promise_kind kind;
	u64 from_seq, until_seq;
	u64 ino;
	u64 dir_ino;		/* NAME, NO_NAME; 0: the root */
	u64 off, len;
	struct content *content;	/* PROMISE_BYTES: of the whole file, */
	u64 content_off;	/* or (O_SYNC write) of the file from here on */
	char *path;			/* as it was then */
	u32 op;				/* index into trace.ops */
};

struct promises {
	u32 n;
	struct promise *p;		/* ascending from_seq */
	struct store *store;
	const char *lost_why;		/* no promise binds from lost_seq on: */
	u64 lost_seq;			/* what happened is not known. NULL,
					 * SEQ_NEVER: all was followed */
};

/*
 * Needs the file's content when the call was made: taken from the expected
 * state that the very call made. Calls without one promise nothing here,
 * O_SYNC writes aside, which bring their data.
 *
 * Not promised: bytes that an operation under way during the call touched, and
 * bytes in reach of a writable shared mapping, which may change at any time;
 * so an msync promises the file's length only.
 */
int promises_build(const struct trace *t, const struct expected *e,
		   struct promises **ret, struct errmsg *em);
void promises_free(struct promises *p);
/* Numbers of the promises that tree does not keep, ascending, whenever they
 * bind. ret holds room for p->n. Returns how many. */
u32 promises_broken(const struct promises *p, const struct tree *tree,
		    u32 *ret);

#endif
