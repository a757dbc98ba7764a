// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Disk images at crash sites.
 *
 * Invariants:
 *  1. What a sector holds in a state is decided by shown_unit() alone.
 *  2. Outside of touched, and unless lost is set, the file behind fd holds
 *     exactly the state shown.
 *  3. lost is set while image_goto() is writing, so that a failure on the way
 *     makes the next one rebuild everything.
 */
#include "image.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>

#include "segments.h"

#define CHUNK_SECTORS 512	/* written at once */
#define PUNCH_SECTORS 128	/* so many zeroes are made a hole */

struct image_index {
	struct segments s;
};

struct range {
	u64 sector, sectors;
};

struct ranges {
	size_t n, cap;
	struct range *r;
};

struct image {
	const struct trace *t;
	const struct image_index *x;
	int fd;
	bool lost;		/* nobody knows what the file holds */
	struct disk_state shown; /* its drop is in drop_mem */
	u32 cap_drop;
	u32 *drop_mem;
	struct ranges touched;
	struct ranges todo;
	u32 turn;		/* seen[g] == turn: segment was looked at */
	u32 *seen;
	u64 written_sectors;
	u32 n_chunk;		/* sectors waiting in chunk, for chunk_at */
	u64 chunk_at;
	u8 chunk[CHUNK_SECTORS * SECTOR_SIZE];
};

struct image_index *image_index_new(const struct trace *t)
{
	struct image_index *x = xzalloc(sizeof(*x));

	segments_build(&x->s, t);
	return x;
}

void image_index_free(struct image_index *x)
{
	if (!x)
		return;
	segments_done(&x->s);
	free(x);
}

static bool is_dropped(const struct disk_state *st, u32 unit)
{
	u32 lo = 0, hi = st->n_drop;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (st->drop[mid] < unit)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < st->n_drop && st->drop[lo] == unit;
}

/* The unit whose content a segment shows, or UNIT_NONE: the base's. */
static u32 shown_unit(const struct segments *s, const struct segment *g,
		      const struct disk_state *st)
{
	u64 n = segment_depth(s, g, st->n_units);

	while (n--) {
		u32 u = s->entry[g->first + n];

		if (!is_dropped(st, u))
			return u;
	}
	return UNIT_NONE;
}

void disk_sector(const struct trace *t, const struct image_index *x,
		 const struct disk_state *st, u64 sector, u8 ret[SECTOR_SIZE])
{
	u32 i = segments_find(&x->s, sector);
	u32 u = UNIT_NONE;

	if (i < x->s.n && x->s.seg[i].sector <= sector)
		u = shown_unit(&x->s, &x->s.seg[i], st);
	if (u == UNIT_NONE)
		trace_base_read(t, sector, ret, 1);
	else
		trace_unit_read(t, &t->units[u], sector, ret, 1);
}

/* ---- ranges ------------------------------------------------------------ */

static void ranges_add(struct ranges *rs, u64 sector, u64 sectors)
{
	struct range *last = rs->n ? &rs->r[rs->n - 1] : NULL;

	if (last && last->sector + last->sectors == sector) {
		last->sectors += sectors;
		return;
	}
	GROW(rs->r, rs->n, rs->cap);
	rs->r[rs->n++] = (struct range){ sector, sectors };
}

static int by_sector(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->sector < y->sector ? -1 : x->sector > y->sector;
}

static void ranges_merge(struct ranges *rs)
{
	size_t kept = 0;

	if (!rs->n)
		return;
	qsort(rs->r, rs->n, sizeof(*rs->r), by_sector);
	for (size_t i = 1; i < rs->n; i++) {
		struct range *k = &rs->r[kept], *r = &rs->r[i];

		if (r->sector <= k->sector + k->sectors)
			k->sectors = MAX(k->sector + k->sectors,
					 r->sector + r->sectors) - k->sector;
		else
			rs->r[++kept] = *r;
	}
	rs->n = kept + 1;
}

/* ---- writing ----------------------------------------------------------- */

static int chunk_flush(struct image *m)
{
	u32 n = m->n_chunk;

	m->n_chunk = 0;
	return n ? pwrite_full(m->fd, m->chunk, (size_t)n * SECTOR_SIZE,
			       m->chunk_at * SECTOR_SIZE) : 0;
}

/* Room for up to *sectors sectors (made fewer where there is less) at sector,
 * which follows what is waiting. */
static int chunk_room(struct image *m, u64 sector, u64 *sectors, u8 **ret)
{
	int err = 0;

	if (m->n_chunk == CHUNK_SECTORS ||
	    (m->n_chunk && m->chunk_at + m->n_chunk != sector))
		err = chunk_flush(m);
	if (err)
		return err;
	if (!m->n_chunk)
		m->chunk_at = sector;
	*sectors = MIN(*sectors, (u64)CHUNK_SECTORS - m->n_chunk);
	*ret = m->chunk + (size_t)m->n_chunk * SECTOR_SIZE;
	m->n_chunk += *sectors;
	return 0;
}

static int write_zeroes(struct image *m, u64 sector, u64 sectors)
{
	int err;
	u8 *to;

	if (sectors >= PUNCH_SECTORS) {
		err = chunk_flush(m);
		if (err)
			return err;
		if (!fallocate(m->fd,
			       FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			       sector * SECTOR_SIZE, sectors * SECTOR_SIZE))
			return 0;
		if (errno != EOPNOTSUPP && errno != ENOSYS)
			return -errno;
	}
	while (sectors) {
		u64 n = sectors;

		err = chunk_room(m, sector, &n, &to);
		if (err)
			return err;
		memset(to, 0, n * SECTOR_SIZE);
		sector += n;
		sectors -= n;
	}
	return 0;
}

static int write_unit(struct image *m, const struct unit *u, u64 sector,
		      u64 sectors)
{
	int err;
	u8 *to;

	if (trace_unit_is_zero(m->t, u))
		return write_zeroes(m, sector, sectors);
	while (sectors) {
		u64 n = sectors;

		err = chunk_room(m, sector, &n, &to);
		if (err)
			return err;
		trace_unit_read(m->t, u, sector, to, n);
		sector += n;
		sectors -= n;
	}
	return 0;
}

static int write_base(struct image *m, u64 sector, u64 sectors)
{
	bool hole;
	int err;
	u8 *to;

	while (sectors) {
		u64 n = trace_base_run(m->t, sector, sectors, &hole);

		if (hole) {
			err = write_zeroes(m, sector, n);
		} else {
			err = chunk_room(m, sector, &n, &to);
			if (!err)
				trace_base_read(m->t, sector, to, n);
		}
		if (err)
			return err;
		sector += n;
		sectors -= n;
	}
	return 0;
}

/* Writes what these sectors hold in state st. */
static int write_range(struct image *m, const struct disk_state *st, u64 sector,
		       u64 sectors)
{
	const struct segments *s = &m->x->s;
	const u64 end = sector + sectors;
	u32 i = segments_find(s, sector);
	int err = 0;

	m->written_sectors += sectors;
	while (sector < end && !err) {
		const struct segment *g = i < s->n ? &s->seg[i] : NULL;
		u32 u = UNIT_NONE;
		u64 n;

		if (!g || sector < g->sector) {
			n = MIN(end, g ? g->sector : end) - sector;
		} else {
			n = MIN(end, g->sector + g->sectors) - sector;
			u = shown_unit(s, g, st);
			i++;
		}
		err = u == UNIT_NONE ? write_base(m, sector, n) :
			write_unit(m, &m->t->units[u], sector, n);
		sector += n;
	}
	return err;
}

/* ---- going from state to state ----------------------------------------- */

/* Adds to todo the segments of a unit that look different in the state shown
 * and in st. */
static void compare_unit(struct image *m, const struct disk_state *st, u32 u)
{
	const struct segments *s = &m->x->s;

	for (u32 i = s->unit_first[u]; i < s->unit_end[u]; i++) {
		const struct segment *g = &s->seg[i];

		if (m->seen[i] == m->turn)
			continue;
		m->seen[i] = m->turn;
		if (shown_unit(s, g, &m->shown) != shown_unit(s, g, st))
			ranges_add(&m->todo, g->sector, g->sectors);
	}
}

/* Units in one state and not in the other: those between the two points, and
 * those that only one of them drops. */
static void compare_states(struct image *m, const struct disk_state *st)
{
	const struct disk_state *a = &m->shown, *b = st;
	u32 i = 0, j = 0;

	if (!++m->turn) {
		memset(m->seen, 0, m->x->s.n * sizeof(*m->seen));
		m->turn = 1;
	}
	for (u32 u = MIN(a->n_units, b->n_units);
	     u < MAX(a->n_units, b->n_units); u++)
		compare_unit(m, st, u);
	while (i < a->n_drop || j < b->n_drop) {
		if (j == b->n_drop ||
		    (i < a->n_drop && a->drop[i] < b->drop[j])) {
			compare_unit(m, st, a->drop[i++]);
		} else if (i == a->n_drop || b->drop[j] < a->drop[i]) {
			compare_unit(m, st, b->drop[j++]);
		} else {
			i++;
			j++;
		}
	}
}

static int check_state(const struct trace *t, const struct disk_state *st,
		       struct errmsg *em)
{
	bool bad = st->n_units > t->n_units;

	for (u32 i = 0; i < st->n_drop && !bad; i++)
		bad = st->drop[i] >= st->n_units ||
		      (i && st->drop[i - 1] >= st->drop[i]);
	return bad ? errmsg_set(em, 0, "there is no such disk state") : 0;
}

static void remember(struct image *m, const struct disk_state *st)
{
	if (st->n_drop > m->cap_drop) {
		m->cap_drop = MAX(st->n_drop, m->cap_drop * 2);
		m->drop_mem = xreallocarray(m->drop_mem, m->cap_drop,
					    sizeof(u32));
	}
	if (st->n_drop)
		memmove(m->drop_mem, st->drop, st->n_drop * sizeof(u32));
	m->shown = (struct disk_state){
		.n_units = st->n_units,
		.n_drop = st->n_drop,
		.drop = m->drop_mem,
	};
}

int image_goto(struct image *m, const struct disk_state *st, struct errmsg *em)
{
	int err = check_state(m->t, st, em);

	if (err)
		return err;
	m->todo.n = 0;
	if (m->lost) {
		ranges_add(&m->todo, 0, m->t->bytes / SECTOR_SIZE);
	} else {
		compare_states(m, st);
		for (size_t i = 0; i < m->touched.n; i++)
			ranges_add(&m->todo, m->touched.r[i].sector,
				   m->touched.r[i].sectors);
	}
	m->lost = true;
	ranges_merge(&m->todo);
	for (size_t i = 0; i < m->todo.n && !err; i++)
		err = write_range(m, st, m->todo.r[i].sector,
				  m->todo.r[i].sectors);
	if (!err)
		err = chunk_flush(m);
	if (err) {
		m->n_chunk = 0;
		return errmsg_set(em, err, "writing the image");
	}
	remember(m, st);
	m->touched.n = 0;
	m->lost = false;
	return 0;
}

int image_new(const struct trace *t, const struct image_index *x, int fd,
	      struct image **ret, struct errmsg *em)
{
	struct image *m;
	int err;

	err = trace_base_write(t, fd, em);
	if (err)
		return err;
	m = xzalloc(sizeof(*m));
	m->t = t;
	m->x = x;
	m->fd = fd;
	m->seen = xzalloc(x->s.n * sizeof(*m->seen));
	*ret = m;
	return 0;
}

void image_free(struct image *m)
{
	if (!m)
		return;
	free(m->drop_mem);
	free(m->touched.r);
	free(m->todo.r);
	free(m->seen);
	free(m);
}

void image_touched(struct image *m, u64 sector, u64 sectors)
{
	const u64 end = m->t->bytes / SECTOR_SIZE;

	if (sector >= end || !sectors)
		return;
	ranges_add(&m->touched, sector, MIN(sectors, end - sector));
}

void image_touched_unknown(struct image *m)
{
	m->lost = true;
}

u64 image_written_sectors(const struct image *m)
{
	return m->written_sectors;
}
