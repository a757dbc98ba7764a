// SPDX-License-Identifier: GPL-2.0-or-later
/* The queue of frames by itself: how hard it tries, and how much it holds. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include <zstd.h>

#include "../../replay/frame_queue.h"
#include "recording_help.h"

static void test_level_falls_with_what_waits(void **state)
{
	int last = 19;

	(void)state;
	for (u64 bytes = 0; bytes <= FRAME_QUEUE_BYTES; bytes += 1 << 20) {
		int level = frame_level(19, bytes);

		assert_true(level <= last);
		last = level;
		/* never stronger than asked for */
		assert_true(frame_level(-7, bytes) <= -7);
		assert_true(frame_level(1, bytes) <= 1);
	}
	assert_int_equal(frame_level(19, 0), 19);
	assert_int_equal(last, FRAME_STORED);
}

/* ---- a slow file --------------------------------------------------------- */

#define SLOW_FRAMES 400U
#define SLOW_BYTES 4000U

struct slow {
	struct frame_queue *q;
	u32 n_put;	/* atomic */
	int error;
};

static void *put_slow_frames(void *arg)
{
	struct slow *s = arg;
	struct buf raw = { 0 };
	u8 data[SLOW_BYTES];
	u32 x = 1;

	for (u32 i = 0; i < SLOW_FRAMES && !s->error; i++) {
		fill_random(data, sizeof(data), &x);
		buf_put(&raw, data, sizeof(data));
		s->error = frame_queue_put(s->q, &raw);
		__atomic_add_fetch(&s->n_put, 1, __ATOMIC_RELEASE);
	}
	buf_free(&raw);
	return NULL;
}

static void read_slow_frame(int fd, u64 number, u32 *x)
{
	u8 head[FRAME_HEADER_BYTES], raw[SLOW_BYTES], data[SLOW_BYTES];
	u8 body[SLOW_BYTES * 2];
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	struct frame_header h;
	const char *why = "";

	assert_int_equal(read_full(fd, head, sizeof(head)), 0);
	assert_int_equal(frame_header_decode(head, 5, number, &h, &why), 0);
	assert_int_equal(h.raw_bytes, SLOW_BYTES);
	assert_true(h.zstd_bytes <= sizeof(body));
	assert_int_equal(read_full(fd, body, h.zstd_bytes), 0);
	assert_int_equal(frame_body_check(&h, 5, body, &why), 0);
	assert_int_equal(frame_body_decode(&h, zstd, body, raw, &why), 0);
	fill_random(data, sizeof(data), x);
	assert_memory_equal(raw, data, sizeof(data));
	ZSTD_freeDCtx(zstd);
}

/* A pipe is as slow as its reader. */
static void test_a_slow_file_makes_who_puts_wait(void **state)
{
	struct slow s = { 0 };
	struct frame_queue_opts opts = { .id = 5, .level = 1, .threads = 3 };
	pthread_t thread;
	u32 x = 1, in_pipe;
	int fds[2], err;

	(void)state;
	alarm(120);	/* rather than wait for ever, if somebody waits wrongly */
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	in_pipe = fcntl(fds[1], F_SETPIPE_SZ, 4096) / SLOW_BYTES + 1;
	opts.fd = fds[1];
	assert_int_equal(frame_queue_new(&opts, &s.q), 0);
	assert_int_equal(pthread_create(&thread, NULL, put_slow_frames, &s), 0);
	/* It gets as far as the queue is long, with nobody reading. */
	while (__atomic_load_n(&s.n_put, __ATOMIC_ACQUIRE) < FRAME_QUEUE_FRAMES)
		sched_yield();
	for (u32 i = 0; i < SLOW_FRAMES; i++) {
		u32 n = __atomic_load_n(&s.n_put, __ATOMIC_ACQUIRE);

		assert_true(n <= i + FRAME_QUEUE_FRAMES + in_pipe);
		read_slow_frame(fds[0], i, &x);
	}
	err = pthread_join(thread, NULL);
	assert_int_equal(err, 0);
	assert_int_equal(s.error, 0);
	assert_int_equal(frame_queue_wait(s.q), 0);
	frame_queue_free(s.q);
	alarm(0);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_level_falls_with_what_waits),
		cmocka_unit_test(test_a_slow_file_makes_who_puts_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
