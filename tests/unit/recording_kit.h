/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Small recordings for tests, record by record, in a directory of their own.
 * Events take the numbers 1, 2, 3 ...; a put returns the one it took. Every
 * failure fails the test.
 */
#ifndef BLKBOX_TESTS_RECORDING_KIT_H
#define BLKBOX_TESTS_RECORDING_KIT_H

#include "trace_build.h"

#define KIT_OTHER_DEV (7 << 20 | 4)
#define KIT_SECTORS 64

#define KIT_HEAD(base)							\
	"{\"format\":\"blkbox recording\",\"devices\":["		\
	"{\"dev\":7340035,\"name\":\"loop3\",\"sectors\":64,"		\
	"\"write_cache\":true,\"fua\":false}],\"file_systems\":["	\
	"{\"dev\":41,\"block_dev\":7340035,\"type\":\"btrfs\","		\
	"\"mount_point\":\"/data\",\"mount_options\":\"rw\"}],"		\
	"\"base\":" base "}"

struct kit {
	char path[64];
	char file[96], image[96], base[96];	/* in it; removed at the end */
	struct rec_writer *w;
	u64 seq;		/* the last one taken */
};

extern const struct trace_opts kit_plain;	/* the defaults */

/* *state is a struct kit. */
int kit_setup(void **state);
int kit_teardown(void **state);
void kit_begin(struct kit *d, const char *head);
void kit_finish(struct kit *d);
u64 kit_put_issue(struct kit *d, u32 dev, u8 op, u64 sector, u32 sectors,
		     u8 fill, u32 flags);
u64 kit_put_write(struct kit *d, u64 sector, u32 sectors, u8 fill);
void kit_put_complete(struct kit *d, u64 issue);
void kit_put_flush(struct kit *d);
u64 kit_put_mark(struct kit *d, const char *text);
void kit_put_base(struct kit *d, u64 sector, u8 fill);
void kit_put_base_end(struct kit *d);
void kit_put_op(struct kit *d, u32 dev, u8 op, const char *path);
/* 64 sectors or so, zeroes but for sector 5, which is threes. */
void kit_make_base(const struct kit *d, u32 sectors);
/* A recording that refers to it, with a write of nines to sector 6. */
void kit_begin_with_base(struct kit *d, const char *file, u32 sectors);
struct trace *kit_load(const struct kit *d, const struct trace_opts *o);
/* The message must hold words. */
void kit_load_fails(const struct kit *d, const struct trace_opts *o, int err,
		       const char *words);
/* The first byte of a sector after everything. */
u8 kit_byte_at(const struct trace *t, u64 sector);

#endif
