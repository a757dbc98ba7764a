/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verbs of the recording and its images; conventions in user/verbs.h. */
#ifndef BLKBOX_REPLAY_VERBS_H
#define BLKBOX_REPLAY_VERBS_H

int verb_replay(int argc, char **argv);		/* replay/cmd_replay.c */
int verb_show(int argc, char **argv);		/* replay/cmd_show.c */
int verb_verify(int argc, char **argv);		/* replay/cmd_verify.c */

#endif
