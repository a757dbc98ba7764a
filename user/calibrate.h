/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding the page-address constant, and proving it. */
#ifndef BLKBOX_CALIBRATE_H
#define BLKBOX_CALIBRATE_H

#include "kernel_info.h"
#include "programs.h"

/*
 * Leaves the configuration with a constant that was proven, and payload
 * recording on. The block programs are attached; nothing is enabled, and the
 * scope is empty again. ret_source, where not NULL: where the constant came
 * from, a static string.
 */
int calibrate(struct programs *p, const struct kernel_info *k,
	      const char **ret_source, struct errmsg *em);

#endif
