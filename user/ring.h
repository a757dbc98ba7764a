/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A BPF ring buffer, read in place: unlike libbpf's reader, it leaves records
 * where they are until they are released.
 */
#ifndef BLKBOX_RING_H
#define BLKBOX_RING_H

#include "../replay/base.h"

struct ring {
	int fd;			/* of the map; poll()s as readable */
	u64 bytes;
	u64 *consumer;		/* mapped: what was released */
	const u64 *producer;	/* mapped: what was reserved */
	const u8 *data;		/* mapped, twice in a row */
	u64 at;			/* what was read */
};

int ring_open(int map_fd, struct ring *ret);
void ring_close(struct ring *r);	/* also of one that is all zeroes */

/*
 * The next record, in order of reservation; valid until ring_release(). 1: a
 * record, 0: there is none, or it is not submitted yet; -EBADMSG.
 */
int ring_next(struct ring *r, const void **ret_record, u32 *ret_bytes);
/* Bytes that are there to be read, about. */
u64 ring_unread(const struct ring *r);
/* Everything that was read is the kernel's again. */
void ring_release(struct ring *r);

#endif
