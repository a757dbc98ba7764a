// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A record as a line of text: block requests as blktrace has them, file
 * operations as strace does.
 */
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "show.h"

static void put_prefix(FILE *out, const struct record *r, u32 pid)
{
	fprintf(out, "%3u:%-3u %8" PRIu64 " %6" PRIu64 ".%09u %6u ",
		r->dev >> 20, r->dev & 0xfffff, r->seq,
		r->time_ns / 1000000000, (u32)(r->time_ns % 1000000000), pid);
}

/* "text", with quotes and backslashes marked too. */
static void put_quoted(FILE *out, const char *text)
{
	char *copy = xstrdup(text), *s = copy;

	putc('"', out);
	while (*s) {
		size_t n = strcspn(s, "\"\\");
		char c = s[n];

		s[n] = 0;
		print_safe(out, s);
		s += n;
		if (c) {
			putc('\\', out);
			putc(c, out);
			s++;
		}
	}
	putc('"', out);
	free(copy);
}

static void put_comm(FILE *out, const char *comm)
{
	fputs(" [", out);
	print_safe(out, comm);
	putc(']', out);
}

static void put_flags(FILE *out, u32 flags, const char *const names[32])
{
	const char *sep = " {";

	for (unsigned int i = 0; i < 32; i++) {
		if (!(flags & 1U << i) || !names[i])
			continue;
		fprintf(out, "%s%s", sep, names[i]);
		sep = ",";
	}
	if (*sep == ',')
		putc('}', out);
}

static void put_data(FILE *out, const u8 *data, u32 bytes)
{
	for (u32 i = 0; i < bytes; i += 16) {
		u32 n = MIN(bytes - i, 16U);

		fprintf(out, "    %08x ", i);
		for (u32 k = 0; k < 16; k++) {
			if (k < n)
				fprintf(out, " %02x", data[i + k]);
			else
				fputs("   ", out);
		}
		fputs("  ", out);
		for (u32 k = 0; k < n; k++)
			putc(isprint(data[i + k]) ? data[i + k] : '.', out);
		putc('\n', out);
	}
}

/* ---- block requests ------------------------------------------------------ */

/* blktrace's letters, and WZ for write zeroes. */
static const char *rwbs(u8 op, u32 flags, char ret[16])
{
	static const char *const ops[] = {
		[BLK_WRITE] = "W",	    [BLK_FLUSH] = "F",
		[BLK_DISCARD] = "D",	    [BLK_SECURE_ERASE] = "DE",
		[BLK_WRITE_ZEROES] = "WZ", [BLK_OTHER] = "N",
	};

	snprintf(ret, 16, "%s%s%s%s%s", flags & BLK_PREFLUSH ? "F" : "",
		 op < ARRAY_SIZE(ops) && ops[op] ? ops[op] : "N",
		 flags & BLK_FUA ? "F" : "", flags & BLK_SYNC ? "S" : "",
		 flags & BLK_META ? "M" : "");
	return ret;
}

static void put_extent(FILE *out, char action, u8 op, u32 flags, u64 sector,
		       u32 sectors)
{
	char letters[16];

	fprintf(out, " %c %4s ", action, rwbs(op, flags, letters));
	if (sectors)
		fprintf(out, "%" PRIu64 " + %u", sector, sectors);
	else
		putc('-', out);
}

static void put_issue(FILE *out, const struct shown *s)
{
	const struct rec_issue *i = &s->issue;

	put_prefix(out, s->rec, i->pid);
	put_extent(out, 'D', i->op, i->flags, i->sector, i->sectors);
	put_comm(out, i->comm);
	if (i->flags & BLK_PAYLOAD_MISSING)
		fputs(" {payload-missing}", out);
	putc('\n', out);
	if (s->data && i->data)
		put_data(out, i->data, i->data_bytes);
}

static void put_of_issue(FILE *out, const struct shown *s, char action,
			 u64 issue_seq)
{
	put_prefix(out, s->rec, 0);
	if (s->of.seq)
		put_extent(out, action, s->of.op, s->of.flags, s->of.sector,
			   s->of.sectors);
	else
		fprintf(out, " %c    ? ?", action);
	fprintf(out, " <- %" PRIu64, issue_seq);
}

static void put_complete(FILE *out, const struct shown *s)
{
	put_of_issue(out, s, 'C', s->complete.issue_seq);
	fprintf(out, " [%" PRId64 "]\n", s->complete.error);
}

/* ---- file operations ----------------------------------------------------- */

static void put_open_flags(FILE *out, u32 flags)
{
	static const struct {
		u32 bits;
		const char *name;
	} names[] = {
		{ O_CREAT, "O_CREAT" },	      { O_EXCL, "O_EXCL" },
		{ O_TRUNC, "O_TRUNC" },	      { O_APPEND, "O_APPEND" },
		{ O_SYNC, "O_SYNC" },	      { O_DSYNC, "O_DSYNC" },
		{ O_TMPFILE, "O_TMPFILE" },   { O_DIRECTORY, "O_DIRECTORY" },
		{ O_NOFOLLOW, "O_NOFOLLOW" }, { O_DIRECT, "O_DIRECT" },
		{ O_NONBLOCK, "O_NONBLOCK" }, { O_CLOEXEC, "O_CLOEXEC" },
		{ O_PATH, "O_PATH" },	      { O_NOATIME, "O_NOATIME" },
	};
	static const char *const modes[] = { "O_RDONLY", "O_WRONLY", "O_RDWR",
					     "O_ACCMODE" };

	fputs(modes[flags & O_ACCMODE], out);
	flags &= ~O_ACCMODE;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if ((flags & names[i].bits) != names[i].bits)
			continue;
		fprintf(out, "|%s", names[i].name);
		flags &= ~names[i].bits;
	}
	flags &= ~0100000U;	/* O_LARGEFILE, which the kernel adds */
	if (flags)
		fprintf(out, "|0x%x", flags);
}

static void put_path(FILE *out, const char *path, bool unreadable,
		     const char *dir, bool absolute)
{
	if (unreadable)
		fputs("<unreadable>", out);
	else if (!path)
		fputs("NULL", out);
	else
		put_quoted(out, path);
	if (!dir || (path && path[0] == '/'))
		return;
	if (absolute) {
		fputs(" in ", out);
		put_quoted(out, dir);
		return;
	}
	fputs(" in </", out);
	print_safe(out, dir[0] == '/' ? dir + 1 : dir);
	putc('>', out);
}

static void put_path1(FILE *out, const struct rec_file_op *op)
{
	put_path(out, op->path, op->flags & FOP_PATH_UNREADABLE, op->dir_path,
		 op->flags & FOP_DIR_ABSOLUTE);
}

static void put_path2(FILE *out, const struct rec_file_op *op)
{
	fputs(", ", out);
	put_path(out, op->path2, op->flags & FOP_PATH2_UNREADABLE,
		 op->dir2_path, op->flags & FOP_DIR2_ABSOLUTE);
}

/* The file behind a descriptor: 3</data>. */
static void put_file(FILE *out, const struct rec_file_op *op)
{
	if (op->fd != FD_NONE)
		fprintf(out, "%d", op->fd);
	if (!op->file_path)
		fprintf(out, "<inode %" PRIu64 ">", op->ino);
	else {
		fputs("</", out);
		print_safe(out, op->file_path + (op->file_path[0] == '/'));
		putc('>', out);
	}
}

static void put_target(FILE *out, const struct rec_file_op *op)
{
	if (op->path || (op->flags & FOP_PATH_UNREADABLE))
		put_path1(out, op);
	else
		put_file(out, op);
}

static void put_range(FILE *out, const struct rec_file_op *op)
{
	fprintf(out, ", %" PRIu64 " bytes at %" PRIu64, op->len, op->off);
}

static void put_args(FILE *out, const struct rec_file_op *op)
{
	switch (op->op) {
	case OP_OPEN:
		put_path1(out, op);
		fputs(", ", out);
		put_open_flags(out, op->open_flags);
		if (op->open_flags & O_CREAT)
			fprintf(out, ", %#o", op->mode & 07777);
		return;
	case OP_WRITE:
	case OP_SYNC_FILE_RANGE:
	case OP_MSYNC:
	case OP_MMAP_SHARED:
		put_file(out, op);
		put_range(out, op);
		return;
	case OP_FALLOCATE:
		put_file(out, op);
		fprintf(out, ", mode 0x%x", op->mode);
		put_range(out, op);
		return;
	case OP_COPY:
		put_file(out, op);
		put_range(out, op);
		fprintf(out, ", from inode %" PRIu64 " at %" PRIu64,
			op->src_ino, op->src_off);
		return;
	case OP_TRUNCATE:
		put_target(out, op);
		fprintf(out, ", %" PRIu64, op->len);
		return;
	case OP_RENAME:
	case OP_LINK:
		put_path1(out, op);
		put_path2(out, op);
		if (op->mode)
			fprintf(out, ", 0x%x", op->mode);
		return;
	case OP_SYMLINK:
		put_path(out, op->path, op->flags & FOP_PATH_UNREADABLE, NULL,
			 false);
		put_path2(out, op);
		return;
	case OP_UNLINK:
	case OP_RMDIR:
		put_path1(out, op);
		return;
	case OP_MKDIR:
	case OP_MKNOD:
		put_path1(out, op);
		fprintf(out, ", %#o", op->mode);
		return;
	case OP_SYNC:
		return;
	case OP_IO_URING:
		fprintf(out, "opcode %u, ", op->mode);
		break;
	}
	put_file(out, op);
}

static void put_file_op(FILE *out, const struct shown *s)
{
	const struct rec_file_op *op = &s->op;

	put_prefix(out, s->rec, op->pid);
	if (op->tid != op->pid)
		fprintf(out, "/%u", op->tid);
	fprintf(out, " %s(", file_op_name(op->op));
	put_args(out, op);
	fprintf(out, ") = %" PRId64, op->ret);
	if (op->ret < 0 && op->ret > -4096)
		fprintf(out, " (%s)", strerror(-op->ret));
	put_comm(out, op->comm);
	put_flags(out, op->flags, fop_flag_names);
	putc('\n', out);
	for (u32 i = 0; i < op->n_stack; i++)
		fprintf(out, "    %#" PRIx64 "\n", op->stack[i]);
	if (s->data && op->data)
		put_data(out, op->data, op->data_bytes);
}

/* ---- the others ---------------------------------------------------------- */

static void put_proc(FILE *out, const struct shown *s)
{
	const struct rec_proc *p = &s->proc;

	put_prefix(out, s->rec, p->pid);
	fprintf(out, " %s", proc_event_name(p->event));
	if (p->event == PROC_FORK)
		fprintf(out, " by %u", p->parent);
	if (p->event == PROC_EXIT)
		fprintf(out, " status 0x%x", p->status);
	put_comm(out, p->comm);
	putc('\n', out);
}

static void put_other(FILE *out, const struct shown *s)
{
	const struct record *r = s->rec;

	put_prefix(out, r, r->type == REC_MARK ? s->mark.pid : 0);
	fprintf(out, " %s", rec_type_name(r->type));
	switch (r->type) {
	case REC_BASE:
		fprintf(out, " %u bytes at %" PRIu64, s->base.bytes,
			s->base.offset_bytes);
		break;
	case REC_BASE_END:
		fprintf(out, " of %" PRIu64 " bytes", s->base_end_bytes);
		break;
	case REC_MARK:
		putc(' ', out);
		put_quoted(out, s->mark.text);
		break;
	case REC_GAP:
		fprintf(out, " up to %" PRIu64 ": %" PRIu64 " events, %" PRIu64
			" bytes lost (%s)", s->gap.last_seq, s->gap.events,
			s->gap.bytes, gap_reason_name(s->gap.reason));
		break;
	case REC_STATE:
		fprintf(out, " after %" PRIu64 ": %u entries, %" PRIu64
			" bytes: ", s->state.after_seq, s->state.tree.n,
			s->state.tree.bytes);
		print_safe(out, s->state.what);
		break;
	case REC_END:
		fprintf(out, ": %" PRIu64 " events, %" PRIu64 " gaps, %" PRIu64
			" events and %" PRIu64 " bytes lost", s->end.events,
			s->end.gaps, s->end.lost_events, s->end.lost_bytes);
		break;
	default:
		fprintf(out, " (type %u), %u bytes", r->type, r->body_bytes);
	}
	putc('\n', out);
	if (s->data && r->type == REC_BASE)
		put_data(out, s->base.data, s->base.bytes);
}

void show_text(FILE *out, const struct shown *s)
{
	switch (s->rec->type) {
	case REC_ISSUE:
		put_issue(out, s);
		break;
	case REC_COMPLETE:
		put_complete(out, s);
		break;
	case REC_REQUEUE:
		put_of_issue(out, s, 'R', s->requeue.issue_seq);
		putc('\n', out);
		break;
	case REC_FILE_OP:
		put_file_op(out, s);
		break;
	case REC_PROC:
		put_proc(out, s);
		break;
	default:
		put_other(out, s);
	}
}
