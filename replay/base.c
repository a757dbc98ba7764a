// SPDX-License-Identifier: GPL-2.0-or-later
#include "base.h"

#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int errmsg_set(struct errmsg *em, int err, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (err < 0)
		err = -err;
	if (em) {
		va_start(ap, fmt);
		n = vsnprintf(em->text, sizeof(em->text), fmt, ap);
		va_end(ap);
		if (err && n >= 0 && (size_t)n < sizeof(em->text))
			snprintf(em->text + n, sizeof(em->text) - n, ": %s",
				 strerror(err));
	}
	return err ? -err : -EINVAL;
}

int errmsg_wrap(struct errmsg *em, int err, const char *fmt, ...)
{
	char old[sizeof(em->text)];
	va_list ap;
	int n;

	if (!em)
		return err;
	memcpy(old, em->text, sizeof(old));
	va_start(ap, fmt);
	n = vsnprintf(em->text, sizeof(em->text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(em->text))
		(void)!snprintf(em->text + n, sizeof(em->text) - n, ": %.*s",
				(int)(sizeof(em->text) - n), old);
	return err;
}

static void *no_memory(void)
{
	static const char msg[] = "blkbox: out of memory\n";

	(void)!write(STDERR_FILENO, msg, sizeof(msg) - 1);
	_exit(EXIT_CANNOT_RUN);
}

void *xmalloc(size_t bytes)
{
	return malloc(bytes ? bytes : 1) ?: no_memory();
}

void *xzalloc(size_t bytes)
{
	return calloc(1, bytes ? bytes : 1) ?: no_memory();
}

void *xrealloc(void *p, size_t bytes)
{
	return realloc(p, bytes ? bytes : 1) ?: no_memory();
}

void *xreallocarray(void *p, size_t n, size_t bytes)
{
	return reallocarray(p, n ? n : 1, bytes) ?: no_memory();
}

char *xstrdup(const char *s)
{
	return strdup(s) ?: no_memory();
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return n < 0 ? no_memory() : s;
}

void freep(void *p)
{
	free(*(void **)p);
}

void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

void buf_put(struct buf *b, const void *data, size_t len)
{
	if (len > SIZE_MAX / 2 - b->len)
		no_memory();
	if (b->len + len > b->cap) {
		b->cap = MAX(b->len + len, b->cap * 2);
		b->cap = MAX(b->cap, (size_t)64);
		b->data = xrealloc(b->data, b->cap);
	}
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
}

static void put_le(struct buf *b, u64 v, unsigned int bytes)
{
	u8 le[8];

	for (unsigned int i = 0; i < bytes; i++)
		le[i] = v >> (8 * i);
	buf_put(b, le, bytes);
}

void buf_put_u8(struct buf *b, u8 v)
{
	buf_put(b, &v, 1);
}

void buf_put_u16(struct buf *b, u16 v)
{
	put_le(b, v, 2);
}

void buf_put_u32(struct buf *b, u32 v)
{
	put_le(b, v, 4);
}

void buf_put_u64(struct buf *b, u64 v)
{
	put_le(b, v, 8);
}

void buf_put_str(struct buf *b, const char *s)
{
	size_t len = strlen(s);

	if (len > UINT32_MAX)
		no_memory();
	buf_put_u32(b, len);
	buf_put(b, s, len);
}

void buf_reset(struct buf *b)
{
	b->len = 0;
}

void buf_free(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

struct cursor cursor_of(const void *data, size_t len)
{
	return (struct cursor){ .data = data, .len = len };
}

size_t cur_left(const struct cursor *c)
{
	return c->bad ? 0 : c->len - c->pos;
}

const void *cur_bytes(struct cursor *c, size_t len)
{
	const u8 *p;

	if (c->bad || len > c->len - c->pos) {
		c->bad = true;
		return NULL;
	}
	p = c->data + c->pos;
	c->pos += len;
	return p;
}

static u64 get_le(struct cursor *c, unsigned int bytes)
{
	const u8 *p = cur_bytes(c, bytes);
	u64 v = 0;

	if (!p)
		return 0;
	for (unsigned int i = 0; i < bytes; i++)
		v |= (u64)p[i] << (8 * i);
	return v;
}

u8 cur_u8(struct cursor *c)
{
	return get_le(c, 1);
}

u16 cur_u16(struct cursor *c)
{
	return get_le(c, 2);
}

u32 cur_u32(struct cursor *c)
{
	return get_le(c, 4);
}

u64 cur_u64(struct cursor *c)
{
	return get_le(c, 8);
}

char *cur_str(struct cursor *c)
{
	u32 len = cur_u32(c);
	const char *p = cur_bytes(c, len);
	char *s;

	if (!p || memchr(p, 0, len)) {
		c->bad = true;
		return NULL;
	}
	s = xmalloc((size_t)len + 1);
	memcpy(s, p, len);
	s[len] = 0;
	return s;
}

int read_full(int fd, void *data, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = read(fd, (u8 *)data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		done += n;
	}
	return 0;
}

int write_full(int fd, const void *data, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, (const u8 *)data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += n;
	}
	return 0;
}

int pread_full(int fd, void *data, size_t len, off_t off)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(fd, (u8 *)data + done, len - done,
				  off + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		done += n;
	}
	return 0;
}

int pwrite_full(int fd, const void *data, size_t len, off_t off)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(fd, (const u8 *)data + done, len - done,
				   off + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += n;
	}
	return 0;
}

u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Length of the valid, printable UTF-8 sequence at s; 0: none. */
static unsigned int utf8_len(const unsigned char *s)
{
	static const u32 least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned int n;
	u32 c;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 0;
	if (!n || s[0] >= 0xf8)
		return 0;
	c = s[0] & (0x7f >> n);
	for (unsigned int i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	/* C1 controls, and the marks that change the direction of text */
	if (c < 0xa0 || (c >= 0x202a && c <= 0x202e) ||
	    (c >= 0x2066 && c <= 0x2069))
		return 0;
	return n;
}

void print_safe(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	while (*s) {
		unsigned int n = utf8_len(s);

		if (n) {
			fwrite(s, 1, n, out);
			s += n;
		} else {
			fprintf(out, "\\x%02x", *s++);
		}
	}
}

char *shell_quote(const char *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789_./-+,:=@%";
	struct buf b = { 0 };

	if (*text && strspn(text, plain) == strlen(text))
		return xstrdup(text);
	buf_put_u8(&b, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			buf_put(&b, "'\\''", 4);
		else
			buf_put_u8(&b, *text);
	}
	buf_put(&b, "'", 2);
	return (char *)b.data;
}
