// SPDX-License-Identifier: GPL-2.0-or-later
#include "arena.h"

#include <string.h>

#define ARENA_BLOCK_BYTES (1U << 20)
#define ARENA_ALIGN 16

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	_Alignas(ARENA_ALIGN) u8 data[];
};

struct arena {
	struct arena_block *blocks;
};

struct arena *arena_new(void)
{
	return xzalloc(sizeof(struct arena));
}

void arena_free(struct arena *a)
{
	struct arena_block *b, *next;

	if (!a)
		return;
	for (b = a->blocks; b; b = next) {
		next = b->next;
		free(b);
	}
	free(a);
}

void *arena_copy(struct arena *a, const void *data, size_t len)
{
	struct arena_block *b = a->blocks;
	size_t size;
	u8 *p;

	if (!b || len > b->size - b->used) {
		size = MAX(len, (size_t)ARENA_BLOCK_BYTES);
		size = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
		b = xmalloc(sizeof(*b) + size);
		*b = (struct arena_block){ .next = a->blocks, .size = size };
		a->blocks = b;
	}
	p = b->data + b->used;
	if (len)
		memcpy(p, data, len);
	b->used += (len + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	return p;
}
