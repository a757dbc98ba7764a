/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loop devices over memory or files that we made ourselves. A loop device set
 * up here is cleared by the kernel when its last user closes it, so that none
 * is left behind whatever ends us.
 */
#ifndef BLKBOX_LOOP_H
#define BLKBOX_LOOP_H

#include "base.h"

struct loop {
	int fd;			/* of the loop device, held open */
	char path[32];		/* "/dev/loop7" */
	u32 dev;		/* major << 20 | minor */
};

/* Retries where several take free devices at once. read_only: LO_FLAGS_RO. */
int loop_attach(int backing_fd, bool read_only, struct loop *ret,
		struct errmsg *em);
/* Forgets what the page cache holds of the device (after its backing file was
 * changed directly). Nothing may be mounted from it. */
int loop_invalidate(const struct loop *l);
void loop_detach(struct loop *l);

/* An unnamed file in memory, bytes long. */
int memfd_new(const char *name, u64 bytes, struct errmsg *em);

/*
 * Which sectors of a block device were written since the last reset, whoever
 * wrote them: a perf event on the block_rq_issue tracepoint, filtered to the
 * device. Needs tracefs and CAP_PERFMON; no BPF.
 */
struct write_watch;
int write_watch_new(u32 dev, struct write_watch **ret, struct errmsg *em);
/* Calls touched() for every write, discard and zeroing since the last call.
 * Returns 0, or -EOVERFLOW when some were lost and nobody knows which. */
int write_watch_drain(struct write_watch *w,
		      void (*touched)(void *ctx, u64 sector, u64 sectors),
		      void *ctx);
void write_watch_free(struct write_watch *w);

#endif
