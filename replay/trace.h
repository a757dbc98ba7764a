/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One device's part of a recording, decoded and indexed: its base image, its
 * writes with what the crash model says of each, the points at which a crash
 * can be told apart from a crash a moment earlier, and the file operations.
 *
 * The crash model (the names are those of enum crash_model):
 *
 *  A write is issued at issue_seq. It becomes durable at durable_seq, the
 *  number of the event that made it so, or never (SEQ_NEVER):
 *    device  a flush F that was issued after the write had completed makes it
 *            durable when F completes; FUA makes it durable when it completes.
 *            A device without a volatile cache: when it completes.
 *    epoch   as C3's Algorithm 1: a flush F makes durable, when it completes,
 *            every write issued before F was; otherwise as device.
 *    prefix  nothing is ever dropped: durable when issued.
 *  At a crash just after event t (t is a sequence number), a write is pending
 *  if issue_seq <= t < durable_seq and durable if durable_seq <= t. The disk
 *  may hold every durable write, in issue order, and any subset of the pending
 *  ones, in issue order.
 *
 *  A write that failed never becomes durable. A requeued issue did not happen.
 *  A write flagged PREFLUSH acts as a flush issued and completed with it,
 *  for the writes that had completed before it was issued.
 */
#ifndef BLKBOX_TRACE_H
#define BLKBOX_TRACE_H

#include "base.h"
#include "recording.h"
#include "tree.h"

#define SEQ_NEVER UINT64_MAX

enum crash_model { MODEL_DEVICE, MODEL_EPOCH, MODEL_PREFIX };
enum discard_model { DISCARD_ZERO, DISCARD_KEEP, DISCARD_RANDOM };

struct trace_opts {
	enum crash_model model;
	enum discard_model discard;
	u32 torn_bytes;		/* 0: a request is lost or kept whole */
	const char *base_file;	/* overrides the recording's base reference */
	u32 dev;		/* 0: the only device recorded */
	bool drop_flushes;	/* test double: a device that lies about
				 * flushes and FUA */
};

/*
 * Sets what a long option of this name says: "crash-model", "discard",
 * "torn", "dev". -EINVAL for a wrong value, -ENOENT for another option.
 */
int trace_opts_parse(struct trace_opts *o, const char *option,
		     const char *value);
const char *crash_model_name(enum crash_model m);	/* "device", ... */
const char *discard_model_name(enum discard_model d);	/* "zero", ... */

/*
 * A unit is what the model may drop: a request, or with torn_bytes a part of
 * one, cut at multiples of torn_bytes on the disk. Units stand in issue order,
 * parts of a request in sector order. A request without data (DISCARD, ...) is
 * cut into at most TORN_MAX_PARTS, the parts being torn_bytes times a power of
 * two. A DISCARD or SECURE_ERASE under DISCARD_KEEP is no unit; a WRITE_ZEROES
 * always writes zeroes, for that is what it promises.
 */
#define TORN_MAX_PARTS 1024

struct unit {
	u64 issue_seq;
	u64 complete_seq;	/* SEQ_NEVER: not seen to complete */
	u64 durable_seq;
	u64 sector;
	u32 sectors;
	u8 op;			/* enum blk_op: WRITE, DISCARD, ... */
	u32 flags;		/* enum blk_flag */
	u32 write;		/* index into trace.writes */
	const u8 *data;		/* NULL: see trace_unit_read() */
};

/* A request as recorded, for those who explain. */
struct trace_write {
	u64 time_ns;
	struct rec_issue issue;	/* pages are kept, data belongs to the trace */
	u64 issue_seq;
	u64 unreadable_bytes;	/* of its data: zeroes stand for them */
};

/* A crash point: a crash just after event seq. why is the record's type. */
struct crash_point {
	u64 seq;
	u16 why;	/* REC_ISSUE, REC_COMPLETE, REC_FILE_OP, REC_MARK */
	u32 n_units;	/* units issued up to here */
};

struct trace_op {
	u64 seq;
	u64 time_ns;
	u32 dev;
	struct rec_file_op op;
};

struct trace_mark {
	u64 seq;
	u32 pid;
	char *text;
};

struct trace {
	enum crash_model model;	/* as asked for */
	enum discard_model discard;
	u32 dev;
	char name[32];
	u64 bytes;		/* the device's size */
	bool write_cache, fua;
	bool has_base;
	char *head_json;
	char *fs_type;		/* of the file system recorded, NULL: unknown */
	char *mount_point;	/* where the program knew it, NULL: unknown */
	char *mount_options;
	u32 fs_dev;		/* its s_dev in file operations */

	u32 n_units;
	struct unit *units;
	u32 n_writes;
	struct trace_write *writes;
	u32 n_points;
	struct crash_point *points;
	u32 n_ops;
	struct trace_op *ops;	/* of this file system and unresolved ones */
	u32 n_marks;
	struct trace_mark *marks;
	u32 n_states;
	struct rec_state *states; /* expected states found in the recording */
	struct store *store;

	u64 first_seq, last_seq; /* crash points lie in here: after the base
				  * and the "blkbox: begin" mark if there is
				  * one, up to "blkbox: end" if there is one */
	u64 base_seq;		/* the base and what follows are the disk from
				 * this event on; 0: always, SEQ_NEVER: never */
	u64 end_seq;		/* the highest number recorded */
	u64 n_stray;		/* completions whose issue is not recorded */
	u64 n_other;		/* requests of a kind the model does not know;
				 * they count as lost_events, too */
	bool closed;		/* END was seen */
	u64 n_gaps, lost_events, lost_bytes;
	u64 first_gap_seq;	/* SEQ_NEVER: none */
	u64 unreadable_bytes;	/* payload marked so */

	struct base_image *base; /* private to trace.c, image.c */
	struct arena *arena;
};

#define MARK_BEGIN "blkbox: begin"
#define MARK_END   "blkbox: end"

/* Everything is read into memory. Free with trace_free(). */
int trace_load(const char *path, const struct trace_opts *opts,
	       struct trace **ret, struct errmsg *em);
void trace_free(struct trace *t);

/* Building one without a recording, for tests, by the same code the reader
 * uses: see intake.h. */

/* What a unit writes to sectors of its own. */
void trace_unit_read(const struct trace *t, const struct unit *u, u64 sector,
		     void *data, u64 sectors);
/* Does it write zeroes, and nothing else? (false: maybe) */
bool trace_unit_is_zero(const struct trace *t, const struct unit *u);

/* Reads base content; past what is stored there it is zeroes. */
void trace_base_read(const struct trace *t, u64 sector, void *data, u32 sectors);
/* How many sectors from here, at most max, are stored alike: all of them data,
 * or all of them a hole, which reads as zeroes. */
u64 trace_base_run(const struct trace *t, u64 sector, u64 max, bool *ret_hole);
/* Is the base kept in this very file? Then it must not be written to. */
bool trace_base_is(const struct trace *t, dev_t dev, ino_t ino);
/* Writes the base to fd (sparse), which becomes t->bytes long. */
int trace_base_write(const struct trace *t, int fd, struct errmsg *em);

/* Index of the last point with seq <= seq; negative errno when none. */
int trace_point_at(const struct trace *t, u64 seq);

#endif
