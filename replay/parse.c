// SPDX-License-Identifier: GPL-2.0-or-later
/* Values of options, from text. What is not wholly a value is -EINVAL. */
#include "base.h"

#include <ctype.h>
#include <string.h>

#include "trace.h"

/* A decimal number at text; *ret_rest is what follows it. */
static int parse_number(const char *text, u64 *ret, const char **ret_rest)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (errno)
		return -errno;
	*ret_rest = end;
	return 0;
}

int parse_size(const char *text, u64 *ret_bytes)
{
	static const char suffixes[] = "KMGT";
	const char *rest, *s;
	unsigned int shift = 0;
	u64 n;

	if (parse_number(text, &n, &rest) < 0)
		return -EINVAL;
	if (*rest) {
		s = strchr(suffixes, toupper((unsigned char)*rest));
		if (!s)
			return -EINVAL;
		shift = 10 * (s - suffixes + 1);
		rest++;
		if (!strcmp(rest, "iB") || !strcmp(rest, "B"))
			rest += strlen(rest);
	}
	if (*rest)
		return -EINVAL;
	if (n > UINT64_MAX >> shift)
		return -ERANGE;
	*ret_bytes = n << shift;
	return 0;
}

int parse_time_ns(const char *text, u64 *ret_ns)
{
	static const struct {
		const char *suffix;
		u64 ns;
	} units[] = {
		{ "", 1000000000 },  { "s", 1000000000 },
		{ "ms", 1000000 },   { "us", 1000 },
		{ "m", 60000000000 }, { "min", 60000000000 },
		{ "h", 3600000000000 },
	};
	const char *rest;
	u64 n, ns;

	if (parse_number(text, &n, &rest) < 0)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(rest, units[i].suffix))
			continue;
		if (__builtin_mul_overflow(n, units[i].ns, &ns))
			return -ERANGE;
		*ret_ns = ns;
		return 0;
	}
	return -EINVAL;
}

int parse_u64(const char *text, u64 least, u64 most, u64 *ret)
{
	const char *rest;
	u64 n;

	if (parse_number(text, &n, &rest) < 0 || *rest || n < least ||
	    n > most)
		return -EINVAL;
	*ret = n;
	return 0;
}

int parse_u32(const char *text, u32 least, u32 most, u32 *ret)
{
	u64 n;

	if (parse_u64(text, least, most, &n) < 0)
		return -EINVAL;
	*ret = n;
	return 0;
}

int parse_dev(const char *text, u32 *ret)
{
	const char *rest;
	u64 major, minor;

	if (parse_number(text, &major, &rest) < 0 || *rest != ':' ||
	    major > 0xfff || parse_u64(rest + 1, 0, 0xfffff, &minor) < 0 ||
	    !(major << 20 | minor))
		return -EINVAL;
	*ret = major << 20 | minor;
	return 0;
}

int parse_choice(const char *text, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(text, names[i]))
			return i;
	return -EINVAL;
}

/* ---- the crash model's options -------------------------------------------- */

static const char *const model_names[] = {
	[MODEL_DEVICE] = "device",
	[MODEL_EPOCH] = "epoch",
	[MODEL_PREFIX] = "prefix",
};

static const char *const discard_names[] = {
	[DISCARD_ZERO] = "zero",
	[DISCARD_KEEP] = "keep",
	[DISCARD_RANDOM] = "random",
};

const char *crash_model_name(enum crash_model m)
{
	return model_names[m];
}

const char *discard_model_name(enum discard_model d)
{
	return discard_names[d];
}

static int parse_torn(const char *text, u32 *ret)
{
	u64 bytes;

	if (parse_size(text, &bytes) < 0 || !bytes || bytes % SECTOR_SIZE ||
	    bytes > UINT32_MAX)
		return -EINVAL;
	*ret = bytes;
	return 0;
}

int trace_opts_parse(struct trace_opts *o, const char *option,
		     const char *value)
{
	int n;

	if (!strcmp(option, "torn"))
		return parse_torn(value, &o->torn_bytes);
	if (!strcmp(option, "dev"))
		return parse_dev(value, &o->dev);
	if (!strcmp(option, "crash-model")) {
		n = parse_choice(value, model_names, ARRAY_SIZE(model_names));
		if (n >= 0)
			o->model = n;
		return MIN(n, 0);
	}
	if (!strcmp(option, "discard")) {
		n = parse_choice(value, discard_names,
				 ARRAY_SIZE(discard_names));
		if (n >= 0)
			o->discard = n;
		return MIN(n, 0);
	}
	return -ENOENT;
}
