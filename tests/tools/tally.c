// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tally --head RECORDING: its HEAD, as it stands there.
 * tally RECORDING: what is in it and what its gaps say, one number a line, for
 * tests that know what should come out.
 *
 *   issues, completes, flushes     block records
 *   issue_bytes                    of writes, as issued
 *   data_bytes                     of them, as recorded
 *   stray_completes                of issues that are not there
 *   file_ops, marks
 *   gap_events, gap_bytes          what the GAPs add up to
 *   missing                        numbers that are neither used nor in a gap
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../replay/recording.h"

struct tally {
	u64 issues, completes, flushes, issue_bytes, data_bytes;
	u64 stray_completes, file_ops, marks, gap_events, gap_bytes;
	u64 first, last, known;
	u64 *open_issues;
	u32 n_open, cap_open;
};

static void number(struct tally *t, u64 first, u64 last, u64 n)
{
	if (!first)
		return;
	if (!t->first || first < t->first)
		t->first = first;
	if (last > t->last)
		t->last = last;
	t->known += n;
}

static void complete(struct tally *t, u64 issue_seq)
{
	for (u32 i = t->n_open; i-- > 0;) {
		if (t->open_issues[i] != issue_seq)
			continue;
		t->open_issues[i] = t->open_issues[--t->n_open];
		return;
	}
	t->stray_completes++;
}

static int count_issue(struct tally *t, const struct record *r)
{
	struct rec_issue i;
	int err = rec_get_issue(r, &i);

	if (err < 0)
		return err;
	t->issues++;
	t->flushes += i.op == BLK_FLUSH;
	if (i.op == BLK_WRITE)
		t->issue_bytes += (u64)i.sectors << SECTOR_SHIFT;
	t->data_bytes += i.data_bytes;
	GROW(t->open_issues, t->n_open, t->cap_open);
	t->open_issues[t->n_open++] = r->seq;
	rec_issue_done(&i);
	return 0;
}

static int count_gap(struct tally *t, const struct record *r)
{
	struct rec_gap g;
	int err = rec_get_gap(r, &g);

	if (err < 0)
		return err;
	t->gap_events += g.events;
	t->gap_bytes += g.bytes;
	if (g.events && g.reason == GAP_RING_FULL)
		number(t, r->seq, g.last_seq, g.events);
	return 0;
}

static int count(struct tally *t, const struct record *r)
{
	struct rec_complete c;
	int err;

	switch (r->type) {
	case REC_GAP:
		return count_gap(t, r);
	case REC_ISSUE:
		number(t, r->seq, r->seq, 1);
		return count_issue(t, r);
	case REC_COMPLETE:
		err = rec_get_complete(r, &c);
		if (err < 0)
			return err;
		t->completes++;
		complete(t, c.issue_seq);
		break;
	case REC_FILE_OP:
		t->file_ops++;
		break;
	case REC_MARK:
		t->marks++;
		break;
	case REC_REQUEUE:
	case REC_PROC:
		break;
	default:
		return 0;
	}
	number(t, r->seq, r->seq, 1);
	return 0;
}

static void print(const struct tally *t)
{
	const struct {
		const char *name;
		u64 value;
	} all[] = {
		{ "issues", t->issues },
		{ "completes", t->completes },
		{ "flushes", t->flushes },
		{ "issue_bytes", t->issue_bytes },
		{ "data_bytes", t->data_bytes },
		{ "stray_completes", t->stray_completes },
		{ "file_ops", t->file_ops },
		{ "marks", t->marks },
		{ "gap_events", t->gap_events },
		{ "gap_bytes", t->gap_bytes },
		{ "missing", t->last ? t->last - t->first + 1 - t->known : 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		printf("%s=%" PRIu64 "\n", all[i].name, all[i].value);
}

int main(int argc, char **argv)
{
	struct rec_reader *reader;
	struct errmsg em = { "" };
	struct tally t = { 0 };
	struct record r;
	int err;

	if (argc != 2 && !(argc == 3 && !strcmp(argv[1], "--head"))) {
		fprintf(stderr, "Usage: tally [--head] RECORDING\n");
		return EXIT_CANNOT_RUN;
	}
	err = rec_open(argv[argc - 1], &reader, &em);
	if (!err && argc == 3) {
		puts(rec_head(reader));
		rec_reader_free(reader);
		return 0;
	}
	while (!err) {
		err = rec_next(reader, &r, &em);
		if (err <= 0)
			break;
		err = count(&t, &r);
	}
	if (err < 0) {
		fprintf(stderr, "tally: %s\n", em.text);
		return EXIT_CANNOT_RUN;
	}
	rec_reader_free(reader);
	free(t.open_issues);
	print(&t);
	return 0;
}
