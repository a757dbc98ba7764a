/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rings emptied, events put in order, into the recording. */
#ifndef BLKBOX_DRAIN_H
#define BLKBOX_DRAIN_H

#include <linux/types.h>

#include "../bpf/config.h"
#include "sink.h"

struct drain;

struct drain_opts {
	int ring_fd, notices_fd;
	int devs_fd, file_systems_fd;	/* struct bpf_scope by dev */
	const struct bpf_counters *counters;	/* mapped */
	struct sink sink;	/* as it is to begin with */
};

int drain_new(const struct drain_opts *opts, struct drain **ret,
	      struct errmsg *em);
void drain_free(struct drain *d);

/* Takes what is there, waiting up to timeout_ms for the first of it. A signal
 * ends the wait early, with 0. */
int drain_poll(struct drain *d, int timeout_ms);
/* Everything with a number below the counter as it is now gets into the
 * recording, or is in a GAP, before this returns. */
int drain_fence(struct drain *d);
/* Events that never got a number, because the kernel did not run a program. */
int drain_missed(struct drain *d, u64 events);
/* The number the next event put into the recording will have, at least. */
u64 drain_head(const struct drain *d);
void drain_summary(const struct drain *d, struct recorder_summary *ret);

#endif
