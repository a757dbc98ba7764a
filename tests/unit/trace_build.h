/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traces for tests: from a script or from random events, through the same code
 * trace_load() uses (replay/intake.h).
 *
 * A script is words, one an event, numbered 1, 2, 3 ...:
 *
 *   W3         write 3 is issued: sector 3, content 3
 *   W3@5+2=7   ... of two sectors at sector 5, content 7
 *   WF3 WP3    ... with FUA, with PREFLUSH
 *   D3 Z3 E3   a DISCARD, WRITE_ZEROES, SECURE_ERASE, placed as a write is
 *   C3         request 3 completes
 *   X3         ... with an error
 *   H3         its first sector completes
 *   R3         it is requeued; a later W3 sends it again
 *   Fi F2i     a flush is issued
 *   Fc Fx Fr   it completes, fails, is requeued
 *   fsync      an fsync returned; fsync! one that failed
 *   mark begin end   marks
 *   base       (no event) the copy of the base, live until here, is complete
 *
 * A sector's content is one byte value all over; 0 is zeroes. The base holds
 * base[] in that form.
 */
#ifndef BLKBOX_TESTS_TRACE_BUILD_H
#define BLKBOX_TESTS_TRACE_BUILD_H

#include "../../replay/trace.h"

#define TB_SECTORS 16		/* the device */
#define TB_EVENTS 64
#define TB_DEV (7 << 20 | 3)

enum tb_kind { TB_ISSUE, TB_COMPLETE, TB_REQUEUE, TB_FSYNC, TB_MARK };

struct tb_event {
	u8 kind;		/* enum tb_kind */
	u64 seq;
	u8 op;			/* issue: enum blk_op */
	u32 flags;
	u64 sector;
	u32 sectors;
	u8 fill[TB_SECTORS];	/* issue: content of each sector */
	u64 issue_seq;		/* completion, requeue */
	s64 error;		/* completion; fsync: its result */
	u32 bytes;		/* completion: 0: all */
	const char *mark;
};

struct trace_build {
	bool write_cache;
	u8 base[TB_SECTORS];
	bool base_live;		/* base_end says when its copy was complete */
	u64 base_end;		/* after this event */
	u32 n;
	struct tb_event ev[TB_EVENTS];
};

struct tb_random {
	u64 state;		/* seed */
};
u32 tb_below(struct tb_random *r, u32 n);	/* 0 .. n-1 */

void tb_script(struct trace_build *b, const char *script);
/* Up to max_requests requests with all that may happen to them. */
void tb_fill_random(struct trace_build *b, struct tb_random *r,
		    u32 max_requests);
struct trace *tb_trace(const struct trace_build *b,
		       const struct trace_opts *opts);
/* For messages: the events, one a line. */
void tb_print(const struct trace_build *b);

#endif
