// SPDX-License-Identifier: GPL-2.0-or-later
/* The parent's side of judge.h: answers are taken apart again. */
#include <string.h>

#include "judge.h"

int answer_split(const void *answer, size_t len, const void **ret_core,
		 size_t *ret_core_len, struct check_result *ret_check)
{
	struct cursor c = cursor_of(answer, len);
	struct check_result check = { 0 };
	u32 core_len = cur_u32(&c);
	const void *core = cur_bytes(&c, core_len);

	check.outcome = cur_u8(&c);
	if (check.outcome) {
		check.status = (s32)cur_u32(&c);
		check.output = cur_str(&c);
	}
	if (c.bad || cur_left(&c) || check.outcome > CHECK_TIMED_OUT) {
		check_result_done(&check);
		return -EBADMSG;
	}
	*ret_core = core;
	*ret_core_len = core_len;
	*ret_check = check;
	return 0;
}

static void decode_files(struct cursor *c, struct judgement *g)
{
	u32 n = cur_u32(c);

	g->n_files_left = cur_u32(c);
	if (n > JUDGE_MAX_FILES) {
		c->bad = true;
		return;
	}
	g->files = xzalloc((size_t)n * sizeof(*g->files));
	for (u32 i = 0; i < n && !c->bad; i++) {
		struct file_finding *f = &g->files[i];

		g->n_files = i + 1;
		f->path = cur_str(c);
		f->fate = cur_u8(c);
		f->state = cur_u32(c);
		f->bytes = cur_u64(c);
		f->expected_bytes = cur_u64(c);
		f->words = cur_str(c);
		if (f->fate > FATE_UNREADABLE)
			c->bad = true;
	}
}

int judgement_decode(const void *core, size_t len, struct judgement *ret)
{
	struct cursor c = cursor_of(core, len);
	struct judgement g = { 0 };
	size_t bytes;
	const u8 *bits;

	g.unreadable = cur_str(&c);
	if (g.unreadable && !*g.unreadable) {
		free(g.unreadable);
		g.unreadable = NULL;
	}
	g.distance = cur_u64(&c);
	g.nearest = cur_u32(&c);
	g.excused = cur_u8(&c);
	g.n_broken = cur_u32(&c);
	bytes = ((size_t)g.n_broken + 7) / 8;
	bits = cur_bytes(&c, bytes);
	if (bits) {
		g.broken = xmalloc(bytes);
		memcpy(g.broken, bits, bytes);
	}
	decode_files(&c, &g);
	if (c.bad || cur_left(&c)) {
		judgement_done(&g);
		return -EBADMSG;
	}
	*ret = g;
	return 0;
}

bool judgement_breaks(const struct judgement *g, u32 promise)
{
	return promise < g->n_broken &&
	       g->broken[promise / 8] >> promise % 8 & 1;
}

void file_findings_free(struct file_finding *files, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		free(files[i].path);
		free(files[i].words);
	}
	free(files);
}

void judgement_done(struct judgement *g)
{
	free(g->unreadable);
	free(g->broken);
	file_findings_free(g->files, g->n_files);
	*g = (struct judgement){ 0 };
}
