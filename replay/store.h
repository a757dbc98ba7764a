/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files behind tree.h share: chunks by hash, contents of chunks. */
#ifndef BLKBOX_STORE_H
#define BLKBOX_STORE_H

#include "tree.h"

/* The chunk of these bytes (1 .. CHUNK_BYTES), with a reference for the
 * caller. */
struct chunk *store_chunk(struct store *s, const void *data, u32 bytes);
/* A chunk of zeroes. last (may be NULL) is tried first: holes are runs of the
 * same chunk. */
struct chunk *store_zero_chunk(struct store *s, struct chunk *last, u32 bytes);
/* NULL when there is none; no reference. */
struct chunk *store_find(const struct store *s, const struct hash128 *hash);
void chunk_unref(struct store *s, struct chunk *c);

u64 chunks_of(u64 bytes);
/* bytes long, chunk pointers to be filled in by the caller with references of
 * theirs; then content_seal(). NULL when bytes is above CONTENT_MAX_BYTES. */
struct content *content_new(u64 bytes);
void content_seal(struct content *c);
/* Length of chunk i of a content that is bytes long. */
u32 chunk_len(u64 bytes, u64 i);

void tree_sort(struct tree *t);

struct hash128 hash_of(const void *data, size_t len);
bool hash_equal(const struct hash128 *a, const struct hash128 *b);

#endif
