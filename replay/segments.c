// SPDX-License-Identifier: GPL-2.0-or-later
#include "segments.h"

#include <assert.h>

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Where units begin and end: ascending, each once. */
static size_t cuts_of(const struct trace *t, u64 **ret)
{
	u64 *cut = xreallocarray(NULL, (size_t)t->n_units * 2, sizeof(*cut));
	size_t n = 0, kept = 0;

	for (u32 u = 0; u < t->n_units; u++) {
		assert(t->units[u].sectors);
		cut[n++] = t->units[u].sector;
		cut[n++] = t->units[u].sector + t->units[u].sectors;
	}
	if (n)
		qsort(cut, n, sizeof(*cut), by_value);
	for (size_t i = 0; i < n; i++)
		if (!kept || cut[kept - 1] != cut[i])
			cut[kept++] = cut[i];
	*ret = cut;
	return kept;
}

static size_t find_cut(const u64 *cut, size_t n, u64 sector)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (cut[mid] < sector)
			lo = mid + 1;
		else
			hi = mid;
	}
	assert(lo < n && cut[lo] == sector);
	return lo;
}

/*
 * Between two cuts lies a segment or a hole. Counts what each interval is
 * covered by (a running sum of beginnings and ends), and leaves in number[i]
 * the segment that interval i is.
 */
static void make_segments(struct segments *s, const struct trace *t,
			  const u64 *cut, size_t n_cuts, u32 *number)
{
	s64 *change = xzalloc(n_cuts * sizeof(*change));
	s64 depth = 0;

	for (u32 u = 0; u < t->n_units; u++) {
		const struct unit *x = &t->units[u];

		change[find_cut(cut, n_cuts, x->sector)]++;
		change[find_cut(cut, n_cuts, x->sector + x->sectors)]--;
	}
	s->seg = xreallocarray(NULL, n_cuts, sizeof(*s->seg));
	for (size_t i = 0; i + 1 < n_cuts; i++) {
		depth += change[i];
		number[i] = s->n;
		if (!depth)
			continue;
		s->seg[s->n++] = (struct segment){
			.sector = cut[i],
			.sectors = cut[i + 1] - cut[i],
			.first = s->n_entries,
			.end = s->n_entries,
		};
		s->n_entries += depth;
	}
	if (n_cuts)
		number[n_cuts - 1] = s->n;
	free(change);
}

void segments_build(struct segments *s, const struct trace *t)
{
	size_t n_cuts;
	u32 *number;
	u64 *cut;

	*s = (struct segments){ 0 };
	assert(t->n_units < UINT32_MAX / 2);
	n_cuts = cuts_of(t, &cut);
	number = xreallocarray(NULL, n_cuts, sizeof(*number));
	make_segments(s, t, cut, n_cuts, number);
	s->entry = xreallocarray(NULL, s->n_entries, sizeof(*s->entry));
	s->unit_first = xreallocarray(NULL, t->n_units, sizeof(u32));
	s->unit_end = xreallocarray(NULL, t->n_units, sizeof(u32));
	for (u32 u = 0; u < t->n_units; u++) {
		const struct unit *x = &t->units[u];

		s->unit_first[u] = number[find_cut(cut, n_cuts, x->sector)];
		s->unit_end[u] = number[find_cut(cut, n_cuts,
						 x->sector + x->sectors)];
		for (u32 g = s->unit_first[u]; g < s->unit_end[u]; g++)
			s->entry[s->seg[g].end++] = u;
	}
	free(number);
	free(cut);
}

void segments_done(struct segments *s)
{
	free(s->seg);
	free(s->entry);
	free(s->unit_first);
	free(s->unit_end);
	*s = (struct segments){ 0 };
}

u32 segments_find(const struct segments *s, u64 sector)
{
	u32 lo = 0, hi = s->n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (s->seg[mid].sector + s->seg[mid].sectors <= sector)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

u64 segment_depth(const struct segments *s, const struct segment *g,
		  u32 n_units)
{
	u64 lo = g->first, hi = g->end;

	while (lo < hi) {
		u64 mid = lo + (hi - lo) / 2;

		if (s->entry[mid] < n_units)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo - g->first;
}
