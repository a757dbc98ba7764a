// SPDX-License-Identifier: GPL-2.0-or-later
/* Results of several runs become one. */
#include <string.h>

#include "findings.h"

void explore_result_done(struct explore_result *r)
{
	for (u32 i = 0; i < r->n_findings; i++)
		finding_done(&r->findings[i]);
	free(r->findings);
	free(r->incomplete_why);
	free(r->limits);
	*r = (struct explore_result){ 0 };
}

static int compare_findings(const void *a, const void *b)
{
	return finding_compare(a, b);
}

static void merge_findings(struct explore_result *to,
			   struct explore_result *from)
{
	u32 n = to->n_findings + from->n_findings;

	to->findings = xreallocarray(to->findings, n, sizeof(*to->findings));
	if (from->n_findings)
		memcpy(to->findings + to->n_findings, from->findings,
		       from->n_findings * sizeof(*from->findings));
	to->n_findings = n;
	from->n_findings = 0;
	if (n)
		qsort(to->findings, n, sizeof(*to->findings),
		      compare_findings);
}

static void merge_why(struct explore_result *to, struct explore_result *from)
{
	char *both;

	if (!from->incomplete_why)
		return;
	if (!to->incomplete_why) {
		to->incomplete_why = from->incomplete_why;
		from->incomplete_why = NULL;
		return;
	}
	if (strstr(to->incomplete_why, from->incomplete_why))
		return;
	both = xasprintf("%s; %s", to->incomplete_why, from->incomplete_why);
	free(to->incomplete_why);
	to->incomplete_why = both;
}

/* What was covered whole in both. */
static void merge_covered(struct explore_result *to,
			  const struct explore_result *from)
{
	to->covered_any &= from->covered_any;
	to->covered_max = MAX(to->covered_max, from->covered_max);
	to->covered_k = MIN(to->covered_k, from->covered_k);
}

static void merge_verdict(struct explore_result *to,
			  const struct explore_result *from)
{
	static const int weight[] = {
		[VERDICT_CONSISTENT] = 0,
		[VERDICT_INCOMPLETE] = 1,
		[VERDICT_INCONSISTENT] = 2,
	};

	if (weight[from->verdict] <= weight[to->verdict])
		return;
	to->verdict = from->verdict;
	to->exit_status = from->exit_status;
}

void explore_incomplete(struct explore_result *r, const char *why)
{
	char *old = r->incomplete_why;

	r->incomplete_why = old ? xasprintf("%s; %s", old, why) : xstrdup(why);
	free(old);
	if (r->verdict != VERDICT_CONSISTENT)
		return;
	r->verdict = VERDICT_INCOMPLETE;
	r->exit_status = EXIT_INCOMPLETE;
}

/* Nothing was explored yet. */
static bool is_blank(const struct explore_result *r)
{
	return !r->crash_points && !r->n_findings && !r->incomplete_why;
}

void explore_merge(struct explore_result *to, struct explore_result *from)
{
	if (is_blank(to)) {
		explore_result_done(to);
		*to = *from;
		*from = (struct explore_result){ 0 };
		return;
	}
	merge_verdict(to, from);
	merge_covered(to, from);
	to->crash_points += from->crash_points;
	to->sites += from->sites;
	to->distinct += from->distinct;
	to->judged += from->judged;
	to->failed_sites += from->failed_sites;
	to->seconds += from->seconds;
	to->n_expected += from->n_expected;
	to->n_unknown += from->n_unknown;
	to->checked |= from->checked;
	to->distance_judged |= from->distance_judged;
	to->max_distance = MAX(to->max_distance, from->max_distance);
	to->lost_events += from->lost_events;
	to->lost_bytes += from->lost_bytes;
	to->unreadable_bytes += from->unreadable_bytes;
	to->n_findings_left += from->n_findings_left;
	to->n_inconsistent += from->n_inconsistent;
	if (!to->limits) {
		to->limits = from->limits;
		from->limits = NULL;
	}
	merge_why(to, from);
	merge_findings(to, from);
	explore_result_done(from);
}
