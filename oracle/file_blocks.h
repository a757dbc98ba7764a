/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A damaged file's bytes, block by block, against those it had. */
#ifndef BLKBOX_FILE_BLOCKS_H
#define BLKBOX_FILE_BLOCKS_H

#include "explore.h"

#define BLOCKS_OTHERS_MAX 16

struct blocks {
	const struct content *crash, *expected;
	u32 n_others;			/* what it held in other states, too */
	const struct content *const *others;
};

/* crash differs from expected. *ret_words: "is there but empty (0 of 65536
 * bytes)", "holds zeroes from byte 4096 on"; heap. */
enum file_fate blocks_judge(const struct blocks *b, char **ret_words);

#endif
