// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * blkbox show: the records of a recording, as text or as JSON lines. Payload
 * is other people's data and is printed only on request.
 */
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "json_out.h"
#include "show.h"
#include "verbs.h"

/* Issues remembered for their completions; a newer one takes the place of one
 * with the same low bits. */
#define REMEMBERED 65536U

struct show {
	const char *path;
	bool json, data, head;
	bool types[256];	/* asked for by --type */
	bool any_type, any_range;
	u64 from, to;
	u32 dev;		/* 0: all */
	struct shown_issue *issues;
	struct store *store;
	bool incomplete;	/* cut, or with gaps */
};

/* ---- selection ----------------------------------------------------------- */

static bool in_range(const struct show *sh, const struct shown *s)
{
	u64 first = s->rec->seq, last = first;

	if (!sh->any_range)
		return true;
	if (s->rec->type == REC_STATE)
		first = last = s->state.after_seq;
	if (s->rec->type == REC_GAP)
		last = s->gap.last_seq;
	return first && first <= sh->to && last >= sh->from;
}

static bool wanted(const struct show *sh, const struct shown *s)
{
	u16 type = s->rec->type;

	if (sh->any_type && (type >= 256 || !sh->types[type]))
		return false;
	if (!sh->any_type && (type == REC_BASE || type == REC_CHUNK))
		return false;
	/* a gap without a device may be anybody's */
	if (sh->dev && s->rec->dev != sh->dev &&
	    (s->rec->dev || type != REC_GAP))
		return false;
	return in_range(sh, s);
}

/* ---- decoding ------------------------------------------------------------ */

static void remember(struct show *sh, const struct shown *s)
{
	sh->issues[s->rec->seq % REMEMBERED] = (struct shown_issue){
		.seq = s->rec->seq,
		.op = s->issue.op,
		.flags = s->issue.flags,
		.sector = s->issue.sector,
		.sectors = s->issue.sectors,
	};
}

static void recall(const struct show *sh, struct shown *s, u64 issue_seq)
{
	const struct shown_issue *i = &sh->issues[issue_seq % REMEMBERED];

	if (issue_seq && i->seq == issue_seq)
		s->of = *i;
}

static int decode_block(struct show *sh, struct shown *s)
{
	const struct record *r = s->rec;
	int err;

	if (r->type == REC_ISSUE) {
		err = rec_get_issue(r, &s->issue);
		if (err == 0)
			remember(sh, s);
	} else if (r->type == REC_COMPLETE) {
		err = rec_get_complete(r, &s->complete);
		if (err == 0)
			recall(sh, s, s->complete.issue_seq);
	} else {
		err = rec_get_requeue(r, &s->requeue);
		if (err == 0)
			recall(sh, s, s->requeue.issue_seq);
	}
	return err;
}

static int decode(struct show *sh, struct shown *s)
{
	const struct record *r = s->rec;

	switch (r->type) {
	case REC_ISSUE:
	case REC_COMPLETE:
	case REC_REQUEUE:
		return decode_block(sh, s);
	case REC_BASE:
		return rec_get_base(r, &s->base);
	case REC_BASE_END:
		return rec_get_base_end(r, &s->base_end_bytes);
	case REC_FILE_OP:
		return rec_get_file_op(r, &s->op);
	case REC_MARK:
		return rec_get_mark(r, &s->mark);
	case REC_PROC:
		return rec_get_proc(r, &s->proc);
	case REC_GAP:
		sh->incomplete = true;
		return rec_get_gap(r, &s->gap);
	case REC_CHUNK:
		return store_load_chunk(sh->store, r);
	case REC_STATE:
		return rec_get_state(sh->store, r, &s->state);
	case REC_END:
		return rec_get_end(r, &s->end);
	}
	return 0;
}

static void shown_done(struct show *sh, struct shown *s)
{
	if (s->rec->type == REC_ISSUE)
		rec_issue_done(&s->issue);
	else if (s->rec->type == REC_FILE_OP)
		rec_file_op_done(&s->op);
	else if (s->rec->type == REC_STATE)
		rec_state_done(sh->store, &s->state);
}

/* ---- printing ------------------------------------------------------------ */

static int show_record(struct show *sh, const struct record *rec,
		       struct errmsg *em)
{
	struct shown s = { .rec = rec, .data = sh->data };
	int err = decode(sh, &s);

	if (err < 0) {
		errmsg_set(em, 0, "%s: frame %" PRIu64 ": a %s record (number %"
			   PRIu64 ") is not what its type says; 'blkbox verify"
			   "' says more", sh->path, rec->frame,
			   rec_type_name(rec->type), rec->seq);
		return err;
	}
	if (wanted(sh, &s)) {
		if (sh->json)
			show_json(stdout, &s);
		else
			show_text(stdout, &s);
	}
	shown_done(sh, &s);
	return ferror(stdout) ? errmsg_set(em, errno ?: EIO, "writing") : 0;
}

static int show_head(const struct rec_reader *r, const char *path,
		     struct errmsg *em)
{
	cJSON *head = cJSON_Parse(rec_head(r));

	if (!head)
		return errmsg_set(em, 0, "%s: its HEAD is no JSON", path);
	json_print(stdout, head, true);
	putchar('\n');
	cJSON_Delete(head);
	return 0;
}

static int show_all(struct show *sh, struct rec_reader *r, struct errmsg *em)
{
	struct record rec;
	int err;

	sh->issues = xzalloc(REMEMBERED * sizeof(*sh->issues));
	sh->store = store_new();
	while ((err = rec_next(r, &rec, em)) > 0) {
		err = show_record(sh, &rec, em);
		if (err < 0)
			break;
	}
	store_free(sh->store);
	free(sh->issues);
	if (err == 0 && !rec_is_closed(r)) {
		sh->incomplete = true;
		fflush(stdout);
		fprintf(stderr, "blkbox show: the recording was cut off; it is"
			" whole up to byte %" PRIu64 "\n", rec_whole_bytes(r));
	}
	return err;
}

static int show(struct show *sh)
{
	struct rec_reader *r = NULL;
	struct errmsg em = { "" };
	int err = rec_open(sh->path, &r, &em);

	if (err == 0)
		err = sh->head ? show_head(r, sh->path, &em) :
				 show_all(sh, r, &em);
	rec_reader_free(r);
	if (fflush(stdout) && err == 0)
		err = errmsg_set(&em, errno, "writing");
	if (err == -EPIPE)	/* whoever read it has seen enough */
		return EXIT_CANNOT_RUN;
	if (err < 0) {
		fputs("blkbox show: ", stderr);
		print_safe(stderr, em.text);
		putc('\n', stderr);
		return EXIT_CANNOT_RUN;
	}
	return sh->incomplete ? EXIT_INCOMPLETE : EXIT_CONSISTENT;
}

/* ---- command line -------------------------------------------------------- */

static void usage(FILE *out)
{
	fputs("Usage: blkbox show [OPTION]... FILE\n"
	      "Prints the records of a recording, one a line.\n\n"
	      "      --json         one JSON object a line\n"
	      "      --type TYPE    only these: issue, complete, requeue,"
	      " block (all three),\n"
	      "                     file-op, mark, proc, gap, state, base,"
	      " base-end, chunk, end;\n"
	      "                     may be repeated; without it, all but base"
	      " and chunk\n"
	      "      --dev MAJ:MIN  only this device's\n"
	      "      --from SEQ     only from this number on\n"
	      "      --to SEQ       only up to this number\n"
	      "      --data         the data written, too\n"
	      "      --head         the recording's head (JSON), nothing"
	      " else\n"
	      "      --help         this text\n\n"
	      "Text: device, number, time (CLOCK_MONOTONIC), process, and as"
	      " in blktrace\n"
	      "D issued, C completed, R requeued; W write, F flush (before W)"
	      " or FUA (after),\n"
	      "D discard, S sync, M metadata; first sector + sectors.\n\n"
	      "Exit status: 0 all shown; 2 damaged or unreadable; 3 the"
	      " recording was cut off\nor has gaps.\n", out);
}

static int wrong_usage(const char *what, const char *arg)
{
	if (what)
		fprintf(stderr, "blkbox show: %s%s%s\n", what, arg ? " " : "",
			arg ?: "");
	fputs("Try 'blkbox show --help'.\n", stderr);
	return EXIT_CANNOT_RUN;
}

static int add_type(struct show *sh, const char *name)
{
	bool found = false;

	sh->any_type = true;
	if (!strcmp(name, "block")) {
		sh->types[REC_ISSUE] = sh->types[REC_COMPLETE] =
			sh->types[REC_REQUEUE] = true;
		return 0;
	}
	for (u16 t = 0; t < 256; t++) {
		if (!strcmp(rec_type_name(t), name))
			found = sh->types[t] = true;
	}
	return found ? 0 : -EINVAL;
}

enum { OPT_JSON = 1, OPT_TYPE, OPT_DEV, OPT_FROM, OPT_TO, OPT_DATA, OPT_HEAD,
       OPT_HELP };

static int take_option(struct show *sh, int opt, const char *arg)
{
	switch (opt) {
	case OPT_JSON:
		sh->json = true;
		return 0;
	case OPT_DATA:
		sh->data = true;
		return 0;
	case OPT_HEAD:
		sh->head = true;
		return 0;
	case OPT_TYPE:
		return add_type(sh, arg);
	case OPT_DEV:
		return parse_dev(arg, &sh->dev);
	case OPT_FROM:
		sh->any_range = true;
		return parse_u64(arg, 0, UINT64_MAX, &sh->from);
	case OPT_TO:
		sh->any_range = true;
		return parse_u64(arg, 0, UINT64_MAX, &sh->to);
	}
	return -ENOTSUP;
}

int verb_show(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, OPT_JSON },
		{ "type", required_argument, NULL, OPT_TYPE },
		{ "dev", required_argument, NULL, OPT_DEV },
		{ "from", required_argument, NULL, OPT_FROM },
		{ "to", required_argument, NULL, OPT_TO },
		{ "data", no_argument, NULL, OPT_DATA },
		{ "head", no_argument, NULL, OPT_HEAD },
		{ "help", no_argument, NULL, OPT_HELP },
		{ 0 },
	};
	struct show sh = { .to = UINT64_MAX };
	int opt, err;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (opt == OPT_HELP) {
			usage(stdout);
			return EXIT_CONSISTENT;
		}
		err = take_option(&sh, opt, optarg);
		if (err == -EINVAL)
			return wrong_usage("not understood:", optarg);
		if (err < 0)
			return wrong_usage(NULL, NULL);
	}
	if (optind + 1 != argc)
		return wrong_usage("one recording is needed", NULL);
	sh.path = argv[optind];
	return show(&sh);
}
