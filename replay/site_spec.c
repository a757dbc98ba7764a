// SPDX-License-Identifier: GPL-2.0-or-later
#include "site_spec.h"

#include <ctype.h>
#include <string.h>

struct drop_set {
	u32 n, cap;
	u32 *units;
};

int site_mark(const struct trace *t, const char *text, u64 *ret_seq,
	      struct errmsg *em)
{
	char list[256] = "";
	size_t len = 0;
	u64 seq = 0;
	u32 n = 0;

	for (u32 i = 0; i < t->n_marks; i++) {
		if (strcmp(t->marks[i].text, text))
			continue;
		seq = t->marks[i].seq;
		if (len < sizeof(list) - 24)
			len += snprintf(list + len, sizeof(list) - len,
					"%s%llu", n ? ", " : "",
					(unsigned long long)seq);
		n++;
	}
	if (!n)
		return errmsg_set(em, ENOENT, "mark '%s'", text);
	if (n > 1)
		return errmsg_set(em, 0, "there are %u marks '%s'; choose one"
				  " with --at: %s", n, text, list);
	*ret_seq = seq;
	return 0;
}

/* Digits at *s, up to what follows them. */
static bool take_number(const char **s, u64 *ret)
{
	char *end;

	if (!isdigit((unsigned char)**s))
		return false;
	errno = 0;
	*ret = strtoull(*s, &end, 10);
	*s = end;
	return !errno;
}

static const struct trace_write *find_write(const struct trace *t, u64 seq)
{
	for (u32 i = 0; i < t->n_writes; i++)
		if (t->writes[i].issue_seq == seq)
			return &t->writes[i];
	return NULL;
}

/* Why no unit of the disk after event at was issued by event seq. */
static int no_such_write(const struct trace *t, u64 seq, u64 at,
			 struct errmsg *em)
{
	const struct trace_write *w = find_write(t, seq);
	const unsigned long long n = seq;

	if (!w)
		return errmsg_set(em, 0, "cannot drop %llu: that event is not a"
				  " write to this device", n);
	if (seq > at)
		return errmsg_set(em, 0, "cannot drop %llu: the crash is after"
				  " event %llu, it was not issued yet", n,
				  (unsigned long long)at);
	if (w->issue.op == BLK_DISCARD || w->issue.op == BLK_SECURE_ERASE)
		return errmsg_set(em, 0, "cannot drop %llu: it is a discard,"
				  " and --discard keep ignores those", n);
	return errmsg_set(em, 0, "cannot drop %llu: the device did not take it,"
			  " it was requeued and sent again later", n);
}

static int drop_unit(const struct trace *t, u32 u, u64 at,
		     struct drop_set *set, struct errmsg *em)
{
	const struct unit *x = &t->units[u];

	if (x->durable_seq <= at)
		return errmsg_set(em, 0, "cannot drop %llu: event %llu made it"
				  " durable, before the crash after event %llu",
				  (unsigned long long)x->issue_seq,
				  (unsigned long long)x->durable_seq,
				  (unsigned long long)at);
	GROW(set->units, set->n, set->cap);
	set->units[set->n++] = u;
	return 0;
}

/* sector NULL: all parts of the write. */
static int drop_write(const struct trace *t, u64 seq, const u64 *sector, u64 at,
		      struct drop_set *set, struct errmsg *em)
{
	bool write = false, part = false;
	int err = 0;

	for (u32 u = 0; u < t->n_units && !err; u++) {
		const struct unit *x = &t->units[u];

		if (x->issue_seq != seq || x->issue_seq > at)
			continue;
		write = true;
		if (sector && *sector != x->sector)
			continue;
		part = true;
		err = drop_unit(t, u, at, set, em);
	}
	if (err)
		return err;
	if (!write)
		return no_such_write(t, seq, at, em);
	if (!part)
		return errmsg_set(em, 0, "cannot drop %llu:%llu: no part of"
				  " that write begins at this sector (--torn"
				  " says how writes are cut)",
				  (unsigned long long)seq,
				  (unsigned long long)*sector);
	return 0;
}

static int take_drops(const struct trace *t, const char *drops, u64 at,
		      struct drop_set *set, struct errmsg *em)
{
	const char *s = drops;
	u64 seq, sector;
	int err;

	for (;;) {
		bool part = false, good = take_number(&s, &seq);

		if (good && (*s == ':' || *s == '+')) {
			s++;
			part = true;
			good = take_number(&s, &sector);
		}
		if (!good || (*s && *s != ','))
			return errmsg_set(em, 0, "'%s' is no list of writes"
					  " (SEQ,SEQ:SECTOR,...)", drops);
		err = drop_write(t, seq, part ? &sector : NULL, at, set, em);
		if (err || !*s)
			return err;
		s++;
	}
}

static int by_number(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

int site_state(const struct trace *t, u64 seq, const char *drops,
	       struct disk_state *ret, struct errmsg *em)
{
	struct drop_set set = { 0 };
	struct disk_state st = { 0 };
	u32 kept = 0;
	int err;

	if (seq > t->end_seq)
		return errmsg_set(em, 0, "the recording ends with event %llu,"
				  " there is no event %llu",
				  (unsigned long long)t->end_seq,
				  (unsigned long long)seq);
	err = drops ? take_drops(t, drops, seq, &set, em) : 0;
	if (err) {
		free(set.units);
		return err;
	}
	while (st.n_units < t->n_units &&
	       t->units[st.n_units].issue_seq <= seq)
		st.n_units++;
	if (set.n)
		qsort(set.units, set.n, sizeof(*set.units), by_number);
	for (u32 i = 0; i < set.n; i++)
		if (!kept || set.units[kept - 1] != set.units[i])
			set.units[kept++] = set.units[i];
	st.n_drop = kept;
	st.drop = set.units;
	*ret = st;
	return 0;
}

static u64 unreadable_up_to(const struct trace *t, u64 seq)
{
	u64 n = 0;

	for (u32 i = 0; i < t->n_writes && t->writes[i].issue_seq <= seq; i++)
		n += t->writes[i].unreadable_bytes;
	return n;
}

int site_evidence(const struct trace *t, u64 seq, struct errmsg *em)
{
	const unsigned long long at = seq;
	const unsigned long long unreadable = unreadable_up_to(t, seq);

	if (!t->has_base)
		errmsg_set(em, 0, "the recording holds no whole base image:"
			   " what was not written since is zeroes here"
			   " (--base FILE gives one)");
	else if (seq < t->base_seq)
		errmsg_set(em, 0, "the base image was copied from the disk in"
			   " use and is exact from event %llu on; this is"
			   " event %llu", (unsigned long long)t->base_seq, at);
	else if (t->first_gap_seq <= seq)
		errmsg_set(em, 0, "%llu events and %llu bytes were lost while"
			   " recording, the first at event %llu, before event"
			   " %llu", (unsigned long long)t->lost_events,
			   (unsigned long long)t->lost_bytes,
			   (unsigned long long)t->first_gap_seq, at);
	else if (unreadable)
		errmsg_set(em, 0, "%llu bytes of what was written up to event"
			   " %llu could not be recorded and are zeroes here",
			   unreadable, at);
	else
		return 0;
	return -ENODATA;
}
