// SPDX-License-Identifier: GPL-2.0-or-later
/* The three reports, and results becoming one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <cjson/cJSON.h>
#include <string.h>
#include <unistd.h>

#include "../../oracle/explain.h"
#include "../../oracle/report.h"

/* A name made to do harm wherever it is printed. */
#define EVIL "ev\033[2Jil<&>\"'\xff\xfe\n]]>name"

static struct finding a_finding(enum finding_kind kind, u64 distance)
{
	struct finding f = {
		.kind = kind,
		.site = xstrdup("p1234-1200,1210"),
		.crash_point = 1234,
		.n_dropped = 2,
		.dropped = xmalloc(2 * sizeof(u64)),
		.dropped_words = xmalloc(2 * sizeof(char *)),
		.distance_bytes = distance,
		.expected = 3,
		.expected_what = xstrdup("after close " EVIL),
		.detail = kind == FIND_DISTANCE ? NULL : xstrdup("why\n" EVIL),
		.n_files = 1,
		.files = xzalloc(sizeof(struct file_finding)),
		.count = 7,
		.run = xstrdup("sync"),
		.recording = xstrdup("rec.bbx"),
		.point_words = xstrdup("just after unlink(" EVIL ") had"
				       " returned"),
		.command = xstrdup("blkbox replay rec.bbx --at 1234 --drop"
				   " 1200,1210 --mount DIR"),
	};

	f.dropped[0] = 1200;
	f.dropped[1] = 1210;
	f.dropped_words[0] = xstrdup("write of 4096 bytes at sector 8: data of "
				     EVIL);
	f.dropped_words[1] = xstrdup("write of 4096 bytes at sector 16: file"
				     " system metadata");
	f.files[0] = (struct file_finding){
		.path = xstrdup(EVIL), .fate = FATE_EMPTY,
		.expected_bytes = 65536, .words = xstrdup("is empty " EVIL),
	};
	return f;
}

static struct explore_result inconsistent(enum finding_kind kind)
{
	struct explore_result r = {
		.verdict = VERDICT_INCONSISTENT,
		.exit_status = EXIT_INCONSISTENT,
		.covered_any = true,
		.covered_k = 2,
		.crash_points = 11,
		.sites = 22,
		.distinct = 20,
		.judged = 20,
		.seconds = 1.25,
		.n_expected = 4,
		.distance_judged = true,
		.n_inconsistent = 5,
		.n_findings = 1,
		.findings = xmalloc(sizeof(struct finding)),
	};

	r.findings[0] = a_finding(kind, 65536);
	return r;
}

static char *text_of(const struct explore_result *r, bool verbose)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	report_text(f, EVIL, r, verbose);
	fclose(f);
	return text;
}

/* ---- text ------------------------------------------------------------------- */

static void assert_terminal_safe(const char *text)
{
	for (; *text; text++) {
		assert_true(*text == '\n' || (unsigned char)*text >= 0x20);
		assert_true((unsigned char)*text < 0x7f);
	}
}

static void text_names_the_worst_site(void **state)
{
	static const char *const wanted[] = {
		"inconsistent", "65536 bytes", "p1234-1200,1210",
		"k = 2", "11 crash points", "20 judged", "just after unlink(",
		"#1200 write of 4096 bytes", "#1210", "is empty", "run sync",
		"blkbox replay rec.bbx --at 1234 --drop 1200,1210 --mount DIR",
	};
	struct explore_result r = inconsistent(FIND_DISTANCE);
	_cleanup_free_ char *text = text_of(&r, false);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!strstr(text, wanted[i]))
			fail_msg("no '%s' in: %s", wanted[i], text);
	/* the verdict stands in the first line */
	assert_true(strstr(text, "inconsistent") < strchr(text, '\n'));
	assert_terminal_safe(text);
	explore_result_done(&r);
}

static void text_of_every_kind_is_safe(void **state)
{
	(void)state;
	for (int kind = FIND_DISTANCE; kind <= FIND_CHECK; kind++) {
		struct explore_result r = inconsistent(kind);
		_cleanup_free_ char *text = text_of(&r, true);

		assert_terminal_safe(text);
		assert_non_null(strstr(text, finding_kind_name(kind)));
		explore_result_done(&r);
	}
}

static void a_gap_is_told_with_a_finding(void **state)
{
	struct explore_result r = inconsistent(FIND_DISTANCE);
	_cleanup_free_ char *text = NULL;

	(void)state;
	explore_incomplete(&r, "3 events were lost");
	assert_int_equal(r.exit_status, EXIT_INCONSISTENT);
	text = text_of(&r, false);
	assert_non_null(strstr(text, "3 events were lost"));
	explore_result_done(&r);
}

/* ---- JSON ------------------------------------------------------------------- */

static double number(const cJSON *o, const char *name)
{
	const cJSON *m = cJSON_GetObjectItemCaseSensitive(o, name);

	if (!cJSON_IsNumber(m))
		fail_msg("%s is not a number", name);
	return m->valuedouble;
}

static const char *string(const cJSON *o, const char *name)
{
	const char *s = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(o, name));

	if (!s)
		fail_msg("%s is not a string", name);
	return s;
}

static void json_keeps_the_contract(void **state)
{
	struct explore_result r = inconsistent(FIND_DISTANCE);
	_cleanup_free_ char *text = report_json("explore", &r);
	cJSON *o = cJSON_Parse(text);
	const cJSON *f, *dropped, *files;

	(void)state;
	assert_non_null(o);
	for (char *c = text; *c; c++)	/* its indentation */
		*c = *c == '\t' ? ' ' : *c;
	assert_terminal_safe(text);
	assert_int_equal(number(o, "version"), 1);
	assert_string_equal(string(o, "verdict"), "inconsistent");
	assert_int_equal(number(o, "exit_status"), 1);
	assert_int_equal(number(o, "covered_k"), 2);
	assert_int_equal(number(o, "crash_points"), 11);
	assert_int_equal(number(o, "sites"), 22);
	assert_int_equal(number(o, "distinct"), 20);
	assert_int_equal(number(o, "judged"), 20);
	assert_true(number(o, "seconds") == 1.25);
	f = cJSON_GetArrayItem(
		cJSON_GetObjectItemCaseSensitive(o, "findings"), 0);
	assert_string_equal(string(f, "site"), "p1234-1200,1210");
	assert_string_equal(string(f, "kind"), "distance");
	assert_int_equal(number(f, "crash_point"), 1234);
	dropped = cJSON_GetObjectItemCaseSensitive(f, "dropped");
	assert_int_equal(cJSON_GetArraySize(dropped), 2);
	assert_int_equal(cJSON_GetArrayItem(dropped, 1)->valuedouble, 1210);
	assert_int_equal(number(f, "distance_bytes"), 65536);
	assert_int_equal(strncmp(string(f, "expected"), "after close ", 12), 0);
	assert_string_equal(string(f, "run"), "sync");
	files = cJSON_GetObjectItemCaseSensitive(f, "files");
	assert_string_equal(string(cJSON_GetArrayItem(files, 0), "fate"),
			    "empty");
	cJSON_Delete(o);
	explore_result_done(&r);
}

static void json_says_what_was_covered(void **state)
{
	struct explore_result r = { .covered_any = false };
	_cleanup_free_ char *none = report_json("explore", &r), *all = NULL;
	cJSON *o = cJSON_Parse(none);

	(void)state;
	assert_true(cJSON_IsNull(
		cJSON_GetObjectItemCaseSensitive(o, "covered_k")));
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(
		o, "findings")), 0);
	cJSON_Delete(o);
	r = (struct explore_result){ .covered_any = true, .covered_k = K_ALL,
				     .covered_max = 5 };
	all = report_json("explore", &r);
	o = cJSON_Parse(all);
	assert_int_equal(number(o, "covered_k"), 5);
	assert_true(cJSON_IsTrue(
		cJSON_GetObjectItemCaseSensitive(o, "covered_all")));
	cJSON_Delete(o);
}

/* ---- JUnit ------------------------------------------------------------------ */

/* Past an entity or character reference; NULL: that is none. */
static const char *skip_entity(const char *s)
{
	static const char *const known[] = { "&amp;", "&lt;", "&gt;", "&quot;",
					     "&apos;", "&#10;" };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strncmp(s, known[i], strlen(known[i])))
			return s + strlen(known[i]);
	return NULL;
}

/* Past a tag; its name, with '/' first where it closes. */
static const char *skip_tag(const char *s, char name[32], bool *ret_empty)
{
	size_t n = strcspn(s + 1, " >");
	char quote = 0;

	assert_true(n > 0 && n < 32);
	memcpy(name, s + 1, n);
	name[n] = 0;
	for (s++; quote || *s != '>'; s++) {
		assert_true(*s && *s != '<');
		if (*s == '&')
			assert_non_null(skip_entity(s));
		if (quote ? *s == quote : *s == '"')
			quote = quote ? 0 : *s;
	}
	*ret_empty = s[-1] == '/' || s[-1] == '?';
	return s + 1;
}

static void assert_well_formed(const char *text)
{
	char open[16][32], name[32];
	int depth = 0;
	bool empty;

	for (const char *s = text; *s;) {
		unsigned char c = *s;

		assert_true(c >= 0x20 || c == '\n');
		assert_true(c != '>');
		if (c == '&') {
			s = skip_entity(s);
			assert_non_null(s);
		} else if (c == '<') {
			s = skip_tag(s, name, &empty);
			if (empty)
				continue;
			if (name[0] == '/') {
				assert_true(depth > 0);
				assert_string_equal(name + 1, open[--depth]);
			} else {
				assert_true(depth < 16);
				strcpy(open[depth++], name);
			}
		} else {
			s++;
		}
	}
	assert_int_equal(depth, 0);
}

static void junit_is_well_formed(void **state)
{
	struct explore_result r = inconsistent(FIND_CHECK);
	_cleanup_free_ char *bad = report_junit(EVIL, &r), *good = NULL;
	_cleanup_free_ char *unsure = NULL;

	(void)state;
	assert_well_formed(bad);
	assert_non_null(strstr(bad, "<failure message="));
	assert_non_null(strstr(bad, "failures=\"1\""));
	assert_non_null(strstr(bad, "type=\"check\""));
	explore_result_done(&r);
	good = report_junit("x", &r);
	assert_well_formed(good);
	assert_null(strstr(good, "<failure"));
	assert_null(strstr(good, "<error"));
	explore_incomplete(&r, "a gap");
	unsure = report_junit("x\xef\xbf\xbf", &r);
	assert_well_formed(unsure);
	assert_non_null(strstr(unsure, "<error message="));
	assert_null(strstr(unsure, "\xef\xbf\xbf"));
	explore_result_done(&r);
}

/* ---- merging ---------------------------------------------------------------- */

static void merging_keeps_the_worst(void **state)
{
	struct explore_result total = { 0 }, ok = {
		.covered_any = true, .covered_k = 3, .crash_points = 1,
		.sites = 10, .judged = 10,
	};
	struct explore_result bad = inconsistent(FIND_DISTANCE);
	struct explore_result worse = inconsistent(FIND_DISTANCE);

	(void)state;
	bad.findings[0].distance_bytes = 10;
	worse.findings[0].distance_bytes = 20;
	explore_merge(&total, &ok);
	assert_int_equal(total.covered_k, 3);
	assert_true(total.covered_any);
	explore_merge(&total, &bad);
	explore_merge(&total, &worse);
	assert_int_equal(total.verdict, VERDICT_INCONSISTENT);
	assert_int_equal(total.exit_status, EXIT_INCONSISTENT);
	assert_int_equal(total.covered_k, 2);
	assert_int_equal(total.sites, 10 + 22 + 22);
	assert_int_equal(total.n_findings, 2);
	assert_int_equal(total.findings[0].distance_bytes, 20);
	assert_int_equal(bad.n_findings, 0);
	explore_result_done(&total);
}

static void incomplete_beats_consistent(void **state)
{
	struct explore_result a = { .crash_points = 1, .covered_any = true };
	struct explore_result b = { .crash_points = 1, .covered_any = true };

	(void)state;
	explore_incomplete(&b, "a gap");
	assert_int_equal(b.exit_status, EXIT_INCOMPLETE);
	explore_merge(&a, &b);
	assert_int_equal(a.verdict, VERDICT_INCOMPLETE);
	assert_int_equal(a.exit_status, EXIT_INCOMPLETE);
	assert_string_equal(a.incomplete_why, "a gap");
	explore_result_done(&a);
}

/* ---- words ------------------------------------------------------------------ */

static void shell_words_are_quoted(void **state)
{
	static const char *const cases[][2] = {
		{ "plain-1.2_x/y", "plain-1.2_x/y" },
		{ "", "''" },
		{ "a b", "'a b'" },
		{ "a'b", "'a'\\''b'" },
		{ "$(rm)", "'$(rm)'" },
		{ "~", "'~'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *q = shell_quote(cases[i][0]);

		assert_string_equal(q, cases[i][1]);
	}
}

static void operations_read_like_calls(void **state)
{
	struct rec_file_op op = { .op = OP_RENAME, .dir_path = "sub",
				  .path = "new", .dir2_path = "",
				  .path2 = "old" };
	_cleanup_free_ char *rename = op_words(NULL, &op), *close = NULL;

	(void)state;
	assert_string_equal(rename, "rename(sub/new, old)");
	op = (struct rec_file_op){ .op = OP_CLOSE, .file_path = "sub/f" };
	close = op_words(NULL, &op);
	assert_string_equal(close, "close(sub/f)");
}

static void torn_pieces_are_told_apart(void **state)
{
	struct rec_page pages[] = {
		{ .bytes = 4096, .ino = 5, .file_offset = 8192 },
		{ .bytes = 4096, .flags = PAGE_BLOCKDEV },
	};
	struct trace_write w = { .issue_seq = 9, .issue = {
		.op = BLK_WRITE, .sector = 100, .sectors = 16, .n_pages = 2,
		.pages = pages } };
	struct unit units[] = {
		{ .issue_seq = 9, .sector = 101, .sectors = 1, .op = BLK_WRITE },
		{ .issue_seq = 9, .sector = 100, .sectors = 16,
		  .op = BLK_WRITE },
	};
	struct crash_point point = { .seq = 12 };
	struct trace t = { .n_units = 2, .units = units, .n_writes = 1,
			   .writes = &w, .n_points = 1, .points = &point };
	struct expected e = { .n = 0 };
	u32 drop[] = { 0, 1 };
	_cleanup_free_ char *site = site_name(&t, 0, drop, 2);
	_cleanup_free_ char *piece = unit_words(&t, &e, 0);
	_cleanup_free_ char *whole = unit_words(&t, &e, 1);

	(void)state;
	assert_string_equal(site, "p12-9:101,9");
	assert_string_equal(piece, "a piece: write of 512 bytes at sector 101:"
				   " data of inode 5, bytes 8704 to 9215");
	assert_non_null(strstr(whole, "bytes 8192 to 12287"));
	assert_non_null(strstr(whole, "file system metadata"));
}

static void a_report_reaches_its_file(void **state)
{
	char path[] = "/tmp/blkbox-report-XXXXXX", text[16] = "";
	struct errmsg em;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(report_write(path, "hello", &em), 0);
	assert_int_equal(pread(fd, text, sizeof(text), 0), 6);
	assert_string_equal(text, "hello\n");
	close(fd);
	unlink(path);
	assert_true(report_write("/nowhere/at/all", "x", &em) < 0);
	assert_non_null(strstr(em.text, "/nowhere/at/all"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_names_the_worst_site),
		cmocka_unit_test(text_of_every_kind_is_safe),
		cmocka_unit_test(a_gap_is_told_with_a_finding),
		cmocka_unit_test(json_keeps_the_contract),
		cmocka_unit_test(json_says_what_was_covered),
		cmocka_unit_test(junit_is_well_formed),
		cmocka_unit_test(merging_keeps_the_worst),
		cmocka_unit_test(incomplete_beats_consistent),
		cmocka_unit_test(shell_words_are_quoted),
		cmocka_unit_test(operations_read_like_calls),
		cmocka_unit_test(torn_pieces_are_told_apart),
		cmocka_unit_test(a_report_reaches_its_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
