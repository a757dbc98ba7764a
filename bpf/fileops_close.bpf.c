// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Closing files that were written through: close, dup2 and dup3 over one,
 * close_range, exec, and the end of the process.
 *
 * Invariants:
 *  1. Only files in written_files are reported, so files that were merely
 *     open cost one look-up.
 *  2. A close is the last one when the descriptors it takes away are all the
 *     references the open file has. At the end of a process, mappings that
 *     it made go with them.
 *  3. A call that closes several files marks them at entry, counting its
 *     descriptors of each, and reports the marked ones at exit, when the
 *     table no longer has them; or unmarks them, if it failed.
 */
#include "fileops_hooks.h"
#include "fileops_put.h"

#define CLOSE_RANGE_CLOEXEC 4
#define MAX_FDS (1 << 20)
#define BITS_PER_LONG 64
/* Of all the ways to close, this one lets go also on error. */
#if defined(__TARGET_ARCH_x86)
#define NR_CLOSE 3
#else
#define NR_CLOSE 57	/* asm-generic */
#endif
#define EBADF 9

/* ---- one descriptor --------------------------------------------------------- */

static __always_inline int enter_closing(u32 nr, s32 fd)
{
	struct call c = {};
	struct file *f;

	if (!in_pid_scope())
		return 0;
	f = file_of_fd(fd);
	if (!f || !written_of(f))
		return 0;
	call_start(&c, BOP_CLOSE, nr);
	call_file(&c, f);
	c.fd = fd;
	c.event_flags = BFOP_WRITTEN;
	if (file_refs(f) == 1)
		c.event_flags |= BFOP_LAST_CLOSE;
	call_keep(&c);
	return 0;
}

ENTER(close)
{
	return enter_closing(NR, ARG(0));
}

ENTER(dup2)
{
	return ARG(0) == ARG(1) ? 0 : enter_closing(NR, ARG(1));
}

ENTER(dup3)
{
	return ARG(0) == ARG(1) ? 0 : enter_closing(NR, ARG(1));
}

EXIT(close)
{
	struct scratch *s = call_take();
	s64 ret = ctx->ret;
	struct call *c;
	bool closed;
	u64 key;

	if (!s)
		return 0;
	c = &s->call;
	key = c->file;
	closed = ret >= 0 || (c->nr == NR_CLOSE && ret != -EBADF);
	if (!closed)
		c->event_flags &= ~BFOP_LAST_CLOSE;
	if (c->event_flags & BFOP_LAST_CLOSE)
		bpf_map_delete_elem(&written_files, &key);
	op_begin(s, ret, c->dev);
	op_inode(s, (struct inode *)c->inode);
	/* With its last name gone before, the file itself goes now. */
	if (c->event_flags & BFOP_LAST_CLOSE && !s->ev.nlink)
		s->ev.size = 0;
	put_stack(s, ctx);
	op_end(s);
	return 0;
}

/* ---- several descriptors ---------------------------------------------------- */

/* Counts one descriptor, and marks its file. */
static long mark_fd(u32 i, void *ctx)
{
	struct scratch *s = get_scratch();
	struct file **slot, *f = NULL;
	struct walk_fds *k;
	struct written *w;
	u64 word = ~0ULL;
	u32 fd;

	if (!s)
		return 1;
	k = &s->fds;
	fd = k->first + i;
	if (fd > k->last)
		return 1;
	slot = (struct file **)k->table + fd;
	bpf_probe_read_kernel(&f, sizeof(f), slot);
	if (!f)
		return 0;
	if (k->cloexec)
		bpf_probe_read_kernel(&word, sizeof(word),
				      (u64 *)k->cloexec + fd / BITS_PER_LONG);
	if (!(word >> fd % BITS_PER_LONG & 1))
		return 0;
	w = written_of(f);
	if (!w)
		return 0;
	if (w->closing != k->tid) {
		w->closing = k->tid;
		w->seen = 0;
		w->fd = fd;
		k->marked++;
	}
	w->seen++;
	w->last = w->seen >= file_refs(f);
	return 0;
}

/* Marks the written files of descriptors first to last; how many. */
static __always_inline u32 mark_fds(struct scratch *s, u32 first, u32 last,
				    bool cloexec_only)
{
	struct task_struct *t = (void *)bpf_get_current_task();
	struct files_struct *files = BPF_CORE_READ(t, files);
	struct walk_fds *k = &s->fds;
	struct fdtable *fdt;
	u32 max;

	if (!files)
		return 0;
	fdt = BPF_CORE_READ(files, fdt);
	max = BPF_CORE_READ(fdt, max_fds);
	if (!max || first >= max)
		return 0;
	k->table = (u64)BPF_CORE_READ(fdt, fd);
	k->cloexec = cloexec_only ? (u64)BPF_CORE_READ(fdt, close_on_exec) : 0;
	k->first = first;
	k->last = last < max ? last : max - 1;
	k->tid = current_tid();
	k->marked = 0;
	bpf_loop(MAX_FDS, mark_fd, NULL, 0);
	return k->marked;
}

static __always_inline int enter_closing_many(u32 nr, u32 first, u32 last,
					      bool cloexec_only)
{
	struct scratch *s;
	struct call c = {};

	if (!in_pid_scope())
		return 0;
	s = get_scratch();
	if (!s)
		return 0;
	call_start(&c, BOP_CLOSE, nr);
	if (!mark_fds(s, first, last, cloexec_only))
		return 0;
	call_keep(&c);
	return 0;
}

ENTER(close_range)
{
	if (ARG(2) & CLOSE_RANGE_CLOEXEC || (u32)ARG(0) > (u32)ARG(1))
		return 0;
	return enter_closing_many(NR, ARG(0), ARG(1), false);
}

ENTER(execve)
{
	return enter_closing_many(NR, 0, ~0U, true);
}

ENTER(execveat)
{
	return enter_closing_many(NR, 0, ~0U, true);
}

/* Reports one marked file; s->call has what all of them share. */
static __always_inline void put_marked(struct scratch *s, u64 key,
				       struct written *w, bool last)
{
	struct call *c = &s->call;

	c->fd = w->fd;
	c->ino = w->ino;
	c->dev = w->dev;
	c->inode = w->inode;
	c->open_flags = w->open_flags;
	c->event_flags &= ~BFOP_LAST_CLOSE;
	c->event_flags |= BFOP_WRITTEN | (last ? BFOP_LAST_CLOSE : 0);
	w->closing = 0;
	op_begin(s, 0, c->dev);
	op_inode(s, (struct inode *)c->inode);
	if (last)
		bpf_map_delete_elem(&written_files, &key);
	op_end(s);
}

struct many {
	s64 ret;
	u32 tid;
	u32 pad;
};

static long end_marked(void *map, const u64 *file, struct written *w,
		       struct many *m)
{
	struct scratch *s = get_scratch();

	if (!s || w->closing != m->tid)
		return 0;
	if (m->ret < 0)
		w->closing = 0;
	else
		put_marked(s, *file, w, w->last);
	return 0;
}

EXIT(close_many)
{
	struct scratch *s = call_take();
	struct many m = { .ret = ctx->ret, .tid = current_tid() };

	if (!s)
		return 0;
	bpf_for_each_map_elem(&written_files, end_marked, &m, 0);
	return 0;
}

/* ---- the end of a process --------------------------------------------------- */

/* Reports the file of one descriptor, if it was marked and not reported yet. */
static long end_fd(u32 i, void *ctx)
{
	struct scratch *s = get_scratch();
	struct file **slot, *f = NULL;
	struct written *w;

	if (!s || i > s->fds.last)
		return 1;
	slot = (struct file **)s->fds.table + i;
	bpf_probe_read_kernel(&f, sizeof(f), slot);
	if (!f)
		return 0;
	w = written_of(f);
	if (w && w->closing == s->fds.tid)
		put_marked(s, (u64)f, w, w->seen + w->maps >= file_refs(f));
	return 0;
}

struct ended_key {
	u64 files;
	u64 start_time;		/* of the process, for files is reused */
};

/* Tables of descriptors that have been answered for. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct ended_key);
	__type(value, u32);
} ended SEC(".maps");

/*
 * The files go with the last task that has them. Threads that end together
 * all hold the table until each has gone past here; none of them runs any more
 * when the process counts no live one, so the first to come here then answers
 * for all.
 */
static __always_inline bool lets_go(struct task_struct *t)
{
	struct files_struct *files = BPF_CORE_READ(t, files);
	struct signal_struct *sig = BPF_CORE_READ(t, signal);
	struct ended_key key = { .files = (u64)files };
	u32 tid = current_tid();
	s32 users;

	if (!files || !sig)
		return false;
	users = BPF_CORE_READ(files, count.counter);
	if (BPF_CORE_READ(sig, live.counter))
		return users == 1;
	if (users > BPF_CORE_READ(sig, nr_threads))
		return false;
	key.start_time = BPF_CORE_READ(t, group_leader, start_time);
	return !bpf_map_update_elem(&ended, &key, &tid, BPF_NOEXIST);
}

static __always_inline int on_exit(struct task_struct *t)
{
	struct scratch *s;
	u32 tid = current_tid();

	if (!in_pid_scope() || !lets_go(t))
		return 0;
	bpf_map_delete_elem(&calls, &tid);
	s = get_scratch();
	if (!s || !mark_fds(s, 0, ~0U, false))
		return 0;
	__builtin_memset(&s->call, 0, sizeof(s->call));
	call_start(&s->call, BOP_CLOSE, BSYSCALL_NONE);
	s->call.event_flags = BFOP_AT_EXIT;
	bpf_loop(MAX_FDS, end_fd, NULL, 0);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(file_exit_btf, struct task_struct *task)
{
	return on_exit(task);
}

SEC("raw_tp/sched_process_exit")
int BPF_PROG(file_exit_raw, struct task_struct *task)
{
	return on_exit(task);
}
