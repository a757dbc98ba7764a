// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The JSON contract. Members are added, never changed.
 *
 * covered_k is a number, or null when not even the sites with nothing lost
 * were covered whole. When every site was covered (covered_all), it is the
 * most writes that could be lost at once at any crash point.
 * dropped[] names the lost writes by the sequence numbers of their issues; a
 * write torn into pieces may stand there more than once, site and
 * dropped_words[] tell the pieces apart.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../replay/json_out.h"
#include "report.h"
#include "report_words.h"

#define JSON_VERSION 1

static void put_text(cJSON *o, const char *name, const char *text)
{
	if (text)
		json_name(o, name, text);
	else
		cJSON_AddNullToObject(o, name);
}

static void put_covered(cJSON *o, const struct explore_result *r)
{
	bool all = r->covered_any && r->covered_k == K_ALL;

	if (r->covered_any)
		json_u64(o, "covered_k", all ? r->covered_max : r->covered_k);
	else
		cJSON_AddNullToObject(o, "covered_k");
	cJSON_AddBoolToObject(o, "covered_all", all);
}

static cJSON *file_object(const struct file_finding *f)
{
	cJSON *o = cJSON_CreateObject();

	put_text(o, "path", f->path);
	cJSON_AddStringToObject(o, "fate", file_fate_name(f->fate));
	if (f->fate == FATE_SAME || f->fate == FATE_OLDER ||
	    f->fate == FATE_NEWER)
		json_u64(o, "state", f->state);
	json_u64(o, "bytes", f->bytes);
	json_u64(o, "expected_bytes", f->expected_bytes);
	put_text(o, "words", f->words);
	return o;
}

static void put_dropped(cJSON *o, const struct finding *f)
{
	cJSON *seqs = cJSON_AddArrayToObject(o, "dropped");
	cJSON *words = cJSON_AddArrayToObject(o, "dropped_words");

	for (u32 i = 0; i < f->n_dropped; i++) {
		char number[24];

		snprintf(number, sizeof(number), "%llu",
			 (unsigned long long)f->dropped[i]);
		cJSON_AddItemToArray(seqs, cJSON_CreateRaw(number));
		cJSON_AddItemToArray(words,
				     cJSON_CreateString(f->dropped_words[i]));
	}
}

static cJSON *finding_object(const struct finding *f)
{
	cJSON *o = cJSON_CreateObject(), *files;
	_cleanup_free_ char *head = words_headline(f);

	put_text(o, "site", f->site);
	cJSON_AddStringToObject(o, "kind", finding_kind_name(f->kind));
	json_u64(o, "crash_point", f->crash_point);
	put_text(o, "crash_point_words", f->point_words);
	put_dropped(o, f);
	json_u64(o, "distance_bytes", f->distance_bytes);
	put_text(o, "expected", f->expected_what);
	json_u64(o, "expected_state", f->expected);
	put_text(o, "words", head);
	put_text(o, "detail", f->detail);
	files = cJSON_AddArrayToObject(o, "files");
	for (u32 i = 0; i < f->n_files; i++)
		cJSON_AddItemToArray(files, file_object(&f->files[i]));
	json_u64(o, "files_left_out", f->n_files_left);
	json_u64(o, "count", f->count);
	put_text(o, "run", f->run);
	put_text(o, "recording", f->recording);
	put_text(o, "command", f->command);
	return o;
}

static void put_figures(cJSON *o, const struct explore_result *r)
{
	put_covered(o, r);
	json_u64(o, "crash_points", r->crash_points);
	json_u64(o, "sites", r->sites);
	json_u64(o, "distinct", r->distinct);
	json_u64(o, "judged", r->judged);
	json_u64(o, "failed_sites", r->failed_sites);
	json_u64(o, "inconsistent", r->n_inconsistent);
	cJSON_AddNumberToObject(o, "seconds", r->seconds);
	json_u64(o, "expected_states", r->n_expected);
	json_u64(o, "unknown_states", r->n_unknown);
	cJSON_AddBoolToObject(o, "checked", r->checked);
	json_u64(o, "max_distance_bytes", r->max_distance);
	json_u64(o, "lost_events", r->lost_events);
	json_u64(o, "lost_bytes", r->lost_bytes);
	json_u64(o, "unreadable_bytes", r->unreadable_bytes);
	put_text(o, "limits", r->limits);
}

char *report_json(const char *command, const struct explore_result *r)
{
	cJSON *o = cJSON_CreateObject(), *findings;
	_cleanup_free_ char *verdict = words_verdict(r);
	char *text = NULL;
	size_t len;
	FILE *out;

	json_u64(o, "version", JSON_VERSION);
	put_text(o, "command", command);
	cJSON_AddStringToObject(o, "verdict", verdict_name(r->verdict));
	json_u64(o, "exit_status", r->exit_status);
	put_text(o, "words", verdict);
	put_text(o, "incomplete_why", r->incomplete_why);
	put_figures(o, r);
	findings = cJSON_AddArrayToObject(o, "findings");
	for (u32 i = 0; i < r->n_findings; i++)
		cJSON_AddItemToArray(findings,
				     finding_object(&r->findings[i]));
	json_u64(o, "findings_left_out", r->n_findings_left);
	out = open_memstream(&text, &len);
	if (!out) {
		cJSON_Delete(o);
		return xstrdup("");
	}
	json_print(out, o, true);
	fclose(out);
	cJSON_Delete(o);
	return text;
}

int report_write(const char *path, const char *text, struct errmsg *em)
{
	bool newline = *text && text[strlen(text) - 1] != '\n';
	_cleanup_close_ int fd = -1;
	int r, out = STDOUT_FILENO;

	if (strcmp(path, "-")) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (fd < 0)
			return errmsg_set(em, errno, "creating %s", path);
		out = fd;
	} else {
		fflush(stdout);
	}
	r = write_full(out, text, strlen(text));
	if (r >= 0 && newline)
		r = write_full(out, "\n", 1);
	return r < 0 ? errmsg_set(em, r, "writing %s", path) : 0;
}
