// SPDX-License-Identifier: GPL-2.0-or-later
/* blkbox VERB ...: finds the verb and runs it. */
#include <stdio.h>
#include <string.h>

#include "../oracle/verbs.h"
#include "../replay/base.h"
#include "../replay/verbs.h"
#include "verbs.h"

struct verb {
	const char *name;
	int (*run)(int argc, char **argv);	/* NULL: not in this build */
	const char *what;
};

#ifdef BLKBOX_NO_BPF
#define LIVE(f) NULL
#else
#define LIVE(f) f
#endif

static const struct verb verbs[] = {
	{ "check", LIVE(verb_check), "run a program and judge every crash site" },
	{ "record", LIVE(verb_record), "record a live machine" },
	{ "explore", verb_explore, "judge the crash sites of a recording" },
	{ "replay", verb_replay, "rebuild the disk as it was, or could be" },
	{ "show", verb_show, "print the records of a recording" },
	{ "verify", verb_verify, "say whether a recording is whole" },
	{ "mark", LIVE(verb_mark), "put a mark into recordings under way" },
	{ "doctor", LIVE(verb_doctor), "say what this machine can do" },
};

static void usage(FILE *out)
{
	fprintf(out,
		"Usage: blkbox VERB [OPTION]...\n"
		"Would this program lose data if the power failed right now?\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		fprintf(out, "  %-9s %s\n", verbs[i].name, verbs[i].what);
	fprintf(out,
		"\n'blkbox VERB --help' describes a verb.\n"
		"Exit status: 0 nothing wrong, 1 an inconsistent crash site was"
		" found,\n2 could not run, 3 the evidence is incomplete.\n");
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		usage(stderr);
		return EXIT_CANNOT_RUN;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
	    !strcmp(argv[1], "help")) {
		usage(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("blkbox %s\n", BLKBOX_VERSION);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (strcmp(argv[1], verbs[i].name))
			continue;
		if (verbs[i].run)
			return verbs[i].run(argc - 1, argv + 1);
		fprintf(stderr,
			"blkbox: '%s' needs the live half, and this blkbox was"
			" built without it (make BPF=0)\n", argv[1]);
		return EXIT_CANNOT_RUN;
	}
	fprintf(stderr, "blkbox: there is no verb '%s'; 'blkbox --help' lists"
		" them\n", argv[1]);
	return EXIT_CANNOT_RUN;
}
