// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The running kernel's own values, from its BTF.
 *
 * Invariants:
 *  1. No value of an op or a flag is built in: they have moved between
 *     releases. An op or flag this kernel does not have is never matched.
 *  2. The op's bits lie below the lowest flag (__REQ_FAILFAST_DEV is
 *     REQ_OP_BITS by definition, include/linux/blk_types.h).
 */
#include "kernel_info.h"

#include <bpf/btf.h>
#include <string.h>

#include "../replay/recording.h"

#define NO_OP UINT32_MAX

static void take_enum(const struct btf *btf, const struct btf_type *t,
		      struct named_value **ret, u32 *ret_n)
{
	u32 n = btf_vlen(t);

	*ret = xreallocarray(NULL, n, sizeof(**ret));
	for (u32 i = 0; i < n; i++) {
		const struct btf_enum *e = btf_enum(t) + i;

		(*ret)[i].name = xstrdup(btf__name_by_offset(btf, e->name_off));
		(*ret)[i].value = e->val;
	}
	*ret_n = n;
}

static bool enum_has(const struct btf *btf, const struct btf_type *t,
		     const char *name)
{
	for (u32 i = 0; i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_enum(t)[i].name_off),
			    name))
			return true;
	return false;
}

static void read_enums(const struct btf *btf, struct kernel_info *k)
{
	u32 n = btf__type_cnt(btf);

	for (u32 id = 1; id < n && !(k->n_ops && k->n_flags); id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);

		if (!btf_is_enum(t))
			continue;
		if (!k->n_ops && enum_has(btf, t, "REQ_OP_WRITE"))
			take_enum(btf, t, &k->ops, &k->n_ops);
		else if (!k->n_flags && enum_has(btf, t, "__REQ_FUA"))
			take_enum(btf, t, &k->flags, &k->n_flags);
	}
}

static s64 value_of(const struct named_value *v, u32 n, const char *name)
{
	for (u32 i = 0; i < n; i++)
		if (!strcmp(v[i].name, name))
			return v[i].value;
	return -1;
}

/* A zone append is none of ours: where it went is known when it is done. */
static void fill_tables(struct kernel_info *k)
{
	static const struct {
		const char *name;
		u8 op;
	} ops[] = {
		{ "REQ_OP_WRITE", BLK_WRITE },
		{ "REQ_OP_FLUSH", BLK_FLUSH },
		{ "REQ_OP_DISCARD", BLK_DISCARD },
		{ "REQ_OP_SECURE_ERASE", BLK_SECURE_ERASE },
		{ "REQ_OP_WRITE_ZEROES", BLK_WRITE_ZEROES },
	};
	static const struct {
		const char *name;
		u32 flag;
	} flags[] = {
		{ "__REQ_FUA", BLK_FUA },
		{ "__REQ_PREFLUSH", BLK_PREFLUSH },
		{ "__REQ_SYNC", BLK_SYNC },
		{ "__REQ_META", BLK_META },
		{ "__REQ_PRIO", BLK_PRIO },
		{ "__REQ_NOUNMAP", BLK_NOUNMAP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		s64 v = value_of(k->ops, k->n_ops, ops[i].name);

		if (v >= 0 && v < (s64)ARRAY_SIZE(k->blk_op))
			k->blk_op[v] = ops[i].op;
	}
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		s64 bit = value_of(k->flags, k->n_flags, flags[i].name);

		if (bit >= 0 && bit < (s64)ARRAY_SIZE(k->blk_flag))
			k->blk_flag[bit] = flags[i].flag;
	}
}

int kernel_info_read(struct kernel_info *ret, struct errmsg *em)
{
	struct kernel_info k = { 0 };
	struct btf *btf = btf__load_vmlinux_btf();
	s64 bits;
	s32 id;

	if (!btf)
		return errmsg_set(em, errno,
				  "reading the kernel's types from "
				  "/sys/kernel/btf/vmlinux (the kernel must be "
				  "built with CONFIG_DEBUG_INFO_BTF)");
	id = btf__find_by_name_kind(btf, "page", BTF_KIND_STRUCT);
	if (id > 0)
		k.page_bytes = btf__type_by_id(btf, id)->size;
	k.btf = btf;
	read_enums(btf, &k);
	bits = value_of(k.flags, k.n_flags, "__REQ_FAILFAST_DEV");
	if (!k.page_bytes || !k.n_ops || bits <= 0 || bits >= 32) {
		kernel_info_done(&k);
		return errmsg_set(em, 0, "the kernel's BTF has no struct page, "
				  "request operations or request flags");
	}
	k.op_mask = (1U << bits) - 1;
	fill_tables(&k);
	*ret = k;
	return 0;
}

static void values_free(struct named_value *v, u32 n)
{
	for (u32 i = 0; i < n; i++)
		free(v[i].name);
	free(v);
}

void kernel_info_done(struct kernel_info *k)
{
	btf__free(k->btf);
	values_free(k->ops, k->n_ops);
	values_free(k->flags, k->n_flags);
	*k = (struct kernel_info){ 0 };
}

u32 kernel_op(const struct kernel_info *k, const char *name)
{
	s64 v = value_of(k->ops, k->n_ops, name);

	return v < 0 ? NO_OP : (u32)v;
}

u8 kernel_blk_op(const struct kernel_info *k, u32 cmd_flags)
{
	u32 op = cmd_flags & k->op_mask;

	return op < ARRAY_SIZE(k->blk_op) && k->blk_op[op] ? k->blk_op[op] :
							     BLK_OTHER;
}

u32 kernel_blk_flags(const struct kernel_info *k, u32 cmd_flags)
{
	u32 ret = 0;

	for (u32 left = cmd_flags; left; left &= left - 1)
		ret |= k->blk_flag[__builtin_ctz(left)];
	return ret;
}
