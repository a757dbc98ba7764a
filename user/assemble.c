// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pieces to records.
 *
 * Invariants:
 *  1. Pieces of an event come in ascending order of their offset, each once;
 *     what is missing between them is lost, is zeroes in data, and is flagged.
 *  2. Nothing is guessed: bytes that did not come are counted as lost bytes,
 *     bytes that could not be read as unreadable.
 */
#include "assemble.h"

#include <string.h>

/* A request or an operation never carries more than this; what claims to is
 * not from our programs. */
#define DATA_MAX (1ULL << 30)

void parts_reset(struct parts *p)
{
	struct parts keep = {
		.event = p->event,
		.payload = p->payload,
		.paths = p->paths,
		.pages = p->pages,
		.cap_pages = p->cap_pages,
	};

	buf_reset(&keep.event);
	buf_reset(&keep.paths);
	payload_reset(&keep.payload);
	*p = keep;
}

void parts_free(struct parts *p)
{
	buf_free(&p->event);
	payload_free(&p->payload);
	buf_free(&p->paths);
	free(p->pages);
	free(p);
}

void parts_keep(struct parts *p)
{
	payload_keep(&p->payload);
}

/* A page entry; it extends the last one where it simply goes on. */
static void page_add(struct parts *p, const struct rec_page *page)
{
	struct rec_page *last = p->n_pages ? &p->pages[p->n_pages - 1] : NULL;

	if (!page->bytes)
		return;
	if (last && last->flags == page->flags && last->ino == page->ino &&
	    last->fs_dev == page->fs_dev &&
	    (page->flags & PAGE_ANON ||
	     last->file_offset + last->bytes == page->file_offset)) {
		last->bytes += page->bytes;
		return;
	}
	GROW(p->pages, p->n_pages, p->cap_pages);
	p->pages[p->n_pages++] = *page;
}

static u64 pages_bytes(const struct parts *p)
{
	u64 sum = 0;

	for (u32 i = 0; i < p->n_pages; i++)
		sum += p->pages[i].bytes;
	return sum;
}

/* Bytes of the request that did not come, up to offset end. */
static void page_hole(struct parts *p, u64 end)
{
	u64 at = pages_bytes(p);

	if (at < end)
		page_add(p, &(struct rec_page){
			.bytes = end - at,
			.flags = PAGE_UNREADABLE | PAGE_ANON,
		});
}

static int add_page(struct parts *p, const struct ev_page *e, size_t bytes)
{
	struct rec_page page = {
		.bytes = e->len,
		.fs_dev = e->fs_dev,
		.ino = e->ino,
		.file_offset = e->file_offset,
	};
	bool has_data = !(e->flags & EV_PAGE_NODATA);

	if (bytes < sizeof(*e) || e->len > EV_PIECE_BYTES ||
	    (has_data && !(e->flags & EV_PAGE_UNREADABLE) &&
	     bytes - sizeof(*e) < e->len) ||
	    (u64)e->offset + e->len > DATA_MAX ||
	    e->offset < p->payload.end)
		return -EBADMSG;
	if (e->flags & EV_PAGE_BLOCKDEV)
		page.flags |= PAGE_BLOCKDEV;
	if (e->flags & EV_PAGE_ANON)
		page.flags |= PAGE_ANON;
	if (e->flags & EV_PAGE_UNREADABLE) {
		page.flags |= PAGE_UNREADABLE;
		p->unreadable += e->len;
	}
	if (e->offset > p->payload.end && !p->no_payload)
		page_hole(p, e->offset);
	page_add(p, &page);
	p->data_have += e->len;
	if (!has_data) {
		p->no_payload = true;
		return 0;
	}
	payload_put(&p->payload, e->offset, e->len,
		    e->flags & EV_PAGE_UNREADABLE ? NULL : e->data);
	return 0;
}

static int add_data(struct parts *p, const struct ev_data *e, size_t bytes)
{
	if (bytes < sizeof(*e) || e->len > EV_PIECE_BYTES ||
	    (!e->unreadable && bytes - sizeof(*e) < e->len) ||
	    e->offset > DATA_MAX || e->offset < p->payload.end)
		return -EBADMSG;
	payload_put(&p->payload, e->offset, e->len,
		    e->unreadable ? NULL : e->data);
	p->data_have += e->len;
	return 0;
}

static int add_path(struct parts *p, const struct ev_path *e, size_t bytes)
{
	u32 whole;

	if (bytes < sizeof(*e) || bytes - sizeof(*e) < e->len)
		return -EBADMSG;
	whole = sizeof(*e) + ((e->len + 7) & ~7U);
	buf_put(&p->paths, e, sizeof(*e) + e->len);
	while (p->paths.len % 8)
		buf_put_u8(&p->paths, 0);
	/* The copy's own length, padding included, is what is walked by. */
	((struct ev_path *)(p->paths.data + p->paths.len - whole))->bytes =
		whole;
	return 0;
}

int parts_add(struct parts *p, const void *record, size_t bytes)
{
	static const u32 sizes[] = {
		[EV_ISSUE] = sizeof(struct ev_issue),
		[EV_COMPLETE] = sizeof(struct ev_complete),
		[EV_REQUEUE] = sizeof(struct ev_requeue),
		[EV_FILE_OP] = sizeof(struct ev_file_op),
		[EV_MARK] = sizeof(struct ev_mark),
		[EV_PROC] = sizeof(struct ev_proc),
	};
	u32 type = *(const u32 *)record;

	if (type == EV_PAGE)
		return add_page(p, record, bytes);
	if (type == EV_DATA)
		return add_data(p, record, bytes);
	if (type == EV_PATH)
		return add_path(p, record, bytes);
	if (type >= ARRAY_SIZE(sizes) || !sizes[type] || bytes < sizes[type] ||
	    p->event.len)
		return -EBADMSG;
	buf_put(&p->event, record, sizes[type]);
	return 1;
}

void parts_issue(struct parts *p, const struct kernel_info *k,
		 struct rec_issue *ret, struct parts_loss *ret_loss)
{
	const struct ev_issue *e = (const void *)p->event.data;
	u64 bytes = (u64)e->sectors << SECTOR_SHIFT;
	struct rec_issue i = {
		.op = kernel_blk_op(k, e->cmd_flags),
		.flags = kernel_blk_flags(k, e->cmd_flags),
		.raw_flags = e->cmd_flags,
		.sector = e->sector,
		.sectors = e->sectors,
		.pid = e->h.tgid,
	};
	struct parts_loss loss = { .unreadable_bytes = p->unreadable };
	u64 missing;

	memcpy(i.comm, e->h.comm, sizeof(i.comm));
	if (i.op != BLK_WRITE || !bytes)
		goto out;
	missing = p->data_have < bytes ? bytes - p->data_have : 0;
	loss.too_large_bytes = MIN(missing, (u64)e->too_large);
	loss.ring_full_bytes = missing - loss.too_large_bytes;
	if (missing || p->unreadable || p->no_payload)
		i.flags |= BLK_PAYLOAD_MISSING;
	if (p->data_have) {
		page_hole(p, bytes);
		i.pages = p->pages;
		i.n_pages = p->n_pages;
	}
	if (p->data_have && !p->no_payload) {
		i.data_bytes = bytes;
		i.parts = payload_parts(&p->payload, bytes, &i.n_parts);
	}
out:
	*ret = i;
	*ret_loss = loss;
}

/* "c\0b\0a\0\0", innermost first, to "a/b/c". */
static char *join_components(const char *text, u32 len, bool *ret_whole)
{
	struct buf out = { 0 };
	u32 n = 0, cap = 0, *starts = NULL;
	u32 at = 0;

	*ret_whole = false;
	while (at < len) {
		u32 part = strnlen(text + at, len - at);

		if (part == len - at)	/* cut in the middle of a name */
			break;
		if (!part) {
			*ret_whole = true;
			break;
		}
		GROW(starts, n, cap);
		starts[n++] = at;
		at += part + 1;
	}
	while (n--) {
		buf_put(&out, text + starts[n], strlen(text + starts[n]));
		if (n)
			buf_put_u8(&out, '/');
	}
	buf_put_u8(&out, 0);
	free(starts);
	return (char *)out.data;
}

static void take_stack(const struct ev_path *e, struct rec_file_op *op)
{
	u32 n = e->len / sizeof(u64);

	if (op->stack || !n)
		return;
	op->stack = xreallocarray(NULL, n, sizeof(u64));
	memcpy(op->stack, e->text, n * sizeof(u64));
	op->n_stack = n;
}

/* A directory's path; an absolute one begins so only if it is all there. */
static void take_dir(const struct ev_path *e, struct rec_file_op *op,
		     char **dst)
{
	u32 absolute = e->kind == EV_PATH_DIR  ? FOP_DIR_ABSOLUTE :
		       e->kind == EV_PATH_DIR2 ? FOP_DIR2_ABSOLUTE :
						 0;
	char *path;
	bool whole;

	if (*dst)
		return;
	path = join_components(e->text, e->len, &whole);
	if (e->flags || !whole)
		op->flags |= FOP_DIR_TRUNCATED;
	else if (op->flags & absolute)
		*dst = xasprintf("/%s", path);
	if (*dst)
		free(path);
	else
		*dst = path;
}

static void take_path(const struct ev_path *e, struct rec_file_op *op)
{
	bool broken = e->flags != 0;
	char **dst;

	switch (e->kind) {
	case EV_PATH_1:
	case EV_PATH_2:
		dst = e->kind == EV_PATH_1 ? &op->path : &op->path2;
		if (broken)
			op->flags |= e->kind == EV_PATH_1 ?
					     FOP_PATH_UNREADABLE :
					     FOP_PATH2_UNREADABLE;
		if (!*dst && !(e->flags & 1))
			*dst = strndup(e->text, e->len);
		return;
	case EV_PATH_DIR:
		take_dir(e, op, &op->dir_path);
		return;
	case EV_PATH_DIR2:
		take_dir(e, op, &op->dir2_path);
		return;
	case EV_PATH_FILE:
		take_dir(e, op, &op->file_path);
		return;
	case EV_PATH_STACK:
		take_stack(e, op);
		return;
	}
}

static void op_numbers(const struct ev_file_op *e, struct rec_file_op *op)
{
	*op = (struct rec_file_op){
		.op = e->op,
		.flags = e->flags,
		.syscall = e->syscall,
		.start_seq = e->start_seq,
		.start_ns = e->start_ns,
		.pid = e->h.tgid,
		.tid = e->h.tid,
		.ret = e->ret,
		.fd = e->fd,
		.open_flags = e->open_flags,
		.mode = e->mode,
		.off = e->off,
		.len = e->len,
		.ino = e->ino,
		.size = e->size,
		.nlink = e->nlink,
		.file_mode = e->file_mode,
		.dir_dev = e->dir_dev,
		.dir2_dev = e->dir2_dev,
		.dir_ino = e->dir_ino,
		.dir2_ino = e->dir2_ino,
		.src_dev = e->src_dev,
		.src_ino = e->src_ino,
		.src_off = e->src_off,
	};
	memcpy(op->comm, e->h.comm, sizeof(op->comm));
}

void parts_file_op(struct parts *p, struct rec_file_op *ret,
		   struct parts_loss *ret_loss)
{
	const struct ev_file_op *e = (const void *)p->event.data;
	struct parts_loss loss = {
		.ring_full_bytes = e->data_lost,
		.unreadable_bytes = e->data_unreadable,
		.too_large_bytes = e->data_too_large,
		.paths = e->paths_lost,
	};
	struct rec_file_op op;

	op_numbers(e, &op);
	for (size_t at = 0; at < p->paths.len;) {
		const struct ev_path *path = (void *)(p->paths.data + at);

		take_path(path, &op);
		at += path->bytes;
	}
	if (e->data_lost || e->data_unreadable || e->data_too_large)
		op.flags |= FOP_DATA_UNREADABLE;
	if (e->paths_lost)
		op.flags |= FOP_PATH_UNREADABLE | FOP_PATH2_UNREADABLE;
	if (e->op == OP_WRITE && e->ret > 0 && p->payload.end) {
		/* What was lost at the end is zeroes up to what came whole. */
		u64 whole = (u64)e->ret - MIN((u64)e->ret, e->data_too_large);

		whole = MAX(p->payload.end, MIN(whole, DATA_MAX));
		op.data_bytes = MIN((u64)e->ret, whole);
		op.parts = payload_parts(&p->payload, op.data_bytes,
					 &op.n_parts);
	}
	*ret = op;
	*ret_loss = loss;
}
