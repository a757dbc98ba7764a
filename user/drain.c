// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Order out of rings. Programs on several processors take their numbers and
 * then reserve, so that the ring is nearly but not quite in order.
 *
 * Invariants:
 *  1. The window holds a slot for every number from head on that was heard of.
 *     A slot is empty, or has pieces, or is ready (its event came), or is lost.
 *  2. Only the slot at head leaves the window, when it is ready or lost. So the
 *     recording is in order of numbers, and no number is skipped in silence.
 *  3. A number is declared lost when the notices ring says so, or when it is
 *     certain that nobody will ever say anything (wait_grace(), below).
 *  4. Records are filed from within the rings' callbacks and written outside of
 *     them: writing calls the owner back, who may drain in turn.
 *
 * Why a number that has not come after wait_grace() never will: a program takes
 * its number, submits or gives up, and ends, without sleeping and within one
 * RCU read-side critical section (bpf/common.bpf.h, invariant 1). Let N be the
 * counter at some moment. Every program that took a number below N had begun
 * before that moment. After a grace period that began after it they have all
 * ended; what they submitted is in the ring, before the producer's position,
 * and the ring is read in order of reservation up to there. A number below N
 * still missing then was given up by its program with the notices ring full.
 */
#include "drain.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Records filed before the window is written out, and notices looked at. */
#define BATCH 256
/* How long a missing number holds up the others before we make sure. */
#define PATIENCE_NS 100000000
#define WINDOW_MAX (1U << 24)

struct drain {
	struct drain_opts o;
	struct ring_buffer *ring, *notices;
	int inner_fd, outer_fd;		/* see wait_grace() */

	u64 head;			/* the next number to be written */
	struct parts **window;		/* number n is at n & (cap - 1) */
	u32 cap;
	u64 end;			/* first number nobody has heard of */
	struct parts *free;
	u32 batch;			/* records filed in this round */
	u64 stuck_since_ns;		/* head is missing, 0: it is not */

	int error;			/* what a callback met */

	struct sink sink;
};

/* ---- the window ---------------------------------------------------------- */

static struct parts *parts_get(struct drain *d)
{
	struct parts *p = d->free;

	if (!p)
		return xzalloc(sizeof(*p));
	d->free = p->next_free;
	p->next_free = NULL;
	return p;
}

static void parts_put(struct drain *d, struct parts *p)
{
	parts_reset(p);
	p->next_free = d->free;
	d->free = p;
}

static int window_grow(struct drain *d, u64 seq)
{
	u32 cap = d->cap;
	struct parts **w;

	while (seq - d->head >= cap) {
		if (cap >= WINDOW_MAX)
			return -EOVERFLOW;
		cap *= 2;
	}
	w = xreallocarray(NULL, cap, sizeof(*w));
	memset(w, 0, cap * sizeof(*w));
	for (u64 n = d->head; n < d->end; n++)
		w[n & (cap - 1)] = d->window[n & (d->cap - 1)];
	free(d->window);
	d->window = w;
	d->cap = cap;
	return 0;
}

/* The parts of a number; NULL for one that was written or given up already. */
static struct parts *slot(struct drain *d, u64 seq)
{
	struct parts **s;

	if (seq < d->head)
		return NULL;
	if (seq - d->head >= d->cap && window_grow(d, seq) < 0) {
		d->error = -EOVERFLOW;
		return NULL;
	}
	if (seq >= d->end)
		d->end = seq + 1;
	s = &d->window[seq & (d->cap - 1)];
	if (!*s)
		*s = parts_get(d);
	return *s;
}

/* ---- filing -------------------------------------------------------------- */

/* The number of a record: all kinds begin alike (bpf/event.h). */
struct any_record {
	u32 type;
	u32 bytes;
	u64 seq;
};

static int on_record(void *ctx, void *data, size_t size)
{
	const struct any_record *r = data;
	struct drain *d = ctx;
	struct parts *p;

	if (size < sizeof(*r) || r->bytes > size || r->bytes < sizeof(*r)) {
		d->error = -EBADMSG;
		return -EBADMSG;
	}
	p = slot(d, r->seq);
	if (p && !p->lost) {
		int err = parts_add(p, data, r->bytes);

		if (err < 0)
			d->error = err;
	}
	if (d->error)
		return d->error;
	/* Any negative number makes libbpf stop after this record. */
	return ++d->batch >= BATCH ? -EAGAIN : 0;
}

static void mark_lost(struct parts *p, u32 dev, u32 type, u64 bytes,
		      u64 time_ns)
{
	parts_reset(p);
	p->lost = true;
	p->lost_dev = dev;
	p->lost_type = type;
	p->lost_bytes = bytes;
	p->lost_time_ns = time_ns;
}

static int on_notice(void *ctx, void *data, size_t size)
{
	const struct ev_lost *l = data;
	struct drain *d = ctx;
	struct parts *p;

	if (size < sizeof(*l))
		return d->error = -EBADMSG;
	p = slot(d, l->seq);
	if (p)
		mark_lost(p, l->dev, l->type, l->bytes, l->time_ns);
	return d->error;
}

/* ---- writing ------------------------------------------------------------ */

/* Writes from head on as far as it goes. What is written has left the window
 * before anybody is called back. */
static int write_ready(struct drain *d)
{
	while (d->head < d->end) {
		struct parts **s = &d->window[d->head & (d->cap - 1)];
		struct parts *p = *s;
		u64 seq = d->head;
		int err;

		if (!p || (!p->event.len && !p->lost))
			break;
		*s = NULL;
		d->head++;
		d->stuck_since_ns = 0;
		err = p->lost ? sink_lost(&d->sink, seq, p) :
				sink_event(&d->sink, seq, p);
		parts_put(d, p);
		if (err)
			return err;
	}
	return 0;
}

/* ---- losses nobody announced --------------------------------------------- */

/*
 * Returns when every BPF program that ran when it was called has ended: that
 * is what the kernel promises for an update of a map of maps
 * (maybe_wait_bpf_programs() in kernel/bpf/syscall.c).
 */
static int wait_grace(struct drain *d)
{
	u32 zero = 0;

	return bpf_map_update_elem(d->outer_fd, &zero, &d->inner_fd, BPF_ANY);
}

static u64 counter(const __u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* The dev on which unannounced losses were counted, where it is but one;
 * it is told once. */
static u32 unannounced_in(int map_fd, u64 *ret_bytes)
{
	struct bpf_scope s, none = { 0 };
	u32 dev, next, found = 0;
	bool more = !bpf_map_get_next_key(map_fd, NULL, &next);
	u32 n = 0;

	while (more) {
		dev = next;
		more = !bpf_map_get_next_key(map_fd, &dev, &next);
		if (bpf_map_lookup_elem(map_fd, &dev, &s) ||
		    !s.unannounced_events)
			continue;
		*ret_bytes += s.unannounced_bytes;
		bpf_map_update_elem(map_fd, &dev, &none, BPF_EXIST);
		found = dev;
		n++;
	}
	return n == 1 ? found : 0;
}

/* Declares lost what has no event below number n. */
static void give_up_below(struct drain *d, u64 n)
{
	u64 bytes = 0, file_bytes = 0;
	u32 dev = 0, file_dev = 0;
	bool asked = false;

	for (u64 seq = d->head; seq < n; seq++) {
		struct parts *p = slot(d, seq);

		if (!p || p->lost || p->event.len)
			continue;
		if (!asked) {
			dev = unannounced_in(d->o.devs_fd, &bytes);
			file_dev = unannounced_in(d->o.file_systems_fd,
						  &file_bytes);
			bytes += file_bytes;
			if (dev && file_dev)
				dev = 0;
			asked = true;
		}
		mark_lost(p, dev ? dev : file_dev, 0, bytes, now_ns());
		bytes = 0;
	}
}

/* ---- rounds -------------------------------------------------------------- */

/* One batch of the ring, all notices, and what can be written. 1: there may be
 * more in the ring, 0: it was empty. */
static int round_once(struct drain *d)
{
	int n, err;

	d->batch = 0;
	n = ring_buffer__consume(d->ring);
	if (d->error)
		return d->error;
	if (n < 0 && n != -EAGAIN)
		return n;
	err = ring_buffer__consume(d->notices);
	if (d->error)
		return d->error;
	if (err < 0)
		return err;
	err = write_ready(d);
	return err < 0 ? err : n == -EAGAIN;
}

static int rounds_until_empty(struct drain *d, u64 limit_ns)
{
	u64 start = now_ns();
	int err;

	do {
		err = round_once(d);
	} while (err > 0 && now_ns() - start < limit_ns);
	return err < 0 ? err : 0;
}

/* Makes sure of everything below n. */
static int settle(struct drain *d, u64 n)
{
	int err = wait_grace(d);

	if (err < 0)
		return err;
	err = rounds_until_empty(d, UINT64_MAX);
	if (err < 0 || d->head >= n)
		return err;
	give_up_below(d, n);
	d->stuck_since_ns = 0;
	return write_ready(d);
}

/* A number that others wait for behind it and that does not come. */
static int check_stuck(struct drain *d)
{
	u64 n = counter(&d->o.counters->next_seq);
	u64 now = now_ns();

	if (d->head >= n) {
		d->stuck_since_ns = 0;
		return 0;
	}
	if (!d->stuck_since_ns)
		d->stuck_since_ns = now;
	if (now - d->stuck_since_ns < PATIENCE_NS)
		return 0;
	return settle(d, n);
}

int drain_poll(struct drain *d, int timeout_ms)
{
	struct pollfd fds[] = {
		{ .fd = ring_buffer__epoll_fd(d->ring), .events = POLLIN },
		{ .fd = ring_buffer__epoll_fd(d->notices), .events = POLLIN },
	};
	int err = rounds_until_empty(d, PATIENCE_NS);

	if (err < 0)
		return err;
	err = check_stuck(d);
	if (err < 0 || !timeout_ms)
		return err;
	if (d->stuck_since_ns)
		timeout_ms = MIN(timeout_ms, (int)(PATIENCE_NS / 1000000));
	if (poll(fds, ARRAY_SIZE(fds), timeout_ms) < 0)
		return errno == EINTR ? 0 : -errno;
	return rounds_until_empty(d, PATIENCE_NS);
}

int drain_fence(struct drain *d)
{
	u64 n = counter(&d->o.counters->next_seq);
	u64 start = now_ns();
	int err;

	/* Programs take microseconds; only what is lost takes longer. */
	do {
		err = round_once(d);
		if (err < 0)
			return err;
	} while (d->head < n && now_ns() - start < PATIENCE_NS / 20);
	if (d->head < n)
		err = settle(d, n);
	return err < 0 ? err : sink_flush_gap(&d->sink);
}

int drain_missed(struct drain *d, u64 events)
{
	return sink_missed(&d->sink, d->head ? d->head - 1 : 0, events);
}

/* ---- beginning and end --------------------------------------------------- */

static int grace_maps(struct drain *d)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);

	d->inner_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "grace_inner", 4, 4, 1,
				     NULL);
	if (d->inner_fd < 0)
		return d->inner_fd;
	opts.inner_map_fd = d->inner_fd;
	d->outer_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "grace", 4, 4,
				     1, &opts);
	return d->outer_fd < 0 ? d->outer_fd : 0;
}

int drain_new(const struct drain_opts *opts, struct drain **ret,
	      struct errmsg *em)
{
	struct drain *d = xzalloc(sizeof(*d));
	int err;

	d->o = *opts;
	d->sink = opts->sink;
	d->inner_fd = d->outer_fd = -1;
	d->head = d->end = counter(&opts->counters->next_seq);
	d->cap = 4096;
	d->window = xzalloc(d->cap * sizeof(*d->window));
	err = grace_maps(d);
	if (!err) {
		d->ring = ring_buffer__new(opts->ring_fd, on_record, d, NULL);
		if (d->ring)
			d->notices = ring_buffer__new(opts->notices_fd,
						      on_notice, d, NULL);
		if (!d->notices)
			err = -errno;
	}
	if (err < 0) {
		drain_free(d);
		return errmsg_set(em, err, "setting up the ring to the kernel");
	}
	*ret = d;
	return 0;
}

void drain_free(struct drain *d)
{
	struct parts *p;

	if (!d)
		return;
	ring_buffer__free(d->ring);
	ring_buffer__free(d->notices);
	closep(&d->inner_fd);
	closep(&d->outer_fd);
	for (u32 i = 0; i < d->cap; i++)
		if (d->window[i])
			parts_free(d->window[i]);
	while ((p = d->free)) {
		d->free = p->next_free;
		parts_free(p);
	}
	free(d->window);
	free(d);
}

u64 drain_head(const struct drain *d)
{
	return d->head;
}

void drain_summary(const struct drain *d, struct recorder_summary *ret)
{
	*ret = d->sink.sum;
}
