// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Exploring: enumeration and judging go hand in hand, since the pool takes a
 * disk only when a worker has room for it.
 */
#include "exploration.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#define THRESHOLD_SAME_RUN 1
#define THRESHOLD_OTHER_RUN 32	/* as C3, which compared different runs */
#define PROGRESS_NS 200000000

/* ---- progress ------------------------------------------------------------- */

static void show_progress(struct exploration *x)
{
	u64 now = now_ns();
	double s = (now - x->started_ns) / 1e9;

	if (!x->o.progress || now < x->progress_ns)
		return;
	x->progress_ns = now + PROGRESS_NS;
	fprintf(stderr,
		"\r\033[K%u lost at most: %llu sites, %u disks, %llu judged"
		" (%.0f/s), %llu bad",
		x->pass_k, (unsigned long long)x->book.n_sites,
		x->book.n_disks, (unsigned long long)x->judged,
		s > 0 ? x->judged / s : 0, (unsigned long long)x->bad_disks);
	fflush(stderr);
}

static void end_progress(const struct exploration *x)
{
	if (x->o.progress && x->progress_ns)
		fputs("\r\033[K", stderr);
}

/* ---- answers -------------------------------------------------------------- */

/* For the counter on the screen; the report counts anew. */
static bool looks_bad(const struct exploration *x, const struct site_verdict *v)
{
	return v->outcome != MOUNT_OK || v->log || v->j.unreadable ||
	       (x->distance_judges && v->j.distance >= x->judge.threshold);
}

static void note_check(struct exploration *x, struct site_entry *e,
		       const struct check_result *c)
{
	if (!c->outcome)
		return;
	x->checks++;
	if (c->outcome == CHECK_PASSED)
		return;
	if (c->outcome == CHECK_FAILED &&
	    (c->status == 126 || c->status == 127))
		x->checks_not_run++;
	e->check = verdict_add_check(&x->vt, c);
	x->bad_disks++;
}

static int take_explanation(struct exploration *x, enum mount_outcome outcome,
			    const void *answer, size_t len)
{
	struct check_result check;
	const void *core;
	size_t core_len;
	int r;

	assert(x->explaining);
	x->explaining = false;
	if (outcome != MOUNT_OK)
		return 0;
	r = answer_split(answer, len, &core, &core_len, &check);
	if (r < 0)
		return r;
	check_result_done(&check);
	r = judgement_decode(core, core_len, &x->explanation);
	x->explained = r == 0;
	return r;
}

static int take_verdict(struct exploration *x, u32 no,
			enum mount_outcome outcome, int error, const char *log,
			const void *answer, size_t len)
{
	struct site_entry *e = &x->book.entries[no];
	struct site_disk *d = &x->book.disks[e->disk];
	struct check_result check = { 0 };
	const void *core = NULL;
	size_t core_len = 0;
	u32 verdict;
	int r = 0;

	if (outcome == MOUNT_OK)
		r = answer_split(answer, len, &core, &core_len, &check);
	if (r >= 0)
		r = verdict_add(&x->vt, outcome, error, x->usual, log, core,
				core_len, &verdict);
	if (r >= 0 && d->verdict == SITE_NONE) {
		d->verdict = verdict;
		x->judged++;
		x->bad_disks += looks_bad(x, &x->vt.v[verdict]);
	}
	if (r >= 0)
		note_check(x, e, &check);
	check_result_done(&check);
	return r;
}

static int done(void *ctx, u64 id, enum mount_outcome outcome, int error,
		const char *log, const void *answer, size_t len)
{
	struct exploration *x = ctx;

	if (id & JOB_EXPLAIN)
		return take_explanation(x, outcome, answer, len);
	assert(job_number(id) < x->book.n);
	if (outcome == MOUNT_WORKER_DIED || outcome == MOUNT_TIMED_OUT) {
		x->failed++;
		return 0;
	}
	return take_verdict(x, job_number(id), outcome, error, log, answer,
			    len);
}

static int judge(void *ctx, const struct job *j, int root_fd,
		 const char *root_path, const char *recovery_log,
		 struct buf *ret)
{
	struct exploration *x = ctx;

	return judge_disk(&x->judge, j, root_fd, root_path, recovery_log, ret);
}

/* ---- visiting ------------------------------------------------------------- */

struct visitor {
	struct exploration *x;
	struct errmsg *em;
};

static bool must_stop(struct exploration *x)
{
	if (x->stop)
		return true;
	if (x->o.stop && *x->o.stop)
		x->stop = STOP_SIGNAL;
	else if (x->deadline_ns && now_ns() >= x->deadline_ns)
		x->stop = STOP_TIME;
	else if (x->pass_k > x->o.k && x->widen_until_ns &&
		 now_ns() >= x->widen_until_ns)
		x->stop = STOP_WIDENED;
	else if (x->book.n > JOB_MAX_NUMBER - 1)
		x->stop = STOP_SITES;
	return x->stop;
}

/* A disk is judged once, and by a checker once for each set of marks that it
 * may be told. */
static bool already_judged(const struct exploration *x, u32 no)
{
	const struct site_book *b = &x->book;
	const struct site_entry *e = &b->entries[no];
	u32 marks, at = b->disks[e->disk].first;

	if (at == no)
		return false;
	if (!x->o.check)
		return true;
	marks = marks_before(x->t, x->t->points[e->point].seq);
	for (; at != no && at != SITE_NONE; at = b->entries[at].next)
		if (marks_before(x->t, x->t->points[b->entries[at].point].seq)
		    == marks)
			return true;
	return false;
}

static int visit(void *ctx, const struct site *s)
{
	struct visitor *v = ctx;
	struct exploration *x = v->x;
	struct job j;
	bool is_new;
	u32 no;

	if (must_stop(x))
		return 1;
	x->pass_sites++;
	show_progress(x);
	no = site_book_note(&x->book, x->t, s, &is_new);
	if (!is_new || already_judged(x, no))
		return 0;
	j = (struct job){
		.id = job_judge_id(no, s->point),
		.st = {
			.n_units = x->t->points[s->point].n_units,
			.n_drop = s->n_drop,
			.drop = s->drop,
		},
	};
	return MIN(0, pool_submit(x->pool, &j, v->em));
}

static int run_pass(struct exploration *x, struct enumerator *en, u32 k,
		    struct errmsg *em)
{
	struct visitor v = { .x = x, .em = em };
	struct enum_opts o = { .k = k, .min_drop = k, .to_seq = SEQ_NEVER };
	struct enum_stats stats = { 0 };
	int r;

	if (x->o.max_sites) {
		if (x->book.n_sites >= x->o.max_sites) {
			x->stop = STOP_SITES;
			return 0;
		}
		o.max_sites = x->o.max_sites - x->book.n_sites;
	}
	x->pass_sites = 0;
	em->text[0] = 0;
	r = enumerate(en, &o, visit, &v, &stats);
	if (r < 0)
		return *em->text ? r : errmsg_set(em, r,
						  "enumerating crash sites");
	if (stats.truncated && !x->stop)
		x->stop = STOP_SITES;
	return 0;
}

static int run_passes(struct exploration *x, struct errmsg *em)
{
	struct enumerator *en = enumerator_new(x->t);
	u32 k_max = MAX(x->o.k, x->o.k_max);
	int r = 0;

	for (u32 k = 0;; k++) {
		x->pass_k = k;
		if (must_stop(x))
			break;
		r = run_pass(x, en, k, em);
		if (r < 0 || x->stop)
			break;
		x->covered_any = true;
		if (k && !x->pass_sites) {
			x->covered_k = K_ALL;
			x->covered_max = k - 1;
			break;
		}
		x->covered_k = k;
		if (k == k_max)
			break;
	}
	if (r >= 0)
		r = pool_drain(x->pool, em);
	enumerator_free(en);
	return MIN(r, 0);
}

/* ---- setting out ---------------------------------------------------------- */

static int load(struct exploration *x, const char *path,
		const struct trace_opts *o, struct trace **ret,
		struct errmsg *em)
{
	struct trace *t;
	int r = trace_load(path, o, &t, em);

	(void)x;
	if (r < 0)
		return r;
	if (!t->has_base)
		r = errmsg_set(em, 0,
			       "%s has no base image, so no disk can be"
			       " rebuilt from it; give one with --base FILE",
			       path);
	else if (!t->fs_type)
		r = errmsg_set(em, 0,
			       "%s does not say which file system it is of",
			       path);
	if (r < 0) {
		trace_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

/* Expected states of t, from where the options say; usual is the kernel's
 * words when the start is mounted. */
static int expect(const struct exploration *x, const struct trace *t,
		  const struct image_index *index, struct expected **ret,
		  char **ret_usual, struct errmsg *em)
{
	bool rebuild = x->o.states == STATES_TRACE ||
		       (x->o.states == STATES_AUTO && !t->n_states);
	struct start start;
	int r;

	r = start_read(t, index, x->o.mount_options, rebuild, &start, em);
	if (r < 0)
		return r;
	if (rebuild)
		r = expected_from_ops(t, &start.tree, ret, em);
	else if (t->n_states)
		r = expected_from_recording(t, ret, em);
	else
		r = errmsg_set(em, 0,
			       "the recording holds no expected states;"
			       " --states trace rebuilds them from its"
			       " operations");
	if (r >= 0)
		*ret_usual = xstrdup(start.log);
	start_done(t, &start);
	return MIN(r, 0);
}

static int expect_others(struct exploration *x, struct errmsg *em)
{
	struct trace_opts o = { .model = x->o.trace.model };
	struct image_index *index;
	_cleanup_free_ char *usual = NULL;
	int r;

	if (!x->o.other_expected)
		return 0;
	r = load(x, x->o.other_expected, &o, &x->other, em);
	if (r < 0)
		return r;
	index = image_index_new(x->other);
	r = expect(x, x->other, index, &x->others, &usual, em);
	image_index_free(index);
	if (r < 0)
		return errmsg_wrap(em, r, "%s", x->o.other_expected);
	x->e = x->others;
	return 0;
}

static void set_judge(struct exploration *x)
{
	x->judge = (struct judge){
		.t = x->t,
		.e = x->e,
		.promises = x->p,
		.threshold = x->o.threshold,
		.check = x->o.check,
		.check_timeout_ns = x->o.check_timeout_ns,
	};
	judge_count_known(&x->judge);
}

static int open_pool(struct exploration *x, struct errmsg *em)
{
	struct pool_opts o = {
		.workers = x->o.workers,
		.fs_type = x->t->fs_type,
		.mount_point = x->t->mount_point,
		.mount_options = x->o.mount_options,
		.judge = judge,
		.done = done,
		.ctx = x,
	};

	if (x->o.check)	/* whatever a checker takes, the mount may also */
		o.timeout_ns = x->o.check_timeout_ns + CHECK_TIMEOUT_NS;
	return pool_new(x->t, x->index, &o, &x->pool, em);
}

static int set_out(struct exploration *x, struct errmsg *em)
{
	int r = load(x, x->recording, &x->o.trace, &x->t, em);

	if (r < 0)
		return r;
	x->index = image_index_new(x->t);
	r = expect(x, x->t, x->index, &x->own, &x->usual, em);
	if (r < 0)
		return r;
	x->e = x->own;
	r = expect_others(x, em);
	if (r < 0)
		return r;
	r = promises_build(x->t, x->own, &x->p, em);
	if (r < 0)
		return r;
	x->lost_seq = x->e == x->own ? x->own->lost_seq : SEQ_NEVER;
	x->data_seq = x->e == x->own ? expected_data_seq(x->own) : 0;
	site_book_init(&x->book, x->t, x->p, x->data_seq, x->lost_seq,
		       x->o.check != NULL);
	set_judge(x);
	return open_pool(x, em);
}

static void fill_defaults(struct exploration *x)
{
	struct explore_opts *o = &x->o;

	o->max_findings = o->max_findings ?: 16;
	o->check_timeout_ns = o->check_timeout_ns ?: CHECK_TIMEOUT_NS;
	if (!o->threshold)
		o->threshold = o->other_expected ? THRESHOLD_OTHER_RUN :
						   THRESHOLD_SAME_RUN;
	x->distance_judges = !o->check || o->distance_judges;
	o->progress &= isatty(STDERR_FILENO) != 0;
	if (o->for_ns)
		x->deadline_ns = x->started_ns + o->for_ns;
	if (o->widen_ns)
		x->widen_until_ns = x->started_ns + o->widen_ns;
}

static void exploration_done(struct exploration *x)
{
	if (x->pool)
		pool_free(x->pool);
	judge_done(&x->judge);
	judgement_done(&x->explanation);
	site_book_done(&x->book);
	verdict_table_done(&x->vt);
	if (x->p)
		promises_free(x->p);
	if (x->own)
		expected_free(x->own);
	if (x->others)
		expected_free(x->others);
	if (x->index)
		image_index_free(x->index);
	if (x->other)
		trace_free(x->other);
	if (x->t)
		trace_free(x->t);
	free(x->usual);
}

int explore(const char *recording, const struct explore_opts *opts,
	    struct explore_result *ret, struct errmsg *em)
{
	struct exploration x = {
		.recording = recording,
		.o = *opts,
		.started_ns = now_ns(),
	};
	struct errmsg unheard;
	int r;

	em = em ?: &unheard;
	if (geteuid() != 0)
		return errmsg_set(em, EPERM,
				  "crash sites are mounted to be judged, which"
				  " only root may do; run it with sudo");
	fill_defaults(&x);
	r = set_out(&x, em);
	if (r >= 0 && x.t->n_points)
		r = run_passes(&x, em);
	end_progress(&x);
	if (r >= 0)
		r = exploration_outcome(&x, ret, em);
	exploration_done(&x);
	return r;
}
