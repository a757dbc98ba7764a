// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading a tree from a file system. */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../replay/store.h"

struct place {
	char path[64];
	int fd;
	struct store *store;
};

static int setup(void **state)
{
	struct place *p = xzalloc(sizeof(*p));

	strcpy(p->path, "/tmp/blkbox-test-XXXXXX");
	if (!mkdtemp(p->path))
		return -1;
	p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	p->store = store_new();
	*state = p;
	return p->fd < 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	pid_t pid = fork();
	int status;

	/* rm: paths here are longer than nftw() takes */
	if (pid == 0) {
		execlp("rm", "rm", "-rf", p->path, NULL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	close(p->fd);
	store_free(p->store);
	free(p);
	return status;
}

static void put_file(struct place *p, const char *name, const void *data,
		     size_t len)
{
	int fd = openat(p->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			0640);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, data, len), 0);
	close(fd);
}

static struct tree read_ok(struct place *p)
{
	struct errmsg em = { "" };
	struct tree t;

	if (tree_read(p->store, p->fd, NULL, NULL, NULL, &t, &em) < 0)
		fail_msg("%s", em.text);
	return t;
}

static const struct node *find(const struct tree *t, const char *path)
{
	const struct node *n = tree_find(t, path);

	if (!n)
		fail_msg("%s is not in the tree", path);
	return n;
}

static void assert_bytes(const struct node *n, const void *data, size_t len)
{
	u8 *got = xmalloc(len + 1);

	assert_int_equal(n->error, 0);
	assert_non_null(n->content);
	assert_int_equal(n->content->bytes, len);
	assert_int_equal(content_read(n->content, 0, got, len + 1), len);
	assert_memory_equal(got, data, len);
	free(got);
}

static void test_files_directories_links_and_others(void **state)
{
	struct place *p = *state;
	struct stat st;
	struct tree t;

	assert_int_equal(mkdirat(p->fd, "d", 0750), 0);
	put_file(p, "d/f", "hello", 5);
	put_file(p, "empty", "", 0);
	put_file(p, "odd \xff\n\x1b[31m", "x", 1);
	assert_int_equal(symlinkat("/nowhere/at all", p->fd, "l"), 0);
	assert_int_equal(symlinkat("d", p->fd, "dir-link"), 0);
	assert_int_equal(mkfifoat(p->fd, "pipe", 0600), 0);
	assert_int_equal(linkat(p->fd, "d/f", p->fd, "hard", 0), 0);
	assert_int_equal(fstatat(p->fd, "d/f", &st, 0), 0);
	t = read_ok(p);
	assert_int_equal(t.n, 8);
	assert_int_equal(find(&t, "d")->type, NODE_DIR);
	assert_int_equal(find(&t, "d/f")->type, NODE_FILE);
	assert_bytes(find(&t, "d/f"), "hello", 5);
	assert_int_equal(find(&t, "d/f")->ino, st.st_ino);
	assert_int_equal(find(&t, "d/f")->nlink, 2);
	assert_int_equal(find(&t, "d/f")->mode, S_IFREG | 0640);
	assert_int_equal(find(&t, "hard")->ino, st.st_ino);
	assert_bytes(find(&t, "empty"), "", 0);
	assert_bytes(find(&t, "odd \xff\n\x1b[31m"), "x", 1);
	assert_int_equal(find(&t, "l")->type, NODE_SYMLINK);
	assert_bytes(find(&t, "l"), "/nowhere/at all", 15);
	assert_int_equal(find(&t, "dir-link")->type, NODE_SYMLINK);
	assert_int_equal(find(&t, "pipe")->type, NODE_OTHER);
	assert_null(find(&t, "pipe")->content);
	assert_int_equal(t.bytes, 11);
	assert_int_equal(t.counts['l'], 4);
	tree_free(p->store, &t);
}

static void test_lost_and_found_is_left_out_at_the_root_only(void **state)
{
	struct place *p = *state;
	struct tree t;

	assert_int_equal(mkdirat(p->fd, "lost+found", 0700), 0);
	put_file(p, "lost+found/x", "x", 1);
	assert_int_equal(mkdirat(p->fd, "d", 0700), 0);
	assert_int_equal(mkdirat(p->fd, "d/lost+found", 0700), 0);
	t = read_ok(p);
	assert_int_equal(t.n, 2);
	find(&t, "d/lost+found");
	tree_free(p->store, &t);
}

static void test_large_files_by_chunks(void **state)
{
	static const size_t sizes[] = { CHUNK_BYTES - 1, CHUNK_BYTES,
					CHUNK_BYTES + 1, 5 * CHUNK_BYTES + 3 };
	struct place *p = *state;
	size_t max = 6 * CHUNK_BYTES;
	u8 *data = xmalloc(max);
	struct tree t;
	u32 x = 9;

	for (size_t i = 0; i < max; i++)
		data[i] = (x = x * 1103515245 + 12345) >> 20;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		put_file(p, "f", data, sizes[i]);
		t = read_ok(p);
		assert_bytes(find(&t, "f"), data, sizes[i]);
		tree_free(p->store, &t);
	}
	free(data);
}

static void test_holes_read_as_zeroes(void **state)
{
	struct place *p = *state;
	size_t bytes = 20 * CHUNK_BYTES + 100;
	u8 *want = xzalloc(bytes);
	struct tree t;
	int fd;

	put_file(p, "f", "", 0);
	fd = openat(p->fd, "f", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, bytes), 0);
	assert_int_equal(pwrite_full(fd, "abc", 3, 7 * CHUNK_BYTES - 1), 0);
	assert_int_equal(pwrite_full(fd, "z", 1, 15 * CHUNK_BYTES + 9), 0);
	close(fd);
	memcpy(want + 7 * CHUNK_BYTES - 1, "abc", 3);
	want[15 * CHUNK_BYTES + 9] = 'z';
	t = read_ok(p);
	assert_bytes(find(&t, "f"), want, bytes);
	assert_ptr_equal(find(&t, "f")->content->chunks[0],
			 find(&t, "f")->content->chunks[1]);
	tree_free(p->store, &t);
	free(want);
}

static void test_file_beyond_the_bound_has_an_error(void **state)
{
	struct place *p = *state;
	struct tree t;
	int fd;

	put_file(p, "f", "", 0);
	put_file(p, "g", "x", 1);
	fd = openat(p->fd, "f", O_WRONLY | O_CLOEXEC);
	if (ftruncate(fd, CONTENT_MAX_BYTES + 1) < 0) {
		close(fd);
		print_message("/tmp holds no file of 1 TiB\n");
		skip();
	}
	close(fd);
	t = read_ok(p);
	assert_int_equal(find(&t, "f")->error, EFBIG);
	assert_null(find(&t, "f")->content);
	assert_bytes(find(&t, "g"), "x", 1);
	tree_free(p->store, &t);
}

#define DEPTH 600
#define NAME "a-directory-name-of-some-length"

static void test_paths_longer_than_path_max(void **state)
{
	struct place *p = *state;
	int fd = dup(p->fd), next;
	size_t longest = 0;
	struct tree t;

	for (int i = 0; i < DEPTH; i++) {
		assert_int_equal(mkdirat(fd, NAME, 0700), 0);
		next = openat(fd, NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	next = openat(fd, "deep", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write_full(next, "deep", 4), 0);
	close(next);
	close(fd);
	t = read_ok(p);
	assert_int_equal(t.n, DEPTH + 1);
	for (u32 i = 0; i < t.n; i++) {
		assert_int_equal(t.nodes[i].error, 0);
		longest = MAX(longest, strlen(t.nodes[i].path));
	}
	assert_int_equal(longest, DEPTH * sizeof(NAME) + 4);
	assert_true(longest > 4 * PATH_MAX);
	assert_bytes(&t.nodes[DEPTH], "deep", 4);
	tree_free(p->store, &t);
}

/* ---- sharing with the tree before ---------------------------------------- */

struct asked {
	u32 n;
	const char *answer_yes;
};

static bool changed(void *ctx, const struct node *n)
{
	struct asked *a = ctx;

	a->n++;
	return !strcmp(n->path, a->answer_yes);
}

static void test_unchanged_files_share_content(void **state)
{
	struct place *p = *state;
	struct asked a = { .answer_yes = "yes" };
	const char *const names[] = { "yes", "no", "grown" };
	struct tree t, u;

	put_file(p, "yes", "abc", 3);
	put_file(p, "no", "def", 3);
	put_file(p, "grown", "ghi", 3);
	t = read_ok(p);
	put_file(p, "grown", "ghij", 4);
	put_file(p, "new", "new", 3);
	assert_int_equal(tree_read(p->store, p->fd, &t, changed, &a, &u, NULL),
			 0);
	/* only where inode, size and ctime are the same is there a question */
	assert_int_equal(a.n, 2);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		bool same = find(&t, names[i])->content ==
			    find(&u, names[i])->content;

		assert_int_equal(same, !strcmp(names[i], "no"));
	}
	assert_bytes(find(&u, "grown"), "ghij", 4);
	tree_free(p->store, &t);
	assert_bytes(find(&u, "no"), "def", 3);
	tree_free(p->store, &u);
}

static void test_without_changed_every_file_is_read(void **state)
{
	struct place *p = *state;
	struct tree t, u;

	put_file(p, "f", "abc", 3);
	t = read_ok(p);
	assert_int_equal(tree_read(p->store, p->fd, &t, NULL, NULL, &u, NULL),
			 0);
	assert_ptr_not_equal(find(&t, "f")->content, find(&u, "f")->content);
	tree_free(p->store, &t);
	tree_free(p->store, &u);
}

/* ---- mounts -------------------------------------------------------------- */

/* In a mount namespace of its own: 0 right, 1 wrong, 2 cannot. */
static int in_private_mounts(struct place *p, int (*f)(struct place *p))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(2);
		/* the directory as this namespace has it */
		close(p->fd);
		p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		_exit(f(p));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int read_over_a_mount(struct place *p)
{
	_cleanup_free_ char *dir = xasprintf("%s/mnt", p->path);
	const struct node *n;
	struct tree t;
	int fd;

	if (mount("none", dir, "tmpfs", 0, "size=1m") < 0)
		return 2;
	fd = openat(p->fd, "mnt/secret", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 ||
	    tree_read(p->store, p->fd, NULL, NULL, NULL, &t, NULL) < 0)
		return 1;
	n = tree_find(&t, "mnt");
	return !n || n->type != NODE_DIR || tree_find(&t, "mnt/secret");
}

static void test_other_file_systems_are_not_entered(void **state)
{
	struct place *p = *state;
	int result;

	assert_int_equal(mkdirat(p->fd, "mnt", 0700), 0);
	result = in_private_mounts(p, read_over_a_mount);
	if (result == 2) {
		print_message("cannot mount here\n");
		skip();
	}
	assert_int_equal(result, 0);
}

/* A bind mount has the same device: the loop must end. */
static int read_over_a_bind(struct place *p)
{
	_cleanup_free_ char *dir = xasprintf("%s/a/b", p->path);
	const struct node *n;
	struct tree t;

	if (mount(p->path, dir, NULL, MS_BIND, NULL) < 0)
		return 2;
	if (tree_read(p->store, p->fd, NULL, NULL, NULL, &t, NULL) < 0)
		return 1;
	n = tree_find(&t, "a/b");
	return t.n != 2 || !n || !n->error;
}

static void test_directory_loops_end(void **state)
{
	struct place *p = *state;
	int result;

	assert_int_equal(mkdirat(p->fd, "a", 0700), 0);
	assert_int_equal(mkdirat(p->fd, "a/b", 0700), 0);
	result = in_private_mounts(p, read_over_a_bind);
	if (result == 2) {
		print_message("cannot mount here\n");
		skip();
	}
	assert_int_equal(result, 0);
}

/* ---- what reading leaves alone ------------------------------------------- */

static void set_old_times(struct place *p, const char *name)
{
	/* an access time before the modification: relatime would set it */
	const struct timespec times[2] = { { .tv_sec = 1000 },
					   { .tv_sec = 2000 } };

	assert_int_equal(utimensat(p->fd, name, times, 0), 0);
}

static void test_reading_sets_no_access_time(void **state)
{
	static const char *const names[] = { ".", "d", "d/f" };
	struct place *p = *state;
	struct stat st;
	struct tree t;

	assert_int_equal(mkdirat(p->fd, "d", 0700), 0);
	put_file(p, "d/f", "hello", 5);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		set_old_times(p, names[i]);
	t = read_ok(p);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(fstatat(p->fd, names[i], &st, 0), 0);
		assert_int_equal(st.st_atime, 1000);
	}
	tree_free(p->store, &t);
}

static void test_not_a_directory_is_an_error(void **state)
{
	struct place *p = *state;
	struct errmsg em = { "" };
	struct tree t;
	int fd;

	put_file(p, "f", "", 0);
	fd = openat(p->fd, "f", O_RDONLY | O_CLOEXEC);
	assert_true(tree_read(p->store, fd, NULL, NULL, NULL, &t, &em) < 0);
	assert_true(em.text[0]);
	close(fd);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_files_directories_links_and_others),
		T(test_lost_and_found_is_left_out_at_the_root_only),
		T(test_large_files_by_chunks),
		T(test_holes_read_as_zeroes),
		T(test_file_beyond_the_bound_has_an_error),
		T(test_paths_longer_than_path_max),
		T(test_unchanged_files_share_content),
		T(test_without_changed_every_file_is_read),
		T(test_other_file_systems_are_not_entered),
		T(test_directory_loops_end),
		T(test_reading_sets_no_access_time),
		T(test_not_a_directory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
