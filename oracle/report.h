/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BLKBOX_REPORT_H
#define BLKBOX_REPORT_H

#include "explore.h"

const char *verdict_name(enum verdict v);
const char *finding_kind_name(enum finding_kind k);	/* "distance", ... */
const char *file_fate_name(enum file_fate f);

/* For a person: the verdict, the worst crash site spelled out, per file what
 * happened to it, and the command that rebuilds this very site. verbose: all
 * findings. Names are printed safely. */
void report_text(FILE *out, const char *title, const struct explore_result *r,
		 bool verbose);
/* The contract of design.md. Returns heap text. */
char *report_json(const char *command, const struct explore_result *r);
/* One test case per run of check or explore. Returns heap text (XML). */
char *report_junit(const char *name, const struct explore_result *r);
/* Writes text to path, "-" for stdout. */
int report_write(const char *path, const char *text, struct errmsg *em);

#endif
