/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The base image of a disk that is being recorded already. */
#ifndef BLKBOX_BASE_COPY_H
#define BLKBOX_BASE_COPY_H

#include "recorder.h"

/*
 * Waits out the requests that were in flight before the recorder was opened,
 * copies the device into the recording while it is in use, drains what
 * happened meanwhile, and ends the base. The copy together with the stream up
 * to there is exactly the disk at that moment.
 */
int base_copy(struct recorder *r, const struct recorder_dev *dev,
	      struct errmsg *em);

#endif
