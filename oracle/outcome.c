// SPDX-License-Identifier: GPL-2.0-or-later
/* What an exploration came to: figures, verdict, and findings in words. */
#include <string.h>

#include "../replay/intake.h"
#include "explain.h"
#include "exploration.h"

/* ---- why evidence is incomplete ------------------------------------------- */

static void because(char **why, char *sentence)
{
	char *old = *why;

	if (!old) {
		*why = sentence;
		return;
	}
	*why = xasprintf("%s; %s", old, sentence);
	free(old);
	free(sentence);
}

static bool nothing_to_compare(const struct expected *e)
{
	if (!e->n_unknown)
		return false;
	for (u32 i = 0; i < e->n; i++)
		if (!e->states[i].tree.unknown &&
		    !tree_is_empty(&e->states[i].tree))
			return false;
	return true;
}

static void why_not_covered(const struct exploration *x, char **why)
{
	static const char *const reasons[] = {
		[STOP_TIME] = "the time was up",
		[STOP_SIGNAL] = "it was interrupted",
		[STOP_WIDENED] = "the time was up",
		[STOP_SITES] = "the bound on the number of sites was reached",
	};

	if (!x->stop || (x->covered_any && x->covered_k >= x->o.k))
		return;
	if (x->o.k == K_ALL)
		because(why, xasprintf("%s before all sites were judged",
				       reasons[x->stop]));
	else
		because(why, xasprintf("%s before every site with at most %u"
				       " write%s lost was judged",
				       reasons[x->stop], x->o.k,
				       x->o.k == 1 ? "" : "s"));
}

/* Promises that could not be followed, where there was any to follow. */
static void why_not_promised(const struct exploration *x, char **why)
{
	const struct trace *t = x->t;

	if (!x->p->lost_why || t->first_gap_seq <= x->p->lost_seq)
		return;
	for (u32 i = 0; i < t->n_ops; i++) {
		if (!op_promises_durability(&t->ops[i].op))
			continue;
		because(why,
			xasprintf("what was promised to be durable could not be"
				  " followed from event %llu on: %s",
				  (unsigned long long)x->p->lost_seq,
				  x->p->lost_why));
		return;
	}
}

static void why_not_judged(const struct exploration *x, char **why)
{
	if (x->failed)
		because(why, xasprintf("%llu sites could not be judged (a"
				       " worker died, or hung)",
				       (unsigned long long)x->failed));
	if (x->excused)
		because(why,
			xasprintf("%llu disks could not be compared, for what"
				  " was to be expected there is not known%s%s",
				  (unsigned long long)x->excused,
				  x->e->lost_why ? ": " : "",
				  x->e->lost_why ?: ""));
	if (x->distance_judges && nothing_to_compare(x->e))
		because(why, xstrdup("no expected state is known, so nothing"
				     " could be compared"));
}

static char *incomplete_why(const struct exploration *x)
{
	const struct trace *t = x->t;
	char *why = NULL;

	if (!t->n_points)
		because(&why, xstrdup("the recording holds no crash points"));
	why_not_covered(x, &why);
	if (t->n_gaps && t->first_gap_seq <= t->last_seq)
		because(&why,
			xasprintf("%llu events (%llu bytes) were lost while"
				  " recording",
				  (unsigned long long)t->lost_events,
				  (unsigned long long)t->lost_bytes));
	if (t->unreadable_bytes)
		because(&why, xasprintf("%llu bytes written could not be read"
					" while recording",
					(unsigned long long)
						t->unreadable_bytes));
	if (t->n_other)
		because(&why, xasprintf("%llu requests are of a kind the crash"
					" model does not know",
					(unsigned long long)t->n_other));
	if (!t->closed)
		because(&why, xstrdup("the recording was cut off"));
	why_not_promised(x, &why);
	why_not_judged(x, &why);
	return why;
}

/* ---- findings in words ---------------------------------------------------- */

static char *check_words(const struct check_result *c)
{
	const char *sep = *c->output ? ":\n" : "", *out = c->output;

	switch (c->outcome) {
	case CHECK_KILLED:
		return xasprintf("the checker was killed by signal %d%s%s",
				 c->status, sep, out);
	case CHECK_TIMED_OUT:
		return xasprintf("the checker did not end in time%s%s", sep,
				 out);
	default:
		return xasprintf("the checker failed with exit status %d%s%s",
				 c->status, sep, out);
	}
}

static char *unmountable_words(const struct site_verdict *v)
{
	if (v->outcome == MOUNT_OK)
		return xstrdup(v->j.unreadable);
	return xasprintf("the file system does not mount: %s%s%s",
			 strerror(abs(v->error)), v->log ? "\n" : "",
			 v->log ?: "");
}

static char *detail_words(const struct exploration *x, const struct found *f)
{
	const struct site_verdict *v = &x->vt.v[f->verdict];

	switch (f->kind) {
	case FIND_DURABILITY:
		return promise_words(x->t, x->e, &x->p->p[f->promise]);
	case FIND_UNMOUNTABLE:
		return unmountable_words(v);
	case FIND_KERNEL_WARNING:
		return xasprintf("the kernel warned while it recovered the file"
				 " system:\n%s", v->log);
	case FIND_CHECK:
		return check_words(&x->vt.checks[f->check]);
	case FIND_DISTANCE:
		break;
	}
	return NULL;
}

/* A broken promise is measured against the state the promising call made. */
static u32 state_to_show(const struct exploration *x, const struct found *f)
{
	const struct site_verdict *v = &x->vt.v[f->verdict];
	u64 seq;

	if (f->kind != FIND_DURABILITY || x->e != x->own)
		return v->j.nearest;
	seq = x->t->ops[x->p->p[f->promise].op].seq;
	for (u32 i = 0; i < x->e->n; i++)
		if (x->e->states[i].after_seq == seq)
			return i;
	return v->j.nearest;
}

static void move_files(struct finding *to, struct judgement *from)
{
	to->files = from->files;
	to->n_files = from->n_files;
	to->n_files_left = from->n_files_left;
	from->files = NULL;
	from->n_files = 0;
}

static int add_files(struct exploration *x, const struct found *f, u32 state,
		     struct finding *out, struct errmsg *em)
{
	const struct site_entry *e = &x->book.entries[f->entry];
	struct job j = {
		.id = job_explain_id(state, e->point),
		.st = {
			.n_units = x->t->points[e->point].n_units,
			.n_drop = e->n_drop,
			.drop = site_drops(&x->book, e),
		},
	};
	int r;

	if (x->vt.v[f->verdict].outcome != MOUNT_OK || state >= x->e->n)
		return 0;
	x->explaining = true;
	x->explained = false;
	r = pool_submit(x->pool, &j, em);
	if (r >= 0)
		r = pool_drain(x->pool, em);
	if (x->explained)
		move_files(out, &x->explanation);
	judgement_done(&x->explanation);
	return MIN(r, 0);
}

static int put_into_words(struct exploration *x, const struct found *f,
			  struct finding *ret, struct errmsg *em)
{
	const struct site_entry *e = &x->book.entries[f->entry];
	const u32 *drop = site_drops(&x->book, e);
	u32 state = state_to_show(x, f);

	*ret = (struct finding){
		.kind = f->kind,
		.site = site_name(x->t, e->point, drop, e->n_drop),
		.crash_point = x->t->points[e->point].seq,
		.n_dropped = e->n_drop,
		.distance_bytes = f->distance,
		.expected = state,
		.expected_what = state_words(x->e, state),
		.detail = detail_words(x, f),
		.count = f->count,
		.run = x->o.run ? xstrdup(x->o.run) : NULL,
		.recording = xstrdup(x->recording),
		.point_words = point_words(x->t, x->e, e->point),
		.command = site_command(x->t, x->recording, &x->o, e->point,
					drop, e->n_drop),
	};
	ret->dropped = xmalloc(e->n_drop * sizeof(*ret->dropped));
	ret->dropped_words = xmalloc(e->n_drop * sizeof(*ret->dropped_words));
	for (u32 i = 0; i < e->n_drop; i++) {
		ret->dropped[i] = x->t->units[drop[i]].issue_seq;
		ret->dropped_words[i] = unit_words(x->t, x->own, drop[i]);
	}
	return add_files(x, f, state, ret, em);
}

/* ---- the result ----------------------------------------------------------- */

static void set_verdict(struct explore_result *r)
{
	if (r->n_findings) {
		r->verdict = VERDICT_INCONSISTENT;
		r->exit_status = EXIT_INCONSISTENT;
	} else if (r->incomplete_why) {
		r->verdict = VERDICT_INCOMPLETE;
		r->exit_status = EXIT_INCOMPLETE;
	} else {
		r->verdict = VERDICT_CONSISTENT;
		r->exit_status = EXIT_CONSISTENT;
	}
}

static int set_findings(struct exploration *x, struct explore_result *r,
			struct errmsg *em)
{
	struct findings_input in = {
		.t = x->t,
		.e = x->e,
		.p = x->p,
		.book = &x->book,
		.vt = &x->vt,
		.threshold = x->o.threshold,
		.distance_judges = x->distance_judges,
		.data_seq = x->data_seq,
		.lost_seq = x->lost_seq,
	};
	struct found_list list;
	u32 n;
	int err = 0;

	findings_collect(&in, &list);
	n = MIN(list.n, x->o.max_findings);
	r->findings = xzalloc(n * sizeof(*r->findings));
	for (u32 i = 0; i < n && err >= 0; i++) {
		r->n_findings = i + 1;
		err = put_into_words(x, &list.f[i], &r->findings[i], em);
	}
	r->n_findings_left = list.n - n;
	r->n_inconsistent = list.n_disks;
	r->max_distance = list.max_distance;
	x->excused = list.n_excused;
	found_list_done(&list);
	return err;
}

static u32 n_judging(const struct expected *e)
{
	u32 n = 0;

	for (u32 i = 0; i < e->n; i++)
		n += expected_judges(e, i);
	return n;
}

int exploration_outcome(struct exploration *x, struct explore_result *ret,
			struct errmsg *em)
{
	struct explore_result r = {
		.covered_any = x->covered_any,
		.covered_k = x->covered_k,
		.covered_max = x->covered_max,
		.crash_points = x->t->n_points,
		.sites = x->book.n_sites,
		.distinct = x->book.n_disks,
		.judged = x->judged,
		.failed_sites = x->failed,
		.n_expected = n_judging(x->e),
		.n_unknown = x->e->n_unknown,
		.checked = x->o.check != NULL,
		.distance_judged = x->distance_judges,
		.lost_events = x->t->lost_events,
		.lost_bytes = x->t->lost_bytes,
		.unreadable_bytes = x->t->unreadable_bytes,
	};
	int err;

	if (x->checks && x->checks == x->checks_not_run)
		return errmsg_set(em, 0,
				  "the checker could not be run at any site"
				  " (exit status 126 or 127): %s\n%s",
				  x->o.check, x->vt.checks[0].output);
	err = set_findings(x, &r, em);
	if (err < 0) {
		explore_result_done(&r);
		return err;
	}
	r.incomplete_why = incomplete_why(x);
	if (*pool_limits(x->pool))
		r.limits = xstrdup(pool_limits(x->pool));
	r.seconds = (now_ns() - x->started_ns) / 1e9;
	set_verdict(&r);
	*ret = r;
	return 0;
}
