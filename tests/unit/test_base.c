// SPDX-License-Identifier: GPL-2.0-or-later
/* replay/base.c: buffers, cursors, sizes and times, safe printing. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../replay/base.h"

static void test_buffer_and_cursor_agree(void **state)
{
	_cleanup_buf_ struct buf b = { 0 };
	struct cursor c;
	char *s;

	(void)state;
	buf_put_u8(&b, 0xfe);
	buf_put_u16(&b, 0xfedc);
	buf_put_u32(&b, 0xfedcba98);
	buf_put_u64(&b, 0xfedcba9876543210);
	buf_put_str(&b, "text");
	buf_put_str(&b, "");
	buf_put(&b, "xyz", 3);
	/* little-endian, whatever the machine is */
	assert_memory_equal(b.data, "\xfe\xdc\xfe\x98\xba\xdc\xfe\x10\x32", 9);
	c = cursor_of(b.data, b.len);
	assert_int_equal(cur_u8(&c), 0xfe);
	assert_int_equal(cur_u16(&c), 0xfedc);
	assert_int_equal(cur_u32(&c), 0xfedcba98);
	assert_int_equal(cur_u64(&c), 0xfedcba9876543210);
	s = cur_str(&c);
	assert_string_equal(s, "text");
	free(s);
	s = cur_str(&c);
	assert_string_equal(s, "");
	free(s);
	assert_int_equal(cur_left(&c), 3);
	assert_memory_equal(cur_bytes(&c, 3), "xyz", 3);
	assert_int_equal(cur_left(&c), 0);
	assert_false(c.bad);
}

static void test_cursor_does_not_read_past_its_end(void **state)
{
	static const u8 data[] = { 1, 2, 3 };
	struct cursor c = cursor_of(data, 3);

	(void)state;
	assert_int_equal(cur_u32(&c), 0);
	assert_true(c.bad);
	/* and then nothing more, although a byte is there */
	assert_int_equal(cur_u8(&c), 0);
	assert_int_equal(cur_left(&c), 0);
	c = cursor_of(data, 3);
	assert_null(cur_bytes(&c, SIZE_MAX));
	assert_true(c.bad);
	c = cursor_of("\xff\xff\xff\xff" "abc", 7);
	assert_null(cur_str(&c));
	assert_true(c.bad);
	c = cursor_of("\x03\0\0\0" "a\0c", 7);
	assert_null(cur_str(&c));
	assert_true(c.bad);
}

static void test_buffer_grows_and_is_reused(void **state)
{
	struct buf b = { 0 };
	size_t cap;

	(void)state;
	for (u32 i = 0; i < 100000; i++)
		buf_put_u32(&b, i);
	assert_int_equal(b.len, 400000);
	for (u32 i = 0; i < 100000; i += 999)
		assert_memory_equal(b.data + i * 4, &i, 4);
	cap = b.cap;
	buf_reset(&b);
	assert_int_equal(b.len, 0);
	assert_int_equal(b.cap, cap);
	buf_free(&b);
	assert_null(b.data);
}

static void test_sizes(void **state)
{
	static const struct {
		const char *text;
		int err;
		u64 bytes;
	} cases[] = {
		{ "0", 0, 0 },
		{ "4096", 0, 4096 },
		{ "1k", 0, 1024 },
		{ "64M", 0, 64ULL << 20 },
		{ "64MiB", 0, 64ULL << 20 },
		{ "1G", 0, 1ULL << 30 },
		{ "2T", 0, 2ULL << 40 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "16777215T", 0, 16777215ULL << 40 },
		{ "16777216T", -ERANGE, 0 },
		{ "18446744073709551616", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1X", -EINVAL, 0 },
		{ "1MM", -EINVAL, 0 },
		{ "M", -EINVAL, 0 },
		{ "1.5G", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 bytes = 0;

		assert_int_equal(parse_size(cases[i].text, &bytes),
				 cases[i].err);
		assert_int_equal(bytes, cases[i].bytes);
	}
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		int err;
		u64 ns;
	} cases[] = {
		{ "10", 0, 10000000000 },
		{ "10s", 0, 10000000000 },
		{ "500ms", 0, 500000000 },
		{ "7us", 0, 7000 },
		{ "2m", 0, 120000000000 },
		{ "2min", 0, 120000000000 },
		{ "1h", 0, 3600000000000 },
		{ "99999999999h", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "s", -EINVAL, 0 },
		{ "1d", -EINVAL, 0 },
		{ "-1s", -EINVAL, 0 },
		{ "1 s", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 ns = 0;

		assert_int_equal(parse_time_ns(cases[i].text, &ns),
				 cases[i].err);
		assert_int_equal(ns, cases[i].ns);
	}
}

static void assert_printed(const char *text, const char *want)
{
	char *got = NULL;
	size_t len;
	FILE *out = open_memstream(&got, &len);

	print_safe(out, text);
	fclose(out);
	assert_string_equal(got, want);
	free(got);
}

static void test_names_cannot_drive_a_terminal(void **state)
{
	(void)state;
	assert_printed("plain name.txt", "plain name.txt");
	assert_printed("", "");
	assert_printed("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x92\xbe",
		       "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x92\xbe");
	assert_printed("\x1b[31m", "\\x1b[31m");
	assert_printed("a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f");
	/* C1: CSI as one character */
	assert_printed("\xc2\x9b" "31m", "\\xc2\\x9b31m");
	/* no UTF-8: alone, cut short, overlong, surrogate, too large */
	assert_printed("\xff", "\\xff");
	assert_printed("\xe2\x82", "\\xe2\\x82");
	assert_printed("\xc0\xaf", "\\xc0\\xaf");
	assert_printed("\xed\xa0\x80", "\\xed\\xa0\\x80");
	assert_printed("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	/* right-to-left override */
	assert_printed("\xe2\x80\xae", "\\xe2\\x80\\xae");
}

static void test_error_messages(void **state)
{
	char longest[3000];
	struct errmsg em;

	(void)state;
	assert_int_equal(errmsg_set(&em, ENOENT, "opening %s", "f"), -ENOENT);
	assert_string_equal(em.text, "opening f: No such file or directory");
	assert_int_equal(errmsg_set(&em, -EIO, "x"), -EIO);
	assert_int_equal(errmsg_set(&em, 0, "no reason"), -EINVAL);
	assert_string_equal(em.text, "no reason");
	assert_int_equal(errmsg_wrap(&em, -EIO, "doing %d", 3), -EIO);
	assert_string_equal(em.text, "doing 3: no reason");
	assert_int_equal(errmsg_set(NULL, EIO, "x"), -EIO);
	assert_int_equal(errmsg_wrap(NULL, -EIO, "x"), -EIO);
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	errmsg_set(&em, EIO, "%s", longest);
	assert_int_equal(strlen(em.text), sizeof(em.text) - 1);
	errmsg_wrap(&em, -EIO, "%s", longest);
	assert_int_equal(strlen(em.text), sizeof(em.text) - 1);
}

static void test_whole_reads_and_writes(void **state)
{
	int fd = memfd_create("test", MFD_CLOEXEC), pipes[2];
	char got[8];

	(void)state;
	assert_int_equal(write_full(fd, "abcdef", 6), 0);
	assert_int_equal(pwrite_full(fd, "X", 1, 2), 0);
	assert_int_equal(pread_full(fd, got, 6, 0), 0);
	assert_memory_equal(got, "abXdef", 6);
	assert_int_equal(pread_full(fd, got, 6, 1), -ENODATA);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(read_full(fd, got, 7), -ENODATA);
	close(fd);
	assert_int_equal(write_full(fd, "a", 1), -EBADF);
	/* short counts */
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(write_full(pipes[1], "ab", 2), 0);
	close(pipes[1]);
	assert_int_equal(read_full(pipes[0], got, 2), 0);
	assert_int_equal(read_full(pipes[0], got, 1), -ENODATA);
	close(pipes[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buffer_and_cursor_agree),
		cmocka_unit_test(test_cursor_does_not_read_past_its_end),
		cmocka_unit_test(test_buffer_grows_and_is_reused),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_names_cannot_drive_a_terminal),
		cmocka_unit_test(test_error_messages),
		cmocka_unit_test(test_whole_reads_and_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
