// SPDX-License-Identifier: GPL-2.0-or-later
#include "file_blocks.h"

#include <string.h>

#define BLOCK_BYTES SECTOR_SIZE	/* what a disk writes or loses at once */

enum origin { FROM_EXPECTED, FROM_ZEROES, FROM_OTHER, FROM_NOWHERE, N_ORIGINS };

/* What the blocks of the file are, added up. */
struct tally {
	u64 bytes[N_ORIGINS];
	u64 first[N_ORIGINS];	/* where the first of these begins */
	u64 end[N_ORIGINS];	/* where the last of these ends */
};

static bool same_chunk(const struct content *a, const struct content *b, u32 i)
{
	return i < b->n_chunks &&
	       a->chunks[i]->hash.lo == b->chunks[i]->hash.lo &&
	       a->chunks[i]->hash.hi == b->chunks[i]->hash.hi;
}

/* Are the len bytes at off the same in c? Past its end they are not. */
static bool block_in(const struct content *c, const u8 *block, u64 off, u32 len)
{
	u8 data[BLOCK_BYTES];

	return content_read(c, off, data, len) == len &&
	       !memcmp(data, block, len);
}

static bool is_zero(const u8 *block, u32 len)
{
	return !block[0] && !memcmp(block, block + 1, len - 1);
}

static enum origin origin_of(const struct blocks *b, const u8 *block, u64 off,
			     u32 len)
{
	if (block_in(b->expected, block, off, len))
		return FROM_EXPECTED;
	if (is_zero(block, len))
		return FROM_ZEROES;
	for (u32 i = 0; i < b->n_others; i++)
		if (block_in(b->others[i], block, off, len))
			return FROM_OTHER;
	return FROM_NOWHERE;
}

static void count(struct tally *t, enum origin from, u64 off, u64 len)
{
	if (!t->bytes[from])
		t->first[from] = off;
	t->bytes[from] += len;
	t->end[from] = off + len;
}

static void count_chunk(const struct blocks *b, u32 i, struct tally *t)
{
	const struct chunk *c = b->crash->chunks[i];
	u64 start = (u64)i * CHUNK_BYTES;

	if (same_chunk(b->crash, b->expected, i)) {
		count(t, FROM_EXPECTED, start, c->bytes);
		return;
	}
	for (u32 off = 0, len; off < c->bytes; off += len) {
		u64 at = start + off;

		len = MIN(c->bytes - off, BLOCK_BYTES - off % BLOCK_BYTES);
		/* a block that the expected content ends in is two */
		if (at < b->expected->bytes)
			len = MIN(len, b->expected->bytes - at);
		count(t, origin_of(b, c->data + off, at, len), at, len);
	}
}

/* "from byte 4096 on", "in 512 bytes from byte 1024 on" */
static char *where(const struct tally *t, enum origin from, u64 bytes)
{
	if (t->end[from] == bytes &&
	    t->bytes[from] == bytes - t->first[from])
		return xasprintf("from byte %llu on",
				 (unsigned long long)t->first[from]);
	return xasprintf("in %llu bytes from byte %llu on",
			 (unsigned long long)t->bytes[from],
			 (unsigned long long)t->first[from]);
}

static char *mixed_words(const struct tally *t)
{
	_cleanup_free_ char *zeroes = xstrdup("");

	if (t->bytes[FROM_ZEROES]) {
		free(zeroes);
		zeroes = xasprintf(", %llu of zeroes", (unsigned long long)
				   t->bytes[FROM_ZEROES]);
	}
	return xasprintf("holds parts of different states: %llu bytes as "
			 "expected, %llu of other states%s",
			 (unsigned long long)t->bytes[FROM_EXPECTED],
			 (unsigned long long)t->bytes[FROM_OTHER], zeroes);
}

enum file_fate blocks_judge(const struct blocks *b, char **ret_words)
{
	u64 is = b->crash->bytes, was = b->expected->bytes;
	_cleanup_free_ char *at = NULL;
	struct tally t = { 0 };

	if (!is) {
		*ret_words = xasprintf("is there but empty (0 of %llu bytes)",
				       (unsigned long long)was);
		return FATE_EMPTY;
	}
	for (u32 i = 0; i < b->crash->n_chunks; i++)
		count_chunk(b, i, &t);
	if (t.bytes[FROM_NOWHERE]) {
		at = where(&t, FROM_NOWHERE, is);
		*ret_words = xasprintf("holds bytes no expected state has "
				       "there, %s", at);
		return FATE_GARBAGE;
	}
	if (t.bytes[FROM_OTHER]) {
		*ret_words = mixed_words(&t);
		return FATE_MIXED;
	}
	if (t.bytes[FROM_ZEROES]) {
		at = where(&t, FROM_ZEROES, is);
		*ret_words = t.bytes[FROM_ZEROES] == is ?
			xasprintf("holds nothing but zeroes (%llu bytes)",
				  (unsigned long long)is) :
			xasprintf("holds zeroes %s", at);
		return FATE_ZERO_FILLED;
	}
	*ret_words = xasprintf("is cut short: the first %llu of %llu bytes",
			       (unsigned long long)is, (unsigned long long)was);
	return FATE_TRUNCATED;
}
