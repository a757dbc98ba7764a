// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of flags and reasons, as show prints them. */
#include "show.h"

const char *const blk_flag_names[32] = {
	[0] = "fua",  [1] = "preflush", [2] = "sync",
	[3] = "meta", [4] = "prio",	[5] = "nounmap",
	[8] = "payload-missing",
};

const char *const page_flag_names[32] = {
	[0] = "unreadable",
	[1] = "blockdev",
	[2] = "anon",
};

const char *const fop_flag_names[32] = {
	[0] = "last-close",	   [1] = "written",
	[2] = "created",	   [3] = "stopped",
	[4] = "data-unreadable",   [5] = "data-unknown",
	[6] = "path-unreadable",   [7] = "path2-unreadable",
	[8] = "dir-truncated",	   [9] = "at-exit",
	[10] = "io-uring",	   [11] = "sync-write",
	[12] = "dsync-write",	   [13] = "dir-absolute",
	[14] = "dir2-absolute",
};

_Static_assert(BLK_PAYLOAD_MISSING == 1 << 8, "blk_flag_names");
_Static_assert(PAGE_ANON == 1 << 2, "page_flag_names");
_Static_assert(FOP_DIR2_ABSOLUTE == 1 << 14, "fop_flag_names");

const char *gap_reason_name(u8 reason)
{
	static const char *const names[] = {
		[GAP_RING_FULL] = "ring-full",
		[GAP_UNREADABLE] = "unreadable",
		[GAP_TOO_LARGE] = "too-large",
		[GAP_OUTPUT] = "output",
	};

	return reason < ARRAY_SIZE(names) && names[reason] ? names[reason] :
							     "unknown";
}

const char *proc_event_name(u8 event)
{
	static const char *const names[] = {
		[PROC_FORK] = "fork",
		[PROC_EXEC] = "exec",
		[PROC_EXIT] = "exit",
	};

	return event < ARRAY_SIZE(names) && names[event] ? names[event] :
							   "unknown";
}
