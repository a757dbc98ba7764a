/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starting helper programs and waiting for them. */
#ifndef BLKBOX_SPAWN_H
#define BLKBOX_SPAWN_H

#include "../replay/base.h"

/*
 * Runs argv with standard input from /dev/null and its output on our standard
 * error, in directory (NULL: ours). 0 when it exited 0; else em says what it
 * was, how it ended, and its last words.
 */
int spawn_wait(char *const argv[], const char *directory, struct errmsg *em);

/* "exited with status 3", "was killed by signal 9 (Killed)"; heap. */
char *wait_status_words(int status);

#endif
