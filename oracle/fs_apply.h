/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between fs_apply.c (names) and fs_bytes.c (bytes). */
#ifndef BLKBOX_FS_APPLY_H
#define BLKBOX_FS_APPLY_H

#include "fs_model.h"

void fs_truncate(struct fs_model *m, const struct rec_file_op *op,
		 struct fs_inode *i, u64 bytes);
void fs_bytes_apply(struct fs_model *m, const struct rec_file_op *op);

#endif
