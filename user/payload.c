// SPDX-License-Identifier: GPL-2.0-or-later
#include "payload.h"

#include <assert.h>
#include <string.h>

void payload_put(struct payload *p, u64 at, u32 bytes, const void *data)
{
	assert(at >= p->end);
	p->end = at + bytes;
	if (!data || !bytes)
		return;
	GROW(p->pieces, p->n, p->cap);
	p->pieces[p->n++] = (struct payload_piece){ at, bytes, data };
}

void payload_keep(struct payload *p)
{
	size_t bytes = 0;
	u8 *chunk;

	for (u32 i = p->n_kept; i < p->n; i++)
		bytes += p->pieces[i].bytes;
	if (!bytes)
		return;
	chunk = xmalloc(bytes);
	GROW(p->chunks, p->n_chunks, p->cap_chunks);
	p->chunks[p->n_chunks++] = chunk;
	for (; p->n_kept < p->n; p->n_kept++) {
		struct payload_piece *piece = &p->pieces[p->n_kept];

		memcpy(chunk, piece->data, piece->bytes);
		piece->data = chunk;
		chunk += piece->bytes;
	}
}

static void add_part(struct payload *p, const void *data, u64 bytes)
{
	while (bytes) {
		u32 n = MIN(bytes, UINT32_MAX);

		GROW(p->parts, p->n_parts, p->cap_parts);
		p->parts[p->n_parts++] = (struct rec_bytes){ data, n };
		bytes -= n;
		assert(!data || !bytes);
	}
}

const struct rec_bytes *payload_parts(struct payload *p, u64 bytes, u32 *ret_n)
{
	u64 at = 0;

	p->n_parts = 0;
	for (u32 i = 0; i < p->n; i++) {
		const struct payload_piece *piece = &p->pieces[i];

		if (piece->at >= bytes)
			break;
		add_part(p, NULL, piece->at - at);
		at = MIN(piece->at + piece->bytes, bytes);
		add_part(p, piece->data, at - piece->at);
	}
	add_part(p, NULL, bytes - at);
	*ret_n = p->n_parts;
	return p->parts;
}

void payload_reset(struct payload *p)
{
	while (p->n_chunks)
		free(p->chunks[--p->n_chunks]);
	p->n = p->n_kept = p->n_parts = 0;
	p->end = 0;
}

void payload_free(struct payload *p)
{
	payload_reset(p);
	free(p->pieces);
	free(p->chunks);
	free(p->parts);
	*p = (struct payload){ 0 };
}
