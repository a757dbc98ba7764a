/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BPF programs, loaded. */
#ifndef BLKBOX_PROGRAMS_H
#define BLKBOX_PROGRAMS_H

#include <linux/types.h>

#include "../bpf/config.h"
#include "../replay/base.h"
#include "kernel_info.h"

#define RING_MAX_BYTES (1ULL << 31)

struct blkbox_bpf;
struct bpf_object;

struct programs {
	struct blkbox_bpf *skel;
	struct bpf_object *obj;
	struct bpf_config *config;	/* mapped, live */
	struct bpf_counters *counters;	/* mapped, live */
	int ring_fd, notices_fd;
	int devs_fd, file_systems_fd;	/* u32 dev to struct bpf_scope */
	int pids_fd;			/* u32 tgid to u64 */
	int calibrate_fd;		/* the program that reads ksyms */
	u64 ring_bytes;
};

/* ring_bytes is rounded up to a power of two; 0: a default. Programs this
 * kernel refuses are left out; what has to be there is known when attaching. */
int programs_load(u64 ring_bytes, const struct kernel_info *k,
		  struct programs *ret, struct errmsg *em);
void programs_free(struct programs *p);

/* Puts a device or file system into one of the scope maps. */
int programs_scope(int map_fd, u32 dev);

#endif
