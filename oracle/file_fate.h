/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BLKBOX_FILE_FATE_H
#define BLKBOX_FILE_FATE_H

#include "explore.h"

/*
 * What happened to each file of a crashed tree, compared with expected state
 * number state: path by path, in words that go on from the path ("is there but
 * empty (0 of 65536 bytes); ..."). Files that are as they were in that state
 * are left out, unless all are. The array, its paths and words are heap, the
 * caller's; NULL when *ret_n is 0.
 */
void file_fates(const struct expected *e, u32 state, const struct tree *crash,
		struct file_finding **ret, u32 *ret_n);

#endif
