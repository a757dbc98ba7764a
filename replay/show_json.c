// SPDX-License-Identifier: GPL-2.0-or-later
/* A record as one line of JSON. Members are added, never changed. */
#include "json_out.h"
#include "show.h"

static void add_str(cJSON *o, const char *name, const char *text)
{
	cJSON_AddStringToObject(o, name, text);
}

static void add_extent(cJSON *o, const struct shown_issue *i)
{
	json_u64(o, "sector", i->sector);
	json_u64(o, "sectors", i->sectors);
	add_str(o, "op", blk_op_name(i->op));
	json_flags(o, "flags", i->flags, blk_flag_names);
}

/* Pieces that go on where the one before ended are one. */
static bool continues(const struct rec_page *a, u64 bytes,
		      const struct rec_page *b)
{
	return a->fs_dev == b->fs_dev && a->ino == b->ino &&
	       a->flags == b->flags && a->file_offset + bytes == b->file_offset;
}

static void add_pages(cJSON *o, const struct rec_issue *i)
{
	cJSON *array = cJSON_AddArrayToObject(o, "pages");

	for (u32 n = 0, next; n < i->n_pages; n = next) {
		const struct rec_page *p = &i->pages[n];
		cJSON *item = cJSON_CreateObject();
		u64 bytes = p->bytes;

		for (next = n + 1; next < i->n_pages; next++) {
			if (!continues(p, bytes, &i->pages[next]))
				break;
			bytes += i->pages[next].bytes;
		}
		json_u64(item, "bytes", bytes);
		json_flags(item, "flags", p->flags, page_flag_names);
		if (p->ino) {
			json_dev(item, "fs_dev", p->fs_dev);
			json_u64(item, "ino", p->ino);
			json_u64(item, "off", p->file_offset);
		}
		cJSON_AddItemToArray(array, item);
	}
}

static void add_issue(cJSON *o, const struct shown *s)
{
	const struct rec_issue *i = &s->issue;
	struct shown_issue extent = { .op = i->op, .flags = i->flags,
				      .sector = i->sector,
				      .sectors = i->sectors };

	add_extent(o, &extent);
	json_u64(o, "raw_flags", i->raw_flags);
	json_u64(o, "pid", i->pid);
	json_name(o, "comm", i->comm);
	json_u64(o, "data_bytes", i->data_bytes);
	if (i->n_pages)
		add_pages(o, i);
	if (s->data && i->data)
		json_hex(o, "data_hex", i->data, i->data_bytes);
}

static void add_dir(cJSON *o, const char *prefix, u32 dev, u64 ino,
		    const char *path)
{
	char name[32];

	if (!ino && !path)
		return;
	snprintf(name, sizeof(name), "%s_dev", prefix);
	json_dev(o, name, dev);
	snprintf(name, sizeof(name), "%s_ino", prefix);
	json_u64(o, name, ino);
	snprintf(name, sizeof(name), "%s_path", prefix);
	json_name(o, name, path);
}

static void add_file_op(cJSON *o, const struct shown *s)
{
	const struct rec_file_op *op = &s->op;

	add_str(o, "op", file_op_name(op->op));
	json_flags(o, "flags", op->flags, fop_flag_names);
	json_s64(o, "ret", op->ret);
	json_u64(o, "pid", op->pid);
	json_u64(o, "tid", op->tid);
	json_name(o, "comm", op->comm);
	json_name(o, "path", op->path);
	json_name(o, "path2", op->path2);
	json_name(o, "file_path", op->file_path);
	add_dir(o, "dir", op->dir_dev, op->dir_ino, op->dir_path);
	add_dir(o, "dir2", op->dir2_dev, op->dir2_ino, op->dir2_path);
	if (op->fd != FD_NONE)
		json_s64(o, "fd", op->fd);
	json_u64(o, "ino", op->ino);
	json_u64(o, "off", op->off);
	json_u64(o, "len", op->len);
	json_u64(o, "size", op->size);
	json_u64(o, "open_flags", op->open_flags);
	json_u64(o, "mode", op->mode);
	json_u64(o, "file_mode", op->file_mode);
	json_u64(o, "nlink", op->nlink);
	if (op->src_ino) {
		json_dev(o, "src_dev", op->src_dev);
		json_u64(o, "src_ino", op->src_ino);
		json_u64(o, "src_off", op->src_off);
	}
	json_s64(o, "syscall", (s32)op->syscall);
	json_u64(o, "start_seq", op->start_seq);
	json_u64(o, "start_ns", op->start_ns);
	json_u64(o, "data_bytes", op->data_bytes);
	if (op->n_stack) {
		cJSON *stack = cJSON_AddArrayToObject(o, "stack");
		char text[32];

		for (u32 i = 0; i < op->n_stack; i++) {
			snprintf(text, sizeof(text), "0x%llx",
				 (unsigned long long)op->stack[i]);
			cJSON_AddItemToArray(stack, cJSON_CreateString(text));
		}
	}
	if (s->data && op->data)
		json_hex(o, "data_hex", op->data, op->data_bytes);
}

static void add_small(cJSON *o, const struct shown *s)
{
	switch (s->rec->type) {
	case REC_BASE:
		json_u64(o, "off", s->base.offset_bytes);
		json_u64(o, "bytes", s->base.bytes);
		if (s->data)
			json_hex(o, "data_hex", s->base.data, s->base.bytes);
		break;
	case REC_BASE_END:
		json_u64(o, "bytes", s->base_end_bytes);
		break;
	case REC_MARK:
		json_u64(o, "pid", s->mark.pid);
		json_name(o, "text", s->mark.text);
		break;
	case REC_PROC:
		add_str(o, "event", proc_event_name(s->proc.event));
		json_u64(o, "pid", s->proc.pid);
		json_u64(o, "parent", s->proc.parent);
		json_s64(o, "status", s->proc.status);
		json_name(o, "comm", s->proc.comm);
		break;
	case REC_GAP:
		add_str(o, "reason", gap_reason_name(s->gap.reason));
		if (s->gap.lost_type)
			add_str(o, "lost_type",
				rec_type_name(s->gap.lost_type));
		json_u64(o, "last_seq", s->gap.last_seq);
		json_u64(o, "events", s->gap.events);
		json_u64(o, "bytes", s->gap.bytes);
		break;
	case REC_STATE:
		json_u64(o, "after_seq", s->state.after_seq);
		add_str(o, "source",
			s->state.source == STATE_STOP ? "stop" : "trace");
		json_name(o, "what", s->state.what);
		json_u64(o, "entries", s->state.tree.n);
		json_u64(o, "bytes", s->state.tree.bytes);
		break;
	case REC_END:
		json_u64(o, "events", s->end.events);
		json_u64(o, "gaps", s->end.gaps);
		json_u64(o, "lost_events", s->end.lost_events);
		json_u64(o, "lost_bytes", s->end.lost_bytes);
		break;
	default:
		json_u64(o, "type_number", s->rec->type);
		json_u64(o, "record_bytes", s->rec->body_bytes);
	}
}

void show_json(FILE *out, const struct shown *s)
{
	cJSON *o = cJSON_CreateObject();
	const struct record *r = s->rec;

	json_u64(o, "seq", r->seq);
	json_u64(o, "time_ns", r->time_ns);
	add_str(o, "type", rec_type_name(r->type));
	json_dev(o, "dev", r->dev);
	switch (r->type) {
	case REC_ISSUE:
		add_issue(o, s);
		break;
	case REC_COMPLETE:
		json_u64(o, "issue", s->complete.issue_seq);
		json_s64(o, "error", s->complete.error);
		json_u64(o, "bytes", s->complete.bytes);
		break;
	case REC_REQUEUE:
		json_u64(o, "issue", s->requeue.issue_seq);
		break;
	case REC_FILE_OP:
		add_file_op(o, s);
		break;
	default:
		add_small(o, s);
	}
	if (s->of.seq)
		add_extent(o, &s->of);
	json_print(out, o, false);
	putc('\n', out);
	cJSON_Delete(o);
}
