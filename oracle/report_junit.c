// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * JUnit's XML as CI servers read it: a run is a test case; a finding fails it,
 * incomplete evidence is an error.
 */
#include <string.h>

#include "report.h"
#include "report_words.h"

/* XML 1.0 has no way at all to hold a control character: these, and what is
 * no UTF-8, become \xNN as on a terminal. */
static char *safe_line(const char *text, size_t n)
{
	_cleanup_free_ char *one = xasprintf("%.*s", (int)n, text);
	char *safe = NULL;
	size_t len;
	FILE *f = open_memstream(&safe, &len);

	if (!f)
		return xstrdup("");
	print_safe(f, one);
	fclose(f);
	return safe;
}

/* Are these three bytes U+FFFE or U+FFFF, which XML forbids? */
static bool is_nonchar(const char *s)
{
	return !strncmp(s, "\xef\xbf\xbe", 3) || !strncmp(s, "\xef\xbf\xbf", 3);
}

static void put_escaped(FILE *out, const char *s)
{
	static const char *const entities[128] = {
		['&'] = "&amp;",   ['<'] = "&lt;",   ['>'] = "&gt;",
		['"'] = "&quot;", ['\''] = "&apos;",
	};

	while (*s) {
		unsigned char c = *s;

		if (is_nonchar(s)) {
			fputs("\xef\xbf\xbd", out);
			s += 3;
			continue;
		}
		if (c < 128 && entities[c])
			fputs(entities[c], out);
		else
			fputc(c, out);
		s++;
	}
}

/* newline: what stands for a line's end (attributes cannot hold one). */
static void put_xml(FILE *out, const char *text, const char *newline)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		_cleanup_free_ char *safe = safe_line(text, n);

		put_escaped(out, safe);
		text += n;
		if (*text == '\n') {
			fputs(newline, out);
			text++;
		}
	}
}

static void put_attribute(FILE *out, const char *name, const char *text)
{
	fprintf(out, " %s=\"", name);
	put_xml(out, text, "&#10;");
	fputc('"', out);
}

static void put_body(FILE *out, const char *name,
		     const struct explore_result *r)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	report_text(f, name, r, true);
	fclose(f);
	put_xml(out, text, "\n");
	free(text);
}

static void put_outcome(FILE *out, const char *name,
			const struct explore_result *r)
{
	_cleanup_free_ char *verdict = words_verdict(r);
	const char *element;
	const char *type;

	if (r->verdict == VERDICT_INCONSISTENT) {
		element = "failure";
		type = finding_kind_name(r->findings[0].kind);
	} else if (r->verdict == VERDICT_INCOMPLETE) {
		element = "error";
		type = "incomplete";
	} else {
		element = "system-out";
		type = NULL;
	}
	fprintf(out, "      <%s", element);
	if (type) {
		put_attribute(out, "message", verdict);
		put_attribute(out, "type", type);
	}
	fputc('>', out);
	put_body(out, name, r);
	fprintf(out, "</%s>\n", element);
}

char *report_junit(const char *name, const struct explore_result *r)
{
	int failures = r->verdict == VERDICT_INCONSISTENT;
	int errors = r->verdict == VERDICT_INCOMPLETE;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return xstrdup("");
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuites tests=\"1\" failures=\"%d\" errors=\"%d\""
		" time=\"%.3f\">\n"
		"  <testsuite name=\"blkbox\" tests=\"1\" failures=\"%d\""
		" errors=\"%d\" skipped=\"0\" time=\"%.3f\">\n"
		"    <testcase classname=\"blkbox\"",
		failures, errors, r->seconds, failures, errors, r->seconds);
	put_attribute(out, "name", name);
	fprintf(out, " time=\"%.3f\">\n", r->seconds);
	put_outcome(out, name, r);
	fputs("    </testcase>\n  </testsuite>\n</testsuites>\n", out);
	fclose(out);
	return text;
}
