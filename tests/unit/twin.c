// SPDX-License-Identifier: GPL-2.0-or-later
#include "twin.h"

#include <assert.h>
#include <string.h>

enum outcome { UNKNOWN, COMPLETED, FAILED, GONE };

/* What became of the request issued by event i, when, and how many of its
 * sectors were written. */
static enum outcome outcome_of(const struct trace_build *b, u32 i, u64 *ret_seq,
			       u32 *ret_sectors)
{
	const struct tb_event *issue = &b->ev[i];
	u32 sectors = 0;

	*ret_sectors = issue->sectors;
	*ret_seq = SEQ_NEVER;
	for (u32 j = i + 1; j < b->n; j++) {
		const struct tb_event *e = &b->ev[j];

		if ((e->kind != TB_COMPLETE && e->kind != TB_REQUEUE) ||
		    e->issue_seq != issue->seq)
			continue;
		*ret_seq = e->seq;
		if (e->kind == TB_REQUEUE) {
			*ret_sectors = sectors;
			return sectors ? COMPLETED : GONE;
		}
		if (e->error)
			return FAILED;
		if (!e->bytes || issue->op == BLK_FLUSH)
			return COMPLETED;
		sectors += e->bytes / 512;
		if (sectors >= issue->sectors)
			return COMPLETED;
	}
	*ret_seq = SEQ_NEVER;
	return UNKNOWN;
}

static bool flushes(const struct tb_event *e)
{
	return e->kind == TB_ISSUE &&
	       (e->op == BLK_FLUSH || (e->flags & BLK_PREFLUSH));
}

static bool is_durable(const struct twin *w, u32 ev, u64 t)
{
	const struct tb_event *write = &w->b->ev[ev];
	u64 completed, flushed;
	u32 sectors;
	enum outcome o = outcome_of(w->b, ev, &completed, &sectors);

	if (w->opts->model == MODEL_PREFIX)
		return true;
	if (w->opts->drop_flushes || o == FAILED)
		return false;
	/* it carried FUA, or there is no cache, and it completed before t */
	if (o == COMPLETED && completed <= t &&
	    ((write->flags & BLK_FUA) || !w->b->write_cache))
		return true;
	/* some flush completed before t, and the write had completed (epoch:
	 * had been issued) before that flush was issued */
	for (u32 f = 0; f < w->b->n; f++) {
		const struct tb_event *flush = &w->b->ev[f];

		if (!flushes(flush) ||
		    outcome_of(w->b, f, &flushed, &sectors) != COMPLETED ||
		    flushed > t)
			continue;
		if (o == COMPLETED && completed < flush->seq)
			return true;
		if (w->opts->model == MODEL_EPOCH && write->seq < flush->seq)
			return true;
	}
	return false;
}

static void add_part(struct twin *w, u32 ev, u32 from, u32 to)
{
	const struct tb_event *e = &w->b->ev[ev];
	struct twin_unit *u;

	if (w->n_units >= TWIN_UNITS) {
		w->n_units = TWIN_UNITS + 1;
		return;
	}
	u = &w->unit[w->n_units++];
	*u = (struct twin_unit){ .ev = ev, .issue_seq = e->seq,
				 .sector = from, .sectors = to - from };
	for (u32 s = from; s < to; s++) {
		u8 fill = e->fill[s - e->sector];

		if (w->opts->discard == DISCARD_RANDOM &&
		    (e->op == BLK_DISCARD || e->op == BLK_SECURE_ERASE))
			fill = TWIN_RANDOM;
		u->fill[s - from] = fill;
	}
}

static void add_request(struct twin *w, u32 ev)
{
	const struct tb_event *e = &w->b->ev[ev];
	u32 torn = w->opts->torn_bytes / 512, sectors, from;
	u64 seq;

	if (e->kind != TB_ISSUE || e->op == BLK_FLUSH ||
	    outcome_of(w->b, ev, &seq, &sectors) == GONE)
		return;
	if (w->opts->discard == DISCARD_KEEP &&
	    (e->op == BLK_DISCARD || e->op == BLK_SECURE_ERASE))
		return;
	from = e->sector;
	for (u32 s = e->sector + 1; s <= e->sector + sectors; s++) {
		if (s == e->sector + sectors || (torn && s % torn == 0)) {
			add_part(w, ev, from, s);
			from = s;
		}
	}
}

void twin_init(struct twin *w, const struct trace_build *b,
	       const struct trace_opts *opts)
{
	*w = (struct twin){ .b = b, .opts = opts };
	for (u32 i = 0; i < b->n; i++)
		add_request(w, i);
}

void twin_done(struct twin *w)
{
	free(w->disks);
}

u32 twin_pending(const struct twin *w, u64 seq, u32 ret[TWIN_UNITS])
{
	u32 n = 0;

	for (u32 u = 0; u < w->n_units; u++)
		if (w->unit[u].issue_seq <= seq &&
		    !is_durable(w, w->unit[u].ev, seq))
			ret[n++] = u;
	return n;
}

void twin_image(const struct twin *w, u64 seq, const u32 *drop, u32 n_drop,
		u8 ret[TB_SECTORS])
{
	memcpy(ret, w->b->base, TB_SECTORS);
	for (u32 u = 0; u < w->n_units; u++) {
		const struct twin_unit *x = &w->unit[u];
		bool lost = x->issue_seq > seq;

		for (u32 i = 0; i < n_drop; i++)
			lost |= drop[i] == u;
		for (u32 s = 0; s < x->sectors && !lost; s++)
			ret[x->sector + s] = x->fill[s];
	}
}

static u64 choose(u32 n, u32 k)
{
	u64 r = 1;

	for (u32 i = 0; i < k; i++)
		r = r * (n - i) / (i + 1);
	return r;
}

u64 twin_sites(const struct twin *w, u32 k)
{
	u32 pending[TWIN_UNITS], n;
	u64 sites = 0;

	for (u32 i = 0; i < w->b->n; i++) {
		n = twin_pending(w, w->b->ev[i].seq, pending);
		if (k > 3 && n > 24)
			return UINT64_MAX;
		for (u32 j = 0; j <= MIN(k, n); j++)
			sites += choose(n, j);
	}
	return sites;
}

static int by_witness(const struct twin_disk *x, const struct twin_disk *y)
{
	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	if (x->n_drop != y->n_drop)
		return x->n_drop < y->n_drop ? -1 : 1;
	for (u32 i = 0; i < x->n_drop; i++)
		if (x->drop[i] != y->drop[i])
			return x->drop[i] < y->drop[i] ? -1 : 1;
	return 0;
}

static int by_image(const void *a, const void *b)
{
	const struct twin_disk *x = a, *y = b;
	int r = memcmp(x->image, y->image, TB_SECTORS);

	return r ? r : by_witness(x, y);
}

static void keep_first_of_equals(struct twin *w)
{
	size_t kept = 0;

	if (w->n_disks)
		qsort(w->disks, w->n_disks, sizeof(*w->disks), by_image);
	for (size_t i = 0; i < w->n_disks; i++)
		if (!kept || memcmp(w->disks[kept - 1].image,
				    w->disks[i].image, TB_SECTORS))
			w->disks[kept++] = w->disks[i];
	w->n_disks = kept;
}

/* Every subset of pending[i..] with at most k members is added to d's drops. */
static void subsets(struct twin *w, struct twin_disk *d, const u32 *pending,
		    u32 n, u32 i, u32 k)
{
	if (i < n) {
		subsets(w, d, pending, n, i + 1, k);
		if (d->n_drop < k) {
			d->drop[d->n_drop++] = pending[i];
			subsets(w, d, pending, n, i + 1, k);
			d->n_drop--;
		}
		return;
	}
	twin_image(w, d->seq, d->drop, d->n_drop, d->image);
	GROW(w->disks, w->n_disks, w->cap_disks);
	w->disks[w->n_disks++] = *d;
}

void twin_enumerate(struct twin *w, u32 k)
{
	u32 pending[TWIN_UNITS], n;

	assert(w->n_units <= TWIN_UNITS);
	w->n_disks = 0;
	for (u32 i = 0; i < w->b->n; i++) {
		struct twin_disk d = { .seq = w->b->ev[i].seq };

		n = twin_pending(w, d.seq, pending);
		subsets(w, &d, pending, n, 0, k);
	}
	keep_first_of_equals(w);
}
