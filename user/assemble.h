/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One event on its way from the ring to the recording: its pieces, then the
 * event itself, put together into a record.
 */
#ifndef BLKBOX_ASSEMBLE_H
#define BLKBOX_ASSEMBLE_H

#include <linux/types.h>

#include "../bpf/event.h"
#include "../replay/recording.h"
#include "kernel_info.h"
#include "payload.h"

struct parts {
	struct buf event;	/* struct ev_hdr and what follows; empty: has
				 * not come yet */
	struct payload payload;
	u64 data_have;		/* bytes of them that came */
	u64 unreadable;		/* bytes of them that could not be read */
	bool no_payload;	/* pieces told their owner only */
	u32 n_pages, cap_pages;
	struct rec_page *pages;
	struct buf paths;	/* EV_PATH records, one after the other */
	bool lost;		/* the event never comes */
	u32 lost_dev;
	u32 lost_type;		/* enum ev_type, 0: unknown */
	u64 lost_bytes;
	u64 lost_time_ns;
	struct parts *next_free;
};

/* Empties it, its lists are kept. */
void parts_reset(struct parts *p);
void parts_free(struct parts *p);

/*
 * Takes one record from the ring. 1: the event itself has come, 0: a piece,
 * -EBADMSG: it is not what its type says. The data of pieces stays in the ring
 * until parts_keep(), which must come before it is released.
 */
int parts_add(struct parts *p, const void *record, size_t bytes);
void parts_keep(struct parts *p);

/* What was lost of an event that is otherwise there. */
struct parts_loss {
	u64 ring_full_bytes;
	u64 unreadable_bytes;
	u64 too_large_bytes;
	u32 paths;		/* names of an operation */
};

/* The block request; i's pages and parts point into p. */
void parts_issue(struct parts *p, const struct kernel_info *k,
		 struct rec_issue *ret, struct parts_loss *ret_loss);
/* The operation; its parts point into p, its strings are the caller's:
 * rec_file_op_done(). */
void parts_file_op(struct parts *p, struct rec_file_op *ret,
		   struct parts_loss *ret_loss);

#endif
