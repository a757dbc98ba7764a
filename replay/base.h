/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every file of the offline half leans on: fixed-width names, cleanup
 * attributes, error messages and a growable byte buffer.
 *
 * Conventions, everywhere in blkbox:
 *  - a function that can fail returns 0 or a negative errno;
 *  - a ..._next() function returns 1 for an item, 0 at the end, or a negative
 *    errno;
 *  - output parameters are named ret_... and written only on success;
 *  - a function that takes a struct errmsg fills it in when it fails: what was
 *    being done, to what, why it failed, what the user can do. The message is
 *    printed once, by whoever decides to give up.
 */
#ifndef BLKBOX_BASE_H
#define BLKBOX_BASE_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define SECTOR_SHIFT 9
#define SECTOR_SIZE (1U << SECTOR_SHIFT)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Exit statuses of every verb. */
enum exit_status {
	EXIT_CONSISTENT = 0,
	EXIT_INCONSISTENT = 1,	/* an inconsistent crash site was found */
	EXIT_CANNOT_RUN = 2,	/* usage, privilege, environment */
	EXIT_INCOMPLETE = 3,	/* ran, but the evidence is incomplete */
};

struct errmsg {
	char text[1024];
};

/*
 * Sets em's text and returns -err, so that a failing function ends in
 * "return errmsg_set(em, errno, "opening %s", path);". The reason for err is
 * appended (": No such file or directory") unless err is 0, which then
 * returns -EINVAL. em may be NULL.
 */
int errmsg_set(struct errmsg *em, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text em already has; returns err unchanged. */
int errmsg_wrap(struct errmsg *em, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Allocation that ends the program with a message when memory is out. */
void *xmalloc(size_t bytes);
void *xzalloc(size_t bytes);
void *xrealloc(void *p, size_t bytes);
void *xreallocarray(void *p, size_t n, size_t bytes);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Makes room for one more item in an array of n items with capacity *cap.
 * items is a pointer variable; it is reassigned.
 */
#define GROW(items, n, cap)                                                    \
	do {                                                                   \
		if ((n) == (cap)) {                                            \
			(cap) = (cap) ? (cap)*2 : 16;                          \
			(items) =                                              \
				xreallocarray(items, cap, sizeof(*(items)));   \
		}                                                              \
	} while (0)

void freep(void *p);	/* p is the address of a pointer */
void closep(int *fd);	/* closes when >= 0 */
void fclosep(FILE **f);
#define _cleanup_free_ __attribute__((cleanup(freep)))
#define _cleanup_close_ __attribute__((cleanup(closep)))
#define _cleanup_fclose_ __attribute__((cleanup(fclosep)))

/* Growable bytes; zero-initialise, buf_free() when done. */
struct buf {
	u8 *data;
	size_t len;
	size_t cap;
};

void buf_put(struct buf *b, const void *data, size_t len);
void buf_put_u8(struct buf *b, u8 v);
void buf_put_u16(struct buf *b, u16 v);	/* integers go in little-endian */
void buf_put_u32(struct buf *b, u32 v);
void buf_put_u64(struct buf *b, u64 v);
void buf_put_str(struct buf *b, const char *s);	/* u32 length, bytes */
void buf_reset(struct buf *b);	/* empty, memory kept */
void buf_free(struct buf *b);
#define _cleanup_buf_ __attribute__((cleanup(buf_free)))

/*
 * A reader of untrusted bytes. Reads past the end return 0 (or NULL) and set
 * bad; check bad once, after a group of reads and before using them.
 */
struct cursor {
	const u8 *data;
	size_t len;
	size_t pos;
	bool bad;
};

struct cursor cursor_of(const void *data, size_t len);
u8 cur_u8(struct cursor *c);
u16 cur_u16(struct cursor *c);
u32 cur_u32(struct cursor *c);
u64 cur_u64(struct cursor *c);
const void *cur_bytes(struct cursor *c, size_t len);	/* points into data */
/* A string written by buf_put_str(); heap copy owned by the caller. A NUL
 * inside makes it bad. */
char *cur_str(struct cursor *c);
size_t cur_left(const struct cursor *c);

/* Whole reads and writes, EINTR and short counts handled. */
int read_full(int fd, void *data, size_t len);	/* -ENODATA when cut short */
int write_full(int fd, const void *data, size_t len);
int pread_full(int fd, void *data, size_t len, off_t off);
int pwrite_full(int fd, const void *data, size_t len, off_t off);

/* "64M", "1G", "4096" to bytes; suffixes K M G T are powers of 1024. */
int parse_size(const char *text, u64 *ret_bytes);
/* "10", "10s", "500ms", "2m" to nanoseconds. */
int parse_time_ns(const char *text, u64 *ret_ns);
/* A decimal number and nothing else, least <= *ret <= most. */
int parse_u64(const char *text, u64 least, u64 most, u64 *ret);
int parse_u32(const char *text, u32 least, u32 most, u32 *ret);
/* "8:16" to major << 20 | minor, never 0. */
int parse_dev(const char *text, u32 *ret);
/* The number of text among n names. */
int parse_choice(const char *text, const char *const *names, size_t n);
u64 now_ns(void);	/* CLOCK_MONOTONIC */

/*
 * Writes text with control characters, DEL and invalid UTF-8 as \xNN, so that
 * a name from a recording cannot drive a terminal.
 */
void print_safe(FILE *out, const char *text);

/* text as one word for sh, quoted where it must be; heap. */
char *shell_quote(const char *text);

#endif
