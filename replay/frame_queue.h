/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames compressed and written behind the back of who fills them. */
#ifndef BLKBOX_FRAME_QUEUE_H
#define BLKBOX_FRAME_QUEUE_H

#include "base.h"

struct frame_queue;

struct frame_queue_opts {
	int fd;			/* written from its position on; not closed */
	u64 file_bytes;		/* what is in it already */
	u64 id;			/* of the recording */
	int level;		/* zstd, where there is time for it */
	int threads;		/* 0: as many as processors, at most 4;
				 * negative: none, work is done in place */
};

/* A level that is none: the frame's data is stored as it is, unless it would
 * shrink to a half even with the least effort. */
#define FRAME_STORED INT32_MIN
/* Records the queue holds at most, and frames; a longer frame goes alone. */
#define FRAME_QUEUE_BYTES (64U << 20)
#define FRAME_QUEUE_FRAMES 64U

/* A queue and its threads belong to the thread that made them, and to no child
 * of its process. Fewer threads than asked for, or none, are no error. */
int frame_queue_new(const struct frame_queue_opts *opts,
		    struct frame_queue **ret);
/* Finishes what was put, ends the threads. */
void frame_queue_free(struct frame_queue *q);

/*
 * Takes the bytes of raw, whole records, as the next frame; raw comes back
 * empty. Waits while the queue is full. The error of an earlier frame, if one
 * failed: the file then ends in the frame before it, and stays so.
 */
int frame_queue_put(struct frame_queue *q, struct buf *raw);
/* Waits until all that was put is in the file. */
int frame_queue_wait(struct frame_queue *q);
int frame_queue_error(const struct frame_queue *q);
u64 frame_queue_file_bytes(struct frame_queue *q);

/* So much waits besides, elsewhere, to be put; until told otherwise. */
void frame_queue_backlog(struct frame_queue *q, u64 bytes);

/* The level for a frame with so much waiting behind it. */
int frame_level(int level, u64 waiting_bytes);

#endif
