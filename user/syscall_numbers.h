/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BLKBOX_SYSCALL_NUMBERS_H
#define BLKBOX_SYSCALL_NUMBERS_H

/* This machine's number of a system call, by the name its tracepoint has; -1
 * for what is none, or is not among those we hook. */
int syscall_number(const char *name);

#endif
