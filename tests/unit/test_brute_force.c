// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * On thousands of random traces the enumerator visits the same disks, with the
 * same witnesses, as the twin, which enumerates by brute force from the
 * design's words.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../replay/enumerate.h"
#include "../../replay/image.h"
#include "trace_build.h"
#include "twin.h"

#define TRACES 3000
#define MAX_TWIN_SITES 30000

struct compare {
	u64 seed;
	const struct trace_build *b;
	const struct twin *w;
	const struct trace *t;
	struct image_index *x;
	u32 k, min_drop;
	u64 sites;
	struct site last;	/* its drop is in last_drop */
	u32 last_drop[TWIN_UNITS];
	size_t n_found, cap_found;
	struct twin_disk *found; /* by disk number */
	struct hash128 *hashes;
	size_t cap_hashes;
};

#define check(c, cond)                                                         \
	do {                                                                   \
		if (!(cond))                                                   \
			differs(c, #cond, __LINE__);                           \
	} while (0)

static void differs(const struct compare *c, const char *what, int line)
{
	fprintf(stderr, "seed %llu, line %d: not %s; model %d discard %d torn"
		" %u k %u drop_flushes %d\n", (unsigned long long)c->seed,
		line, what, c->w->opts->model, c->w->opts->discard,
		c->w->opts->torn_bytes, c->k, c->w->opts->drop_flushes);
	tb_print(c->b);
	fail();
}

static void check_order(struct compare *c, const struct site *s)
{
	const struct site *p = &c->last;
	u32 i = 0;

	if (c->sites && p->point == s->point) {
		check(c, p->n_drop <= s->n_drop);
		if (p->n_drop == s->n_drop) {
			while (i < s->n_drop && p->drop[i] == s->drop[i])
				i++;
			check(c, i < s->n_drop && p->drop[i] < s->drop[i]);
		}
	} else if (c->sites) {
		check(c, p->point < s->point);
	}
	memcpy(c->last_drop, s->drop, s->n_drop * sizeof(u32));
	c->last = *s;
	c->last.drop = c->last_drop;
}

static void check_reachable(const struct compare *c, const struct site *s,
			    u64 seq)
{
	u32 pending[TWIN_UNITS];
	u32 n = twin_pending(c->w, seq, pending), j = 0;

	check(c, s->n_drop >= c->min_drop && s->n_drop <= c->k);
	for (u32 i = 0; i < s->n_drop; i++) {
		while (j < n && pending[j] < s->drop[i])
			j++;
		check(c, j < n && pending[j] == s->drop[i]);
	}
}

/* disk_sector() holds what the twin's image says. */
static void check_sectors(const struct compare *c, const struct site *s,
			  const u8 *image)
{
	const struct disk_state st = { c->t->points[s->point].n_units,
				       s->n_drop, s->drop };
	u8 data[SECTOR_SIZE];

	for (u32 i = 0; i < TB_SECTORS; i++) {
		bool same = true;

		disk_sector(c->t, c->x, &st, i, data);
		for (u32 j = 1; j < SECTOR_SIZE; j++)
			same &= data[j] == data[0];
		if (image[i] == TWIN_RANDOM)
			check(c, !same);
		else
			check(c, same && data[0] == image[i]);
	}
}

static int compare_site(void *ctx, const struct site *s)
{
	struct compare *c = ctx;
	struct twin_disk d = { .seq = c->t->points[s->point].seq,
			       .n_drop = s->n_drop };

	check_order(c, s);
	check_reachable(c, s, d.seq);
	memcpy(d.drop, s->drop, s->n_drop * sizeof(u32));
	twin_image(c->w, d.seq, d.drop, d.n_drop, d.image);
	c->sites++;
	if (!s->first) {
		check(c, s->disk_no < c->n_found);
		check(c, !memcmp(c->found[s->disk_no].image, d.image,
				 TB_SECTORS));
		check(c, !memcmp(&c->hashes[s->disk_no], &s->disk,
				 sizeof(s->disk)));
		return 0;
	}
	check(c, s->disk_no == c->n_found);
	check_sectors(c, s, d.image);
	if (c->n_found == c->cap_hashes) {
		c->cap_hashes = c->cap_hashes ? c->cap_hashes * 2 : 64;
		c->hashes = xreallocarray(c->hashes, c->cap_hashes,
					  sizeof(*c->hashes));
	}
	c->hashes[c->n_found] = s->disk;
	GROW(c->found, c->n_found, c->cap_found);
	c->found[c->n_found++] = d;
	return 0;
}

static int by_disk(const void *a, const void *b)
{
	const struct twin_disk *x = a, *y = b;

	return memcmp(x->image, y->image, TB_SECTORS);
}

static void check_units(const struct compare *c)
{
	check(c, c->t->n_units == c->w->n_units);
	for (u32 i = 0; i < c->t->n_units; i++) {
		const struct unit *u = &c->t->units[i];
		const struct twin_unit *x = &c->w->unit[i];

		check(c, u->issue_seq == x->issue_seq);
		check(c, u->sector == x->sector && u->sectors == x->sectors);
	}
}

/* The same disks; witnesses too where the enumeration went through once. */
static void check_disks(struct compare *c, bool witnesses)
{
	check(c, c->n_found == c->w->n_disks);
	if (c->n_found)
		qsort(c->found, c->n_found, sizeof(*c->found), by_disk);
	for (size_t i = 0; i < c->n_found; i++) {
		const struct twin_disk *f = &c->found[i], *d = &c->w->disks[i];

		check(c, !memcmp(f->image, d->image, TB_SECTORS));
		if (!witnesses)
			continue;
		check(c, f->seq == d->seq && f->n_drop == d->n_drop);
		check(c, !memcmp(f->drop, d->drop, f->n_drop * sizeof(u32)));
	}
}

/* How many sites there must be at the trace's points. */
static u64 sites_at_points(const struct compare *c)
{
	u32 pending[TWIN_UNITS], n;
	u64 sites = 0, sets;

	for (u32 i = 0; i < c->t->n_points; i++) {
		n = twin_pending(c->w, c->t->points[i].seq, pending);
		sets = 1;
		for (u32 j = 0; j <= MIN(c->k, n); j++) {
			sites += sets;
			sets = sets * (n - j) / (j + 1);
		}
	}
	return sites;
}

/* k at once, and the same by widening from 1. */
static void compare_all(struct compare *c, bool widen)
{
	struct enumerator *e = enumerator_new(c->t);
	struct enum_opts o = { .k = c->k, .to_seq = SEQ_NEVER };
	struct enum_stats st = { 0 };
	u64 sites = 0, distinct = 0;

	c->x = image_index_new(c->t);
	for (u32 k = widen ? 1 : c->k;; k++) {
		o.k = k;
		c->last.n_drop = 0;
		c->sites = 0;
		check(c, !enumerate(e, &o, compare_site, c, &st));
		check(c, !st.truncated && st.sites == c->sites);
		check(c, st.points == c->t->n_points);
		sites += st.sites;
		distinct += st.distinct;
		if (k == c->k)
			break;
		o.min_drop = c->min_drop = k + 1;
	}
	check(c, sites == sites_at_points(c));
	check(c, distinct == c->n_found);
	check_disks(c, !widen);
	image_index_free(c->x);
	enumerator_free(e);
}

/* false: too large for the twin, nothing was compared. */
static bool compare_random(u64 seed)
{
	static const u32 ks[] = { 0, 1, 2, 3, K_ALL };
	struct tb_random r = { .state = seed * 0x9e3779b97f4a7c15 };
	struct trace_opts o = { 0 };
	struct trace_build b;
	struct twin w;
	struct compare c = { .seed = seed, .b = &b, .w = &w };
	bool done = false;

	tb_fill_random(&b, &r, 9);
	o.model = tb_below(&r, 3);
	o.discard = tb_below(&r, 3);
	o.torn_bytes = 512 * (tb_below(&r, 2) ? tb_below(&r, 3) : 0);
	o.drop_flushes = !tb_below(&r, 10);
	c.k = ks[tb_below(&r, ARRAY_SIZE(ks))];
	twin_init(&w, &b, &o);
	if (w.n_units <= TWIN_UNITS &&
	    twin_sites(&w, c.k) <= MAX_TWIN_SITES) {
		struct trace *t = tb_trace(&b, &o);

		c.t = t;
		check_units(&c);
		twin_enumerate(&w, c.k);
		compare_all(&c, c.k == 2 || c.k == 3 ? tb_below(&r, 2) : 0);
		trace_free(t);
		done = true;
	}
	free(c.found);
	free(c.hashes);
	twin_done(&w);
	return done;
}

static void equals_brute_force_on_random_traces(void **state)
{
	const u32 n = TRACES * (getenv("BLKBOX_LONG") ? 20 : 1);
	u32 compared = 0;

	(void)state;
	for (u32 i = 0; i < n; i++)
		compared += compare_random(i + 1);
	print_message("%u of %u random traces compared\n", compared, n);
	assert_true(compared > n / 10 * 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_brute_force_on_random_traces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
