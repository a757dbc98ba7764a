// SPDX-License-Identifier: GPL-2.0-or-later
/* The verdicts met so far, each held once (findings.h). */
#include <ctype.h>
#include <string.h>

#include "findings.h"

/* Numbers (times, loop devices, blocks) told apart by nothing. */
static void put_without_numbers(struct buf *b, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)text[i]))
			buf_put_u8(b, text[i]);
		else if (!i || !isdigit((unsigned char)text[i - 1]))
			buf_put_u8(b, '#');
	}
}

static bool same_without_numbers(const char *a, size_t a_len, const char *b,
				 size_t b_len)
{
	_cleanup_buf_ struct buf x = { 0 }, y = { 0 };

	put_without_numbers(&x, a, a_len);
	put_without_numbers(&y, b, b_len);
	return x.len == y.len && !memcmp(x.data, y.data, x.len);
}

static bool has_line(const char *text, const char *line, size_t len)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		if (same_without_numbers(text, n, line, len))
			return true;
		text += n + (text[n] == '\n');
	}
	return false;
}

/* The lines of log that are not usual; NULL when none is left. */
static char *log_news(const char *usual, const char *log)
{
	_cleanup_buf_ struct buf b = { 0 };

	while (log && *log) {
		size_t n = strcspn(log, "\n");

		if (n && !has_line(usual, log, n)) {
			buf_put(&b, "\n", b.len ? 1 : 0);
			buf_put(&b, log, n);
		}
		log += n + (log[n] == '\n');
	}
	if (!b.len)
		return NULL;
	buf_put_u8(&b, 0);
	return xstrdup((char *)b.data);
}

int verdict_add(struct verdict_table *vt, enum mount_outcome outcome, int error,
		const char *usual, const char *log, const void *core,
		size_t core_len, u32 *ret)
{
	_cleanup_free_ char *news = log_news(usual, log);
	_cleanup_buf_ struct buf key = { 0 };
	struct site_verdict v = { .outcome = outcome, .error = error };
	bool is_new;
	u32 no, n;
	int r;

	buf_put_u8(&key, outcome);
	buf_put_u32(&key, error);
	if (news)
		put_without_numbers(&key, news, strlen(news));
	buf_put_u8(&key, 0);
	buf_put(&key, core, core_len);
	if (outcome == MOUNT_OK) {
		r = judgement_decode(core, core_len, &v.j);
		if (r < 0)
			return r;
	}
	n = vt->keys.n;
	no = intern_put(&vt->keys, key.data, key.len, &is_new);
	if (is_new) {
		GROW(vt->v, n, vt->cap);
		v.log = news;
		news = NULL;
		vt->v[no] = v;
	} else {
		judgement_done(&v.j);
	}
	*ret = no;
	return 0;
}

u32 verdict_add_check(struct verdict_table *vt, const struct check_result *r)
{
	_cleanup_buf_ struct buf key = { 0 };
	u32 n = vt->check_keys.n, no;
	bool is_new;

	buf_put_u8(&key, r->outcome);
	buf_put_u32(&key, r->status);
	put_without_numbers(&key, r->output, strlen(r->output));
	no = intern_put(&vt->check_keys, key.data, key.len, &is_new);
	if (is_new) {
		GROW(vt->checks, n, vt->cap_checks);
		vt->checks[no] = *r;
		vt->checks[no].output = xstrdup(r->output);
	}
	return no;
}

void verdict_table_done(struct verdict_table *vt)
{
	for (u32 i = 0; i < vt->keys.n; i++) {
		free(vt->v[i].log);
		judgement_done(&vt->v[i].j);
	}
	for (u32 i = 0; i < vt->check_keys.n; i++)
		check_result_done(&vt->checks[i]);
	free(vt->v);
	free(vt->checks);
	intern_done(&vt->keys);
	intern_done(&vt->check_keys);
	*vt = (struct verdict_table){ 0 };
}
