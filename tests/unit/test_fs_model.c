// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Property: applying recorded operations to the model gives the tree that the
 * kernel made of the same operations, whatever way paths were written.
 */
#include "expected_kit.h"

#include <linux/falloc.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../oracle/fs_model.h"

#define N_FILES 6
#define N_STEPS 120
#define N_RUNS 80

/* A mounted tmpfs and a model of it, kept alike. Paths lead out of it, too. */
struct twin {
	struct store *store;
	struct fs_model *m;
	char above[64];
	char top[96];	/* the mount point, in above */
	int root;
	dev_t dev;
	int fds[N_FILES];
	u32 done[OP_MAX];	/* operations that succeeded */
	bool outside;	/* the operation's object is elsewhere */
	u64 seq;
	u64 dice;
};

static u32 roll(struct twin *w, u32 n)
{
	w->dice ^= w->dice << 13;
	w->dice ^= w->dice >> 7;
	w->dice ^= w->dice << 17;
	return (u32)(w->dice >> 20) % n;
}

static const char *const some_names[] = {
	"a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/f", "l", "m",
	"l/a", "l/b", "d/l", "d/l/a", "up", "up/b", "abs", "abs/e", "f", "g",
	"h", "d/g",
};

/* A path passed by a program, in one of the ways to write it; heap. */
static char *some_path(struct twin *w)
{
	const char *name = some_names[roll(w, ARRAY_SIZE(some_names))];

	switch (roll(w, 6)) {
	case 0:
		return xasprintf("./%s", name);
	case 1:
		return xasprintf("d/..//%s", name);
	case 2:
		return xasprintf("%s/%s", w->top, name);
	case 3:
		return xasprintf("../%s/%s", strrchr(w->top, '/') + 1, name);
	default:
		return xstrdup(name);
	}
}

static void begin(struct twin *w, struct rec_file_op *op, enum file_op kind)
{
	struct stat st;

	*op = (struct rec_file_op){ .op = kind };
	op->start_seq = ++w->seq;
	op->dir_path = xstrdup("");
	op->dir2_path = xstrdup("");
	assert_int_equal(fstat(w->root, &st), 0);
	op->dir_ino = op->dir2_ino = roll(w, 2) ? st.st_ino : 0;
	op->dir_dev = op->dir2_dev = KIT_DEV;
}

static void end(struct twin *w, struct rec_file_op *op, s64 ret)
{
	op->ret = ret < 0 ? -errno : ret;
	w->done[op->op] += ret >= 0;
	fs_model_apply(w->m, w->seq, w->outside ? KIT_DEV + 1 : KIT_DEV, op);
	w->outside = false;
	if (w->m->lost)
		fail_msg("%s(%s, %s) lost the model: %s",
			 file_op_name(op->op), op->path ?: "",
			 op->path2 ?: "", w->m->lost_why);
	free(op->path);
	free(op->path2);
	free(op->dir_path);
	free(op->dir2_path);
	free(op->file_path);
}

static void describe(struct twin *w, struct rec_file_op *op, int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	w->outside = st.st_dev != w->dev;
	op->ino = st.st_ino;
	op->nlink = st.st_nlink;
	op->file_mode = st.st_mode;
	op->size = st.st_size;
}

/* The path from the top of what fd has open, or NULL when it has no name. */
static char *path_of_fd(struct twin *w, int fd)
{
	_cleanup_free_ char *link = xasprintf("/proc/self/fd/%d", fd);
	char text[512];
	ssize_t n = readlink(link, text, sizeof(text) - 1);
	size_t top = strlen(w->top);

	if (n < 0)
		return NULL;
	text[n] = 0;
	if (strncmp(text, w->top, top) || strstr(text, " (deleted)") ||
	    (text[top] && text[top] != '/'))
		return NULL;
	return xstrdup(text + top + (text[top] == '/'));
}

static void do_open(struct twin *w)
{
	struct rec_file_op op;
	u32 slot = roll(w, N_FILES);
	struct stat st;
	bool was;
	int fd;

	if (w->fds[slot] >= 0) {
		close(w->fds[slot]);
		w->fds[slot] = -1;
	}
	begin(w, &op, OP_OPEN);
	op.path = some_path(w);
	op.open_flags = O_RDWR | (roll(w, 3) ? O_CREAT : 0) |
			(roll(w, 3) ? 0 : O_TRUNC);
	was = fstatat(w->root, op.path, &st, 0) == 0;
	if (was && !S_ISREG(st.st_mode))
		op.open_flags = O_RDONLY | O_DIRECTORY;
	fd = openat(w->root, op.path, op.open_flags, 0644);
	if (fd >= 0 && !was)
		op.flags |= FOP_CREATED;
	describe(w, &op, fd);
	if (fd >= 0 && roll(w, 3))
		op.file_path = path_of_fd(w, fd);
	end(w, &op, fd);
	if (fd >= 0 && op.open_flags & O_DIRECTORY)
		close(fd);
	else
		w->fds[slot] = fd;
}

static u64 some_offset(struct twin *w)
{
	u32 near_chunk = CHUNK_BYTES * roll(w, 3) + roll(w, 64);

	return roll(w, 2) ? roll(w, 200) : near_chunk;
}

static void do_write(struct twin *w, int fd)
{
	static u8 data[3 * CHUNK_BYTES];
	struct rec_file_op op;
	u32 len = roll(w, 8) ? roll(w, 300) : roll(w, sizeof(data));

	for (u32 i = 0; i < len; i++)
		data[i] = 'a' + (w->dice + i / 7) % 26;
	begin(w, &op, OP_WRITE);
	op.off = some_offset(w);
	op.len = op.data_bytes = len;
	op.data = data;
	describe(w, &op, fd);
	end(w, &op, pwrite(fd, data, len, op.off));
}

static void do_truncate(struct twin *w, int fd)
{
	struct rec_file_op op;

	begin(w, &op, OP_TRUNCATE);
	op.len = some_offset(w);
	describe(w, &op, fd);
	end(w, &op, ftruncate(fd, op.len));
}

static void do_fallocate(struct twin *w, int fd)
{
	static const u32 modes[] = {
		0,
		FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_ZERO_RANGE,
		FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_COLLAPSE_RANGE,
		FALLOC_FL_INSERT_RANGE,
	};
	struct rec_file_op op;

	begin(w, &op, OP_FALLOCATE);
	op.mode = modes[roll(w, ARRAY_SIZE(modes))];
	op.off = some_offset(w);
	op.len = 1 + some_offset(w);
	if (op.mode >= FALLOC_FL_COLLAPSE_RANGE &&
	    !(op.mode & FALLOC_FL_ZERO_RANGE)) {
		op.off = 4096 * roll(w, 20);
		op.len = 4096 * (1 + roll(w, 20));
	}
	describe(w, &op, fd);
	end(w, &op, fallocate(fd, op.mode, op.off, op.len));
}

static void do_copy(struct twin *w, int fd)
{
	int from = w->fds[roll(w, N_FILES)];
	struct rec_file_op op;
	struct stat st;
	off_t off_in, off_out;

	/* what comes from elsewhere cannot be known */
	if (from < 0 || fstat(from, &st) < 0 || st.st_dev != w->dev)
		return;
	begin(w, &op, OP_COPY);
	off_in = op.src_off = some_offset(w);
	off_out = op.off = some_offset(w);
	op.len = roll(w, 2) ? roll(w, 300) : roll(w, 2 * CHUNK_BYTES);
	op.src_ino = st.st_ino;
	op.src_dev = KIT_DEV;
	describe(w, &op, fd);
	end(w, &op, copy_file_range(from, &off_in, fd, &off_out, op.len, 0));
}

static void do_on_file(struct twin *w)
{
	int fd = w->fds[roll(w, N_FILES)];

	if (fd < 0)
		return;
	switch (roll(w, 7)) {
	case 0:
		do_truncate(w, fd);
		break;
	case 1:
	case 2:
		do_fallocate(w, fd);
		break;
	case 3:
		do_copy(w, fd);
		break;
	default:
		do_write(w, fd);
	}
}

static void do_rename(struct twin *w)
{
	struct rec_file_op op;

	begin(w, &op, OP_RENAME);
	op.path = some_path(w);
	op.path2 = some_path(w);
	op.mode = roll(w, 4) ? 0 : 1 + roll(w, 2);
	end(w, &op, syscall(SYS_renameat2, w->root, op.path, w->root, op.path2,
			    op.mode));
}

static void do_link(struct twin *w)
{
	struct rec_file_op op;

	begin(w, &op, OP_LINK);
	op.path = some_path(w);
	op.path2 = some_path(w);
	op.mode = roll(w, 2) ? AT_SYMLINK_FOLLOW : 0;
	end(w, &op, linkat(w->root, op.path, w->root, op.path2, op.mode));
}

static void do_unlink(struct twin *w)
{
	struct rec_file_op op;

	begin(w, &op, OP_UNLINK);
	op.path = some_path(w);
	op.mode = roll(w, 2) ? AT_REMOVEDIR : 0;
	end(w, &op, unlinkat(w->root, op.path, op.mode));
}

static void do_symlink(struct twin *w)
{
	static const char *const targets[] = {
		"d", "a", "../d", ".", "l", "nowhere", "d/e/../a", "m",
	};
	struct rec_file_op op;

	begin(w, &op, OP_SYMLINK);
	op.path = roll(w, 5) ?
			  xstrdup(targets[roll(w, ARRAY_SIZE(targets))]) :
			  xasprintf("%s/d", w->top);
	op.path2 = some_path(w);
	end(w, &op, symlinkat(op.path, w->root, op.path2));
}

static void do_mkdir(struct twin *w)
{
	struct rec_file_op op;

	begin(w, &op, OP_MKDIR);
	op.path = some_path(w);
	end(w, &op, mkdirat(w->root, op.path, 0755));
}

static void do_mknod(struct twin *w)
{
	struct rec_file_op op;

	begin(w, &op, OP_MKNOD);
	op.path = some_path(w);
	op.mode = roll(w, 2) ? S_IFIFO | 0600 : 0600;
	end(w, &op, mknodat(w->root, op.path, op.mode, 0));
}

static void step(struct twin *w)
{
	static void (*const steps[])(struct twin *w) = {
		do_open,   do_open,   do_open,	 do_on_file, do_on_file,
		do_on_file, do_on_file, do_on_file, do_rename, do_rename,
		do_link,   do_link,   do_link,	 do_unlink,  do_unlink,
		do_symlink, do_mkdir,
		do_mkdir,  do_mknod,
	};

	steps[roll(w, ARRAY_SIZE(steps))](w);
}

static void show(const char *whose, const struct tree *t)
{
	for (u32 i = 0; i < t->n; i++)
		print_error("%s: %s, type %u, %llu bytes\n", whose,
			    t->nodes[i].path, t->nodes[i].type,
			    t->nodes[i].content ? (unsigned long long)
				    t->nodes[i].content->bytes : 0);
}

static void compare(struct twin *w)
{
	struct tree real = { 0 }, model = { 0 };
	struct errmsg em;

	assert_int_equal(tree_read(w->store, w->root, NULL, NULL, NULL, &real,
				   &em), 0);
	fs_model_tree(w->m, &model);
	fs_model_number(w->m, &model);
	if (memcmp(&real.hash, &model.hash, sizeof(real.hash))) {
		show("kernel", &real);
		show("model", &model);
		fail_msg("model and kernel differ after operation %llu",
			 (unsigned long long)w->seq);
	}
	assert_memory_equal(real.counts, model.counts, sizeof(real.counts));
	for (u32 i = 0; i < real.n; i++)
		if (model.nodes[i].ino)
			assert_int_equal(real.nodes[i].ino,
					 model.nodes[i].ino);
	tree_free(w->store, &real);
	tree_free(w->store, &model);
}

static int twin_teardown(void **state)
{
	struct twin *w = *state;
	char cmd[128];

	if (!w)
		return 0;
	for (u32 i = 0; i < N_FILES; i++)
		if (w->fds[i] >= 0)
			close(w->fds[i]);
	if (w->root >= 0)
		close(w->root);
	umount2(w->top, MNT_DETACH);
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", w->above);
	(void)!system(cmd);
	fs_model_free(w->m);
	store_free(w->store);
	free(w);
	*state = NULL;
	return 0;
}

static int twin_setup(void **state)
{
	struct twin *w = xzalloc(sizeof(*w));
	struct tree none = { 0 };
	struct stat st;

	*state = w;
	w->root = -1;
	for (u32 i = 0; i < N_FILES; i++)
		w->fds[i] = -1;
	snprintf(w->above, sizeof(w->above), "/tmp/blkbox-twin-XXXXXX");
	if (!mkdtemp(w->above))
		return -1;
	snprintf(w->top, sizeof(w->top), "%s/fs", w->above);
	if (mkdir(w->top, 0755) < 0 ||
	    mount("none", w->top, "tmpfs", 0, "size=64M") < 0)
		return twin_teardown(state) - 1;
	w->root = open(w->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->root < 0 || fstat(w->root, &st) < 0)
		return twin_teardown(state) - 1;
	w->dev = st.st_dev;
	w->store = store_new();
	w->m = fs_model_new(w->store, &none, KIT_DEV, w->top);
	return 0;
}

/* Mounts of this test are seen by nobody else and end with it. */
static bool own_mounts(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static void begin_twin(void **state)
{
	if (!own_mounts()) {
		print_message("skipped: needs root, to mount a tmpfs\n");
		skip();
	}
	assert_int_equal(twin_setup(state), 0);
}

static void model_equals_kernel(void **state)
{
	static const u8 kinds[] = {
		OP_OPEN, OP_WRITE, OP_TRUNCATE, OP_FALLOCATE, OP_RENAME,
		OP_LINK, OP_UNLINK, OP_SYMLINK, OP_MKDIR, OP_MKNOD, OP_COPY,
	};
	u32 done[OP_MAX] = { 0 };

	begin_twin(state);
	for (u32 run = 1; run <= N_RUNS; run++) {
		struct twin *w = *state;

		w->dice = run * UINT64_C(0x9e3779b97f4a7c15);
		for (u32 i = 0; i < N_STEPS; i++) {
			step(w);
			if (i % 8 == 0)
				compare(w);
		}
		compare(w);
		for (u32 i = 0; i < OP_MAX; i++)
			done[i] += w->done[i];
		twin_teardown(state);
		assert_int_equal(twin_setup(state), 0);
	}
	/* were they all put to the test? */
	for (u32 i = 0; i < ARRAY_SIZE(kinds); i++)
		if (done[kinds[i]] < 20)
			fail_msg("only %u times %s", done[kinds[i]],
				 file_op_name(kinds[i]));
}

/* The same from a tree that was there before, read with its inode numbers. */
static void model_goes_on_from_a_tree(void **state)
{
	struct tree start = { 0 };
	struct errmsg em;
	struct twin *w;

	begin_twin(state);
	w = *state;
	w->dice = 4711;
	for (u32 i = 0; i < N_STEPS; i++)
		step(w);
	for (u32 i = 0; i < N_FILES; i++) {
		if (w->fds[i] >= 0)
			close(w->fds[i]);
		w->fds[i] = -1;
	}
	assert_int_equal(tree_read(w->store, w->root, NULL, NULL, NULL, &start,
				   &em), 0);
	fs_model_free(w->m);
	w->m = fs_model_new(w->store, &start, KIT_DEV, w->top);
	tree_free(w->store, &start);
	compare(w);
	for (u32 i = 0; i < 4 * N_STEPS; i++) {
		step(w);
		compare(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(model_equals_kernel, twin_teardown),
		cmocka_unit_test_teardown(model_goes_on_from_a_tree,
					  twin_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
