// SPDX-License-Identifier: GPL-2.0-or-later
#include "explain.h"

#include <string.h>

/* Parts of a write told one by one; the rest is only counted. */
#define MAX_PARTS 4

static void put(struct buf *b, const char *text)
{
	buf_put(b, text, strlen(text));
}

static char *take(struct buf *b)
{
	char *s;

	buf_put_u8(b, 0);
	s = (char *)b->data;
	*b = (struct buf){ 0 };
	return s;
}

/* ---- names -------------------------------------------------------------- */

static const char *path_in(const struct rec_state *st, u64 ino)
{
	const struct node *n = tree_find_ino(&st->tree, ino);

	return n ? n->path : NULL;
}

/* What the inode was called then; else later; else before. */
static const char *path_of_ino(const struct expected *e, u64 ino, u64 seq)
{
	const char *path = NULL;
	u32 after = 0;

	if (!e || !ino)
		return NULL;
	while (after < e->n && e->states[after].after_seq <= seq)
		after++;
	if (after && (path = path_in(&e->states[after - 1], ino)))
		return path;
	for (u32 i = after; i < e->n && !path; i++)
		path = path_in(&e->states[i], ino);
	for (u32 i = after; i-- > 0 && !path;)
		path = path_in(&e->states[i], ino);
	return path;
}

/* ---- operations ----------------------------------------------------------- */

/* dir's path begins at the root of its file system, or at the machine's. */
static char *join(const char *dir, bool absolute, const char *path)
{
	if (!path || !*path)
		return xstrdup(dir && *dir ? dir : "?");
	while (dir && !absolute && *dir == '/')
		dir++;
	if (*path == '/' || !dir || !*dir)
		return xstrdup(path);
	return xasprintf("%s%s%s", dir, strcmp(dir, "/") ? "/" : "", path);
}

static char *op_object(const struct expected *e, const struct rec_file_op *op)
{
	const char *path;

	if (op->path)
		return join(op->dir_path, op->flags & FOP_DIR_ABSOLUTE,
			    op->path);
	if (op->file_path && *op->file_path)
		return xstrdup(op->file_path);
	path = path_of_ino(e, op->ino, op->start_seq);
	if (path)
		return xstrdup(path);
	return op->ino ? xasprintf("inode %llu", (unsigned long long)op->ino) :
			 xstrdup("");
}

char *op_words(const struct expected *e, const struct rec_file_op *op)
{
	_cleanup_free_ char *object = op_object(e, op), *second = NULL;

	if (!op->path2)
		return xasprintf("%s(%s)", file_op_name(op->op), object);
	second = join(op->dir2_path, op->flags & FOP_DIR2_ABSOLUTE, op->path2);
	return xasprintf("%s(%s, %s)", file_op_name(op->op), object, second);
}

/* The last operation that had returned by seq, and one under way there. */
static void ops_around(const struct trace *t, u64 seq,
		       const struct trace_op **ret_last,
		       const struct trace_op **ret_running)
{
	*ret_last = *ret_running = NULL;
	for (u32 i = 0; i < t->n_ops; i++) {
		const struct trace_op *o = &t->ops[i];

		if (o->op.ret < 0)
			continue;
		if (o->seq <= seq)
			*ret_last = o;
		else if (o->op.start_seq <= seq && !*ret_running)
			*ret_running = o;
	}
}

/* ---- crash points --------------------------------------------------------- */

static char *event_words(const struct trace *t, const struct crash_point *p)
{
	for (u32 i = 0; i < t->n_units; i++) {
		const struct unit *u = &t->units[i];
		const struct rec_issue *is = &t->writes[u->write].issue;

		if (u->issue_seq == p->seq)
			return xasprintf("a %s of %llu bytes at sector %llu"
					 " had gone to the disk",
					 blk_op_name(u->op),
					 (unsigned long long)is->sectors
						 << SECTOR_SHIFT,
					 (unsigned long long)is->sector);
		if (u->complete_seq == p->seq)
			return xasprintf("the disk had completed a %s of %llu"
					 " bytes at sector %llu",
					 blk_op_name(u->op),
					 (unsigned long long)is->sectors
						 << SECTOR_SHIFT,
					 (unsigned long long)is->sector);
	}
	for (u32 i = 0; i < t->n_marks; i++)
		if (t->marks[i].seq == p->seq)
			return xasprintf("the mark '%s'", t->marks[i].text);
	if (p->why == REC_COMPLETE)
		return xstrdup("the disk had completed a flush");
	return xasprintf("event %llu", (unsigned long long)p->seq);
}

char *point_words(const struct trace *t, const struct expected *e, u32 point)
{
	const struct crash_point *p = &t->points[point];
	const struct trace_op *last, *running;
	_cleanup_free_ char *last_words = NULL, *event = NULL;
	_cleanup_free_ char *running_words = NULL;

	ops_around(t, p->seq, &last, &running);
	last_words = last ? op_words(e, &last->op) : NULL;
	if (last && last->seq == p->seq)
		return xasprintf("just after %s had returned", last_words);
	event = event_words(t, p);
	if (running) {
		running_words = op_words(e, &running->op);
		return xasprintf("during %s, just after %s", running_words,
				 event);
	}
	if (last)
		return xasprintf("after %s, just after %s", last_words, event);
	return xasprintf("before any operation, just after %s", event);
}

/* ---- what was dropped ----------------------------------------------------- */

static bool is_metadata(const struct trace *t, const struct rec_issue *is,
			const struct rec_page *p)
{
	if (p->flags & PAGE_BLOCKDEV)
		return true;
	if (p->flags & PAGE_ANON)
		return is->flags & BLK_META;
	/* btrfs keeps its trees in the pages of inode 1 */
	return t->fs_type && !strcmp(t->fs_type, "btrfs") && p->ino == 1;
}

static char *page_words(const struct trace *t, const struct expected *e,
			const struct trace_write *w, const struct rec_page *p,
			u64 bytes)
{
	const char *path;

	if (is_metadata(t, &w->issue, p))
		return xstrdup("file system metadata");
	if (p->flags & PAGE_ANON)
		return xstrdup("no file's page (journal or log, file system"
			       " metadata, or direct I/O)");
	if (!p->ino)
		return xstrdup("of an unknown file");
	path = path_of_ino(e, p->ino, w->issue_seq);
	if (!path)
		return xasprintf("data of inode %llu, bytes %llu to %llu",
				 (unsigned long long)p->ino,
				 (unsigned long long)p->file_offset,
				 (unsigned long long)(p->file_offset + bytes -
						      1));
	return xasprintf("data of %s, bytes %llu to %llu", path,
			 (unsigned long long)p->file_offset,
			 (unsigned long long)(p->file_offset + bytes - 1));
}

static bool continues(const struct rec_page *p, u64 bytes,
		      const struct rec_page *next)
{
	if (p->flags != next->flags || p->ino != next->ino)
		return false;
	return p->flags & (PAGE_BLOCKDEV | PAGE_ANON) || !p->ino ||
	       p->file_offset + bytes == next->file_offset;
}

/* The pages of a request within [from, to) of its bytes, cut to that, with
 * neighbours that belong together joined; n is updated. */
static struct rec_page *pages_within(const struct rec_issue *is, u64 from,
				     u64 to, u32 *n)
{
	struct rec_page *out = xmalloc(is->n_pages * sizeof(*out));
	u64 at = 0;

	*n = 0;
	for (u32 i = 0; i < is->n_pages; at += is->pages[i++].bytes) {
		struct rec_page p = is->pages[i];
		u64 begin = MAX(at, from), end = MIN(at + p.bytes, to);

		if (begin >= end)
			continue;
		p.file_offset += begin - at;
		p.bytes = end - begin;
		if (*n && continues(&out[*n - 1], out[*n - 1].bytes, &p) &&
		    p.bytes <= UINT32_MAX - out[*n - 1].bytes)
			out[*n - 1].bytes += p.bytes;
		else
			out[(*n)++] = p;
	}
	return out;
}

static void put_parts(struct buf *b, const struct trace *t,
		      const struct expected *e, const struct unit *u)
{
	const struct trace_write *w = &t->writes[u->write];
	u64 from = (u->sector - w->issue.sector) << SECTOR_SHIFT;
	_cleanup_free_ struct rec_page *pages = NULL;
	u32 n;

	pages = pages_within(&w->issue, from,
			     from + ((u64)u->sectors << SECTOR_SHIFT), &n);
	for (u32 i = 0; i < n && i < MAX_PARTS; i++) {
		_cleanup_free_ char *words =
			page_words(t, e, w, &pages[i], pages[i].bytes);

		put(b, i ? "; " : ": ");
		put(b, words);
	}
	if (n > MAX_PARTS) {
		_cleanup_free_ char *more =
			xasprintf("; and %u parts more", n - MAX_PARTS);

		put(b, more);
	}
}

char *unit_words(const struct trace *t, const struct expected *e, u32 unit)
{
	const struct unit *u = &t->units[unit];
	const struct rec_issue *is = &t->writes[u->write].issue;
	_cleanup_free_ char *head = NULL;
	struct buf b = { 0 };

	head = xasprintf("%s of %llu bytes at sector %llu",
			 blk_op_name(u->op),
			 (unsigned long long)u->sectors << SECTOR_SHIFT,
			 (unsigned long long)u->sector);
	put(&b, u->sectors == is->sectors ? "" : "a piece: ");
	put(&b, head);
	put_parts(&b, t, e, u);
	return take(&b);
}

/* ---- names ---------------------------------------------------------------- */

char *unit_name(const struct trace *t, u32 unit)
{
	const struct unit *u = &t->units[unit];

	if (u->sectors == t->writes[u->write].issue.sectors)
		return xasprintf("%llu", (unsigned long long)u->issue_seq);
	return xasprintf("%llu:%llu", (unsigned long long)u->issue_seq,
			 (unsigned long long)u->sector);
}

static void put_drops(struct buf *b, const struct trace *t, const u32 *drop,
		      u32 n)
{
	for (u32 i = 0; i < n; i++) {
		_cleanup_free_ char *name = unit_name(t, drop[i]);

		put(b, i ? "," : "");
		put(b, name);
	}
}

char *site_name(const struct trace *t, u32 point, const u32 *drop, u32 n)
{
	_cleanup_free_ char *head =
		xasprintf("p%llu%s", (unsigned long long)t->points[point].seq,
			  n ? "-" : "");
	struct buf b = { 0 };

	put(&b, head);
	put_drops(&b, t, drop, n);
	return take(&b);
}

char *state_words(const struct expected *e, u32 state)
{
	if (state >= e->n)
		return xstrdup("no expected state");
	if (!e->states[state].after_seq)
		return xstrdup("at the start");
	return xasprintf("after %s", e->states[state].what ?: "an operation");
}

char *promise_words(const struct trace *t, const struct expected *e,
		    const struct promise *p)
{
	_cleanup_free_ char *call = op_words(e, &t->ops[p->op].op);
	const char *path = p->path ?: "a file";

	switch (p->kind) {
	case PROMISE_BYTES:
		return xasprintf("%s had returned, so bytes %llu to %llu of %s"
				 " must be on the disk, and they are not",
				 call, (unsigned long long)p->off,
				 (unsigned long long)(p->off + p->len - 1),
				 path);
	case PROMISE_SIZE:
		return xasprintf("%s had returned, so %s must be %llu bytes"
				 " long, and it is not", call, path,
				 (unsigned long long)p->len);
	case PROMISE_NAME:
		return xasprintf("%s had returned, so %s must be there under"
				 " that name, and it is not", call, path);
	case PROMISE_NO_NAME:
		return xasprintf("%s had returned, so the name %s must be"
				 " gone, and it is back", call, path);
	}
	return xasprintf("%s had returned", call);
}

/* ---- the command ---------------------------------------------------------- */

char *site_command(const struct trace *t, const char *recording,
		   const struct explore_opts *opts, u32 point,
		   const u32 *drop, u32 n)
{
	_cleanup_free_ char *file = shell_quote(recording), *head = NULL;
	_cleanup_free_ char *program = shell_quote(opts->program ?: "blkbox");
	struct buf b = { 0 };

	head = xasprintf("%s replay %s%s --at %llu", program,
			 *recording == '-' ? "./" : "", file,
			 (unsigned long long)t->points[point].seq);
	put(&b, head);
	if (n)
		put(&b, " --drop ");
	put_drops(&b, t, drop, n);
	if (opts->trace.torn_bytes) {
		_cleanup_free_ char *torn =
			xasprintf(" --torn %u", opts->trace.torn_bytes);

		put(&b, torn);
	}
	if (opts->trace.model != MODEL_DEVICE) {
		put(&b, " --crash-model ");
		put(&b, crash_model_name(opts->trace.model));
	}
	if (opts->trace.discard != DISCARD_ZERO) {
		put(&b, " --discard ");
		put(&b, discard_model_name(opts->trace.discard));
	}
	if (opts->trace.dev) {
		_cleanup_free_ char *dev =
			xasprintf(" --dev %u:%u", opts->trace.dev >> 20,
				  opts->trace.dev & 0xfffff);

		put(&b, dev);
	}
	if (opts->trace.base_file) {
		_cleanup_free_ char *base = shell_quote(opts->trace.base_file);

		put(&b, " --base ");
		put(&b, base);
	}
	if (opts->trace.drop_flushes)
		put(&b, " --ignore-flushes");
	put(&b, " --mount DIR");
	return take(&b);
}
