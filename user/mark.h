/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BLKBOX_MARK_H
#define BLKBOX_MARK_H

/*
 * Puts a mark into every recording under way, with a number of its own in the
 * order of events: our name becomes MARK_COMM while we try to open
 * MARK_PREFIX followed by text, which never exists; the programs on openat
 * take it for what it is (bpf/fileops_open.bpf.c). text is cut to what a mark
 * holds; a negative errno when it is empty or too long.
 */
int mark_put(const char *text);

#endif
