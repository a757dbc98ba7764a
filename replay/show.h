/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two forms in which cmd_show.c prints a record. */
#ifndef BLKBOX_SHOW_H
#define BLKBOX_SHOW_H

#include "recording.h"
#include "tree.h"

/* What a completion wants to know of its issue. */
struct shown_issue {
	u64 seq;	/* 0: not known (any more) */
	u8 op;
	u32 flags;
	u64 sector;
	u32 sectors;
};

/* A record decoded; the member that belongs to its type. */
struct shown {
	const struct record *rec;
	bool data;		/* payload too */
	union {
		struct rec_base base;
		u64 base_end_bytes;
		struct rec_issue issue;
		struct rec_complete complete;
		struct rec_requeue requeue;
		struct rec_file_op op;
		struct rec_mark mark;
		struct rec_proc proc;
		struct rec_gap gap;
		struct rec_state state;
		struct rec_end end;
	};
	struct shown_issue of;	/* COMPLETE, REQUEUE */
};

extern const char *const blk_flag_names[32];
extern const char *const fop_flag_names[32];
extern const char *const page_flag_names[32];
const char *gap_reason_name(u8 reason);
const char *proc_event_name(u8 event);

void show_text(FILE *out, const struct shown *s);	/* show_text.c */
void show_json(FILE *out, const struct shown *s);	/* show_json.c */

#endif
