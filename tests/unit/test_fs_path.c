// SPDX-License-Identifier: GPL-2.0-or-later
/* Paths that start in directories of other file systems. */
#include "expected_kit.h"

#include <limits.h>

#include "../../oracle/fs_model.h"

struct fixture {
	struct kit k;
	struct fs_model *m;
};

/* dir/file, dir/sub/ and data at the root of a model mounted at KIT_MOUNT. */
static int setup(void **state)
{
	struct fixture *f = xzalloc(sizeof(*f));

	kit_init(&f->k);
	kit_node(&f->k, &f->k.start, "dir", 10, NULL);
	kit_node(&f->k, &f->k.start, "dir/file", 11, "f");
	kit_node(&f->k, &f->k.start, "dir/sub", 12, NULL);
	kit_node(&f->k, &f->k.start, "data", 13, "d");
	f->m = fs_model_new(f->k.t.store, &f->k.start, KIT_DEV, KIT_MOUNT);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fs_model_free(f->m);
	kit_done(&f->k);
	free(f);
	return 0;
}

static int resolve(struct fixture *f, const char *dir, const char *path,
		   struct fs_place *ret)
{
	const struct fs_start from = {
		.dev = 5, .ino = 2, .path = dir, .absolute = true,
	};

	return fs_resolve(f->m, &from, path, false, ret);
}

static void assert_leads(struct fixture *f, const char *dir, const char *path,
			 u64 ino)
{
	struct fs_place p;

	assert_int_equal(resolve(f, dir, path, &p), 0);
	assert_non_null(p.inode);
	assert_int_equal(p.inode->ino, ino);
}

static void assert_outside(struct fixture *f, const char *dir, const char *path)
{
	struct fs_place p;

	assert_int_equal(resolve(f, dir, path, &p), -EXDEV);
}

static void assert_unknown(struct fixture *f, const char *dir, const char *path)
{
	struct fs_place p;

	assert_int_equal(resolve(f, dir, path, &p), -ESTALE);
}

static void into_the_file_system(void **state)
{
	struct fixture *f = *state;
	struct fs_place p;

	assert_leads(f, "/", "mnt/kit/data", 13);
	assert_leads(f, "/", "./mnt//kit/dir/", 10);
	assert_leads(f, "/mnt", "kit/dir/file", 11);
	assert_leads(f, "/mnt/other/deep", "../../kit/data", 13);
	assert_leads(f, "/mnt", "../mnt/kit/dir/../data", 13);
	assert_leads(f, "/home/x", "../../mnt/kit/../kit/data", 13);
	assert_int_equal(resolve(f, "/mnt", "kit/dir/new", &p), 0);
	assert_null(p.inode);
	assert_int_equal(p.dir->ino, 10);
	assert_string_equal(p.name, "new");
	assert_int_equal(resolve(f, "/mnt", "kit/none/new", &p), -ENOENT);
}

static void past_the_file_system(void **state)
{
	struct fixture *f = *state;

	assert_outside(f, "/", "home/a");
	assert_outside(f, "/", "mnt/kitchen/a");
	assert_outside(f, "/mnt/kitchen", "a/b");
	assert_outside(f, "/mnt", "kit/../a");
	assert_outside(f, "/home", "kit/dir/file");
}

/* Names of a directory on another file system are not those of ours, also when
 * it is mounted on a directory of ours. */
static void from_a_file_system_mounted_inside(void **state)
{
	struct fixture *f = *state;

	assert_outside(f, KIT_MOUNT "/dir", "sub/file");
	assert_outside(f, KIT_MOUNT "/dir", "./file");
	assert_outside(f, KIT_MOUNT "/dir", "sub/../file");
	assert_leads(f, KIT_MOUNT "/dir", "../../kit/data", 13);
	assert_leads(f, KIT_MOUNT "/dir/sub", "../../dir/file", 11);
	assert_outside(f, KIT_MOUNT "/dir/sub", "../../../a");
	assert_unknown(f, KIT_MOUNT "/dir/sub", "../file");
	assert_unknown(f, KIT_MOUNT "/dir/sub", "../sub/file");
}

static void from_a_file_system_mounted_over_it(void **state)
{
	struct fixture *f = *state;

	assert_outside(f, KIT_MOUNT, "./data");
	assert_outside(f, KIT_MOUNT, "dir/file");
	assert_outside(f, KIT_MOUNT, "../kit/data");
	assert_outside(f, KIT_MOUNT, "../other/data");
}

static void when_ours_is_the_root(void **state)
{
	struct fixture *f = *state;

	fs_model_free(f->m);
	f->m = fs_model_new(f->k.t.store, &f->k.start, KIT_DEV, "/");
	assert_leads(f, "/dir", "../data", 13);
	assert_outside(f, "/dir", "sub/file");
	assert_outside(f, "/dir/sub/deep", "more/../file");
	assert_unknown(f, "/dir/sub/deep", "../file");
}

static void from_nowhere_known(void **state)
{
	struct fs_start from = {
		.dev = 5, .path = "/mnt", .absolute = true, .path_cut = true,
	};
	struct fixture *f = *state;
	char deep[PATH_MAX + 100];
	struct fs_place p;

	assert_int_equal(fs_resolve(f->m, &from, "kit/data", false, &p),
			 -ESTALE);
	from.path_cut = false;
	assert_int_equal(fs_resolve(f->m, &from, "kit/data", false, &p), 0);
	from.path = NULL;
	assert_int_equal(fs_resolve(f->m, &from, "kit/data", false, &p),
			 -ESTALE);
	memset(deep, 'x', sizeof(deep));
	for (size_t i = 0; i < sizeof(deep); i += 100)
		deep[i] = '/';
	deep[sizeof(deep) - 1] = 0;
	assert_unknown(f, deep, "../a");
}

/* A path from the root of another file system says nothing about ours. */
static void from_the_root_of_another_file_system(void **state)
{
	const struct fs_start from = { .dev = 5, .ino = 2, .path = "mnt" };
	struct fixture *f = *state;
	struct fs_place p;

	assert_int_equal(fs_resolve(f->m, &from, "kit/data", false, &p),
			 -EXDEV);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(into_the_file_system),
		T(past_the_file_system),
		T(from_a_file_system_mounted_inside),
		T(from_a_file_system_mounted_over_it),
		T(when_ours_is_the_root),
		T(from_nowhere_known),
		T(from_the_root_of_another_file_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
