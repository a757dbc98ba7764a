/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a crash site is, in words a person understands. All text is heap. */
#ifndef BLKBOX_EXPLAIN_H
#define BLKBOX_EXPLAIN_H

#include "explore.h"

/* "rename(new, old)". An open file is named by what it was called then in e,
 * which may be NULL. */
char *op_words(const struct expected *e, const struct rec_file_op *op);
/* "just after unlink(data) had returned" */
char *point_words(const struct trace *t, const struct expected *e,
		  u32 point);
/* "write of 4096 bytes at sector 2048: data.gz, bytes 0 to 4095" */
char *unit_words(const struct trace *t, const struct expected *e, u32 unit);
/* "123", or "123:2048" (first sector) for a piece of a torn write. */
char *unit_name(const struct trace *t, u32 unit);
/* "p1234" or "p1234-1200,1210" */
char *site_name(const struct trace *t, u32 point, const u32 *drop, u32 n);
/* "after close data.gz", "at the start" */
char *state_words(const struct expected *e, u32 state);
/* "fsync(data) had returned, which promised ...; ... " */
char *promise_words(const struct trace *t, const struct expected *e,
		    const struct promise *p);
/* The command that rebuilds a site. */
char *site_command(const struct trace *t, const char *recording,
		   const struct explore_opts *opts, u32 point,
		   const u32 *drop, u32 n);

#endif
