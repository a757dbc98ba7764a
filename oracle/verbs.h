/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verbs of the oracle; conventions in user/verbs.h. */
#ifndef BLKBOX_ORACLE_VERBS_H
#define BLKBOX_ORACLE_VERBS_H

int verb_explore(int argc, char **argv);	/* oracle/cmd_explore.c */

#endif
