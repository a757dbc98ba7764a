/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waiting until BPF programs have ended. */
#ifndef BLKBOX_GRACE_H
#define BLKBOX_GRACE_H

struct grace {
	int inner_fd, outer_fd;	/* -1: none */
};

int grace_open(struct grace *ret);
void grace_close(struct grace *g);
/*
 * Returns when every BPF program that ran when it was called has ended: that
 * is what the kernel promises for an update of a map of maps
 * (maybe_wait_bpf_programs() in kernel/bpf/syscall.c).
 */
int grace_wait(const struct grace *g);

#endif
