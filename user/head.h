/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HEAD of a recording (replay/recording.h). */
#ifndef BLKBOX_HEAD_H
#define BLKBOX_HEAD_H

#include "attach.h"
#include "kernel_info.h"
#include "recorder.h"

/* JSON text, heap. payload_source says where the page-address constant came
 * from. */
char *head_json(const struct recorder_opts *opts, const struct kernel_info *k,
		const struct attach_set *attached, const char *payload_source,
		struct errmsg *em);

#endif
