/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sentences that the text, JSON and JUnit reports share; heap text that may
 * hold names from the recording, not yet made safe. */
#ifndef BLKBOX_REPORT_WORDS_H
#define BLKBOX_REPORT_WORDS_H

#include "explore.h"

char *words_covered(const struct explore_result *r);
char *words_headline(const struct finding *f);
char *words_verdict(const struct explore_result *r);

#endif
