// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attaching with fallback.
 *
 * Invariants:
 *  1. A way is taken whole or not at all.
 *  2. No kernel version is asked for: what attaches works.
 */
#include "attach.h"
#include "syscall_numbers.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <unistd.h>

#define RAW(tp, name)                                                          \
	{ tp, true,                                                            \
	  { { ATTACH_TP_BTF, { name "_btf" }, { NULL } },                      \
	    { ATTACH_RAW_TP, { name "_raw" }, { NULL } } } }

const struct attach_event attach_block_events[] = {
	RAW("block_rq_issue", "block_issue"),
	RAW("block_rq_complete", "block_complete"),
	RAW("block_rq_requeue", "block_requeue"),
	{ 0 },
};

const struct attach_event attach_process_events[] = {
	RAW("sched_process_fork", "proc_fork"),
	RAW("sched_process_exec", "proc_exec"),
	RAW("sched_process_exit", "proc_exit"),
	RAW("sched_process_free", "proc_free"),
	{ 0 },
};

const char *attach_kind_name(enum attach_kind kind)
{
	static const char *const names[] = {
		[ATTACH_NONE] = "none",
		[ATTACH_KPROBE] = "kprobe",
		[ATTACH_TRACEPOINT] = "tracepoint",
		[ATTACH_TP_BTF] = "tp_btf",
		[ATTACH_RAW_TP] = "raw_tp",
		[ATTACH_DISPATCH] = "raw_syscalls tracepoint",
	};

	return names[kind];
}

/* A tp_btf program is loaded against the tracepoint's type. */
static bool has_trace_type(const struct btf *btf, const char *section)
{
	char name[128];
	const char *tp = strchr(section, '/');

	if (!tp)
		return true;
	snprintf(name, sizeof(name), "btf_trace_%s", tp + 1);
	return btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF) > 0;
}

void attach_prepare(struct bpf_object *obj, const struct btf *kernel)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, obj) {
		const char *section = bpf_program__section_name(p);

		if (!strncmp(section, "tp_btf/", 7) &&
		    !has_trace_type(kernel, section))
			bpf_program__set_autoload(p, false);
	}
}

static struct bpf_link *attach_tracepoint(const struct bpf_program *p,
					  const char *target)
{
	char category[64];
	const char *colon = strchr(target, ':');

	if (!colon || (size_t)(colon - target) >= sizeof(category)) {
		errno = EINVAL;
		return NULL;
	}
	memcpy(category, target, colon - target);
	category[colon - target] = 0;
	return bpf_program__attach_tracepoint(p, category, colon + 1);
}

static struct bpf_link *attach_one(struct bpf_program *p,
				   enum attach_kind kind, const char *target)
{
	const char *section = bpf_program__section_name(p);

	if (!target)
		return bpf_program__attach(p);
	if (kind == ATTACH_TRACEPOINT)
		return attach_tracepoint(p, target);
	if (kind == ATTACH_RAW_TP)
		return bpf_program__attach_raw_tracepoint(p, target);
	if (kind == ATTACH_KPROBE)
		return bpf_program__attach_kprobe(
			p, !strncmp(section, "kretprobe", 9), target);
	return bpf_program__attach(p);
}

static int attach_way(struct bpf_object *obj, const struct attach_way *way,
		      struct attached *a)
{
	for (int i = 0; i < ATTACH_PROGRAMS && way->programs[i]; i++) {
		struct bpf_program *p = bpf_object__find_program_by_name(
			obj, way->programs[i]);
		int err = p && bpf_program__fd(p) >= 0 ? 0 : -ENOENT;

		if (!err) {
			a->links[i] = attach_one(p, way->kind,
						 way->targets[i]);
			err = a->links[i] ? 0 : -errno;
		}
		if (!err) {
			a->prog_fds[i] = bpf_program__fd(p);
			continue;
		}
		while (--i >= 0) {
			bpf_link__destroy(a->links[i]);
			a->links[i] = NULL;
			a->prog_fds[i] = -1;
		}
		return err;
	}
	a->kind = way->kind;
	return 0;
}

static int attach_event(struct bpf_object *obj, const struct attach_event *e,
			struct attach_set *set, struct errmsg *em)
{
	struct attached a = { .event = e, .prog_fds = { -1, -1 } };
	int err = -ENOENT;

	for (int i = 0; i < ATTACH_WAYS && e->ways[i].kind; i++) {
		err = attach_way(obj, &e->ways[i], &a);
		if (!err)
			break;
	}
	if (err && e->required)
		return errmsg_set(em, err, "attaching to the kernel's %s (see "
				  "'blkbox doctor')", e->name);
	GROW(set->items, set->n, set->cap);
	set->items[set->n++] = a;
	return 0;
}

int attach_events(struct bpf_object *obj, const struct attach_event *events,
		  struct attach_set *set, struct errmsg *em)
{
	int err = 0;

	for (const struct attach_event *e = events; e->name && !err; e++)
		err = attach_event(obj, e, set, em);
	return err;
}

/* ---- dispatched system calls --------------------------------------------- */

static const struct attach_event dispatch_events[] = {
	{ "raw_syscalls", true, {
		{ ATTACH_TRACEPOINT, { "dispatch_enter", "dispatch_exit" },
		  { NULL } },
	} },
	{ 0 },
};

/* The way of an event that dispatching can stand in for. */
static const struct attach_way *syscall_way(const struct attach_event *e)
{
	for (int i = 0; i < ATTACH_WAYS && e->ways[i].kind; i++)
		if (e->ways[i].kind == ATTACH_TRACEPOINT &&
		    e->ways[i].targets[0] && e->ways[i].programs[1] &&
		    !strncmp(e->ways[i].targets[0], "syscalls:", 9))
			return &e->ways[i];
	return NULL;
}

static int dispatch_one(struct bpf_object *obj, const char *map,
			const char *program, u32 nr)
{
	struct bpf_program *p = bpf_object__find_program_by_name(obj, program);
	int map_fd = bpf_object__find_map_fd_by_name(obj, map);
	int prog_fd = p ? bpf_program__fd(p) : -1;

	if (map_fd < 0 || prog_fd < 0)
		return -ENOENT;
	return bpf_map_update_elem(map_fd, &nr, &prog_fd, BPF_ANY);
}

int attach_dispatched(struct bpf_object *obj,
		      const struct attach_event *events,
		      struct attach_set *set, struct errmsg *em)
{
	int err = 0;

	for (const struct attach_event *e = events; e->name && !err; e++) {
		struct attached a = { .event = e, .kind = ATTACH_DISPATCH,
				      .prog_fds = { -1, -1 } };
		const struct attach_way *way = syscall_way(e);
		int nr = way ? syscall_number(e->name) : -1;

		if (nr < 0) {
			err = attach_event(obj, e, set, em);
			continue;
		}
		err = dispatch_one(obj, "enter_calls", way->programs[0], nr);
		if (!err)
			err = dispatch_one(obj, "exit_calls", way->programs[1],
					   nr);
		if (err < 0)
			return errmsg_set(em, err, "hooking the system call %s"
					  " (the kernel refused its program; see"
					  " 'blkbox doctor')", e->name);
		GROW(set->items, set->n, set->cap);
		set->items[set->n++] = a;
	}
	return err ? err : attach_events(obj, dispatch_events, set, em);
}

/* One program may be attached to several events. */
static bool seen_before(const struct attach_set *set, u32 n, int fd)
{
	for (u32 i = 0; i < n; i++)
		for (int j = 0; j < ATTACH_PROGRAMS; j++)
			if (set->items[i].prog_fds[j] == fd)
				return true;
	return false;
}

u64 attach_missed(const struct attach_set *set)
{
	u64 missed = 0;

	for (u32 i = 0; i < set->n; i++) {
		for (int j = 0; j < ATTACH_PROGRAMS; j++) {
			struct bpf_prog_info info = { 0 };
			u32 len = sizeof(info);
			int fd = set->items[i].prog_fds[j];

			if (fd >= 0 && !seen_before(set, i, fd) &&
			    !bpf_obj_get_info_by_fd(fd, &info, &len))
				missed += info.recursion_misses;
		}
	}
	return missed;
}

void attach_set_done(struct attach_set *set)
{
	for (u32 i = 0; i < set->n; i++)
		for (int j = 0; j < ATTACH_PROGRAMS; j++)
			bpf_link__destroy(set->items[i].links[j]);
	free(set->items);
	*set = (struct attach_set){ 0 };
}
