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
 *     certain that nobody will ever say anything (grace_wait()).
 *  4. The data of records stays in the ring until it is written. What is not
 *     written at the end of a round, because its event has not come or an
 *     earlier one has not, is copied; then what was read of the ring is
 *     released.
 *  5. Writing calls the owner back, who may drain in turn, also releasing the
 *     ring: what is being written is done with its data by then (sink.c), and
 *     all else of the window was copied.
 *
 * Why a number that has not come after grace_wait() never will: a program takes
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
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "grace.h"
#include "ring.h"

/* So much of the ring is read before the window is written out, notices looked
 * at, and the ring released; or a fraction of it. */
#define ROUND_BYTES (8U << 20)
#define ROUNDS_PER_RING 8
/* A ring this large has as much to say to the writer as it has bytes. */
#define RING_FULL_BYTES (64U << 20)
/* How long a missing number holds up the others before we make sure. */
#define PATIENCE_NS 100000000
#define WINDOW_MAX (1U << 24)

struct drain {
	struct drain_opts o;
	struct ring ring, notices;
	struct grace grace;

	u64 head;			/* the next number to be written */
	struct parts **window;		/* number n is at n & (cap - 1) */
	u32 cap;
	u64 end;			/* first number nobody has heard of */
	struct parts *free;
	u64 *fresh;			/* numbers that got pieces in this
					 * round */
	u32 n_fresh, cap_fresh;
	u64 stuck_since_ns;		/* head is missing, 0: it is not */

	int error;			/* what slot() met */

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

static int file_record(struct drain *d, const void *data, u32 size)
{
	const struct any_record *r = data;
	struct parts *p;
	int err;

	if (size < sizeof(*r) || r->bytes > size || r->bytes < sizeof(*r))
		return -EBADMSG;
	p = slot(d, r->seq);
	if (!p || p->lost)
		return d->error;
	err = parts_add(p, data, r->bytes);
	if (err < 0)
		return err;
	if (!d->n_fresh || d->fresh[d->n_fresh - 1] != r->seq) {
		GROW(d->fresh, d->n_fresh, d->cap_fresh);
		d->fresh[d->n_fresh++] = r->seq;
	}
	return 0;
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

static int file_notice(struct drain *d, const void *data, u32 size)
{
	const struct ev_lost *l = data;
	struct parts *p;

	if (size < sizeof(*l))
		return -EBADMSG;
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

/* 1: there may be more in the ring, 0: it was empty. */
static int file_records(struct drain *d)
{
	u64 most = MIN(ROUND_BYTES, d->ring.bytes / ROUNDS_PER_RING);
	u64 start = d->ring.at;
	const void *record;
	u32 bytes;
	int more;

	while ((more = ring_next(&d->ring, &record, &bytes)) > 0) {
		int err = file_record(d, record, bytes);

		if (err < 0)
			return err;
		if (d->ring.at - start >= most)
			break;
	}
	return more;
}

static int file_notices(struct drain *d)
{
	const void *record;
	u32 bytes;
	int more;

	while ((more = ring_next(&d->notices, &record, &bytes)) > 0) {
		int err = file_notice(d, record, bytes);

		if (err < 0)
			return err;
	}
	ring_release(&d->notices);
	return more;
}

static void release(struct drain *d)
{
	for (u32 i = 0; i < d->n_fresh; i++) {
		u64 seq = d->fresh[i];

		if (seq >= d->head)
			parts_keep(d->window[seq & (d->cap - 1)]);
	}
	d->n_fresh = 0;
	ring_release(&d->ring);
}

/* A small ring is as full with less in it. */
static void tell_backlog(struct drain *d)
{
	u64 bytes = ring_unread(&d->ring);

	if (d->ring.bytes < RING_FULL_BYTES)
		bytes *= RING_FULL_BYTES / d->ring.bytes;
	if (d->sink.writer)
		rec_writer_backlog(d->sink.writer, bytes);
}

/* Some of the ring, all notices, and what can be written. 1: there may be more
 * in the ring, 0: it was empty. */
static int round_once(struct drain *d)
{
	int more = file_records(d);
	int err = more;

	tell_backlog(d);
	if (err >= 0)
		err = file_notices(d);
	if (err >= 0)
		err = write_ready(d);
	release(d);
	return err < 0 ? err : more;
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
	int err = grace_wait(&d->grace);

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
		{ .fd = d->ring.fd, .events = POLLIN },
		{ .fd = d->notices.fd, .events = POLLIN },
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

int drain_new(const struct drain_opts *opts, struct drain **ret,
	      struct errmsg *em)
{
	struct drain *d = xzalloc(sizeof(*d));
	int err;

	d->o = *opts;
	d->sink = opts->sink;
	d->grace = (struct grace){ -1, -1 };
	d->head = d->end = counter(&opts->counters->next_seq);
	d->cap = 4096;
	d->window = xzalloc(d->cap * sizeof(*d->window));
	err = grace_open(&d->grace);
	if (!err)
		err = ring_open(opts->ring_fd, &d->ring);
	if (!err)
		err = ring_open(opts->notices_fd, &d->notices);
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
	ring_close(&d->ring);
	ring_close(&d->notices);
	grace_close(&d->grace);
	for (u32 i = 0; i < d->cap; i++)
		if (d->window[i])
			parts_free(d->window[i]);
	while ((p = d->free)) {
		d->free = p->next_free;
		parts_free(p);
	}
	free(d->window);
	free(d->fresh);
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
