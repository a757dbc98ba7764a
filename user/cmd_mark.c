// SPDX-License-Identifier: GPL-2.0-or-later
/* blkbox mark: a line of text into every recording under way. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "../replay/base.h"
#include "mark.h"
#include "verbs.h"

static void usage(FILE *out)
{
	fprintf(out,
"Usage: blkbox mark TEXT\n"
"Puts TEXT (up to 255 bytes) into the recordings under way on this machine, in\n"
"its place in the order of events. 'blkbox replay --at-mark TEXT' finds it.\n"
"\nA program can do it by itself: open(\"/blkbox:mark/TEXT\"), which fails with\n"
"ENOENT, from a process that is being recorded.\n");
}

int verb_mark(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int opt, err;

	optind = 0;
	while ((opt = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (opt == 'h') {
			usage(stdout);
			return 0;
		}
		fprintf(stderr, "Try 'blkbox mark --help'.\n");
		return EXIT_CANNOT_RUN;
	}
	if (argc - optind != 1) {
		fprintf(stderr, "blkbox mark: say one TEXT\n"
			"Try 'blkbox mark --help'.\n");
		return EXIT_CANNOT_RUN;
	}
	if (!strncmp(argv[optind], MARK_OWN, strlen(MARK_OWN))) {
		fprintf(stderr, "blkbox mark: marks that begin with '" MARK_OWN
			"' are blkbox's own\n");
		return EXIT_CANNOT_RUN;
	}
	err = mark_put(argv[optind]);
	if (err < 0) {
		fprintf(stderr, "blkbox mark: a mark has 1 to 255 bytes\n");
		return EXIT_CANNOT_RUN;
	}
	return 0;
}
