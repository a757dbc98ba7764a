// SPDX-License-Identifier: GPL-2.0-or-later
#include "judge.h"

#include <assert.h>
#include <string.h>

#include "explain.h"
#include "file_fate.h"

/* A worker's memory of verdicts; past this it starts over. */
#define MEMORY_BYTES (64U << 20)

u64 job_judge_id(u32 entry, u32 point)
{
	assert(entry <= JOB_MAX_NUMBER);
	return (u64)entry << 32 | point;
}

u64 job_explain_id(u32 state, u32 point)
{
	assert(state <= JOB_MAX_NUMBER);
	return JOB_EXPLAIN | (u64)state << 32 | point;
}

u32 job_number(u64 id)
{
	return id >> 32 & JOB_MAX_NUMBER;
}

u32 job_point(u64 id)
{
	return id;
}

u32 marks_before(const struct trace *t, u64 seq)
{
	u32 lo = 0, hi = t->n_marks;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (t->marks[mid].seq <= seq)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

char *marks_text(const struct trace *t, u64 seq)
{
	_cleanup_buf_ struct buf b = { 0 };
	u32 n = marks_before(t, seq);

	for (u32 i = 0; i < n; i++) {
		const char *text = t->marks[i].text;

		if (!strncmp(text, "blkbox: ", 8))
			continue;
		buf_put(&b, text, strlen(text));
		buf_put_u8(&b, '\n');
	}
	buf_put_u8(&b, 0);
	return xstrdup((char *)b.data);
}

/* ---- identity of a tree --------------------------------------------------- */

static void put_tree_key(struct buf *b, const struct tree *t)
{
	buf_put_u64(b, t->hash.lo);
	buf_put_u64(b, t->hash.hi);
	for (u32 i = 0; i < t->n; i++) {
		buf_put_u64(b, t->nodes[i].ino);
		buf_put_u32(b, t->nodes[i].error);
	}
}

static void put_check_key(struct buf *b, const struct tree *t, u32 marks)
{
	put_tree_key(b, t);
	buf_put_u32(b, marks);
	for (u32 i = 0; i < t->n; i++) {
		buf_put_u32(b, t->nodes[i].mode);
		buf_put_u32(b, t->nodes[i].nlink);
		buf_put_u64(b, t->nodes[i].mtime_ns);
		buf_put_u64(b, t->nodes[i].ctime_ns);
	}
}

static void add_known(u64 counts[256], const struct content *c)
{
	if (!c || c->unknown)
		return;
	for (u32 i = 0; i < c->n_chunks; i++)
		for (u32 v = 0; v < 256; v++)
			counts[v] += c->chunks[i]->counts[v];
}

/* ---- the judgement -------------------------------------------------------- */

/* NULL when everything could be read. */
static char *unreadable_words(const struct tree *t)
{
	const struct node *first = NULL;
	u32 n = 0;

	for (u32 i = 0; i < t->n; i++) {
		if (!t->nodes[i].error)
			continue;
		first = first ?: &t->nodes[i];
		n++;
	}
	if (!first)
		return NULL;
	if (n == 1)
		return xasprintf("reading %s fails: %s", first->path,
				 strerror(abs(first->error)));
	return xasprintf("reading %s and %u more fails: %s", first->path,
			 n - 1, strerror(abs(first->error)));
}

static void put_files(struct buf *b, const struct file_finding *f, u32 n,
		      bool same, u32 *left)
{
	for (u32 i = 0; i < n && *left; i++) {
		if ((f[i].fate == FATE_SAME) != same)
			continue;
		buf_put_str(b, f[i].path);
		buf_put_u8(b, f[i].fate);
		buf_put_u32(b, f[i].state);
		buf_put_u64(b, f[i].bytes);
		buf_put_u64(b, f[i].expected_bytes);
		buf_put_str(b, f[i].words ?: "");
		--*left;
	}
}

/* Those something happened to come first, so that a bound keeps them. */
static void encode_files(const struct judge *g, u32 state,
			 const struct tree *tree, struct buf *b)
{
	struct file_finding *files = NULL;
	u32 n = 0, left = JUDGE_MAX_FILES;

	file_fates(g->e, state, tree, &files, &n);
	buf_put_u32(b, MIN(n, left));
	buf_put_u32(b, n - MIN(n, left));
	put_files(b, files, n, false, &left);
	put_files(b, files, n, true, &left);
	file_findings_free(files, n);
}

static void encode_broken(const struct judge *g, const struct tree *tree,
			  struct buf *b)
{
	u32 n = g->promises ? g->promises->n : 0;
	_cleanup_free_ u32 *list = xmalloc((size_t)n * sizeof(*list));
	_cleanup_free_ u8 *bits = xzalloc(((size_t)n + 7) / 8);
	u32 n_broken = n ? promises_broken(g->promises, tree, list) : 0;

	for (u32 i = 0; i < n_broken; i++)
		bits[list[i] / 8] |= 1 << list[i] % 8;
	buf_put_u32(b, n);
	buf_put(b, bits, ((size_t)n + 7) / 8);
}

void judge_count_known(struct judge *g)
{
	u32 n = 0;

	for (u32 i = 0; i < g->e->n; i++)
		n += g->e->states[i].tree.unknown;
	g->known = xzalloc(n * sizeof(*g->known));
	for (u32 i = 0; i < g->e->n; i++) {
		const struct tree *t = &g->e->states[i].tree;

		if (!t->unknown)
			continue;
		for (u32 k = 0; k < t->n; k++)
			if (t->nodes[k].type == NODE_FILE)
				add_known(g->known[g->n_unknown],
					  t->nodes[k].content);
		g->n_unknown++;
	}
}

/* The distance that is certain, whatever the unknown content may be. */
static u64 sure_distance(const struct judge *g, const struct tree *tree, u64 d)
{
	for (u32 i = 0; i < g->n_unknown && d; i++)
		d = MIN(d, editing_distance(g->known[i], tree->counts));
	return d;
}

static void encode_judgement(const struct judge *g, const struct tree *tree,
			     u32 state, bool explain, struct buf *b)
{
	_cleanup_free_ char *unreadable = unreadable_words(tree);
	u32 nearest = 0;
	u64 known = expected_nearest(g->e, tree, &nearest);
	u64 d = sure_distance(g, tree, known);

	buf_put_str(b, unreadable ?: "");
	buf_put_u64(b, d);
	buf_put_u32(b, nearest);
	buf_put_u8(b, known >= g->threshold && d < g->threshold);
	encode_broken(g, tree, b);
	if (explain || d >= g->threshold) {
		encode_files(g, explain ? state : nearest, tree, b);
	} else {
		buf_put_u32(b, 0);
		buf_put_u32(b, 0);
	}
}

/* The root cannot be listed: what that says of the disk. */
static void encode_unlistable(int err, struct buf *b)
{
	_cleanup_free_ char *words =
		xasprintf("it mounts, but cannot be listed: %s",
			  strerror(-err));

	buf_put_str(b, words);
	buf_put_u64(b, 0);
	buf_put_u32(b, 0);
	buf_put_u8(b, 0);
	for (int i = 0; i < 3; i++)
		buf_put_u32(b, 0);
}

/* ---- the checker ---------------------------------------------------------- */

static char *dropped_text(const struct trace *t, const struct disk_state *st)
{
	_cleanup_buf_ struct buf b = { 0 };

	for (u32 i = 0; i < st->n_drop; i++) {
		_cleanup_free_ char *name = unit_name(t, st->drop[i]);

		buf_put(&b, ",", i ? 1 : 0);
		buf_put(&b, name, strlen(name));
	}
	buf_put_u8(&b, 0);
	return xstrdup((char *)b.data);
}

static int encode_check(const struct judge *g, const struct job *j,
			int root_fd, const char *root_path, struct buf *b)
{
	u64 seq = g->t->points[job_point(j->id)].seq;
	_cleanup_free_ char *marks = marks_text(g->t, seq);
	_cleanup_free_ char *dropped = dropped_text(g->t, &j->st);
	struct checker_opts o = {
		.command = g->check,
		.root_fd = root_fd,
		.root_path = root_path,
		.crash_point = seq,
		.dropped = dropped,
		.marks = marks,
		.timeout_ns = g->check_timeout_ns,
	};
	struct check_result res;
	int r = checker_run(&o, &res);

	if (r < 0)
		return r;
	buf_put_u8(b, res.outcome);
	buf_put_u32(b, res.status);
	buf_put_str(b, res.output);
	check_result_done(&res);
	return 0;
}

/* ---- what is remembered --------------------------------------------------- */

static void forget(struct intern *in, struct buf **bufs, u32 *cap)
{
	for (u32 i = 0; i < in->n; i++)
		buf_free(&(*bufs)[i]);
	free(*bufs);
	*bufs = NULL;
	*cap = 0;
	intern_done(in);
}

/* The buffer remembered for key; ret_new: it is empty and to be filled. */
static struct buf *remembered(struct intern *in, struct buf **bufs, u32 *cap,
			      const struct buf *key, bool *ret_new)
{
	u32 no, n;

	if (in->bytes > MEMORY_BYTES)
		forget(in, bufs, cap);
	n = in->n;
	no = intern_put(in, key->data, key->len, ret_new);
	if (*ret_new) {
		GROW(*bufs, n, *cap);
		(*bufs)[no] = (struct buf){ 0 };
	}
	return &(*bufs)[no];
}

/* Errors that say something of the disk, not of the machine. */
static bool says_corrupt(int err)
{
	return err == -EIO || err == -EUCLEAN || err == -EBADMSG ||
	       err == -ESTALE || err == -ENOTDIR || err == -ELOOP;
}

static int judge_tree(struct judge *g, const struct job *j,
		      const struct tree *tree, struct buf *ret)
{
	_cleanup_buf_ struct buf key = { 0 }, fresh = { 0 };
	struct buf *core = &fresh;
	bool explain = j->id & JOB_EXPLAIN, is_new = true;

	if (!explain) {
		put_tree_key(&key, tree);
		core = remembered(&g->trees, &g->verdicts, &g->cap_verdicts,
				  &key, &is_new);
	}
	if (is_new) {
		encode_judgement(g, tree, job_number(j->id), explain, core);
		g->trees.bytes += core->len;
	}
	if (core->len > UINT32_MAX)
		return -E2BIG;
	buf_put_u32(ret, core->len);
	buf_put(ret, core->data, core->len);
	return 0;
}

static int judge_by_checker(struct judge *g, const struct job *j,
			    const struct tree *tree, int root_fd,
			    const char *root_path, struct buf *ret)
{
	u64 seq = g->t->points[job_point(j->id)].seq;
	_cleanup_buf_ struct buf key = { 0 };
	struct buf *outcome;
	bool is_new;
	int r;

	put_check_key(&key, tree, marks_before(g->t, seq));
	outcome = remembered(&g->checked, &g->outcomes, &g->cap_outcomes, &key,
			     &is_new);
	if (is_new) {
		r = encode_check(g, j, root_fd, root_path, outcome);
		if (r < 0)
			return r;
		g->checked.bytes += outcome->len;
	}
	buf_put(ret, outcome->data, outcome->len);
	return 0;
}

int judge_disk(void *ctx, const struct job *j, int root_fd,
	       const char *root_path, const char *recovery_log,
	       struct buf *ret)
{
	struct judge *g = ctx;
	struct tree tree = { 0 };
	int r;

	(void)recovery_log;
	assert(job_point(j->id) < g->t->n_points);
	if (!g->store)
		g->store = store_new();
	r = tree_read(g->store, root_fd, NULL, NULL, NULL, &tree, NULL);
	if (r < 0 && says_corrupt(r)) {
		_cleanup_buf_ struct buf core = { 0 };

		encode_unlistable(r, &core);
		buf_put_u32(ret, core.len);
		buf_put(ret, core.data, core.len);
		buf_put_u8(ret, 0);
		return 0;
	}
	if (r < 0)
		return r;
	r = judge_tree(g, j, &tree, ret);
	if (r >= 0 && g->check && !(j->id & JOB_EXPLAIN))
		r = judge_by_checker(g, j, &tree, root_fd, root_path, ret);
	else if (r >= 0)
		buf_put_u8(ret, 0);
	tree_free(g->store, &tree);
	return r;
}

void judge_done(struct judge *g)
{
	forget(&g->trees, &g->verdicts, &g->cap_verdicts);
	forget(&g->checked, &g->outcomes, &g->cap_outcomes);
	if (g->store)
		store_free(g->store);
	g->store = NULL;
	free(g->known);
	g->known = NULL;
}
