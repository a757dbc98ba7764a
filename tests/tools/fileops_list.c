// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fileops_list RECORDING COMM: the file operations of processes named COMM in
 * a recording, and its marks, in the form fileops_plan.h gives. Fails when the
 * recording has a gap, or an operation that began after it ended.
 */
#include "fileops_plan.h"

static void list_op(const struct record *r, const char *comm, struct buf *out)
{
	struct rec_file_op op;

	if (rec_get_file_op(r, &op))
		fail("a damaged operation");
	if (op.start_seq > r->seq || op.start_ns > r->time_ns) {
		fprintf(stderr, "operation %llu began after it ended\n",
			(unsigned long long)r->seq);
		exit(1);
	}
	/* Names from the root are recorded wherever they lead. */
	if (!strcmp(op.comm, comm) && strncmp(op.path ?: "", "/dev/", 5))
		put_op(out, &op);
	rec_file_op_done(&op);
}

/* blkbox's own are of recordings that others make on this machine. */
static void list_mark(const struct record *r, struct buf *out)
{
	struct rec_mark mark;

	if (!rec_get_mark(r, &mark) && strncmp(mark.text, "blkbox: ", 8))
		put_mark(out, mark.text);
}

int main(int argc, char **argv)
{
	_cleanup_buf_ struct buf out = { 0 };
	struct rec_reader *reader;
	struct errmsg em;
	struct record r;
	int err;

	if (argc != 3)
		fail("usage: fileops_list RECORDING COMM");
	err = rec_open(argv[1], &reader, &em);
	while (!err && (err = rec_next(reader, &r, &em)) > 0) {
		err = 0;
		if (r.type == REC_FILE_OP)
			list_op(&r, argv[2], &out);
		else if (r.type == REC_MARK)
			list_mark(&r, &out);
		else if (r.type == REC_GAP)
			err = errmsg_set(&em, ENODATA, "the recording");
	}
	if (err < 0) {
		fprintf(stderr, "%s\n", em.text);
		return 1;
	}
	rec_reader_free(reader);
	fwrite(out.data, 1, out.len, stdout);
	return 0;
}
