// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A case is a directory with the executables setup, run, check and recover, in
 * any language, and input/. Only run must be there.
 */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

/* dir/name when it can be executed; heap or NULL. */
static char *case_program(const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);

	if (access(path, X_OK) == 0)
		return path;
	free(path);
	return NULL;
}

static char *quoted_program(const char *dir, const char *name)
{
	_cleanup_free_ char *path = case_program(dir, name);

	return path ? shell_quote(path) : NULL;
}

int check_read_case(struct check *c, struct errmsg *em)
{
	char *dir = realpath(c->case_dir, NULL);	/* kept: used to the end */
	char *run, *check, *recover, *input;
	struct stat st;

	if (!dir)
		return errmsg_set(em, errno, "reading the case %s", c->case_dir);
	run = case_program(dir, "run");
	if (!run)
		return errmsg_set(em, ENOENT, "the case %s has no executable"
				  " 'run'", dir);
	c->argv = xzalloc(2 * sizeof(*c->argv));
	c->argv[0] = run;
	if (!c->scratch_opts.setup)
		c->scratch_opts.setup = quoted_program(dir, "setup");
	check = quoted_program(dir, "check");
	recover = quoted_program(dir, "recover");
	if (!c->checker && (check || recover))
		c->checker = xasprintf("%s%s%s", recover ?: "",
				       check && recover ? " && " : "",
				       check ?: "");
	input = xasprintf("%s/input", dir);
	if (stat(input, &st) == 0 && S_ISDIR(st.st_mode))
		c->scratch_opts.input_dir = input;
	c->env[0] = xasprintf("BLKBOX_CASE=%s", dir);
	putenv(c->env[0]);	/* for setup and the checker */
	return 0;
}
