/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that is given out piece by piece and freed all at once. */
#ifndef BLKBOX_ARENA_H
#define BLKBOX_ARENA_H

#include "base.h"

struct arena;
struct arena *arena_new(void);
void arena_free(struct arena *a);	/* NULL is fine */
/* A copy of len bytes, aligned to 16, that lives as long as the arena. */
void *arena_copy(struct arena *a, const void *data, size_t len);

#endif
