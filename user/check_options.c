// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line of check. */
#include <getopt.h>
#include <string.h>

#include "check.h"

static void usage(FILE *out)
{
	fputs("Usage: blkbox check [OPTION]... -- CMD [ARG]...\n"
	      "       blkbox check [OPTION]... --case DIR\n"
	      "Run CMD on a scratch file system under the recorder, rebuild the disk as it\n"
	      "could be after a crash at any moment, and say whether its data survives.\n"
	      "\n"
	      "The program and its files:\n"
	      "      --input PATH           copy PATH in before (repeatable)\n"
	      "      --setup CMD            run CMD in the file system before\n"
	      "      --case DIR             take setup, run, check, recover and input/ from DIR\n"
	      "      --allow-failure        judge CMD also when it fails\n"
	      "The file system:\n"
	      "      --fs TYPE              ext4 (default), xfs or btrfs\n"
	      "      --size SIZE            of the scratch device (default: fits the inputs)\n"
	      "      --mkfs-options OPTS    words passed to mkfs\n"
	      "      --mount-options OPTS   as for mount -o\n"
	      "Judging:\n"
	      "  -k, --drop N               cover all sites with up to N lost writes (default 1)\n"
	      "      --for TIME             then widen for so long (default 10s)\n"
	      "      --amplify WHICH        none, sync, commit or all (default)\n"
	      "      --check CMD            judge each recovered file system by CMD, too\n"
	      "      --distance             the editing distance is a finding even with --check\n"
	      "      --threshold BYTES      distance that is reported (default 1)\n"
	      "      --states SOURCE        stop (default) or trace\n"
	      "  -j, --jobs N               workers\n"
	      "Output:\n"
	      "  -o, --output FILE          keep the recordings: FILE, and beside it those of\n"
	      "                             the amplified runs\n"
	      "      --force                overwrite them\n"
	      "      --json FILE            the result (- for stdout)\n"
	      "      --junit FILE           the result for a CI server\n"
	      "  -v, --verbose              all findings\n"
	      "  -h, --help\n"
	      "\n"
	      "Exit status: 0 consistent, 1 inconsistent, 2 could not run, 3 incomplete.\n",
	      out);
}

enum {
	O_INPUT = 256, O_SETUP, O_CASE, O_ALLOW, O_FS, O_SIZE, O_MKFS, O_MOUNT,
	O_FOR, O_AMPLIFY, O_CHECK, O_DISTANCE, O_THRESHOLD, O_STATES, O_FORCE,
	O_JSON, O_JUNIT,
};

static const struct option options[] = {
	{ "input", required_argument, NULL, O_INPUT },
	{ "setup", required_argument, NULL, O_SETUP },
	{ "case", required_argument, NULL, O_CASE },
	{ "allow-failure", no_argument, NULL, O_ALLOW },
	{ "fs", required_argument, NULL, O_FS },
	{ "size", required_argument, NULL, O_SIZE },
	{ "mkfs-options", required_argument, NULL, O_MKFS },
	{ "mount-options", required_argument, NULL, O_MOUNT },
	{ "drop", required_argument, NULL, 'k' },
	{ "for", required_argument, NULL, O_FOR },
	{ "amplify", required_argument, NULL, O_AMPLIFY },
	{ "check", required_argument, NULL, O_CHECK },
	{ "distance", no_argument, NULL, O_DISTANCE },
	{ "threshold", required_argument, NULL, O_THRESHOLD },
	{ "states", required_argument, NULL, O_STATES },
	{ "jobs", required_argument, NULL, 'j' },
	{ "output", required_argument, NULL, 'o' },
	{ "force", no_argument, NULL, O_FORCE },
	{ "json", required_argument, NULL, O_JSON },
	{ "junit", required_argument, NULL, O_JUNIT },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static int parse_amplify(struct check *c, const char *text)
{
	static const struct {
		const char *name;
		bool sync, commit;
	} which[] = {
		{ "none", false, false },
		{ "sync", true, false },
		{ "commit", false, true },
		{ "all", true, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(which); i++) {
		if (strcmp(text, which[i].name))
			continue;
		c->run_amplified[AMPLIFY_SYNC] = which[i].sync;
		c->run_amplified[AMPLIFY_COMMIT] = which[i].commit;
		return 0;
	}
	return -EINVAL;
}

static int add_input(struct check *c, char *path)
{
	struct scratch_opts *o = &c->scratch_opts;
	char **inputs = (char **)o->inputs;

	inputs = xreallocarray(inputs, o->n_inputs + 1, sizeof(*inputs));
	inputs[o->n_inputs++] = path;
	o->inputs = inputs;
	return 0;
}

static int parse_states(struct check *c, const char *text)
{
	c->trace_states = !strcmp(text, "trace");
	return c->trace_states || !strcmp(text, "stop") ? 0 : -EINVAL;
}

/* Options with a value that may be wrong. */
static int parse_value(struct check *c, int opt, char *arg)
{
	switch (opt) {
	case O_SIZE:
		return parse_size(arg, &c->scratch_opts.bytes);
	case 'k':
		if (!strcmp(arg, "all")) {
			c->k = K_ALL;
			return 0;
		}
		return parse_u32(arg, 0, K_ALL - 1, &c->k);
	case O_FOR:
		return parse_time_ns(arg, &c->for_ns);
	case O_AMPLIFY:
		return parse_amplify(c, arg);
	case O_THRESHOLD:
		return parse_size(arg, &c->threshold);
	case O_STATES:
		return parse_states(c, arg);
	case 'j':
		return parse_u32(arg, 1, 1024, &c->workers);
	}
	return -ENOENT;
}

/* Options that are taken as they come. */
static int parse_plain(struct check *c, int opt, char *arg)
{
	switch (opt) {
	case O_INPUT: return add_input(c, arg);
	case O_SETUP: c->scratch_opts.setup = arg; return 0;
	case O_CASE: c->case_dir = arg; return 0;
	case O_ALLOW: c->allow_failure = true; return 0;
	case O_FS: c->scratch_opts.fs_type = arg; return 0;
	case O_MKFS: c->scratch_opts.mkfs_options = arg; return 0;
	case O_MOUNT: c->scratch_opts.mount_options = arg; return 0;
	case O_CHECK: c->checker = arg; return 0;
	case O_DISTANCE: c->distance_judges = true; return 0;
	case 'o': c->output = arg; return 0;
	case O_FORCE: c->force = true; return 0;
	case O_JSON: c->json = arg; return 0;
	case O_JUNIT: c->junit = arg; return 0;
	case 'v': c->verbose = true; return 0;
	}
	return -ENOENT;
}

static int wrong_usage(const char *fmt, const char *arg)
{
	fputs("blkbox check: ", stderr);
	fprintf(stderr, fmt, arg);
	fputs("\nTry 'blkbox check --help'.\n", stderr);
	return EXIT_CANNOT_RUN;
}

int check_parse_options(struct check *c, int argc, char **argv)
{
	int opt, index = 0, err;

	while ((opt = getopt_long(argc, argv, "+k:j:o:vh", options,
				  &index)) != -1) {
		if (opt == 'h') {
			usage(stdout);
			return 0;
		}
		if (opt == '?') {
			fputs("Try 'blkbox check --help'.\n", stderr);
			return EXIT_CANNOT_RUN;
		}
		err = parse_plain(c, opt, optarg);
		if (err == -ENOENT)
			err = parse_value(c, opt, optarg);
		if (err < 0)
			return wrong_usage("'%s' is no value for that option",
					   optarg);
	}
	c->argv = argv + optind;
	if (!c->case_dir && !*c->argv)
		return wrong_usage("%s", "no program is named");
	if (c->case_dir && *c->argv)
		return wrong_usage("a case has its own program; '%s' is one"
				   " too many", *c->argv);
	return -1;
}
