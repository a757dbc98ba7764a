/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The verbs of blkbox. Each takes its own argv, with argv[0] the verb's name,
 * and returns an exit status (enum exit_status). Long options stand in one
 * table per verb; usage() is the same shape in each; --help prints it to
 * stdout and returns 0, a wrong option prints one line to stderr and "Try
 * 'blkbox VERB --help'." and returns 2.
 */
#ifndef BLKBOX_VERBS_H
#define BLKBOX_VERBS_H

int verb_check(int argc, char **argv);		/* user/cmd_check.c */
int verb_record(int argc, char **argv);		/* user/cmd_record.c */
int verb_mark(int argc, char **argv);		/* user/cmd_mark.c */
int verb_doctor(int argc, char **argv);		/* user/cmd_doctor.c */

#endif
