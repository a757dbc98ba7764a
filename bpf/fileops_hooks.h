/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two ends of a hooked system call. Which program goes onto which system
 * call stands in user/attach_syscalls.c.
 *
 * ENTER(name) defines enter_NAME, for one system call: a program may not read
 * more arguments than its call has. EXIT(kind) defines exit_KIND, for every
 * call that ends in the same way. Their bodies take numbers, not contexts, so
 * that a kprobe's program can be made of the same ones.
 */
#ifndef BLKBOX_FILEOPS_HOOKS_H
#define BLKBOX_FILEOPS_HOOKS_H

#define ENTER(name)                                                            \
	SEC("tracepoint")                                                      \
	int enter_##name(struct trace_event_raw_sys_enter *ctx)
#define EXIT(kind)                                                             \
	SEC("tracepoint")                                                      \
	int exit_##kind(struct trace_event_raw_sys_exit *ctx)

#define NR ((u32)ctx->id)
#define ARG(i) ((u64)ctx->args[i])

#endif
