// SPDX-License-Identifier: GPL-2.0-or-later
#include "findings.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* Numbers of the promises that bind in a segment. */
struct binding {
	bool known;
	u32 n;
	u32 *promises;
};

struct collector {
	const struct findings_input *in;
	struct intern keys;
	struct found_list list;
	u32 *last_entry;	/* per finding: counted last */
	u32 cap_last;
	struct binding *bindings;	/* per segment */
};

/* ---- which witness tells more --------------------------------------------- */

static int compare(u64 a, u64 b)
{
	return (a > b) - (a < b);
}

/* The missing name tells more than the missing bytes. */
static int promise_rank(const struct collector *c, u32 promise)
{
	static const int rank[] = {
		[PROMISE_NAME] = 0,
		[PROMISE_NO_NAME] = 0,
		[PROMISE_SIZE] = 1,
		[PROMISE_BYTES] = 2,
	};

	return promise == SITE_NONE ? 0 : rank[c->in->p->p[promise].kind];
}

static bool better_witness(const struct collector *c, const struct found *a,
			   const struct found *b)
{
	int r = -compare(a->distance, b->distance);

	r = r ?: compare(a->n_drop, b->n_drop);
	r = r ?: compare(a->point, b->point);
	r = r ?: promise_rank(c, a->promise) - promise_rank(c, b->promise);
	r = r ?: compare(a->promise, b->promise);
	return r < 0;
}

/* ---- adding --------------------------------------------------------------- */

static void add(struct collector *c, const struct buf *key, u32 entry,
		struct found f)
{
	const struct site_entry *e = &c->in->book->entries[entry];
	struct found_list *l = &c->list;
	const struct judgement *j;
	bool is_new;
	u32 no = intern_put(&c->keys, key->data, key->len, &is_new);

	f.entry = entry;
	f.verdict = c->in->book->disks[e->disk].verdict;
	j = &c->in->vt->v[f.verdict].j;
	f.n_drop = e->n_drop;
	f.point = e->point;
	f.count = e->count;
	f.distance = j->distance;
	f.gone_only = files_gone_only(j->files, j->n_files);
	if (is_new) {
		u32 n = l->n;

		GROW(c->last_entry, n, c->cap_last);
		GROW(l->f, l->n, l->cap);
		l->f[l->n++] = f;
	} else {
		f.count = l->f[no].count;
		if (c->last_entry[no] != entry)
			f.count += e->count;
		l->f[no].count = f.count;
		if (better_witness(c, &f, &l->f[no]))
			l->f[no] = f;
	}
	c->last_entry[no] = entry;
}

static void put_text(struct buf *b, const char *text)
{
	for (const char *s = text; *s; s++) {
		if (!isdigit((unsigned char)*s))
			buf_put_u8(b, *s);
		else if (s == text || !isdigit((unsigned char)s[-1]))
			buf_put_u8(b, '#');
	}
	buf_put_u8(b, 0);
}

static bool add_unmountable(struct collector *c, u32 entry,
			    const struct site_verdict *v)
{
	_cleanup_buf_ struct buf key = { 0 };

	if (v->outcome == MOUNT_OK && !v->j.unreadable)
		return false;
	buf_put_u8(&key, FIND_UNMOUNTABLE);
	buf_put_u8(&key, v->outcome);
	buf_put_u32(&key, v->error);
	if (v->j.unreadable)
		put_text(&key, v->j.unreadable);
	add(c, &key, entry, (struct found){ .kind = FIND_UNMOUNTABLE,
					    .promise = SITE_NONE,
					    .check = SITE_NONE });
	return true;
}

static bool add_warning(struct collector *c, u32 entry,
			const struct site_verdict *v)
{
	_cleanup_buf_ struct buf key = { 0 };

	if (v->outcome != MOUNT_OK || !v->log)
		return false;
	buf_put_u8(&key, FIND_KERNEL_WARNING);
	put_text(&key, v->log);
	add(c, &key, entry, (struct found){ .kind = FIND_KERNEL_WARNING,
					    .promise = SITE_NONE,
					    .check = SITE_NONE });
	return true;
}

static void put_fates(struct buf *b, const struct judgement *j)
{
	for (u32 i = 0; i < j->n_files; i++) {
		if (j->files[i].fate == FATE_SAME)
			continue;
		buf_put_str(b, j->files[i].path);
		buf_put_u8(b, j->files[i].fate);
	}
}

/* Was there anything yet that could be lost? */
static bool is_early(const struct collector *c, u32 entry)
{
	u32 point = c->in->book->entries[entry].point;

	return c->in->t->points[point].seq < c->in->data_seq;
}

/* Could a state that is not known explain what is on this disk? */
static bool is_excused(const struct collector *c, u32 entry,
		       const struct site_verdict *v)
{
	u32 point = c->in->book->entries[entry].point;

	if (is_early(c, entry))
		return false;
	return v->j.excused || (v->j.distance >= c->in->threshold &&
				c->in->t->points[point].seq >= c->in->lost_seq);
}

static bool add_distance(struct collector *c, u32 entry,
			 const struct site_verdict *v)
{
	const struct expected *e = c->in->e;
	_cleanup_buf_ struct buf key = { 0 };

	if (!c->in->distance_judges || v->j.distance < c->in->threshold ||
	    is_early(c, entry) || is_excused(c, entry, v))
		return false;
	buf_put_u8(&key, FIND_DISTANCE);
	buf_put_str(&key, v->j.nearest < e->n ?
				  e->states[v->j.nearest].what ?: "" :
				  "");
	put_fates(&key, &v->j);
	add(c, &key, entry, (struct found){ .kind = FIND_DISTANCE,
					    .promise = SITE_NONE,
					    .check = SITE_NONE });
	return true;
}

static u32 marks_at(const struct collector *c, u32 entry)
{
	u32 point = c->in->book->entries[entry].point;

	return marks_before(c->in->t, c->in->t->points[point].seq);
}

/* The checker looked at a disk once for each set of marks. */
static u32 check_of(const struct collector *c, u32 entry)
{
	const struct site_book *b = c->in->book;
	u32 at = b->disks[b->entries[entry].disk].first;

	if (!c->in->vt->check_keys.n || b->entries[entry].check != SITE_NONE)
		return b->entries[entry].check;
	for (; at != SITE_NONE; at = b->entries[at].next)
		if (b->entries[at].check != SITE_NONE &&
		    marks_at(c, at) == marks_at(c, entry))
			return b->entries[at].check;
	return SITE_NONE;
}

static bool add_check(struct collector *c, u32 entry)
{
	u32 check = check_of(c, entry);
	_cleanup_buf_ struct buf key = { 0 };

	if (check == SITE_NONE)
		return false;
	buf_put_u8(&key, FIND_CHECK);
	buf_put_u32(&key, check);
	add(c, &key, entry, (struct found){ .kind = FIND_CHECK,
					    .promise = SITE_NONE,
					    .check = check });
	return true;
}

/* ---- promises ------------------------------------------------------------- */

static const struct binding *binding_at(struct collector *c, u32 segment,
					u64 seq)
{
	struct binding *b = &c->bindings[segment];
	const struct promises *p = c->in->p;
	u32 cap = 0;

	if (b->known)
		return b;
	b->known = true;
	for (u32 i = 0; i < p->n; i++) {
		if (seq < p->p[i].from_seq || seq >= p->p[i].until_seq)
			continue;
		GROW(b->promises, b->n, cap);
		b->promises[b->n++] = i;
	}
	return b;
}

static bool add_durability(struct collector *c, u32 entry,
			   const struct site_verdict *v)
{
	const struct site_entry *e = &c->in->book->entries[entry];
	const struct binding *b;
	bool any = false;

	if (!c->in->p || !v->j.n_broken)
		return false;
	b = binding_at(c, e->segment, c->in->t->points[e->point].seq);
	for (u32 i = 0; i < b->n; i++) {
		const struct promise *p = &c->in->p->p[b->promises[i]];
		_cleanup_buf_ struct buf key = { 0 };

		if (!judgement_breaks(&v->j, b->promises[i]))
			continue;
		buf_put_u8(&key, FIND_DURABILITY);
		if (p->path)
			buf_put_str(&key, p->path);
		else
			buf_put_u64(&key, p->ino);
		add(c, &key, entry,
		    (struct found){ .kind = FIND_DURABILITY,
				    .promise = b->promises[i],
				    .check = SITE_NONE });
		any = true;
	}
	return any;
}

/* ---- all of them ---------------------------------------------------------- */

static bool collect_entry(struct collector *c, u32 entry,
			  const struct site_verdict *v)
{
	bool any = add_unmountable(c, entry, v);

	if (v->outcome != MOUNT_OK)
		return any;
	any |= add_warning(c, entry, v);
	any |= add_distance(c, entry, v);
	any |= add_durability(c, entry, v);
	any |= add_check(c, entry);
	return any;
}

bool files_gone_only(const struct file_finding *f, u32 n)
{
	for (u32 i = 0; i < n; i++)
		switch (f[i].fate) {
		case FATE_EMPTY:
		case FATE_TRUNCATED:
		case FATE_ZERO_FILLED:
		case FATE_MIXED:
		case FATE_GARBAGE:
			return false;
		default:
			break;
		}
	return true;
}

/* Unmountable before all else; then how much is lost; then what is told. */
static int compare_ranks(enum finding_kind a, u64 a_distance,
			 enum finding_kind b, u64 b_distance)
{
	static const int rank[] = {
		[FIND_UNMOUNTABLE] = 0, [FIND_CHECK] = 1,
		[FIND_DURABILITY] = 2,	[FIND_DISTANCE] = 3,
		[FIND_KERNEL_WARNING] = 4,
	};
	int r = (b == FIND_UNMOUNTABLE) - (a == FIND_UNMOUNTABLE);

	r = r ?: -compare(a_distance, b_distance);
	return r ?: rank[a] - rank[b];
}

static int compare_found(const void *va, const void *vb)
{
	const struct found *a = va, *b = vb;
	int r = compare_ranks(a->kind, a->distance, b->kind, b->distance);

	r = r ?: compare(a->gone_only, b->gone_only);
	r = r ?: compare(a->n_drop, b->n_drop);
	r = r ?: compare(a->point, b->point);
	return r ?: compare(a->entry, b->entry);
}

void findings_collect(const struct findings_input *in, struct found_list *ret)
{
	struct collector c = { .in = in };
	u32 n_segments = in->book->n_bounds + 1;

	c.bindings = xzalloc((size_t)n_segments * sizeof(*c.bindings));
	for (u32 d = 0; d < in->book->n_disks; d++) {
		const struct site_disk *disk = &in->book->disks[d];
		const struct site_verdict *v;
		bool any = false, excused = false;

		if (disk->verdict == SITE_NONE)
			continue;
		v = &in->vt->v[disk->verdict];
		c.list.max_distance = MAX(c.list.max_distance, v->j.distance);
		for (u32 at = disk->first; at != SITE_NONE;
		     at = in->book->entries[at].next) {
			any |= collect_entry(&c, at, v);
			excused |= in->distance_judges && is_excused(&c, at, v);
		}
		c.list.n_disks += any;
		c.list.n_excused += excused;
	}
	if (c.list.n)
		qsort(c.list.f, c.list.n, sizeof(*c.list.f), compare_found);
	for (u32 i = 0; i < n_segments; i++)
		free(c.bindings[i].promises);
	free(c.bindings);
	free(c.last_entry);
	intern_done(&c.keys);
	*ret = c.list;
}

void found_list_done(struct found_list *l)
{
	free(l->f);
	*l = (struct found_list){ 0 };
}

int finding_compare(const struct finding *a, const struct finding *b)
{
	int r = compare_ranks(a->kind, a->distance_bytes, b->kind,
			      b->distance_bytes);

	r = r ?: compare(files_gone_only(a->files, a->n_files),
			 files_gone_only(b->files, b->n_files));
	r = r ?: compare(a->n_dropped, b->n_dropped);
	return r ?: compare(a->crash_point, b->crash_point);
}

void finding_done(struct finding *f)
{
	for (u32 i = 0; f->dropped_words && i < f->n_dropped; i++)
		free(f->dropped_words[i]);
	free(f->dropped_words);
	free(f->dropped);
	free(f->site);
	free(f->expected_what);
	free(f->detail);
	free(f->run);
	free(f->recording);
	free(f->point_words);
	free(f->command);
	file_findings_free(f->files, f->n_files);
	*f = (struct finding){ 0 };
}
