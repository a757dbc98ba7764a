// SPDX-License-Identifier: GPL-2.0-or-later
#include "json_out.h"

#include <inttypes.h>
#include <string.h>

static cJSON *check(cJSON *item)
{
	if (!item) {
		fputs("blkbox: out of memory\n", stderr);
		exit(EXIT_CANNOT_RUN);
	}
	return item;
}

void json_u64(cJSON *object, const char *name, u64 v)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	check(cJSON_AddRawToObject(object, name, text));
}

void json_s64(cJSON *object, const char *name, s64 v)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, v);
	check(cJSON_AddRawToObject(object, name, text));
}

void json_dev(cJSON *object, const char *name, u32 dev)
{
	char text[32];

	snprintf(text, sizeof(text), "%u:%u", dev >> 20, dev & 0xfffff);
	check(cJSON_AddStringToObject(object, name, text));
}

/* The code point at *s, which moves on; -1 for a byte that begins none. */
static s32 next_code(const unsigned char **s)
{
	static const s32 least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = *s;
	unsigned int n = p[0] < 0x80 ? 1 :
			 p[0] >= 0xf8 ? 0 :
			 p[0] >= 0xf0 ? 4 :
			 p[0] >= 0xe0 ? 3 :
			 p[0] >= 0xc0 ? 2 : 0;
	s32 c;

	*s = p + 1;
	if (n <= 1)
		return n ? p[0] : -1;
	c = p[0] & (0x7f >> n);
	for (unsigned int i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return -1;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return -1;
	*s = p + n;
	return c;
}

static bool is_utf8(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	while (*s) {
		if (next_code(&s) < 0)
			return false;
	}
	return true;
}

void json_hex(cJSON *object, const char *name, const void *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	_cleanup_free_ char *text = xmalloc(2 * len + 1);
	const u8 *p = data;

	for (size_t i = 0; i < len; i++) {
		text[2 * i] = digits[p[i] >> 4];
		text[2 * i + 1] = digits[p[i] & 15];
	}
	text[2 * len] = 0;
	check(cJSON_AddStringToObject(object, name, text));
}

void json_name(cJSON *object, const char *name, const char *text)
{
	_cleanup_free_ char *hex = NULL;

	if (!text)
		return;
	check(cJSON_AddStringToObject(object, name, text));
	if (is_utf8(text))
		return;
	hex = xasprintf("%s_hex", name);
	json_hex(object, hex, text, strlen(text));
}

void json_flags(cJSON *object, const char *name, u32 flags,
		const char *const names[32])
{
	cJSON *array = check(cJSON_AddArrayToObject(object, name));

	for (unsigned int i = 0; i < 32; i++) {
		if (flags & 1U << i && names[i])
			cJSON_AddItemToArray(
				array, check(cJSON_CreateString(names[i])));
	}
}

void json_print(FILE *out, const cJSON *object, bool indented)
{
	char *text = indented ? cJSON_Print(object) :
				cJSON_PrintUnformatted(object);
	const unsigned char *s = (const unsigned char *)text;

	if (!text) {
		fputs("blkbox: out of memory\n", stderr);
		exit(EXIT_CANNOT_RUN);
	}
	while (*s) {
		s32 c = next_code(&s);

		if (c < 0)
			fputs("\\ufffd", out);
		else if (c < 0x7f)
			putc(c, out);
		else if (c < 0x10000)
			fprintf(out, "\\u%04x", (unsigned int)c);
		else
			fprintf(out, "\\u%04x\\u%04x",
				0xd800 + ((unsigned int)(c - 0x10000) >> 10),
				0xdc00 + ((unsigned int)c & 0x3ff));
	}
	cJSON_free(text);
}
