/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Private to the pool: the place of one worker, its process and its socket.
 *
 *    EMPTY --place_start()--> STARTING --READY--> RUNNING
 *      ^                         |                   |
 *      +-----place_vacate()------+-------------------+
 */
#ifndef BLKBOX_PLACE_H
#define BLKBOX_PLACE_H

#include "worker.h"

#define QUEUE_DEPTH 2	/* so that a worker finds its next job waiting */

struct queued {
	struct queued *next;	/* in the backlog */
	struct job job;		/* drop is ours */
};

struct place {
	enum { EMPTY, STARTING, RUNNING } state;
	pid_t pid;		/* of the worker's init */
	int pidfd;		/* -1: this kernel has none */
	int sock;
	u32 n_jobs;
	struct queued *jobs[QUEUE_DEPTH];
	u64 deadline_ns;	/* of the head, or of the start */
	struct buf in, out;
	size_t out_done;
};

void place_init(struct place *w);
/* Forks a worker; setup->sock is filled in. all: every place there is. */
int place_start(struct place *w, struct worker_setup *setup,
		struct place *all, u32 n, struct errmsg *em);
/* Frees what the place held; its process is dead or given up. */
void place_vacate(struct place *w);

/* Reads all there is for now. False: the worker has ended. */
bool place_receive(struct place *w);
/* The next whole message: 1, with len bytes at ret_data, valid until the next
 * place_receive(); 0 for none. pos starts at 0 and is carried along; when all
 * are taken, place_taken() forgets them. */
int place_next_message(struct place *w, size_t *pos, const void **ret_data,
		       size_t *ret_len);
void place_taken(struct place *w, size_t pos);
/* Queues a job for sending; sends what the socket takes. */
void place_put_job(struct place *w, const struct job *j);
void place_transmit(struct place *w);

/* Has a child ended? It is reaped then. */
bool child_ended(pid_t pid, int *status);
/* Waits for the worker's init to end, for a bounded time. */
bool place_wait_end(struct place *w, int *status);
/* As done() is told: the signal that killed a worker, or a negative errno. */
int death_cause(int status);

#endif
