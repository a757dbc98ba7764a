// SPDX-License-Identifier: GPL-2.0-or-later
#include "intern.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

static void add_slot(struct intern *in, u32 no)
{
	u32 mask = in->n_slots - 1;
	u32 at = in->items[no].hash & mask;

	while (in->slots[at])
		at = (at + 1) & mask;
	in->slots[at] = no + 1;
}

static void grow_slots(struct intern *in)
{
	in->n_slots = in->n_slots ? in->n_slots * 2 : 64;
	free(in->slots);
	in->slots = xzalloc((size_t)in->n_slots * sizeof(*in->slots));
	for (u32 i = 0; i < in->n; i++)
		add_slot(in, i);
}

u32 intern_put(struct intern *in, const void *data, size_t len, bool *ret_new)
{
	u64 hash = XXH3_64bits(data, len);
	struct intern_item *item;

	assert(in->n < UINT32_MAX / 4);
	if ((in->n + 1) * 2 > in->n_slots)
		grow_slots(in);
	for (u32 at = hash & (in->n_slots - 1); in->slots[at];
	     at = (at + 1) & (in->n_slots - 1)) {
		item = &in->items[in->slots[at] - 1];
		if (item->hash == hash && item->len == len &&
		    !memcmp(item->data, data, len)) {
			if (ret_new)
				*ret_new = false;
			return in->slots[at] - 1;
		}
	}
	GROW(in->items, in->n, in->cap);
	item = &in->items[in->n++];
	*item = (struct intern_item){ .hash = hash, .len = len };
	item->data = xmalloc(len);
	if (len)
		memcpy(item->data, data, len);
	in->bytes += len;
	add_slot(in, in->n - 1);
	if (ret_new)
		*ret_new = true;
	return in->n - 1;
}

void intern_done(struct intern *in)
{
	for (u32 i = 0; i < in->n; i++)
		free(in->items[i].data);
	free(in->items);
	free(in->slots);
	*in = (struct intern){ 0 };
}
