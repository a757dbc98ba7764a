// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rebuild RECORDING IMAGE: the base and every write, in order, into IMAGE.
 *
 * The recorder's test of itself: it knows nothing of the crash model or of
 * images, only the recording, so that an error there cannot hide one here.
 * Exit status 3 when the recording says that something is missing.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../replay/recording.h"

static int put_zeroes(int fd, u64 at, u64 bytes)
{
	static const u8 zeroes[65536];
	int err = 0;

	while (bytes && !err) {
		u64 len = MIN(bytes, (u64)sizeof(zeroes));

		err = pwrite_full(fd, zeroes, len, at);
		at += len;
		bytes -= len;
	}
	return err;
}

static int put_issue(int fd, const struct record *r, bool *ret_missing)
{
	struct rec_issue i;
	int err = rec_get_issue(r, &i);
	u64 at;

	if (err < 0)
		return err;
	at = i.sector << SECTOR_SHIFT;
	if (i.flags & BLK_PAYLOAD_MISSING)
		*ret_missing = true;
	if (i.op == BLK_WRITE && i.data)
		err = pwrite_full(fd, i.data, i.data_bytes, at);
	else if (i.op == BLK_DISCARD || i.op == BLK_WRITE_ZEROES ||
		 i.op == BLK_SECURE_ERASE)
		err = put_zeroes(fd, at, (u64)i.sectors << SECTOR_SHIFT);
	rec_issue_done(&i);
	return err;
}

static int put_record(int fd, const struct record *r, bool *ret_missing)
{
	struct rec_base b;
	u64 bytes;
	int err;

	switch (r->type) {
	case REC_BASE:
		err = rec_get_base(r, &b);
		return err < 0 ? err : pwrite_full(fd, b.data, b.bytes,
						   b.offset_bytes);
	case REC_ISSUE:
		return put_issue(fd, r, ret_missing);
	case REC_GAP:
		*ret_missing = true;
		return 0;
	case REC_BASE_END:
		err = rec_get_base_end(r, &bytes);
		if (err < 0)
			return err;
		return ftruncate(fd, bytes) < 0 ? -errno : 0;
	}
	return 0;
}

/* A base taken while the disk was written to stands among the writes: it goes
 * in first, in a pass of its own. */
static int pass(const char *path, int fd, bool base, bool *ret_missing,
		struct errmsg *em)
{
	struct rec_reader *reader;
	struct record r;
	int err = rec_open(path, &reader, em);

	if (err < 0)
		return err;
	while ((err = rec_next(reader, &r, em)) > 0) {
		if (base != (r.type == REC_BASE || r.type == REC_BASE_END))
			continue;
		err = put_record(fd, &r, ret_missing);
		if (err < 0) {
			errmsg_set(em, err, "writing the image");
			break;
		}
	}
	if (!err && !rec_is_closed(reader))
		*ret_missing = true;
	rec_reader_free(reader);
	return err;
}

int main(int argc, char **argv)
{
	struct errmsg em = { "" };
	bool missing = false;
	int fd, err;

	if (argc != 3) {
		fprintf(stderr, "Usage: rebuild RECORDING IMAGE\n");
		return EXIT_CANNOT_RUN;
	}
	fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		perror(argv[2]);
		return EXIT_CANNOT_RUN;
	}
	err = pass(argv[1], fd, true, &missing, &em);
	if (!err)
		err = pass(argv[1], fd, false, &missing, &em);
	if (close(fd) < 0 && !err)
		err = errmsg_set(&em, errno, "writing %s", argv[2]);
	if (err < 0) {
		fprintf(stderr, "rebuild: %s\n", em.text);
		return EXIT_CANNOT_RUN;
	}
	return missing ? EXIT_INCOMPLETE : 0;
}
