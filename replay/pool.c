// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The pool: starts workers, hands out jobs, notices what becomes of them.
 *
 * Invariants:
 *  1. A job is in the backlog, or in one place's queue, or done() was called
 *     for it; done() is called once for each.
 *  2. A worker works on the head of its queue. Whatever becomes of the worker
 *     costs the head; what stood behind it goes back to the backlog.
 *  3. A worker that cannot be killed yet (it hangs in the kernel) is kept in a
 *     list and reaped when it goes; nobody waits for it.
 *  4. After a failure (judge, done, start) the pool does nothing any more but
 *     repeat it.
 */
#include "place.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define WORKERS_MAX 256
#define START_TRIES 3	/* deaths at the start, one after the other */
#define START_NS 300000000000ULL
#define TIMEOUT_NS 30000000000ULL

struct pool {
	const struct trace *trace;
	const struct image_index *index;
	struct pool_opts opts;
	struct mount_spec spec;
	bool btrfs_alone;
	u32 n_places;
	struct place *places;
	struct pollfd *polls;
	struct queued *backlog, **backlog_end;
	u32 n_unborn;		/* workers that died at the start in a row */
	u32 n_started;
	u64 image_bytes;	/* memory one image takes */
	char *limits;
	u32 n_dying, cap_dying;
	pid_t *dying;
	int failed;		/* negative errno, em says why */
	struct errmsg em;
};

static int fail(struct pool *p, int err, const char *what)
{
	if (!p->failed) {
		snprintf(p->em.text, sizeof(p->em.text), "%s", what);
		p->failed = err < 0 ? err : -EIO;
	}
	return p->failed;
}

/* ---- processes ----------------------------------------------------------- */

static void reap_dying(struct pool *p)
{
	int status;

	for (u32 i = 0; i < p->n_dying;)
		if (child_ended(p->dying[i], &status))
			p->dying[i] = p->dying[--p->n_dying];
		else
			i++;
}

/* The worker's init, told to end or known to. 0 when it hangs. */
static int end_of(struct pool *p, struct place *w)
{
	int status;

	if (place_wait_end(w, &status))
		return death_cause(status);
	kill(w->pid, SIGKILL);
	GROW(p->dying, p->n_dying, p->cap_dying);
	p->dying[p->n_dying++] = w->pid;
	return 0;
}

static int start(struct pool *p, struct place *w)
{
	struct worker_setup setup = {
		.trace = p->trace,
		.index = p->index,
		.opts = &p->opts,
		.spec = &p->spec,
		.number = p->n_started++,
		.btrfs_alone = p->btrfs_alone,
	};
	struct errmsg em;
	int r;

	r = place_start(w, &setup, p->places, p->n_places, &em);
	if (r < 0)
		return fail(p, r, em.text);
	w->deadline_ns = now_ns() + START_NS;
	return 0;
}

static void job_free(struct queued *q)
{
	free((void *)q->job.st.drop);
	free(q);
}

/* ---- jobs ---------------------------------------------------------------- */

static void backlog_add(struct pool *p, struct queued *q)
{
	q->next = NULL;
	*p->backlog_end = q;
	p->backlog_end = &q->next;
}

static struct queued *backlog_take(struct pool *p)
{
	struct queued *q = p->backlog;

	if (q) {
		p->backlog = q->next;
		if (!q->next)
			p->backlog_end = &p->backlog;
	}
	return q;
}

static void clock_head(const struct pool *p, struct place *w)
{
	w->deadline_ns = w->n_jobs ? now_ns() + p->opts.timeout_ns : UINT64_MAX;
}

static struct queued *queue_take(struct pool *p, struct place *w)
{
	struct queued *q = w->jobs[0];

	w->n_jobs--;
	memmove(w->jobs, w->jobs + 1, w->n_jobs * sizeof(w->jobs[0]));
	clock_head(p, w);
	return q;
}

static void give(struct pool *p, struct place *w, struct queued *q)
{
	place_put_job(w, &q->job);
	w->jobs[w->n_jobs++] = q;
	if (w->n_jobs == 1)
		clock_head(p, w);
}

/* The running worker with the shortest queue that is not full. Nobody waits
 * behind another job while a worker is about to have nothing to do. */
static struct place *free_place(struct pool *p)
{
	struct place *best = NULL;
	u32 room = QUEUE_DEPTH;

	for (u32 i = 0; i < p->n_places; i++)
		if (p->places[i].state == STARTING)
			room = 1;
	for (u32 i = 0; i < p->n_places; i++) {
		struct place *w = &p->places[i];

		if (w->state == RUNNING && w->n_jobs < room &&
		    (!best || w->n_jobs < best->n_jobs))
			best = w;
	}
	return best;
}

static void hand_out(struct pool *p)
{
	struct place *w;

	while (p->backlog && (w = free_place(p)))
		give(p, w, backlog_take(p));
}

static int report(struct pool *p, struct queued *q, enum mount_outcome outcome,
		  int error, const char *log, const void *answer, size_t len)
{
	int r = p->opts.done(p->opts.ctx, q->job.id, outcome, error, log,
			     answer, len);

	job_free(q);
	return r < 0 ? fail(p, r, "taking a worker's answer") : 0;
}

/* ---- what becomes of a worker -------------------------------------------- */

/* The worker has ended, or has been silent for too long. */
static int lose(struct pool *p, struct place *w, enum mount_outcome outcome)
{
	struct queued *head = w->n_jobs ? queue_take(p, w) : NULL;
	bool unborn = w->state == STARTING;
	struct errmsg em;
	int cause;

	if (outcome == MOUNT_TIMED_OUT)
		kill(w->pid, SIGKILL);
	cause = end_of(p, w);
	if (outcome == MOUNT_TIMED_OUT)
		cause = -ETIMEDOUT;
	while (w->n_jobs)
		backlog_add(p, queue_take(p, w));
	place_vacate(w);
	if (head)
		report(p, head, outcome, cause, "", NULL, 0);
	p->n_unborn = unborn ? p->n_unborn + 1 : 0;
	if (p->n_unborn >= START_TRIES) {
		errmsg_set(&em, cause < 0 ? cause : EIO, "starting a worker: %u"
			   " ended in a row, the last by signal %d",
			   START_TRIES, MAX(cause, 0));
		return fail(p, -EIO, em.text);
	}
	return p->failed ? p->failed : start(p, w);
}

static void worker_ready(struct pool *p, struct place *w, const char *log,
			 const void *answer, size_t len)
{
	struct cursor c = cursor_of(answer, len);

	w->state = RUNNING;
	clock_head(p, w);
	p->n_unborn = 0;
	p->image_bytes = cur_u64(&c);
	free(p->limits);
	p->limits = xstrdup(log);
}

static int take_message(struct pool *p, struct place *w, const void *data,
			size_t len)
{
	struct cursor c = cursor_of(data, len);
	u8 kind = cur_u8(&c);
	s32 error = cur_u32(&c);
	_cleanup_free_ char *log = cur_str(&c);
	size_t left = cur_left(&c);
	const void *answer = cur_bytes(&c, left);

	if (c.bad)
		return fail(p, -EPROTO, "reading a worker's answer");
	if (kind == ANSWER_FATAL)
		return fail(p, error, log);
	if (kind == ANSWER_READY && w->state == STARTING) {
		worker_ready(p, w, log, answer, left);
		return 0;
	}
	if ((kind != MOUNT_OK && kind != MOUNT_FAILED) || !w->n_jobs)
		return fail(p, -EPROTO, "a worker's answer makes no sense");
	return report(p, queue_take(p, w), kind, error, log, answer, left);
}

static int take_messages(struct pool *p, struct place *w)
{
	const void *data;
	size_t pos = 0, len;
	int r = 0;

	while (r == 0 && place_next_message(w, &pos, &data, &len))
		r = take_message(p, w, data, len);
	place_taken(w, pos);
	return r;
}

static int serve(struct pool *p, struct place *w, short events)
{
	bool alive = true;
	int r;

	if (events & (POLLIN | POLLHUP | POLLERR)) {
		alive = place_receive(w);
		r = take_messages(p, w);
		if (r < 0)
			return r;
	}
	if (!alive)
		return lose(p, w, MOUNT_WORKER_DIED);
	if (now_ns() > w->deadline_ns)
		return lose(p, w, MOUNT_TIMED_OUT);
	return 0;
}

/* Milliseconds until the first deadline, rounded up; at most a minute. */
static int poll_timeout(const struct pool *p)
{
	u64 now = now_ns(), first = now + 60000000000ULL;

	for (u32 i = 0; i < p->n_places; i++)
		if (p->places[i].state != EMPTY)
			first = MIN(first, p->places[i].deadline_ns);
	return first <= now ? 0 : (first - now) / 1000000 + 1;
}

/* One round: hands out, waits (or not) for something, deals with it. */
static int pump(struct pool *p, bool wait)
{
	if (p->failed)
		return p->failed;
	hand_out(p);
	for (u32 i = 0; i < p->n_places; i++) {
		struct place *w = &p->places[i];

		if (w->state != EMPTY)
			place_transmit(w);
		p->polls[i] = (struct pollfd){
			.fd = w->state == EMPTY ? -1 : w->sock,
			.events = POLLIN |
				  (w->out_done < w->out.len ? POLLOUT : 0),
		};
	}
	if (poll(p->polls, p->n_places, wait ? poll_timeout(p) : 0) < 0) {
		if (errno == EINTR)
			return 0;
		return fail(p, -errno, "waiting for workers");
	}
	for (u32 i = 0; i < p->n_places && !p->failed; i++)
		if (p->places[i].state != EMPTY)
			serve(p, &p->places[i], p->polls[i].revents);
	reap_dying(p);
	return p->failed;
}

static int give_reason(const struct pool *p, int r, struct errmsg *em)
{
	if (r < 0 && em)
		*em = p->em;
	return r;
}

int pool_submit(struct pool *p, const struct job *j, struct errmsg *em)
{
	struct queued *q;
	int r = p->failed;

	while (r == 0 && (p->backlog || !free_place(p)))
		r = pump(p, true);
	if (r < 0)
		return give_reason(p, r, em);
	q = xzalloc(sizeof(*q));
	q->job = *j;
	q->job.st.drop = xreallocarray(NULL, j->st.n_drop, sizeof(u32));
	if (j->st.n_drop)
		memcpy((void *)q->job.st.drop, j->st.drop,
		       j->st.n_drop * sizeof(u32));
	backlog_add(p, q);
	return give_reason(p, pump(p, false), em);
}

static bool is_busy(const struct pool *p)
{
	for (u32 i = 0; i < p->n_places; i++)
		if (p->places[i].n_jobs)
			return true;
	return p->backlog;
}

int pool_drain(struct pool *p, struct errmsg *em)
{
	int r = p->failed;

	while (r == 0 && is_busy(p))
		r = pump(p, true);
	return give_reason(p, r, em);
}

/* ---- the whole ----------------------------------------------------------- */

static bool any_running(const struct pool *p)
{
	for (u32 i = 0; i < p->n_places; i++)
		if (p->places[i].state == RUNNING)
			return true;
	return false;
}

static int start_places(struct pool *p, u32 n)
{
	int r = 0;

	n = p->btrfs_alone ? 1 : MIN(n, WORKERS_MAX);
	p->places = xreallocarray(p->places, n, sizeof(*p->places));
	p->polls = xreallocarray(p->polls, n, sizeof(*p->polls));
	while (r == 0 && p->n_places < n) {
		place_init(&p->places[p->n_places++]);
		r = start(p, &p->places[p->n_places - 1]);
	}
	return r;
}

/* Bytes of memory that can be had, as the kernel reckons; 0: unknown. */
static u64 memory_available(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			return kib << 10;
	return 0;
}

/* Two for each processor (a mount waits half of its time), as long as their
 * images take no more than half of the memory. */
static u32 default_workers(const struct pool *p)
{
	u64 n = 2 * MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	u64 memory = memory_available();

	if (p->image_bytes && memory)
		n = MIN(n, 1 + memory / 2 / p->image_bytes);
	return n;
}

static int start_all(struct pool *p)
{
	int r = start_places(p, p->opts.workers ? p->opts.workers : 1);

	while (r == 0 && !any_running(p))
		r = pump(p, true);
	if (r == 0 && !p->opts.workers)
		r = start_places(p, default_workers(p));
	return r;
}

int pool_new(const struct trace *t, const struct image_index *x,
	     const struct pool_opts *opts, struct pool **ret, struct errmsg *em)
{
	struct pool *p = xzalloc(sizeof(*p));
	int r;

	p->trace = t;
	p->index = x;
	p->opts = *opts;
	p->limits = xstrdup("");
	p->backlog_end = &p->backlog;
	if (!p->opts.timeout_ns)
		p->opts.timeout_ns = TIMEOUT_NS;
	r = mount_spec_parse(opts->fs_type, opts->mount_options, &p->spec, em);
	if (r == 0)
		r = mount_spec_check(&p->spec, em);
	if (r < 0)
		goto fail;
	p->btrfs_alone = !strcmp(opts->fs_type, "btrfs") &&
			 access("/sys/fs/btrfs/features/temp_fsid", F_OK) < 0;
	r = give_reason(p, start_all(p), em);
	if (r < 0)
		goto fail;
	*ret = p;
	return 0;
fail:
	pool_free(p);
	return r;
}

u32 pool_workers(const struct pool *p)
{
	return p->n_places;
}

const char *pool_limits(const struct pool *p)
{
	return p->limits;
}

void pool_free(struct pool *p)
{
	struct queued *q;

	if (!p)
		return;
	for (u32 i = 0; i < p->n_places; i++)
		if (p->places[i].state != EMPTY)
			kill(p->places[i].pid, SIGKILL);
	for (u32 i = 0; i < p->n_places; i++) {
		struct place *w = &p->places[i];

		if (w->state == EMPTY)
			continue;
		end_of(p, w);
		while (w->n_jobs)
			job_free(queue_take(p, w));
		place_vacate(w);
	}
	while ((q = backlog_take(p)))
		job_free(q);
	reap_dying(p);
	mount_spec_done(&p->spec);
	free(p->places);
	free(p->polls);
	free(p->dying);
	free(p->limits);
	free(p);
}
