/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the running kernel calls its things, read from its BTF. */
#ifndef BLKBOX_KERNEL_INFO_H
#define BLKBOX_KERNEL_INFO_H

#include "../replay/base.h"

struct named_value {
	char *name;
	s64 value;
};

struct btf;

struct kernel_info {
	struct btf *btf;	/* the kernel's, all of it */
	u32 page_bytes;		/* sizeof(struct page) */
	u32 op_mask;		/* of cmd_flags */
	u32 n_ops, n_flags;
	struct named_value *ops;	/* "REQ_OP_WRITE" */
	struct named_value *flags;	/* "__REQ_FUA", bit numbers */
	u8 blk_op[256];			/* enum blk_op of an op */
	u32 blk_flag[32];		/* enum blk_flag of a bit */
};

int kernel_info_read(struct kernel_info *ret, struct errmsg *em);
void kernel_info_done(struct kernel_info *k);

/* The value of an op, or ~0 when this kernel has none of that name. */
u32 kernel_op(const struct kernel_info *k, const char *name);
/* enum blk_op and enum blk_flag of a request's cmd_flags. */
u8 kernel_blk_op(const struct kernel_info *k, u32 cmd_flags);
u32 kernel_blk_flags(const struct kernel_info *k, u32 cmd_flags);

#endif
