// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * blkbox verify: reads a recording from end to end, decodes every record, and
 * says what it is worth.
 */
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "json_out.h"
#include "recording.h"
#include "tree.h"
#include "verbs.h"

enum file_state { FILE_CLOSED, FILE_CUT, FILE_DAMAGED };

struct verify {
	const char *path;
	enum file_state state;
	u64 file_bytes, whole_bytes;
	u64 frames, records, events, unknown;
	u64 gaps, lost_events, lost_bytes;
	u64 payload_missing;	/* requests and writes without all their data */
	u64 states;
	struct errmsg why;	/* FILE_DAMAGED */
};

static const char *state_name(enum file_state s)
{
	static const char *const names[] = {
		[FILE_CLOSED] = "closed",
		[FILE_CUT] = "cut",
		[FILE_DAMAGED] = "damaged",
	};

	return names[s];
}

static int exit_status_of(const struct verify *v)
{
	if (v->state == FILE_DAMAGED)
		return EXIT_CANNOT_RUN;
	return v->state == FILE_CUT || v->gaps ? EXIT_INCOMPLETE :
						  EXIT_CONSISTENT;
}

/* ---- one record ---------------------------------------------------------- */

static int check_issue(struct verify *v, const struct record *r)
{
	struct rec_issue i;
	int err = rec_get_issue(r, &i);

	if (err < 0)
		return err;
	v->payload_missing += !!(i.flags & BLK_PAYLOAD_MISSING);
	rec_issue_done(&i);
	return 0;
}

static int check_file_op(struct verify *v, const struct record *r)
{
	struct rec_file_op op;
	int err = rec_get_file_op(r, &op);

	if (err < 0)
		return err;
	v->payload_missing += !!(op.flags & FOP_DATA_UNREADABLE);
	rec_file_op_done(&op);
	return 0;
}

static int check_gap(struct verify *v, const struct record *r)
{
	struct rec_gap g;
	int err = rec_get_gap(r, &g);

	if (err < 0)
		return err;
	v->gaps++;
	v->lost_events += g.events;
	v->lost_bytes += g.bytes;
	return 0;
}

static int check_state(struct verify *v, struct store *s,
		       const struct record *r)
{
	struct rec_state st;
	int err = rec_get_state(s, r, &st);

	if (err < 0)
		return err;
	v->states++;
	rec_state_done(s, &st);
	return 0;
}

static int check_record(struct verify *v, struct store *s,
			const struct record *r)
{
	struct rec_base base;
	struct rec_complete complete;
	struct rec_requeue requeue;
	struct rec_mark mark;
	struct rec_proc proc;
	u64 bytes;

	switch (r->type) {
	case REC_BASE:
		return rec_get_base(r, &base);
	case REC_BASE_END:
		return rec_get_base_end(r, &bytes);
	case REC_ISSUE:
		return check_issue(v, r);
	case REC_COMPLETE:
		return rec_get_complete(r, &complete);
	case REC_REQUEUE:
		return rec_get_requeue(r, &requeue);
	case REC_FILE_OP:
		return check_file_op(v, r);
	case REC_MARK:
		return rec_get_mark(r, &mark);
	case REC_PROC:
		return rec_get_proc(r, &proc);
	case REC_GAP:
		return check_gap(v, r);
	case REC_CHUNK:
		return store_load_chunk(s, r);
	case REC_STATE:
		return check_state(v, s, r);
	case REC_INDEX:
	case REC_END:	/* the reader has checked it */
		return 0;
	}
	v->unknown++;
	return 0;
}

/* ---- the whole file ------------------------------------------------------ */

static int check_head(struct verify *v, const struct rec_reader *r)
{
	cJSON *head = cJSON_Parse(rec_head(r));
	bool ok = cJSON_IsObject(head);

	cJSON_Delete(head);
	if (!ok)
		return errmsg_set(&v->why, 0, "%s is damaged: frame 0: its "
				  "HEAD is no JSON object", v->path);
	return 0;
}

static int read_all(struct verify *v, struct rec_reader *r, struct store *s)
{
	struct record rec;
	int err = check_head(v, r);

	v->frames = 1;
	v->records = 1;
	if (err < 0)
		return err;
	while ((err = rec_next(r, &rec, &v->why)) > 0) {
		v->frames = rec.frame + 1;
		v->records++;
		if (rec.seq && rec.type != REC_GAP)
			v->events++;
		err = check_record(v, s, &rec);
		if (err < 0)
			return errmsg_set(&v->why, 0, "%s is damaged: frame "
					  "%" PRIu64 ": the %s record %" PRIu64
					  " (number %" PRIu64 ") is not what "
					  "its type says; %s",
					  v->path, rec.frame,
					  rec_type_name(rec.type), v->records,
					  rec.seq, "its checksum is right, so "
					  "it was written so: report a bug");
	}
	return err;
}

static int verify(struct verify *v)
{
	struct rec_reader *r = NULL;
	struct store *s;
	struct stat st;
	int err;

	if (stat(v->path, &st) == 0)
		v->file_bytes = st.st_size;
	v->state = FILE_DAMAGED;
	err = rec_open(v->path, &r, &v->why);
	if (err < 0)
		return err;
	s = store_new();
	err = read_all(v, r, s);
	v->whole_bytes = rec_whole_bytes(r);
	if (err == 0)
		v->state = rec_is_closed(r) ? FILE_CLOSED : FILE_CUT;
	store_free(s);
	rec_reader_free(r);
	return err;
}

/* ---- saying so ----------------------------------------------------------- */

static void print_text(FILE *out, const struct verify *v)
{
	if (v->state == FILE_CLOSED)
		fprintf(out, "whole: closed properly, %" PRIu64 " bytes\n",
			v->file_bytes);
	else if (v->state == FILE_CUT && v->whole_bytes == v->file_bytes)
		fprintf(out, "cut: whole up to its end (byte %" PRIu64 "), but"
			" never closed\n", v->whole_bytes);
	else if (v->state == FILE_CUT)
		fprintf(out, "cut: whole up to byte %" PRIu64 " of %" PRIu64
			", never closed\n", v->whole_bytes, v->file_bytes);
	else
		fprintf(out, "damaged: nothing after frame %" PRIu64
			" can be used\n", v->frames - 1);
	fprintf(out, "frames %" PRIu64 ", records %" PRIu64 ", events %" PRIu64
		", expected states %" PRIu64 "\n",
		v->frames, v->records, v->events, v->states);
	if (v->unknown)
		fprintf(out, "records of types this blkbox does not know: %"
			PRIu64 "\n", v->unknown);
	if (v->payload_missing)
		fprintf(out, "writes without all their data: %" PRIu64 "\n",
			v->payload_missing);
	if (v->gaps)
		fprintf(out, "gaps %" PRIu64 ": lost %" PRIu64 " events and %"
			PRIu64 " bytes\n", v->gaps, v->lost_events,
			v->lost_bytes);
	else if (v->state == FILE_CLOSED)
		fputs("no gaps: nothing was lost\n", out);
	else
		fputs("no gaps up to there\n", out);
}

static void print_json(FILE *out, const struct verify *v)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "version", BLKBOX_VERSION);
	json_name(o, "file", v->path);
	cJSON_AddStringToObject(o, "state", state_name(v->state));
	json_s64(o, "exit_status", exit_status_of(v));
	json_u64(o, "file_bytes", v->file_bytes);
	json_u64(o, "whole_bytes", v->whole_bytes);
	json_u64(o, "frames", v->frames);
	json_u64(o, "records", v->records);
	json_u64(o, "events", v->events);
	json_u64(o, "expected_states", v->states);
	json_u64(o, "unknown_records", v->unknown);
	json_u64(o, "payload_missing", v->payload_missing);
	json_u64(o, "gaps", v->gaps);
	json_u64(o, "lost_events", v->lost_events);
	json_u64(o, "lost_bytes", v->lost_bytes);
	if (v->state == FILE_DAMAGED)
		json_name(o, "error", v->why.text);
	json_print(out, o, true);
	putc('\n', out);
	cJSON_Delete(o);
}

static int write_json(const char *path, const struct verify *v)
{
	bool to_stdout = !strcmp(path, "-");
	FILE *out = to_stdout ? stdout : fopen(path, "we");
	int err = 0;

	if (!out)
		return -errno;
	print_json(out, v);
	if (fflush(out) || ferror(out))
		err = -EIO;
	if (!to_stdout && fclose(out))
		err = -errno;
	return err;
}

static void usage(FILE *out)
{
	fputs("Usage: blkbox verify [OPTION]... FILE\n"
	      "Says whether a recording is whole.\n\n"
	      "      --json FILE  the answer as JSON, '-' for stdout\n"
	      "      --help       this text\n\n"
	      "Exit status: 0 whole, closed and without gaps; 2 damaged or"
	      " unreadable;\n3 cut off, or something was lost while"
	      " recording.\n", out);
}

static int wrong_usage(const char *what)
{
	if (what)
		fprintf(stderr, "blkbox verify: %s\n", what);
	fputs("Try 'blkbox verify --help'.\n", stderr);
	return EXIT_CANNOT_RUN;
}

int verb_verify(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", required_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct verify v = { 0 };
	const char *json = NULL;
	int opt, err;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (opt == 'h') {
			usage(stdout);
			return EXIT_CONSISTENT;
		}
		if (opt != 'j')
			return wrong_usage(NULL);
		json = optarg;
	}
	if (optind + 1 != argc)
		return wrong_usage("one recording is needed");
	v.path = argv[optind];
	if (verify(&v) < 0) {
		fputs("blkbox verify: ", stderr);
		print_safe(stderr, v.why.text);
		putc('\n', stderr);
	}
	if (v.frames && (!json || strcmp(json, "-")))
		print_text(stdout, &v);
	err = json ? write_json(json, &v) : fflush(stdout) ? -errno : 0;
	if (err < 0) {
		fprintf(stderr, "blkbox verify: writing the answer to %s: %s\n",
			json ?: "stdout", strerror(-err));
		return EXIT_CANNOT_RUN;
	}
	return exit_status_of(&v);
}
