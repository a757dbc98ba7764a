// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Enumeration of crash sites.
 *
 * The walk goes from point to point. It knows, per segment, how many of its
 * entries are issued (depth); the uppermost of them is what the segment shows
 * when nothing is dropped. From these it keeps up to date
 *
 *   full       the disk with nothing dropped
 *   alone[u]   what dropping unit u, and nothing else, adds to full
 *
 * A drop set is built in ascending order. Dropping u after the set D, all of
 * it below u, adds alone[u], except in segments where u stands directly on a
 * unit of D: there what shows is the first unit below that is not in D. So a
 * site costs no more than the segments that its last unit shares with the
 * others, most often none.
 *
 * Invariants:
 *  1. Every segment's hash sums are taken once, in enumerator_new().
 *  2. walk.n_units units are issued: depth, full and alone say so.
 *  3. dropped[u] is set for exactly the units of the drop set that stand below
 *     the level being computed, and for none between points.
 */
#include "enumerate.h"

#include <assert.h>
#include <string.h>

#include "disk_hash.h"

struct enumerator {
	const struct trace *t;
	struct segments s;
	u128 *entry_sum;	/* per entry: its unit's content there */
	u128 *base_sum;		/* per segment */
	struct disk_table *disks;
};

struct walk {
	const struct enumerator *e;
	u32 n_units;
	u32 *depth;		/* per segment */
	u128 full;
	u128 *alone;		/* per unit */
	u8 *dropped;		/* per unit */
	u32 n_pending, n_fresh;	/* fresh: units below were looked at */
	u32 *pending;		/* unit numbers, ascending */
	u32 *index;		/* per level: into pending */
	u32 *drop;		/* per level: unit number */
	u128 *delta;		/* per level + 1: what is added so far */
};

struct enumerator *enumerator_new(const struct trace *t)
{
	struct enumerator *e = xzalloc(sizeof(*e));

	e->t = t;
	segments_build(&e->s, t);
	e->entry_sum = xreallocarray(NULL, e->s.n_entries, sizeof(u128));
	e->base_sum = xreallocarray(NULL, e->s.n, sizeof(u128));
	for (u32 i = 0; i < e->s.n; i++) {
		const struct segment *g = &e->s.seg[i];

		e->base_sum[i] = hash_base(t, g->sector, g->sectors);
		for (u64 j = g->first; j < g->end; j++)
			e->entry_sum[j] = hash_unit(t,
						    &t->units[e->s.entry[j]],
						    g->sector, g->sectors);
	}
	e->disks = disk_table_new();
	return e;
}

void enumerator_free(struct enumerator *e)
{
	if (!e)
		return;
	segments_done(&e->s);
	disk_table_free(e->disks);
	free(e->entry_sum);
	free(e->base_sum);
	free(e);
}

static void walk_init(struct walk *w, const struct enumerator *e)
{
	const size_t units = e->t->n_units;

	*w = (struct walk){
		.e = e,
		.depth = xzalloc(e->s.n * sizeof(*w->depth)),
		.alone = xzalloc(units * sizeof(*w->alone)),
		.dropped = xzalloc(units),
		.pending = xreallocarray(NULL, units, sizeof(u32)),
		.index = xreallocarray(NULL, units, sizeof(u32)),
		.drop = xreallocarray(NULL, units, sizeof(u32)),
		.delta = xreallocarray(NULL, units + 1, sizeof(u128)),
	};
}

static void walk_done(struct walk *w)
{
	free(w->depth);
	free(w->alone);
	free(w->dropped);
	free(w->pending);
	free(w->index);
	free(w->drop);
	free(w->delta);
}

/* What segment g shows when only its lowest n entries are there. */
static u128 sum_at(const struct enumerator *e, u32 g, u64 n)
{
	return n ? e->entry_sum[e->s.seg[g].first + n - 1] : e->base_sum[g];
}

static void walk_issue(struct walk *w, u32 u)
{
	const struct segments *s = &w->e->s;

	for (u32 g = s->unit_first[u]; g < s->unit_end[u]; g++) {
		u32 n = w->depth[g];
		u128 was = sum_at(w->e, g, n);
		u128 is = sum_at(w->e, g, n + 1);

		assert(s->entry[s->seg[g].first + n] == u);
		if (n)
			w->alone[s->entry[s->seg[g].first + n - 1]] -=
				sum_at(w->e, g, n - 1) - was;
		w->alone[u] += was - is;
		w->full += is - was;
		w->depth[g] = n + 1;
	}
}

static void walk_to(struct walk *w, const struct crash_point *p)
{
	const struct unit *units = w->e->t->units;
	u32 kept = 0;

	while (w->n_units < p->n_units)
		walk_issue(w, w->n_units++);
	while (w->n_fresh < w->n_units)
		w->pending[w->n_pending++] = w->n_fresh++;
	for (u32 i = 0; i < w->n_pending; i++)
		if (units[w->pending[i]].durable_seq > p->seq)
			w->pending[kept++] = w->pending[i];
	w->n_pending = kept;
}

/* How segment g, that shows u, differs from alone[u]'s idea of it when the
 * unit directly below is dropped, too. */
static u128 below_dropped(const struct walk *w, u32 g)
{
	const struct segments *s = &w->e->s;
	u64 first = s->seg[g].first, n = w->depth[g] - 1;
	u128 expected = sum_at(w->e, g, n);

	while (n && w->dropped[s->entry[first + n - 1]])
		n--;
	return sum_at(w->e, g, n) - expected;
}

/* What dropping u adds when the first levels of w->drop are dropped. */
static u128 drop_delta(const struct walk *w, u32 levels, u32 u)
{
	const struct segments *s = &w->e->s;
	u128 sum = w->alone[u];

	for (u32 l = 0; l < levels; l++) {
		u32 d = w->drop[l];
		u32 g = MAX(s->unit_first[u], s->unit_first[d]);
		u32 end = MIN(s->unit_end[u], s->unit_end[d]);

		for (; g < end; g++) {
			u64 top = s->seg[g].first + w->depth[g] - 1;

			if (s->entry[top] == u && s->entry[top - 1] == d)
				sum += below_dropped(w, g);
		}
	}
	return sum;
}

/* Sets levels from .. n-1 to the pending units that follow index[from]. */
static void set_levels(struct walk *w, u32 from, u32 n)
{
	for (u32 l = from; l < n; l++) {
		u32 u;

		if (l > from)
			w->index[l] = w->index[l - 1] + 1;
		u = w->pending[w->index[l]];
		w->delta[l + 1] = w->delta[l] + drop_delta(w, l, u);
		w->drop[l] = u;
		w->dropped[u] = 1;
	}
}

/* The next set of n in lexicographic order; false at the end. */
static bool next_set(struct walk *w, u32 n)
{
	u32 l = n;

	while (l--) {
		w->dropped[w->drop[l]] = 0;
		if (w->index[l] < w->n_pending - n + l) {
			w->index[l]++;
			set_levels(w, l, n);
			return true;
		}
	}
	return false;
}

static void forget_set(struct walk *w, u32 n)
{
	for (u32 l = 0; l < n; l++)
		w->dropped[w->drop[l]] = 0;
}

struct visit {
	struct enumerator *e;
	const struct enum_opts *opts;
	int (*fn)(void *ctx, const struct site *s);
	void *ctx;
	struct enum_stats stats;
};

/* 0: go on, 1: enough, negative errno. */
static int visit_site(struct visit *v, const struct walk *w, u32 point, u32 n)
{
	u128 disk = w->full + w->delta[n];
	struct site s = {
		.point = point,
		.n_drop = n,
		.drop = w->drop,
		.disk = { .lo = disk, .hi = disk >> 64 },
	};
	int err;

	if (v->opts->max_sites && v->stats.sites >= v->opts->max_sites)
		return 1;
	err = disk_table_add(v->e->disks, disk, &s.disk_no);
	if (err < 0)
		return err;
	s.first = err > 0;
	v->stats.sites++;
	v->stats.distinct += s.first;
	err = v->fn(v->ctx, &s);
	return err > 0 ? 1 : err;
}

static int visit_sets(struct visit *v, struct walk *w, u32 point, u32 n)
{
	int err;

	w->delta[0] = 0;
	if (!n)
		return visit_site(v, w, point, 0);
	w->index[0] = 0;
	set_levels(w, 0, n);
	do {
		err = visit_site(v, w, point, n);
		if (err) {
			forget_set(w, n);
			return err;
		}
	} while (next_set(w, n));
	return 0;
}

int enumerate(struct enumerator *e, const struct enum_opts *opts,
	      int (*visit)(void *ctx, const struct site *s), void *ctx,
	      struct enum_stats *ret_stats)
{
	const u64 to_seq = opts->to_seq ? opts->to_seq : SEQ_NEVER;
	const struct trace *t = e->t;
	struct visit v = { .e = e, .opts = opts, .fn = visit, .ctx = ctx };
	struct walk w;
	int err = 0;

	walk_init(&w, e);
	for (u32 p = 0; p < t->n_points && !err; p++) {
		const struct crash_point *point = &t->points[p];
		u32 most;

		if (point->seq > to_seq)
			break;
		walk_to(&w, point);
		if (point->seq < opts->from_seq)
			continue;
		v.stats.points++;
		most = MIN(opts->k, w.n_pending);
		for (u32 n = opts->min_drop; n <= most && !err; n++)
			err = visit_sets(&v, &w, p, n);
	}
	walk_done(&w);
	v.stats.truncated = err > 0;
	if (ret_stats)
		*ret_stats = v.stats;
	return err < 0 ? err : 0;
}
