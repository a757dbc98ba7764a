/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The crash model: from the block events of one device, which request became
 * durable at which event. It knows nothing of recordings, data or images.
 *
 * Invariants (trace.h has the words; model.c the transitions):
 *  1. A request that was requeued did not happen; the issue that follows
 *     sends it again. When the device had taken its beginning already (a
 *     partial completion), that beginning happened, and completed, and only
 *     the rest is sent again.
 *  2. A flush that failed, was requeued or was never seen to complete makes
 *     nothing durable. A write that failed may be on the disk or not, and is
 *     never durable.
 *  3. FUA is believed where it is seen: the block layer takes the flag off
 *     before it sends a request to a device without FUA, and flushes instead.
 *  4. epoch's durable set holds device's at every point: a flush covers every
 *     write issued before it, in addition to what device says.
 *  5. prefix drops nothing: a request is durable when it is issued, also one
 *     that fails later.
 *  6. drop_flushes: the device has a volatile cache, whatever it says, and
 *     flushes, PREFLUSH and FUA do nothing: under device and epoch nothing is
 *     ever durable.
 */
#ifndef BLKBOX_MODEL_H
#define BLKBOX_MODEL_H

#include "trace.h"

enum model_event_kind { MODEL_ISSUE, MODEL_COMPLETE, MODEL_REQUEUE };

struct model_event {
	u64 seq;		/* ascending */
	u8 kind;		/* enum model_event_kind */
	u8 op;			/* issue: enum blk_op */
	u32 flags;		/* issue: enum blk_flag */
	u32 sectors;		/* issue */
	u64 issue_seq;		/* completion, requeue: whose */
	s64 error;		/* completion */
	u32 bytes;		/* completion: of how much; 0: of all */
};

struct model_opts {
	enum crash_model model;
	bool write_cache;
	bool drop_flushes;
};

/* What became of an issue. */
struct model_fate {
	u64 complete_seq;	/* SEQ_NEVER: not seen to complete */
	u64 durable_seq;	/* SEQ_NEVER: never */
	u32 sectors;		/* of it that happened; 0 when requeued whole */
	bool requeued;
	bool failed;
};

/* Does a request of this kind change what the disk holds? */
bool model_is_write(u8 op);

/*
 * ret_fates has room for n; entries of events that are no issue are left
 * alone. ret_stray counts completions and requeues whose issue is not among
 * the events: it was sent before the recording began.
 */
void model_run(const struct model_opts *opts, const struct model_event *events,
	       u32 n, struct model_fate *ret_fates, u64 *ret_stray);

#endif
