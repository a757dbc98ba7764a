// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chunks of file content, held once each, and contents made of them.
 *
 * Invariants:
 *  1. The table is an open-addressed hash by the low half of the chunk's hash,
 *     at most half full; a chunk stands in the first free slot at or after its
 *     place, so a lookup ends at an empty slot.
 *  2. A chunk is in the table exactly once as long as somebody refers to it;
 *     the last reference frees it.
 *  3. All chunks of a content but the last are CHUNK_BYTES long, and none is
 *     empty.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <assert.h>
#include <string.h>

#include "store.h"

struct store {
	struct chunk **slots;
	size_t n_slots;		/* a power of two */
	size_t n;
};

struct hash128 hash_of(const void *data, size_t len)
{
	XXH128_hash_t h = XXH3_128bits(data, len);

	return (struct hash128){ h.low64, h.high64 };
}

bool hash_equal(const struct hash128 *a, const struct hash128 *b)
{
	return a->lo == b->lo && a->hi == b->hi;
}

struct store *store_new(void)
{
	struct store *s = xzalloc(sizeof(*s));

	s->n_slots = 256;
	s->slots = xzalloc(s->n_slots * sizeof(*s->slots));
	return s;
}

void store_free(struct store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_slots; i++) {
		if (s->slots[i])
			free(s->slots[i]->data);
		free(s->slots[i]);
	}
	free(s->slots);
	free(s);
}

/* The slot that holds hash, or the empty one where it would go. */
static size_t slot_of(const struct store *s, const struct hash128 *hash)
{
	size_t i = hash->lo & (s->n_slots - 1);

	while (s->slots[i] && !hash_equal(&s->slots[i]->hash, hash))
		i = (i + 1) & (s->n_slots - 1);
	return i;
}

struct chunk *store_find(const struct store *s, const struct hash128 *hash)
{
	return s->slots[slot_of(s, hash)];
}

static void store_grow(struct store *s)
{
	struct chunk **old = s->slots;
	size_t n_old = s->n_slots;

	s->n_slots *= 2;
	s->slots = xzalloc(s->n_slots * sizeof(*s->slots));
	for (size_t i = 0; i < n_old; i++) {
		if (old[i])
			s->slots[slot_of(s, &old[i]->hash)] = old[i];
	}
	free(old);
}

/* Four tables, so that runs of one byte value do not wait for each other. */
static void count_bytes(const u8 *p, u32 len, u32 ret[256])
{
	u32 part[4][256] = { 0 };
	u32 i;

	for (i = 0; i + 4 <= len; i += 4) {
		part[0][p[i]]++;
		part[1][p[i + 1]]++;
		part[2][p[i + 2]]++;
		part[3][p[i + 3]]++;
	}
	for (; i < len; i++)
		part[0][p[i]]++;
	for (i = 0; i < 256; i++)
		ret[i] = part[0][i] + part[1][i] + part[2][i] + part[3][i];
}

struct chunk *store_chunk(struct store *s, const void *data, u32 bytes)
{
	struct hash128 hash = hash_of(data, bytes);
	struct chunk *c = store_find(s, &hash);

	assert(bytes && bytes <= CHUNK_BYTES);
	if (c) {
		c->refs++;
		return c;
	}
	if (s->n * 2 >= s->n_slots)
		store_grow(s);
	c = xzalloc(sizeof(*c));
	c->hash = hash;
	c->bytes = bytes;
	c->refs = 1;
	c->data = xmalloc(bytes);
	memcpy(c->data, data, bytes);
	count_bytes(c->data, bytes, c->counts);
	s->slots[slot_of(s, &hash)] = c;
	s->n++;
	return c;
}

struct chunk *store_zero_chunk(struct store *s, struct chunk *last, u32 bytes)
{
	static const u8 zeroes[CHUNK_BYTES];

	if (!last || last->bytes != bytes || last->counts[0] != bytes)
		return store_chunk(s, zeroes, bytes);
	last->refs++;
	return last;
}

/* Empties slot i and moves up what stood behind it because of it. */
static void slot_clear(struct store *s, size_t i)
{
	size_t mask = s->n_slots - 1;
	size_t j = i;

	for (;;) {
		size_t home;

		j = (j + 1) & mask;
		if (!s->slots[j])
			break;
		home = s->slots[j]->hash.lo & mask;
		if (((j - home) & mask) < ((j - i) & mask))
			continue;
		s->slots[i] = s->slots[j];
		i = j;
	}
	s->slots[i] = NULL;
}

void chunk_unref(struct store *s, struct chunk *c)
{
	assert(c->refs);
	if (--c->refs)
		return;
	slot_clear(s, slot_of(s, &c->hash));
	s->n--;
	free(c->data);
	free(c);
}

/* ---- contents ------------------------------------------------------------ */

u64 chunks_of(u64 bytes)
{
	return bytes / CHUNK_BYTES + !!(bytes % CHUNK_BYTES);
}

u32 chunk_len(u64 bytes, u64 i)
{
	return MIN(bytes - i * CHUNK_BYTES, (u64)CHUNK_BYTES);
}

struct content *content_new(u64 bytes)
{
	struct content *c;

	if (bytes > CONTENT_MAX_BYTES)
		return NULL;
	c = xzalloc(sizeof(*c));
	c->refs = 1;
	c->bytes = bytes;
	c->n_chunks = chunks_of(bytes);
	c->chunks = xreallocarray(NULL, c->n_chunks, sizeof(*c->chunks));
	return c;
}

void content_seal(struct content *c)
{
	_cleanup_buf_ struct buf b = { 0 };

	buf_put_u64(&b, c->bytes);
	for (u32 i = 0; i < c->n_chunks; i++) {
		assert(c->chunks[i]->bytes == chunk_len(c->bytes, i));
		buf_put_u64(&b, c->chunks[i]->hash.lo);
		buf_put_u64(&b, c->chunks[i]->hash.hi);
	}
	c->hash = hash_of(b.data, b.len);
}

struct content *content_from_bytes(struct store *s, const void *data,
				   size_t len)
{
	struct content *c = content_new(len);

	if (!c)
		return NULL;
	for (u32 i = 0; i < c->n_chunks; i++)
		c->chunks[i] = store_chunk(s, (const u8 *)data +
						   (size_t)i * CHUNK_BYTES,
					   chunk_len(len, i));
	content_seal(c);
	return c;
}

struct content *content_ref(struct content *c)
{
	c->refs++;
	return c;
}

void content_unref(struct store *s, struct content *c)
{
	if (!c)
		return;
	assert(c->refs);
	if (--c->refs)
		return;
	for (u32 i = 0; i < c->n_chunks; i++)
		chunk_unref(s, c->chunks[i]);
	free(c->chunks);
	free(c);
}

size_t content_read(const struct content *c, u64 off, void *data, size_t len)
{
	size_t done = 0;

	if (off >= c->bytes)
		return 0;
	len = MIN((u64)len, c->bytes - off);
	while (done < len) {
		const struct chunk *k = c->chunks[(off + done) / CHUNK_BYTES];
		u32 from = (off + done) % CHUNK_BYTES;
		size_t n = MIN(len - done, (size_t)(k->bytes - from));

		memcpy((u8 *)data + done, k->data + from, n);
		done += n;
	}
	return done;
}

/* Chunk i of c as it is with the write laid over it and bytes in all. last:
 * the chunk before it. */
static struct chunk *chunk_over(struct store *s, const struct content *c,
				struct chunk *last, u64 i, u64 bytes, u64 off,
				const u8 *data, size_t len)
{
	u64 start = i * CHUNK_BYTES;
	u32 n = chunk_len(bytes, i);
	u64 from = MAX(off, start), to = MIN(off + len, start + n);
	const struct chunk *old = NULL;
	u8 block[CHUNK_BYTES];
	u32 keep = 0;

	if (c && i < c->n_chunks)
		old = c->chunks[i];
	if (old && old->bytes == n && from >= to) {
		c->chunks[i]->refs++;
		return c->chunks[i];
	}
	if (!old && from >= to)
		return store_zero_chunk(s, last, n);
	if (old) {
		keep = MIN(old->bytes, n);
		memcpy(block, old->data, keep);
	}
	memset(block + keep, 0, n - keep);
	if (from < to)
		memcpy(block + (from - start), data + (from - off), to - from);
	return store_chunk(s, block, n);
}

static struct content *content_over(struct store *s, const struct content *c,
				    u64 bytes, u64 off, const void *data,
				    size_t len)
{
	struct content *n = content_new(bytes);
	struct chunk *last = NULL;

	if (!n)
		return NULL;
	for (u32 i = 0; i < n->n_chunks; i++) {
		last = chunk_over(s, c, last, i, bytes, off, data, len);
		n->chunks[i] = last;
	}
	n->unknown = c && c->unknown;
	content_seal(n);
	return n;
}

struct content *content_write(struct store *s, const struct content *c, u64 off,
			      const void *data, size_t len)
{
	u64 bytes = c ? c->bytes : 0;
	u64 end;

	if (__builtin_add_overflow(off, len, &end))
		return NULL;
	if (len)
		bytes = MAX(bytes, end);
	return content_over(s, c, bytes, off, data, len);
}

struct content *content_resize(struct store *s, const struct content *c,
			       u64 bytes)
{
	return content_over(s, c, bytes, 0, NULL, 0);
}
