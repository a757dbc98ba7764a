// SPDX-License-Identifier: GPL-2.0-or-later
/* blkbox explore: judges the crash sites of a recording. */
#include <getopt.h>
#include <signal.h>
#include <string.h>

#include "report.h"
#include "verbs.h"

/* Set by the handler, for explore() to see: a signal handler has no other way
 * to say anything. */
static volatile sig_atomic_t interrupted;

struct explore_args {
	const char *recording, *json, *junit;
	bool verbose, k_given;
	struct explore_opts o;
};

enum { OPT_FOR = 256, OPT_MODEL, OPT_TORN, OPT_DISCARD, OPT_CHECK,
       OPT_CHECK_TIMEOUT, OPT_EXPECTED, OPT_STATES, OPT_THRESHOLD, OPT_BASE, OPT_DEV,
       OPT_MOUNT_OPTIONS, OPT_MAX_SITES, OPT_MAX_FINDINGS, OPT_JUDGE_DISTANCE,
       OPT_IGNORE_FLUSHES, OPT_JSON, OPT_JUNIT, OPT_HELP };

static const struct option options[] = {
	{ "drops", required_argument, NULL, 'k' },
	{ "jobs", required_argument, NULL, 'j' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "for", required_argument, NULL, OPT_FOR },
	{ "crash-model", required_argument, NULL, OPT_MODEL },
	{ "torn", required_argument, NULL, OPT_TORN },
	{ "discard", required_argument, NULL, OPT_DISCARD },
	{ "check", required_argument, NULL, OPT_CHECK },
	{ "check-timeout", required_argument, NULL, OPT_CHECK_TIMEOUT },
	{ "judge-distance", no_argument, NULL, OPT_JUDGE_DISTANCE },
	{ "expected", required_argument, NULL, OPT_EXPECTED },
	{ "states", required_argument, NULL, OPT_STATES },
	{ "threshold", required_argument, NULL, OPT_THRESHOLD },
	{ "base", required_argument, NULL, OPT_BASE },
	{ "dev", required_argument, NULL, OPT_DEV },
	{ "mount-options", required_argument, NULL, OPT_MOUNT_OPTIONS },
	{ "max-sites", required_argument, NULL, OPT_MAX_SITES },
	{ "max-findings", required_argument, NULL, OPT_MAX_FINDINGS },
	{ "ignore-flushes", no_argument, NULL, OPT_IGNORE_FLUSHES },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "junit", required_argument, NULL, OPT_JUNIT },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static void usage(FILE *out)
{
	fputs(
"Usage: blkbox explore [OPTION]... FILE\n"
"Rebuilds every disk that a crash could have left, lets the kernel recover it,\n"
"and says whether the data on it is still whole.\n\n"
"  -k, --drops N|all       lose at most N pending writes at once (2; with --for\n"
"                          1, then more while time lasts)\n"
"      --for TIME          stop after TIME (10s, 5m, ...)\n"
"      --max-sites N       stop after N crash sites\n"
"  -j, --jobs N            workers (one per processor)\n"
"      --crash-model M     device (default), epoch or prefix\n"
"      --torn BYTES        a write may be lost in pieces of BYTES (512)\n"
"      --discard D         what discarded sectors hold: zero (default), keep\n"
"                          or random\n"
"      --check CMD         run CMD in each recovered file system (sh -c, its\n"
"                          root as the working directory); non-zero is a\n"
"                          finding. It finds BLKBOX_ROOT, BLKBOX_CRASH_POINT,\n"
"                          BLKBOX_DROPPED and BLKBOX_MARKS in its environment\n"
"      --check-timeout T   give CMD this long (30s)\n"
"      --judge-distance    the distance is a finding also with --check\n"
"      --states S          expected states: auto (default), stop (as recorded)\n"
"                          or trace (rebuilt from the operations)\n"
"      --expected FILE     compare with the states of another recording\n"
"      --threshold N       bytes missing from which on a site is reported (1;\n"
"                          32 with --expected)\n"
"      --dev MAJ:MIN       which device, if several were recorded\n"
"      --base FILE         the device as it was when recording began\n"
"      --mount-options O   added to what the file system needs\n"
"      --max-findings N    findings kept in detail (16)\n"
"      --json FILE         results as JSON, '-' for stdout\n"
"      --junit FILE        results as JUnit XML, '-' for stdout\n"
"  -v, --verbose           all findings, and files that are as expected\n"
"      --help              this text\n\n"
"Exit status: 0 nothing wrong, 1 an inconsistent crash site was found, 2 could\n"
"not run, 3 the evidence is incomplete.\n", out);
}

static int wrong(const char *what)
{
	if (what)
		fprintf(stderr, "blkbox explore: %s\n", what);
	fputs("Try 'blkbox explore --help'.\n", stderr);
	return EXIT_CANNOT_RUN;
}

static const char *option_name(int opt)
{
	for (size_t i = 0; options[i].name; i++)
		if (options[i].val == opt)
			return options[i].name;
	return "";
}

static int wrong_value(int opt, const char *value)
{
	fprintf(stderr, "blkbox explore: --%s: '%s' is no value for it\n",
		option_name(opt), value);
	return wrong(NULL);
}

static bool parse_states(struct explore_args *a, const char *v)
{
	static const char *const states[] = {
		[STATES_AUTO] = "auto",
		[STATES_STOP] = "stop",
		[STATES_TRACE] = "trace",
	};
	int n = parse_choice(v, states, ARRAY_SIZE(states));

	if (n >= 0)
		a->o.states = n;
	return n >= 0;
}

/* Options whose value may be wrong. */
static bool parse_value(struct explore_args *a, int opt, const char *v)
{
	switch (opt) {
	case 'k':
		a->k_given = true;
		a->o.k = K_ALL;
		return !strcmp(v, "all") ||
		       !parse_u32(v, 0, K_ALL - 1, &a->o.k);
	case 'j':
		return !parse_u32(v, 1, 1024, &a->o.workers);
	case OPT_FOR:
		return parse_time_ns(v, &a->o.for_ns) >= 0 && a->o.for_ns;
	case OPT_CHECK_TIMEOUT:
		return parse_time_ns(v, &a->o.check_timeout_ns) >= 0 &&
		       a->o.check_timeout_ns;
	case OPT_THRESHOLD:
		return !parse_u64(v, 1, UINT64_MAX, &a->o.threshold);
	case OPT_MAX_SITES:
		return !parse_u64(v, 1, UINT64_MAX, &a->o.max_sites);
	case OPT_MAX_FINDINGS:
		return !parse_u32(v, 1, 1U << 20, &a->o.max_findings);
	case OPT_STATES:
		return parse_states(a, v);
	}
	return !trace_opts_parse(&a->o.trace, option_name(opt), v);
}

/* Options that take any text, or none; false: it is another one. */
static bool take_text(struct explore_args *a, int opt, const char *v)
{
	switch (opt) {
	case OPT_CHECK:
		a->o.check = v;
		return true;
	case OPT_EXPECTED:
		a->o.other_expected = v;
		return true;
	case OPT_BASE:
		a->o.trace.base_file = v;
		return true;
	case OPT_MOUNT_OPTIONS:
		a->o.mount_options = v;
		return true;
	case OPT_JSON:
		a->json = v;
		return true;
	case OPT_JUNIT:
		a->junit = v;
		return true;
	case OPT_JUDGE_DISTANCE:
		a->o.distance_judges = true;
		return true;
	case OPT_IGNORE_FLUSHES:
		a->o.trace.drop_flushes = true;
		return true;
	case 'v':
		a->verbose = true;
		return true;
	}
	return false;
}

/* -1: go on; else an exit status. */
static int parse_args(struct explore_args *a, int argc, char **argv)
{
	int opt;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "k:j:v", options, NULL)) >= 0) {
		if (opt == OPT_HELP) {
			usage(stdout);
			return EXIT_CONSISTENT;
		}
		if (opt == '?')
			return wrong(NULL);
		if (!take_text(a, opt, optarg) && !parse_value(a, opt, optarg))
			return wrong_value(opt, optarg);
	}
	if (optind + 1 != argc)
		return wrong("one recording is needed");
	if (a->json && a->junit && !strcmp(a->json, "-") &&
	    !strcmp(a->junit, "-"))
		return wrong("only one of --json and --junit can have stdout");
	a->recording = argv[optind];
	if (!a->k_given)
		a->o.k = a->o.for_ns ? 1 : 2;
	a->o.k_max = a->o.for_ns && !a->k_given ? K_ALL : a->o.k;
	return -1;
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static int write_results(const struct explore_args *a,
			 const struct explore_result *r, struct errmsg *em)
{
	_cleanup_free_ char *json = report_json("explore", r);
	_cleanup_free_ char *junit = report_junit(a->recording, r);
	int err = 0;

	if (!is_stdout(a->json) && !is_stdout(a->junit))
		report_text(stdout, a->recording, r, a->verbose);
	if (a->json)
		err = report_write(a->json, json, em);
	if (err >= 0 && a->junit)
		err = report_write(a->junit, junit, em);
	if (err >= 0 && (fflush(stdout) || ferror(stdout)))
		err = errmsg_set(em, errno, "writing the report");
	return err;
}

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

int verb_explore(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct explore_args a = {
		.o = { .progress = true, .stop = &interrupted,
		       .program = program_invocation_name },
	};
	struct explore_result r;
	struct errmsg em = { "" };
	int err, status = parse_args(&a, argc, argv);

	if (status >= 0)
		return status;
	interrupted = 0;
	/* A second one ends us at once; the workers end with us. */
	sa.sa_flags = SA_RESETHAND;
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	err = explore(a.recording, &a.o, &r, &em);
	if (err >= 0) {
		status = r.exit_status;
		err = write_results(&a, &r, &em);
		explore_result_done(&r);
	}
	if (err >= 0)
		return status;
	fputs("blkbox explore: ", stderr);
	print_safe(stderr, em.text);
	fputc('\n', stderr);
	return EXIT_CANNOT_RUN;
}
