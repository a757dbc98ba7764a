// SPDX-License-Identifier: GPL-2.0-or-later
#include "sites.h"

#include <assert.h>
#include <string.h>

static void add_bound(struct site_book *b, u64 seq)
{
	if (seq == SEQ_NEVER || seq == 0)
		return;
	GROW(b->bounds, b->n_bounds, b->cap_bounds);
	b->bounds[b->n_bounds++] = seq;
}

static int compare_u64(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void site_book_init(struct site_book *b, const struct trace *t,
		    const struct promises *p, u64 data_seq, u64 lost_seq,
		    bool marks)
{
	u32 n = 0;

	*b = (struct site_book){ 0 };
	add_bound(b, data_seq);
	add_bound(b, lost_seq);
	for (u32 i = 0; p && i < p->n; i++) {
		add_bound(b, p->p[i].from_seq);
		add_bound(b, p->p[i].until_seq);
	}
	for (u32 i = 0; marks && i < t->n_marks; i++)
		add_bound(b, t->marks[i].seq);
	if (!b->n_bounds)
		return;
	qsort(b->bounds, b->n_bounds, sizeof(*b->bounds), compare_u64);
	for (u32 i = 0; i < b->n_bounds; i++)
		if (!n || b->bounds[n - 1] != b->bounds[i])
			b->bounds[n++] = b->bounds[i];
	b->n_bounds = n;
}

void site_book_done(struct site_book *b)
{
	free(b->bounds);
	free(b->entries);
	free(b->disks);
	free(b->drops);
	*b = (struct site_book){ 0 };
}

/* How many bounds are at or below seq. */
u32 site_segment(const struct site_book *b, u64 seq)
{
	u32 lo = 0, hi = b->n_bounds;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (b->bounds[mid] <= seq)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static u64 put_drops(struct site_book *b, const struct site *s)
{
	u64 at = b->n_drops;

	while (b->n_drops + s->n_drop > b->cap_drops) {
		b->cap_drops = b->cap_drops ? b->cap_drops * 2 : 1024;
		b->drops = xreallocarray(b->drops, b->cap_drops,
					 sizeof(*b->drops));
	}
	if (s->n_drop)
		memcpy(b->drops + at, s->drop,
		       (size_t)s->n_drop * sizeof(*s->drop));
	b->n_drops += s->n_drop;
	return at;
}

static struct site_disk *disk_of(struct site_book *b, u32 no)
{
	/* The enumerator numbers disks without a hole. */
	assert(no <= b->n_disks);
	if (no == b->n_disks) {
		GROW(b->disks, b->n_disks, b->cap_disks);
		b->disks[b->n_disks++] = (struct site_disk){
			.first = SITE_NONE,
			.last = SITE_NONE,
			.verdict = SITE_NONE,
		};
	}
	return &b->disks[no];
}

static u32 find_entry(const struct site_book *b, const struct site_disk *d,
		      u32 segment)
{
	u32 at;

	/* Within a pass points only go forward: mostly it is the last one. */
	if (d->last != SITE_NONE && b->entries[d->last].segment == segment)
		return d->last;
	for (at = d->first; at != SITE_NONE; at = b->entries[at].next)
		if (b->entries[at].segment == segment)
			break;
	return at;
}

u32 site_book_note(struct site_book *b, const struct trace *t,
		   const struct site *s, bool *ret_new)
{
	u32 segment = site_segment(b, t->points[s->point].seq);
	struct site_disk *d = disk_of(b, s->disk_no);
	u32 at = find_entry(b, d, segment);

	b->n_sites++;
	*ret_new = at == SITE_NONE;
	if (at != SITE_NONE) {
		b->entries[at].count++;
		return at;
	}
	GROW(b->entries, b->n, b->cap);
	at = b->n++;
	b->entries[at] = (struct site_entry){
		.disk = s->disk_no,
		.segment = segment,
		.point = s->point,
		.n_drop = s->n_drop,
		.drop_off = put_drops(b, s),
		.count = 1,
		.next = SITE_NONE,
		.check = SITE_NONE,
	};
	if (d->last != SITE_NONE)
		b->entries[d->last].next = at;
	else
		d->first = at;
	d->last = at;
	return at;
}

const u32 *site_drops(const struct site_book *b, const struct site_entry *e)
{
	return e->n_drop ? b->drops + e->drop_off : NULL;
}
