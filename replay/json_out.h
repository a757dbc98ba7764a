/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON output of numbers and names that cJSON alone would spoil: 64-bit
 * integers (it holds doubles) and names that are not UTF-8.
 */
#ifndef BLKBOX_JSON_OUT_H
#define BLKBOX_JSON_OUT_H

#include <cjson/cJSON.h>

#include "base.h"

void json_u64(cJSON *object, const char *name, u64 v);
void json_s64(cJSON *object, const char *name, s64 v);
/* Nothing when text is NULL. Where text is not UTF-8, name_hex has its bytes. */
void json_name(cJSON *object, const char *name, const char *text);
void json_hex(cJSON *object, const char *name, const void *data, size_t len);
/* "8:16" */
void json_dev(cJSON *object, const char *name, u32 dev);
/* Names of the bits set; a bit without one is left out. */
void json_flags(cJSON *object, const char *name, u32 flags,
		const char *const names[32]);

/*
 * Prints object as ASCII: everything else becomes \u escapes, bytes that are
 * no UTF-8 U+FFFD. Valid JSON whatever the names in it, and harmless on a
 * terminal.
 */
void json_print(FILE *out, const cJSON *object, bool indented);

#endif
