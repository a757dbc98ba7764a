// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All hooked system calls behind one pair of tracepoints.
 *
 * Each system call's own tracepoint is cheaper for those who make other calls,
 * but the kernel takes some 40 ms to detach each one of them. A short recording
 * attaches to raw_syscalls:sys_enter and sys_exit instead, whose context is laid
 * out like theirs, and jumps to the same programs from here.
 *
 * Invariant: only native system calls are passed on; the 32-bit ones of a
 * 64-bit kernel have numbers of their own.
 */
#include "common.bpf.h"

#define TS_COMPAT 2	/* thread_info.status on x86 */
#define SYSCALLS_MAX 1024

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, SYSCALLS_MAX);
	__type(key, u32);
	__type(value, u32);
} enter_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, SYSCALLS_MAX);
	__type(key, u32);
	__type(value, u32);
} exit_calls SEC(".maps");

static __always_inline bool is_native(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return !(BPF_CORE_READ(task, thread_info.status) & TS_COMPAT);
}

SEC("tracepoint/raw_syscalls/sys_enter")
int dispatch_enter(struct trace_event_raw_sys_enter *ctx)
{
	if (config.enabled && is_native())
		bpf_tail_call(ctx, &enter_calls, (u32)ctx->id);
	return 0;
}

SEC("tracepoint/raw_syscalls/sys_exit")
int dispatch_exit(struct trace_event_raw_sys_exit *ctx)
{
	if (config.enabled && is_native())
		bpf_tail_call(ctx, &exit_calls, (u32)ctx->id);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
