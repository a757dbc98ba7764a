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

/*
 * Marks of blkbox's own, by which a recording's crash points begin and end,
 * reach every recording under way too, and must count in one only: their text
 * begins with MARK_OWN and ends in the name of the recorder they are meant for.
 */
#define MARK_OWN "blkbox: "
#define MARK_NAME_BYTES 24

/* A name that no other recorder on this machine has. */
void mark_name(char ret[MARK_NAME_BYTES]);
int mark_put_own(const char *text, const char *name);
/*
 * The text that stands in the recording of the recorder of that name (NULL: of
 * none) for a mark's text: the same; without the name, if it is this one; a
 * text of its own if the mark is another recorder's, or made up. Heap.
 */
char *mark_text(const char *text, const char *name);

#endif
