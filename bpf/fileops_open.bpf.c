// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * open, openat, openat2, creat; and marks, which are opens of a name that
 * does not exist.
 */
#include "fileops_hooks.h"
#include "fileops_opened.h"

static __always_inline bool is_mark(const char *text)
{
	const char prefix[] = MARK_PREFIX;

	for (u32 i = 0; i < MARK_PREFIX_LEN; i++)
		if (text[i] != prefix[i])
			return false;
	return true;
}

/* Can this not be a mark? Told at entry, if its page is there. */
static __always_inline bool is_no_mark(u64 path)
{
	char text[16];

	return !bpf_probe_read_user(text, MARK_PREFIX_LEN,
				    (const void *)path) &&
	       !is_mark(text);
}

static __always_inline bool is_marker(void)
{
	const char name[] = MARK_COMM;
	char comm[EV_COMM_BYTES];

	bpf_get_current_comm(comm, sizeof(comm));
	for (u32 i = 0; i < sizeof(name); i++)
		if (comm[i] != name[i])
			return false;
	return config.enabled;
}

static __always_inline int enter_open_at(u32 nr, s32 dfd, u64 path, u64 flags,
					 u64 mode, u64 how)
{
	bool mark = false;
	struct call c = {};

	if (in_pid_scope())
		mark = !how && !can_change(flags);
	else if (is_marker())
		mark = true;
	else
		return 0;
	if (mark && is_no_mark(path))
		return 0;
	call_start(&c, BOP_OPEN, nr);
	c.flags = CALL_PATH | (mark ? CALL_MARK : 0) | (how ? CALL_HOW : 0);
	c.dfd = dfd;
	c.path = path;
	c.how = how;
	c.open_flags = flags;
	c.mode = mode;
	call_keep(&c);
	return 0;
}

ENTER(open)
{
	return enter_open_at(NR, AT_FDCWD, ARG(0), ARG(1), ARG(2), 0);
}

ENTER(openat)
{
	return enter_open_at(NR, ARG(0), ARG(1), ARG(2), ARG(3), 0);
}

ENTER(openat2)
{
	return enter_open_at(NR, ARG(0), ARG(1), 0, 0, ARG(2));
}

ENTER(creat)
{
	return enter_open_at(NR, AT_FDCWD, ARG(0),
			     O_CREAT | O_WRONLY | O_TRUNC, ARG(1), 0);
}

/* s->path.text holds the path: MARK_PREFIX and the text. */
static __always_inline void put_mark(struct scratch *s)
{
	u64 seq = next_seq();
	struct ev_mark *m;

	m = bpf_ringbuf_reserve(&ring, sizeof(*m), 0);
	if (!m) {
		put_lost(seq, 0, EV_MARK, 0);
		return;
	}
	fill_hdr(&m->h, EV_MARK, sizeof(*m), seq, 0);
	bpf_probe_read_kernel_str(m->text, sizeof(m->text),
				  s->path.text + MARK_PREFIX_LEN);
	bpf_ringbuf_submit(m, 0);
}

EXIT(open)
{
	struct scratch *s = call_take();
	s64 ret = ctx->ret;

	if (!s)
		return 0;
	if (ret < 0 && read_path(s, s->call.path, EV_PATH_1) &&
	    is_mark(s->path.text)) {
		put_mark(s);
		return 0;
	}
	put_open(s, ret, ctx);
	return 0;
}
