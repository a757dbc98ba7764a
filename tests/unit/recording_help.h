/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of the recording share: a file, and a record of each type. */
#ifndef BLKBOX_RECORDING_HELP_H
#define BLKBOX_RECORDING_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../replay/recording_layout.h"

#define DEV (7U << 20 | 3)
#define HEAD "{\"format\":\"blkbox recording\"}"

/* The state of each test; setup() makes the directory, teardown() takes it
 * and the file away. */
struct dir {
	char path[64];
	char file[80];
};

int setup(void **state);
int teardown(void **state);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* These fail the test when they fail. */
struct rec_writer *create(const char *path, u32 frame_bytes);
struct rec_reader *open_ok(const char *path);
struct record next_ok(struct rec_reader *r, u16 type);
struct buf slurp(const char *path);

/* The same numbers for the same *x, which is not 0. */
u32 next_random(u32 *x);
void fill_random(u8 *data, size_t bytes, u32 *x);

/* One record of each kind, numbers 1 to 7; an_issue is without its data. */
extern const struct rec_issue an_issue;
extern const struct rec_file_op an_op;
#define EACH_RECORDS 10U
void put_each(struct rec_writer *w);

#endif
