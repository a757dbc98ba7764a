// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes in scope: their children come into scope as they are made, and
 * starts and ends are recorded.
 *
 * Invariants:
 *  1. A child is in the pids map before it first runs: the fork tracepoint
 *     comes before wake_up_new_task().
 *  2. A process stays there until it is freed, not until it exits: files are
 *     closed after the exit tracepoint, and those closes are its operations.
 *     Its number may be reused then, so the entry goes only if it is of the
 *     very process that is freed.
 */
#include "common.bpf.h"

/* enum proc_event of replay/recording.h */
#define EV_PROC_FORK 1
#define EV_PROC_EXEC 2
#define EV_PROC_EXIT 3

static __always_inline void put_proc(u32 event, u32 pid, u32 parent, s32 status)
{
	u64 seq = next_seq();
	struct ev_proc *e;

	e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);
	if (!e) {
		put_lost(seq, 0, EV_PROC, 0);
		return;
	}
	fill_hdr(&e->h, EV_PROC, sizeof(*e), seq, 0);
	e->event = event;
	e->pid = pid;
	e->parent = parent;
	e->status = status;
	bpf_ringbuf_submit(e, 0);
}

static __always_inline int on_fork(struct task_struct *parent,
				   struct task_struct *child)
{
	u32 ptgid = BPF_CORE_READ(parent, tgid);
	u32 ctgid = BPF_CORE_READ(child, tgid);
	u64 start;

	/* A new thread is its process's. */
	if (ptgid == ctgid || config.all_pids || !in_pid_scope())
		return 0;
	if (config.n_pids && bpf_map_lookup_elem(&pids, &ptgid)) {
		start = BPF_CORE_READ(child, start_time);
		if (bpf_map_update_elem(&pids, &ctgid, &start, BPF_ANY))
			/* What it does will not be seen. */
			put_lost(next_seq(), 0, EV_PROC, 0);
	}
	put_proc(EV_PROC_FORK, ctgid, ptgid, 0);
	return 0;
}

static __always_inline int on_exec(struct task_struct *task)
{
	u32 tgid = BPF_CORE_READ(task, tgid);

	if (config.all_pids || !in_pid_scope())
		return 0;
	put_proc(EV_PROC_EXEC, tgid, 0, 0);
	return 0;
}

static __always_inline int on_exit(struct task_struct *task)
{
	u32 tgid = BPF_CORE_READ(task, tgid);
	struct signal_struct *sig;
	s32 code;

	if (config.all_pids || !in_pid_scope())
		return 0;
	sig = BPF_CORE_READ(task, signal);
	if (!sig || BPF_CORE_READ(sig, live.counter))
		return 0;
	code = BPF_CORE_READ(sig, group_exit_code);
	if (!code)
		code = BPF_CORE_READ(task, exit_code);
	put_proc(EV_PROC_EXIT, tgid, 0, code);
	return 0;
}

static __always_inline int on_free(struct task_struct *task)
{
	u32 tgid = BPF_CORE_READ(task, tgid);
	u64 *start;

	if (!config.n_pids || BPF_CORE_READ(task, pid) != (s32)tgid)
		return 0;
	start = bpf_map_lookup_elem(&pids, &tgid);
	if (start && *start == BPF_CORE_READ(task, start_time))
		bpf_map_delete_elem(&pids, &tgid);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(proc_fork_btf, struct task_struct *parent,
	     struct task_struct *child)
{
	return on_fork(parent, child);
}

SEC("raw_tp/sched_process_fork")
int BPF_PROG(proc_fork_raw, struct task_struct *parent,
	     struct task_struct *child)
{
	return on_fork(parent, child);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(proc_exec_btf, struct task_struct *task)
{
	return on_exec(task);
}

SEC("raw_tp/sched_process_exec")
int BPF_PROG(proc_exec_raw, struct task_struct *task)
{
	return on_exec(task);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(proc_exit_btf, struct task_struct *task)
{
	return on_exit(task);
}

SEC("raw_tp/sched_process_exit")
int BPF_PROG(proc_exit_raw, struct task_struct *task)
{
	return on_exit(task);
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(proc_free_btf, struct task_struct *task)
{
	return on_free(task);
}

SEC("raw_tp/sched_process_free")
int BPF_PROG(proc_free_raw, struct task_struct *task)
{
	return on_free(task);
}

char LICENSE[] SEC("license") = "GPL";
