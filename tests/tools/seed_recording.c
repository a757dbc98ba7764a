// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Seeds for fuzz_recording: writes a small recording with a record of each
 * type, as a file (DIR/file) and as raw frames (DIR/frames).
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../replay/recording_layout.h"
#include "../../replay/tree.h"

static void put_events(struct rec_writer *w)
{
	static const u8 data[512] = { 1, 2, 3 };
	struct rec_page page = { 512, PAGE_BLOCKDEV, 7 << 20, 2, 4096 };
	struct rec_issue i = { .op = BLK_WRITE, .sectors = 1, .comm = "seed",
			       .n_pages = 1, .pages = &page, .data = data,
			       .data_bytes = 512 };
	struct rec_file_op op = { .op = OP_WRITE, .ret = 5, .comm = "seed",
				  .path = "a\xff\x1b[31m", .path2 = "b",
				  .file_path = "c", .dir_path = "d",
				  .dir2_path = "e",
				  .data = "hello", .data_bytes = 5,
				  .n_stack = 1, .stack = (u64[]){ 7 } };

	rec_put_base(w, 7 << 20, 0, data, 512);
	rec_put_base_end(w, 7 << 20, 4096);
	rec_put_issue(w, 1, 1, 7 << 20, &i);
	rec_put_complete(w, 2, 2, 7 << 20, &(struct rec_complete){ 1, 0, 512 });
	rec_put_requeue(w, 3, 3, 7 << 20, &(struct rec_requeue){ 1 });
	rec_put_file_op(w, 4, 4, 7 << 20, &op);
	rec_put_mark(w, 5, 5, &(struct rec_mark){ 1, "mark" });
	rec_put_proc(w, 6, 6, &(struct rec_proc){ PROC_FORK, 2, 1, 0, "p" });
	rec_put_gap(w, 7, 7, 0, &(struct rec_gap){ GAP_TOO_LARGE, 0, 1, 2, 7 });
}

static void put_state(struct rec_writer *w)
{
	struct store *s = store_new();
	struct rec_state st = { .after_seq = 4, .source = STATE_STOP,
				.what = (char *)"write a" };

	tree_add(&st.tree, "d", NODE_DIR);
	tree_add(&st.tree, "d/a", NODE_FILE)->content =
		content_from_bytes(s, "hello", 5);
	tree_add(&st.tree, "l", NODE_SYMLINK)->content =
		content_from_bytes(s, "d/a", 3);
	tree_seal(&st.tree);
	rec_put_state(w, &st);
	tree_free(s, &st.tree);
	store_free(s);
}

/* The records of path again, each frame as length and raw bytes. */
static void frames_of(const char *path, struct buf *out)
{
	struct rec_reader *r = NULL;
	struct record rec;

	if (rec_open(path, &r, NULL) < 0)
		return;
	while (rec_next(r, &rec, NULL) > 0) {
		buf_put_u32(out, RECORD_HEADER_BYTES + rec.body_bytes);
		record_header_encode(out, &rec);
		buf_put(out, rec.body, rec.body_bytes);
	}
	rec_reader_free(r);
}

static int copy_seed(const char *from, const char *dir)
{
	_cleanup_free_ char *to = xasprintf("%s/file", dir);
	_cleanup_free_ char *frames = xasprintf("%s/frames", dir);
	_cleanup_fclose_ FILE *in = fopen(from, "re");
	_cleanup_fclose_ FILE *file = fopen(to, "we");
	_cleanup_fclose_ FILE *raw = fopen(frames, "we");
	struct buf b = { 0 };
	int c;

	if (!in || !file || !raw)
		return 1;
	putc(0, file);
	while ((c = getc(in)) != EOF)
		putc(c, file);
	buf_put_u8(&b, 1);
	frames_of(from, &b);
	fwrite(b.data, 1, b.len, raw);
	buf_free(&b);
	return ferror(file) || ferror(raw) || fflush(file) || fflush(raw);
}

int main(int argc, char **argv)
{
	struct rec_writer_opts opts = { .overwrite = true, .frame_bytes = 300 };
	_cleanup_free_ char *path = NULL;
	struct rec_writer *w = NULL;
	struct errmsg em = { "" };
	int status;

	if (argc != 2) {
		fputs("Usage: seed_recording DIR\n", stderr);
		return 2;
	}
	path = xasprintf("%s/.seed", argv[1]);
	if (rec_create(path, "{\"format\":\"blkbox recording\"}", &opts, &w,
		       &em) < 0) {
		fprintf(stderr, "%s\n", em.text);
		return 1;
	}
	put_events(w);
	put_state(w);
	status = rec_close(w, &em) < 0 ? 1 : copy_seed(path, argv[1]);
	unlink(path);
	return status;
}
