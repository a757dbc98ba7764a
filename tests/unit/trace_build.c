// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace_build.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "../../replay/intake.h"
#include "../../replay/model.h"

u32 tb_below(struct tb_random *r, u32 n)
{
	/* xorshift64* (Vigna); 0 is its one bad state */
	u64 x = r->state ? r->state : 0x9e3779b97f4a7c15;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	r->state = x;
	return ((x * 0x2545f4914f6cdd1d) >> 33) % n;
}

static struct tb_event *add(struct trace_build *b, enum tb_kind kind)
{
	struct tb_event *e = &b->ev[b->n];

	assert(b->n < TB_EVENTS);
	*e = (struct tb_event){ .kind = kind, .seq = ++b->n };
	return e;
}

static void fill_all(struct tb_event *e, u8 fill)
{
	for (u32 i = 0; i < e->sectors; i++)
		e->fill[i] = e->op == BLK_WRITE ? fill : 0;
}

/* ---- scripts ----------------------------------------------------------- */

#define MAX_LABEL 64

struct script {
	struct trace_build *b;
	u64 request[MAX_LABEL];	/* the last issue of this label */
	u64 flush[MAX_LABEL];
};

static u32 number(const char **s, u32 otherwise)
{
	char *end;
	u32 n;

	if (!isdigit((unsigned char)**s))
		return otherwise;
	n = strtoul(*s, &end, 10);
	*s = end;
	return n;
}

static void script_issue(struct script *sc, u8 op, const char *s)
{
	struct tb_event *e = add(sc->b, TB_ISSUE);
	u32 label, fill;

	for (; *s == 'F' || *s == 'P'; s++)
		e->flags |= *s == 'F' ? BLK_FUA : BLK_PREFLUSH;
	label = number(&s, 0);
	assert(label < MAX_LABEL);
	e->op = op;
	e->sector = label;
	e->sectors = 1;
	fill = label;
	if (*s == '@') {
		s++;
		e->sector = number(&s, 0);
	}
	if (*s == '+') {
		s++;
		e->sectors = number(&s, 0);
	}
	if (*s == '=') {
		s++;
		fill = number(&s, 0);
	}
	assert(!*s);
	fill_all(e, fill);
	sc->request[label] = e->seq;
}

static void script_outcome(struct script *sc, char what, u64 issue)
{
	struct tb_event *e;

	e = add(sc->b, what == 'R' || what == 'r' ? TB_REQUEUE : TB_COMPLETE);
	e->issue_seq = issue;
	e->error = what == 'X' || what == 'x' ? 10 : 0;
	e->bytes = what == 'H' ? SECTOR_SIZE : 0;
}

static void script_flush(struct script *sc, const char *s)
{
	u32 label = number(&s, 0);
	struct tb_event *e;

	assert(label < MAX_LABEL && *s && !s[1]);
	if (*s != 'i') {
		script_outcome(sc, *s, sc->flush[label]);
		return;
	}
	e = add(sc->b, TB_ISSUE);
	e->op = BLK_FLUSH;
	sc->flush[label] = e->seq;
}

static void script_mark(struct script *sc, const char *text)
{
	add(sc->b, TB_MARK)->mark = text;
}

static void script_word(struct script *sc, const char *w)
{
	static const u8 op_of[] = {
		['W'] = BLK_WRITE,
		['D'] = BLK_DISCARD,
		['Z'] = BLK_WRITE_ZEROES,
		['E'] = BLK_SECURE_ERASE,
	};
	const char *s = w + 1;

	if (!strcmp(w, "base")) {
		sc->b->base_live = true;
		sc->b->base_end = sc->b->n;
	} else if (!strcmp(w, "fsync") || !strcmp(w, "fsync!")) {
		add(sc->b, TB_FSYNC)->error = w[5] ? -5 : 0;
	} else if (!strcmp(w, "mark")) {
		script_mark(sc, "mark");
	} else if (!strcmp(w, "begin")) {
		script_mark(sc, MARK_BEGIN);
	} else if (!strcmp(w, "end")) {
		script_mark(sc, MARK_END);
	} else if (*w == 'F') {
		script_flush(sc, s);
	} else if (strchr("CXHR", *w)) {
		u32 label = number(&s, 0);

		assert(label < MAX_LABEL && !*s);
		script_outcome(sc, *w, sc->request[label]);
	} else {
		assert((u8)*w < sizeof(op_of) && op_of[(u8)*w]);
		script_issue(sc, op_of[(u8)*w], s);
	}
}

void tb_script(struct trace_build *b, const char *script)
{
	_cleanup_free_ char *copy = xstrdup(script);
	struct script sc = { .b = b };
	char *save;

	*b = (struct trace_build){ .write_cache = true };
	for (char *w = strtok_r(copy, " ", &save); w;
	     w = strtok_r(NULL, " ", &save))
		script_word(&sc, w);
}

/* ---- random events ----------------------------------------------------- */

static u8 random_op(struct tb_random *r)
{
	static const u8 ops[] = { BLK_DISCARD, BLK_WRITE_ZEROES,
				  BLK_SECURE_ERASE };

	return tb_below(r, 8) ? BLK_WRITE : ops[tb_below(r, ARRAY_SIZE(ops))];
}

/* Few sectors and few contents, so that writes meet and repeat each other. */
static void random_issue(struct trace_build *b, struct tb_random *r)
{
	struct tb_event *e = add(b, TB_ISSUE);

	if (!tb_below(r, 4)) {
		e->op = BLK_FLUSH;
		return;
	}
	e->op = random_op(r);
	e->flags = (tb_below(r, 6) ? 0 : BLK_FUA) |
		   (tb_below(r, 10) ? 0 : BLK_PREFLUSH);
	e->sectors = 1 + tb_below(r, tb_below(r, 4) ? 2 : 5);
	e->sector = tb_below(r, TB_SECTORS / 2);
	if (!tb_below(r, 20))
		e->sectors = TB_SECTORS - e->sector;
	for (u32 i = 0; i < e->sectors && e->op == BLK_WRITE; i++)
		e->fill[i] = tb_below(r, 4);
}

/* What happens to a request in flight; false: it stays in flight. */
static bool random_outcome(struct trace_build *b, struct tb_random *r,
			   struct tb_event *i)
{
	struct tb_event *e;
	u32 luck = tb_below(r, 24);

	if (luck == 0) {
		add(b, TB_REQUEUE)->issue_seq = i->seq;
		return true;
	}
	e = add(b, TB_COMPLETE);
	e->issue_seq = i->seq;
	if (luck == 1) {
		e->error = 10;
	} else if (luck < 4 && i->sectors > 1) {
		e->bytes = SECTOR_SIZE;
		return false;
	}
	return true;
}

void tb_fill_random(struct trace_build *b, struct tb_random *r,
		    u32 max_requests)
{
	u32 requests = 1 + tb_below(r, max_requests), issued = 0, n_flight = 0;
	u32 flight[TB_EVENTS];

	*b = (struct trace_build){ .write_cache = tb_below(r, 5) != 0 };
	for (u32 s = 0; s < TB_SECTORS; s++)
		b->base[s] = tb_below(r, 4);
	while (b->n < TB_EVENTS && (issued < requests || n_flight)) {
		u32 luck = tb_below(r, 16);

		if (luck == 0) {
			add(b, TB_FSYNC)->error = tb_below(r, 2) ? 0 : -5;
		} else if (luck == 1) {
			add(b, TB_MARK)->mark = "mark";
		} else if (luck == 2) {
			/* sent before the recording began */
			add(b, TB_COMPLETE)->issue_seq = 0;
		} else if (issued < requests && (luck < 9 || !n_flight)) {
			flight[n_flight++] = b->n;
			random_issue(b, r);
			issued++;
		} else if (n_flight && luck < 15) {
			u32 i = tb_below(r, n_flight);

			if (random_outcome(b, r, &b->ev[flight[i]]))
				flight[i] = flight[--n_flight];
		} else if (n_flight && issued == requests) {
			/* never seen to complete */
			n_flight--;
		}
	}
}

/* ---- the trace --------------------------------------------------------- */

static int give_issue(struct intake *in, const struct tb_event *e)
{
	u8 data[TB_SECTORS * SECTOR_SIZE];
	struct rec_issue i = {
		.op = e->op,
		.flags = e->flags,
		.sector = e->sector,
		.sectors = e->sectors,
	};

	for (u32 s = 0; s < e->sectors; s++)
		memset(data + s * SECTOR_SIZE, e->fill[s], SECTOR_SIZE);
	if (e->op == BLK_WRITE) {
		i.data = data;
		i.data_bytes = e->sectors * SECTOR_SIZE;
	}
	return intake_issue(in, e->seq, 0, &i, NULL);
}

static int give_event(struct intake *in, const struct tb_event *e)
{
	struct rec_complete c = { e->issue_seq, e->error, e->bytes };
	struct rec_requeue q = { e->issue_seq };
	struct rec_mark m = { .text = e->mark };
	struct rec_file_op op = { .op = OP_FSYNC, .ret = e->error };

	switch (e->kind) {
	case TB_ISSUE:
		return give_issue(in, e);
	case TB_COMPLETE:
		return intake_complete(in, e->seq, &c, NULL);
	case TB_REQUEUE:
		return intake_requeue(in, e->seq, &q, NULL);
	case TB_FSYNC:
		return intake_file_op(in, e->seq, 0, TB_DEV, &op, NULL);
	default:
		return intake_mark(in, e->seq, &m, NULL);
	}
}

static int give_base(struct intake *in, const struct trace_build *b)
{
	u8 data[SECTOR_SIZE];
	struct rec_base base = { .data = data, .bytes = SECTOR_SIZE };
	int err = 0;

	for (u32 s = 0; s < TB_SECTORS && !err; s++) {
		base.offset_bytes = s * SECTOR_SIZE;
		memset(data, b->base[s], SECTOR_SIZE);
		/* both kinds of zeroes: a hole, and stored ones */
		if (b->base[s] || s % 2)
			err = intake_base(in, &base, NULL);
	}
	return err;
}

struct trace *tb_trace(const struct trace_build *b,
		       const struct trace_opts *opts)
{
	struct intake *in = intake_new(TB_DEV, TB_SECTORS * SECTOR_SIZE,
				       b->write_cache);
	struct errmsg em = { "" };
	struct trace *t;
	int err;

	intake_trace(in)->fs_dev = TB_DEV;
	err = give_base(in, b);
	if (!b->base_live)
		intake_base_quiet(in);
	for (u32 i = 0; i < b->n && !err; i++) {
		if (b->base_live && b->base_end == i)
			intake_base_end(in);
		err = give_event(in, &b->ev[i]);
	}
	if (b->base_live && b->base_end == b->n)
		intake_base_end(in);
	if (!err)
		err = intake_finish(in, opts, &t, &em);
	if (err) {
		fprintf(stderr, "tb_trace: error %d %s\n", err, em.text);
		abort();
	}
	return t;
}

void tb_print(const struct trace_build *b)
{
	static const char *const kinds[] = { "issue", "complete", "requeue",
					     "fsync", "mark" };

	fprintf(stderr, "write_cache %d, base", b->write_cache);
	for (u32 s = 0; s < TB_SECTORS; s++)
		fprintf(stderr, " %u", b->base[s]);
	fprintf(stderr, "\n");
	for (u32 i = 0; i < b->n; i++) {
		const struct tb_event *e = &b->ev[i];

		fprintf(stderr, "%3llu %-8s", (unsigned long long)e->seq,
			kinds[e->kind]);
		if (e->kind == TB_ISSUE) {
			fprintf(stderr, " %s flags %x sector %llu:",
				blk_op_name(e->op), e->flags,
				(unsigned long long)e->sector);
			for (u32 s = 0; s < e->sectors; s++)
				fprintf(stderr, " %u", e->fill[s]);
		} else if (e->kind != TB_MARK) {
			fprintf(stderr, " of %llu error %lld bytes %u",
				(unsigned long long)e->issue_seq,
				(long long)e->error, e->bytes);
		}
		fprintf(stderr, "\n");
	}
}
