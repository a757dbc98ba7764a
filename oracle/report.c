// SPDX-License-Identifier: GPL-2.0-or-later
/* The report a person reads, and what the three reports share. */
#include "report.h"

#include <string.h>

#include "report_words.h"

const char *verdict_name(enum verdict v)
{
	static const char *const names[] = {
		[VERDICT_CONSISTENT] = "consistent",
		[VERDICT_INCONSISTENT] = "inconsistent",
		[VERDICT_INCOMPLETE] = "incomplete",
	};

	return names[v];
}

const char *finding_kind_name(enum finding_kind k)
{
	static const char *const names[] = {
		[FIND_DISTANCE] = "distance",
		[FIND_DURABILITY] = "durability",
		[FIND_UNMOUNTABLE] = "unmountable",
		[FIND_KERNEL_WARNING] = "kernel-warning",
		[FIND_CHECK] = "check",
	};

	return names[k];
}

const char *file_fate_name(enum file_fate f)
{
	static const char *const names[] = {
		[FATE_SAME] = "same",
		[FATE_OLDER] = "older",
		[FATE_NEWER] = "newer",
		[FATE_EMPTY] = "empty",
		[FATE_TRUNCATED] = "truncated",
		[FATE_ZERO_FILLED] = "zero-filled",
		[FATE_MIXED] = "mixed",
		[FATE_GARBAGE] = "garbage",
		[FATE_MISSING] = "missing",
		[FATE_EXTRA] = "extra",
		[FATE_UNREADABLE] = "unreadable",
	};

	return names[f];
}

/* ---- sentences shared by the reports -------------------------------------- */

static const char *plural(u64 n)
{
	return n == 1 ? "" : "s";
}

char *words_covered(const struct explore_result *r)
{
	if (!r->covered_any)
		return xstrdup("no bound was covered whole");
	if (r->covered_k == K_ALL)
		return xasprintf("every crash site (at most %u write%s could be"
				 " lost at once)", r->covered_max,
				 plural(r->covered_max));
	if (r->covered_k == 0)
		return xstrdup("every crash site with nothing lost (k = 0)");
	return xasprintf("every crash site with at most %u write%s lost"
			 " (k = %u)", r->covered_k, plural(r->covered_k),
			 r->covered_k);
}

char *words_headline(const struct finding *f)
{
	unsigned long long bytes = f->distance_bytes;

	switch (f->kind) {
	case FIND_DISTANCE:
		return xasprintf("%llu byte%s of the nearest expected state"
				 " (%s) are nowhere on the disk",
				 bytes, plural(bytes),
				 f->expected_what ?: "unknown");
	case FIND_DURABILITY:
		return xstrdup("data or a name that was promised to be safe is"
			       " not on the disk");
	case FIND_UNMOUNTABLE:
		return xstrdup("the file system cannot be mounted and read");
	case FIND_KERNEL_WARNING:
		return xstrdup("the kernel complained while it recovered the"
			       " file system");
	case FIND_CHECK:
		return xstrdup("the checker is not satisfied with what is on"
			       " the disk");
	}
	return xstrdup("");
}

char *words_verdict(const struct explore_result *r)
{
	_cleanup_free_ char *head = NULL;

	switch (r->verdict) {
	case VERDICT_INCONSISTENT:
		head = words_headline(&r->findings[0]);
		return xasprintf("at %llu of %llu distinct disks a crash does"
				 " damage; at worst %s",
				 (unsigned long long)r->n_inconsistent,
				 (unsigned long long)r->judged, head);
	case VERDICT_INCOMPLETE:
		return xasprintf("nothing was found, but %s",
				 r->incomplete_why ?: "evidence is missing");
	case VERDICT_CONSISTENT:
		break;
	}
	return xstrdup("nothing is lost at any crash site judged");
}

/* ---- text ----------------------------------------------------------------- */

static void line(FILE *out, const char *indent, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		_cleanup_free_ char *one = xasprintf("%.*s", (int)n, text);

		fputs(indent, out);
		print_safe(out, one);
		fputc('\n', out);
		text += n + (text[n] == '\n');
	}
}

static void print_figures(FILE *out, const struct explore_result *r)
{
	_cleanup_free_ char *covered = words_covered(r);

	fprintf(out, "  covered   %s\n", covered);
	fprintf(out,
		"            %llu crash point%s, %llu site%s, %llu distinct"
		" disk%s, %llu judged, %.1f s\n",
		(unsigned long long)r->crash_points, plural(r->crash_points),
		(unsigned long long)r->sites, plural(r->sites),
		(unsigned long long)r->distinct, plural(r->distinct),
		(unsigned long long)r->judged, r->seconds);
	fprintf(out, "  against   %u expected state%s%s", r->n_expected,
		plural(r->n_expected), r->checked ? ", and a checker" : "");
	if (r->n_unknown)
		fprintf(out, "; %u more could not be known and %s left out",
			r->n_unknown, r->n_unknown == 1 ? "was" : "were");
	fputc('\n', out);
	if (r->limits) {
		fputs("  without   ", out);
		print_safe(out, r->limits);
		fputc('\n', out);
	}
	if (r->checked && !r->distance_judged && r->max_distance)
		fprintf(out,
			"  distance  up to %llu bytes; with a checker that is no"
			" finding\n", (unsigned long long)r->max_distance);
}

static void print_dropped(FILE *out, const struct finding *f)
{
	if (!f->n_dropped) {
		fputs("    lost      nothing that had been written\n", out);
		return;
	}
	for (u32 i = 0; i < f->n_dropped; i++) {
		fprintf(out, "    %-9s #%llu ", i ? "" : "lost",
			(unsigned long long)f->dropped[i]);
		print_safe(out, f->dropped_words ? f->dropped_words[i] : "");
		fputc('\n', out);
	}
}

static void print_file(FILE *out, const struct file_finding *f)
{
	fputs("      ", out);
	print_safe(out, f->path);
	if (f->words && *f->words) {
		fputc(' ', out);
		print_safe(out, f->words);
	} else {
		fprintf(out, ": %s, %llu bytes, %llu expected",
			file_fate_name(f->fate), (unsigned long long)f->bytes,
			(unsigned long long)f->expected_bytes);
	}
	fputc('\n', out);
}

/* Files nothing happened to are only counted, unless asked for. */
static void print_files(FILE *out, const struct finding *f, bool verbose)
{
	u32 same = 0;

	if (!f->n_files)
		return;
	fputs("    files     compared with what they were ", out);
	print_safe(out, f->expected_what ?: "");
	fputs(":\n", out);
	for (u32 i = 0; i < f->n_files; i++) {
		if (f->files[i].fate == FATE_SAME && !verbose)
			same++;
		else
			print_file(out, &f->files[i]);
	}
	if (same)
		fprintf(out, "      and %u as expected\n", same);
	if (f->n_files_left)
		fprintf(out, "      and %u more that are not listed\n",
			f->n_files_left);
}

static void print_finding(FILE *out, const struct finding *f, bool verbose)
{
	_cleanup_free_ char *head = words_headline(f);

	fprintf(out, "\n  %s at %s (%llu site%s like it", finding_kind_name(
		f->kind), f->site, (unsigned long long)f->count,
		plural(f->count));
	if (f->run)
		fprintf(out, ", run %s", f->run);
	fputs(")\n", out);
	line(out, "    ", head);
	if (f->detail)
		line(out, "    ", f->detail);
	fputs("    crash     ", out);
	print_safe(out, f->point_words ?: "");
	fprintf(out, " (event %llu)\n", (unsigned long long)f->crash_point);
	print_dropped(out, f);
	if (f->distance_bytes && f->kind != FIND_DISTANCE)
		fprintf(out, "    distance  %llu bytes\n",
			(unsigned long long)f->distance_bytes);
	print_files(out, f, verbose);
	if (f->command) {
		fputs("    see it    ", out);
		print_safe(out, f->command);
		fputc('\n', out);
	}
}

void report_text(FILE *out, const char *title, const struct explore_result *r,
		 bool verbose)
{
	_cleanup_free_ char *verdict = words_verdict(r);
	u32 n = verbose ? r->n_findings : MIN(r->n_findings, 1u);
	u64 more = (u64)r->n_findings + r->n_findings_left - n;

	print_safe(out, title);
	fprintf(out, ": %s: ", verdict_name(r->verdict));
	print_safe(out, verdict);
	fputc('\n', out);
	print_figures(out, r);
	if (r->incomplete_why && r->verdict == VERDICT_INCONSISTENT) {
		fputs("  but       ", out);
		print_safe(out, r->incomplete_why);
		fputc('\n', out);
	}
	for (u32 i = 0; i < n; i++)
		print_finding(out, &r->findings[i], verbose);
	if (more)
		fprintf(out, "\n  %llu other finding%s%s\n",
			(unsigned long long)more, plural(more),
			verbose ? " not kept in detail" :
				  "; -v shows them, --json has them all");
}
