/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The attach table: each event of the kernel that is recorded, and the ways to
 * be told of it, best first. Which way is taken is found out by taking it.
 */
#ifndef BLKBOX_ATTACH_H
#define BLKBOX_ATTACH_H

#include "../replay/base.h"

struct bpf_link;
struct btf;
struct bpf_object;

enum attach_kind {
	ATTACH_NONE = 0,	/* ends a list of ways */
	ATTACH_KPROBE,		/* and kretprobe, as the program says */
	ATTACH_TRACEPOINT,
	ATTACH_TP_BTF,
	ATTACH_RAW_TP,
	ATTACH_DISPATCH,	/* both ends of a system call, see below */
};

#define ATTACH_PROGRAMS 2

/* All programs of a way are attached, or none. What a program attaches to is
 * in its section name unless target says otherwise: "category:name" of a
 * tracepoint, a function, or the name of a raw tracepoint. */
struct attach_way {
	enum attach_kind kind;
	const char *programs[ATTACH_PROGRAMS];
	const char *targets[ATTACH_PROGRAMS];
};

#define ATTACH_WAYS 4

struct attach_event {
	const char *name;	/* as HEAD tells it */
	bool required;		/* nothing can be recorded without it */
	struct attach_way ways[ATTACH_WAYS];
};

/* Ends in an entry without a name. */
extern const struct attach_event attach_block_events[];
extern const struct attach_event attach_process_events[];
extern const struct attach_event attach_file_events[]; /* attach_syscalls.c */

struct attached {
	const struct attach_event *event;
	enum attach_kind kind;		/* ATTACH_NONE: by no way */
	struct bpf_link *links[ATTACH_PROGRAMS];
	int prog_fds[ATTACH_PROGRAMS];
};

struct attach_set {
	u32 n, cap;
	struct attached *items;
};

const char *attach_kind_name(enum attach_kind kind);

/*
 * Before loading: leaves out the programs that this kernel cannot load because
 * what they attach to is not in its BTF.
 */
void attach_prepare(struct bpf_object *obj, const struct btf *kernel);

/*
 * For a short recording: puts the tracepoint programs of each system call of
 * the table behind bpf/dispatch.bpf.c, which makes every system call of every
 * process some 100 ns slower and is detached at once; the tracepoints of their
 * own are cheaper, and take seconds to detach. Rows that are no system call are
 * attached as attach_events() does.
 */
int attach_dispatched(struct bpf_object *obj,
		      const struct attach_event *events,
		      struct attach_set *set, struct errmsg *em);

/* Attaches each event of a table by the first way that works. Fails only for
 * a required event; what it had attached stays in set. */
int attach_events(struct bpf_object *obj, const struct attach_event *events,
		  struct attach_set *set, struct errmsg *em);

/* Events the kernel did not tell us of, because a program was interrupted by
 * an event of its own kind (bpf_prog_info.recursion_misses). */
u64 attach_missed(const struct attach_set *set);

/* Detaches. When it returns no program runs any more. */
void attach_set_done(struct attach_set *set);

#endif
