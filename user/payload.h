/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The data of one event, in pieces as they came, left where they are as long
 * as they can stay there.
 */
#ifndef BLKBOX_PAYLOAD_H
#define BLKBOX_PAYLOAD_H

#include "../replay/recording.h"

struct payload_piece {
	u64 at;			/* in the event's data, bytes */
	u32 bytes;
	const u8 *data;		/* NULL: zeroes */
};

struct payload {
	struct payload_piece *pieces;	/* ascending, without overlap */
	u32 n, cap;
	u32 n_kept;		/* of these the data is in chunks */
	void **chunks;
	u32 n_chunks, cap_chunks;
	u64 end;		/* where the last one ends */
	struct rec_bytes *parts; /* payload_parts() */
	u32 n_parts, cap_parts;
};

/* at is not before p->end. data stays the caller's; NULL: zeroes. */
void payload_put(struct payload *p, u64 at, u32 bytes, const void *data);
/* Copies the data of pieces it does not have yet: the caller's goes away. */
void payload_keep(struct payload *p);
/* The first bytes of it, in parts: what lies in no piece is zeroes. Valid until
 * the next call on p. */
const struct rec_bytes *payload_parts(struct payload *p, u64 bytes,
				      u32 *ret_n);
/* Empties it; lists are kept, data is not. */
void payload_reset(struct payload *p);
void payload_free(struct payload *p);

#endif
