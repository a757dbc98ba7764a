/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A crash site in words, as people and reports write it: a sequence number or
 * a mark, and the writes that are lost ("17,23:2048": all of write 17, and of
 * write 23 the part that begins at sector 2048; "23+2048" is the same).
 */
#ifndef BLKBOX_SITE_SPEC_H
#define BLKBOX_SITE_SPEC_H

#include "image.h"

/* The number of the one mark with this text. */
int site_mark(const struct trace *t, const char *text, u64 *ret_seq,
	      struct errmsg *em);

/*
 * The disk just after event seq without the writes in drops (NULL: none). A
 * write that was not issued by then, or must be durable then, cannot be lost
 * and is an error. ret->drop is the caller's to free.
 */
int site_state(const struct trace *t, u64 seq, const char *drops,
	       struct disk_state *ret, struct errmsg *em);

/*
 * 0 when everything that is on the disk after event seq is in the recording;
 * otherwise -ENODATA, and em says what is missing.
 */
int site_evidence(const struct trace *t, u64 seq, struct errmsg *em);

#endif
