// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A frame is put, taken by a thread, which compresses it and hashes it, and
 * written; slots are used in a circle, by the frame's number:
 *
 *      head                taken                     tail
 *       | compressing or    | waiting                 |
 *       | waiting for its   |                         |
 *       | turn              |                         |
 *
 * Invariants:
 *  1. head <= taken <= tail <= head + FRAME_QUEUE_FRAMES.
 *  2. Frames are written in the order of their numbers, by one thread at a
 *     time (writing). Whoever is done with a frame while nobody writes writes
 *     it, and those behind it that are done, if it is its turn.
 *  3. The file holds whole frames only, while nobody writes. A frame that
 *     could not be written whole is cut off again.
 *  4. The first error, in the order of frames, stays. No frame after it is
 *     written; they are dropped, so that who waits does not wait for ever.
 *  5. All of struct frame_queue is guarded by lock, but for error, which is
 *     set under it, and what is const after frame_queue_new(). A slot belongs
 *     to the thread that took it, until it is done.
 *  6. Compression never is what holds up the queue: the more waits, here or at
 *     whoever puts, the weaker it is, down to none where it would not shrink
 *     much. A slow file alone does not weaken it, for what waits to be written
 *     is not counted.
 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#include <zstd.h>

#include "frame_queue.h"
#include "recording_layout.h"

#define THREADS_MAX 4
/* Buffers kept for the next frame; larger ones are not. */
#define SPARE_MAX 8
#define SPARE_BYTES (4U << 20)
#define FASTEST_LEVEL (-5)
#define SAMPLES 5
#define SAMPLE_BYTES 4096

struct slot {
	struct buf raw;
	struct buf out;		/* as frame_encode() or stored_encode() made it;
				 * raw is needed too if stored */
	size_t raw_bytes;
	bool stored;
	bool done;
	int error;
};

struct spares {
	struct buf bufs[SPARE_MAX];
	unsigned int n;
};

struct worker {
	struct frame_queue *q;
	ZSTD_CCtx *zstd;
	pthread_t thread;
};

struct frame_queue {
	struct frame_queue_opts o;
	unsigned int n_threads;
	struct worker workers[THREADS_MAX];
	pid_t pid;

	pthread_mutex_t lock;
	pthread_cond_t work;		/* tail has moved, or stop */
	pthread_cond_t progress;	/* head has moved */
	struct slot slots[FRAME_QUEUE_FRAMES];
	u64 head, taken, tail;
	u64 queued_bytes;		/* of records, from head on */
	u64 waiting_bytes;		/* ... from taken on */
	u64 backlog_bytes;		/* frame_queue_backlog() */
	u64 file_bytes;
	bool writing;
	bool stop;
	int error;
	/* Last in, first out: what was just used is in the cache. */
	struct spares raws, outs;
};

int frame_level(int level, u64 waiting_bytes)
{
	static const struct {
		u64 waiting_bytes;
		int level;
	} steps[] = {
		{ FRAME_QUEUE_BYTES / 4, FRAME_STORED },
		{ FRAME_QUEUE_BYTES / 8, FASTEST_LEVEL },
		{ FRAME_QUEUE_BYTES / 16, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (waiting_bytes >= steps[i].waiting_bytes)
			return MIN(level, steps[i].level);
	return level;
}

/* ---- buffers ------------------------------------------------------------- */

static struct buf spare_get(struct spares *s)
{
	return s->n ? s->bufs[--s->n] : (struct buf){ 0 };
}

static void spare_put(struct spares *s, struct buf *b)
{
	if (s->n == SPARE_MAX || b->cap > SPARE_BYTES) {
		buf_free(b);
		return;
	}
	buf_reset(b);
	s->bufs[s->n++] = *b;
	*b = (struct buf){ 0 };
}

static void spares_free(struct spares *s)
{
	while (s->n)
		buf_free(&s->bufs[--s->n]);
}

/* ---- one frame ----------------------------------------------------------- */

/* Does it shrink to a half at least, as some samples of it do? */
static bool shrinks(ZSTD_CCtx *zstd, const struct buf *raw)
{
	u8 out[ZSTD_COMPRESSBOUND(SAMPLE_BYTES)];
	size_t sum = 0;

	if (raw->len < SAMPLES * SAMPLE_BYTES)
		return true;
	for (size_t i = 0; i < SAMPLES; i++) {
		size_t at = (raw->len - SAMPLE_BYTES) / (SAMPLES - 1) * i;

		sum += ZSTD_compressCCtx(zstd, out, sizeof(out), raw->data + at,
					 SAMPLE_BYTES, FASTEST_LEVEL);
	}
	return sum < SAMPLES * SAMPLE_BYTES / 2;
}

static void encode(const struct frame_queue *q, struct slot *s, ZSTD_CCtx *zstd,
		   u64 number, int level)
{
	/* Then compressing it is less work than writing all of it. */
	if (level == FRAME_STORED && shrinks(zstd, &s->raw))
		level = MIN(q->o.level, FASTEST_LEVEL);
	s->stored = level == FRAME_STORED;
	if (s->stored)
		stored_encode(&s->out, q->o.id, number, s->raw.data,
			      s->raw.len);
	else
		s->error = frame_encode(&s->out, zstd, level, q->o.id, number,
					s->raw.data, s->raw.len);
}

static int write_frame(const struct frame_queue *q, const struct slot *s,
		       u64 file_bytes, u64 *ret_bytes)
{
	int err = s->error;

	if (err < 0)
		return err;
	if (s->stored) {
		err = stored_write(q->o.fd, &s->out, s->raw.data, s->raw.len);
		*ret_bytes = s->out.len + s->raw.len;
	} else {
		err = write_full(q->o.fd, s->out.data, s->out.len);
		*ret_bytes = s->out.len;
	}
	if (err < 0)
		(void)!ftruncate(q->o.fd, file_bytes);
	return err;
}

/* ---- with the lock held -------------------------------------------------- */

static void write_head(struct frame_queue *q)
{
	struct slot *s = &q->slots[q->head % FRAME_QUEUE_FRAMES];
	u64 file_bytes = q->file_bytes, bytes = 0;
	bool drop = q->error;
	int err = 0;

	if (!drop) {
		pthread_mutex_unlock(&q->lock);
		err = write_frame(q, s, file_bytes, &bytes);
		pthread_mutex_lock(&q->lock);
	}
	if (err < 0)
		__atomic_store_n(&q->error, err, __ATOMIC_RELEASE);
	else if (!drop)
		q->file_bytes += bytes;
	spare_put(&q->raws, &s->raw);
	spare_put(&q->outs, &s->out);
	s->done = false;
	s->error = 0;
	q->queued_bytes -= s->raw_bytes;
	q->head++;
	pthread_cond_signal(&q->progress);
}

static void write_done(struct frame_queue *q)
{
	if (q->writing)
		return;
	q->writing = true;
	while (q->head < q->taken &&
	       q->slots[q->head % FRAME_QUEUE_FRAMES].done)
		write_head(q);
	q->writing = false;
}

static void take_one(struct frame_queue *q, ZSTD_CCtx *zstd)
{
	u64 number = q->taken++;
	struct slot *s = &q->slots[number % FRAME_QUEUE_FRAMES];
	int level;

	assert(number < q->tail && !s->done);
	q->waiting_bytes -= s->raw_bytes;
	level = frame_level(q->o.level, q->waiting_bytes + q->backlog_bytes);
	s->out = spare_get(&q->outs);
	pthread_mutex_unlock(&q->lock);
	encode(q, s, zstd, number, level);
	pthread_mutex_lock(&q->lock);
	if (!s->stored)
		spare_put(&q->raws, &s->raw);
	s->done = true;
	write_done(q);
}

/* ---- threads ------------------------------------------------------------- */

static void *worker_run(void *arg)
{
	struct worker *me = arg;
	struct frame_queue *q = me->q;

	pthread_mutex_lock(&q->lock);
	for (;;) {
		while (q->taken == q->tail && !q->stop)
			pthread_cond_wait(&q->work, &q->lock);
		if (q->taken == q->tail)
			break;
		take_one(q, me->zstd);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

static unsigned int processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return CPU_COUNT(&set);
}

/* No signal is handled in our threads; whoever waits for one gets it. */
static void start_threads(struct frame_queue *q, unsigned int wanted)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (; q->n_threads < wanted; q->n_threads++) {
		struct worker *w = &q->workers[q->n_threads];

		if (!w->zstd || pthread_create(&w->thread, NULL, worker_run, w))
			break;
		pthread_setname_np(w->thread, "blkbox-frames");
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int frame_queue_new(const struct frame_queue_opts *opts,
		    struct frame_queue **ret)
{
	struct frame_queue *q = xzalloc(sizeof(*q));
	unsigned int wanted = 0;

	if (opts->threads >= 0)
		wanted = MIN(opts->threads ? (unsigned int)opts->threads :
					     processors(), THREADS_MAX);
	q->o = *opts;
	q->file_bytes = opts->file_bytes;
	q->pid = getpid();
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->work, NULL);
	pthread_cond_init(&q->progress, NULL);
	for (unsigned int i = 0; i < MAX(wanted, 1U); i++) {
		q->workers[i].q = q;
		q->workers[i].zstd = ZSTD_createCCtx();
	}
	if (!q->workers[0].zstd) {
		frame_queue_free(q);
		return -ENOMEM;
	}
	start_threads(q, wanted);
	*ret = q;
	return 0;
}

void frame_queue_free(struct frame_queue *q)
{
	if (!q)
		return;
	assert(q->pid == getpid());
	pthread_mutex_lock(&q->lock);
	q->stop = true;
	pthread_cond_broadcast(&q->work);
	pthread_mutex_unlock(&q->lock);
	for (unsigned int i = 0; i < q->n_threads; i++)
		pthread_join(q->workers[i].thread, NULL);
	assert(q->head == q->tail && !q->queued_bytes);
	for (unsigned int i = 0; i < THREADS_MAX; i++)
		ZSTD_freeCCtx(q->workers[i].zstd);
	spares_free(&q->raws);
	spares_free(&q->outs);
	pthread_cond_destroy(&q->progress);
	pthread_cond_destroy(&q->work);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

/* ---- filling ------------------------------------------------------------- */

static bool has_room(const struct frame_queue *q, size_t bytes)
{
	if (q->tail == q->head)
		return true;
	return q->tail - q->head < FRAME_QUEUE_FRAMES &&
	       q->queued_bytes + bytes <= FRAME_QUEUE_BYTES;
}

int frame_queue_put(struct frame_queue *q, struct buf *raw)
{
	struct slot *s;
	int err;

	assert(raw->len);
	pthread_mutex_lock(&q->lock);
	while (!has_room(q, raw->len))
		pthread_cond_wait(&q->progress, &q->lock);
	err = q->error;
	if (!err) {
		s = &q->slots[q->tail++ % FRAME_QUEUE_FRAMES];
		s->raw = *raw;
		s->raw_bytes = raw->len;
		q->queued_bytes += raw->len;
		q->waiting_bytes += raw->len;
		*raw = spare_get(&q->raws);
		pthread_cond_signal(&q->work);
		if (!q->n_threads)
			take_one(q, q->workers[0].zstd);
		err = q->error;
	}
	pthread_mutex_unlock(&q->lock);
	return err;
}

int frame_queue_wait(struct frame_queue *q)
{
	int err;

	pthread_mutex_lock(&q->lock);
	while (q->head != q->tail)
		pthread_cond_wait(&q->progress, &q->lock);
	err = q->error;
	pthread_mutex_unlock(&q->lock);
	return err;
}

void frame_queue_backlog(struct frame_queue *q, u64 bytes)
{
	pthread_mutex_lock(&q->lock);
	q->backlog_bytes = bytes;
	pthread_mutex_unlock(&q->lock);
}

int frame_queue_error(const struct frame_queue *q)
{
	return __atomic_load_n(&q->error, __ATOMIC_ACQUIRE);
}

u64 frame_queue_file_bytes(struct frame_queue *q)
{
	u64 bytes;

	pthread_mutex_lock(&q->lock);
	bytes = q->file_bytes;
	pthread_mutex_unlock(&q->lock);
	return bytes;
}
