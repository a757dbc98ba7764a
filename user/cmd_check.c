// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * blkbox check: the one button. A scratch file system, the inputs copied in,
 * the program run there under the recorder, plain and amplified; every crash
 * site judged; a report.
 *
 * The files of this verb and main.c are where the live half and the offline
 * half meet: what passes between them is the recording.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../oracle/report.h"
#include "check.h"
#include "spawn.h"
#include "verbs.h"

#define DEFAULT_FOR_NS (10 * 1000000000ULL)

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	interrupted = sig;
}

static char *make_title(char *const *argv)
{
	struct buf b = { 0 };

	for (; *argv; argv++) {
		_cleanup_free_ char *word = shell_quote(*argv);

		if (b.len)
			buf_put(&b, " ", 1);
		buf_put(&b, word, strlen(word));
	}
	buf_put(&b, "", 1);
	return (char *)b.data;
}

/* FILE for the plain run; FILE with the run's name before its suffix for the
 * others. */
static char *recording_name(const struct check *c, enum amplify a)
{
	const char *dot;

	if (!c->output)
		return xasprintf("%s/%s.bbx", c->dir, amplify_name(a));
	if (a == AMPLIFY_NONE)
		return xstrdup(c->output);
	dot = strrchr(c->output, '.');
	if (!dot || strchr(dot, '/'))
		dot = c->output + strlen(c->output);
	return xasprintf("%.*s.%s%s", (int)(dot - c->output), c->output,
			 amplify_name(a), dot);
}

static int prepare(struct check *c, struct errmsg *em)
{
	_cleanup_free_ char *private_cgroup = NULL;
	_cleanup_free_ char *tmp = scratch_tmp_dir();
	int err;

	if (geteuid() != 0)
		return errmsg_set(em, EPERM, "check mounts file systems and"
				  " loads BPF programs: run it as root");
	if (c->case_dir) {
		err = check_read_case(c, em);
		if (err < 0)
			return err;
	}
	c->title = make_title(c->argv);
	err = scratch_enter(&c->janitor, &c->scratch, em);
	if (err < 0)
		return err;
	private_cgroup = xasprintf("%s/cgroup", c->scratch.dir);
	err = cgroup_new(private_cgroup, &c->cgroup, em);
	if (!err && janitor_cgroup(&c->janitor, c->cgroup.path) < 0)
		err = errmsg_set(em, EPIPE, "talking to the janitor");
	if (err < 0)
		return err;
	if (!c->output) {
		c->dir = xasprintf("%s/blkbox-check-XXXXXX", tmp);
		if (!mkdtemp(c->dir))
			return errmsg_set(em, errno, "creating %s", c->dir);
	}
	return scratch_build(&c->scratch, &c->scratch_opts, em);
}

/* What a run's recording says in spite of the program's success. */
static int judge_run(struct check *c, enum amplify a, u64 for_ns,
		     const struct check_run_result *run, struct errmsg *em)
{
	struct explore_opts eo = {
		.k = c->k,
		.k_max = for_ns ? K_ALL : c->k,
		.widen_ns = for_ns,
		.workers = c->workers,
		.check = c->checker,
		.threshold = c->threshold,
		.distance_judges = c->distance_judges,
		.states = c->trace_states ? STATES_TRACE : STATES_AUTO,
		.mount_options = c->scratch_opts.mount_options,
		.progress = true,
		.run = amplify_name(a),
		.stop = &interrupted,
		.program = program_invocation_name,
	};
	struct explore_result r;
	int err = explore(c->recordings[a], &eo, &r, em);

	if (err < 0)
		return err;
	if (!run->image_equal)
		explore_incomplete(&r, "the recording does not rebuild the"
				   " device as it was at the end of the run");
	explore_merge(&c->result, &r);
	return 0;
}

static int one_run(struct check *c, enum amplify a, bool first, u64 for_ns,
		   struct errmsg *em)
{
	struct check_run_opts o = {
		.scratch = &c->scratch,
		.cgroup = &c->cgroup,
		.amplify = a,
		.argv = c->argv,
		.quiet = !first,
		.overwrite = c->force,
		.trace_states = c->trace_states,
		.interrupted = &interrupted,
		.env = c->env,
	};
	struct check_run_result res;
	int err;

	c->recordings[a] = recording_name(c, a);
	o.recording = c->recordings[a];
	err = check_run(&o, &res, em);
	if (err < 0)
		return errmsg_wrap(em, err, "the %s run", amplify_name(a));
	if (c->verbose) {
		fprintf(stderr, "blkbox check: %s run: %llu expected states"
			" from %llu stops; ", amplify_name(a),
			(unsigned long long)res.states,
			(unsigned long long)res.stops);
		recorder_print_summary(stderr, &res.summary);
	}
	if (res.leftover_threads)
		fprintf(stderr, "blkbox check: %s left %llu threads running;"
			" they were ended\n", c->argv[0],
			(unsigned long long)res.leftover_threads);
	if (res.wait_status && !c->allow_failure) {
		_cleanup_free_ char *words = wait_status_words(res.wait_status);

		return errmsg_set(em, 0, "%s %s in the %s run, so it is not"
				  " judged (--allow-failure judges it all the"
				  " same)", c->argv[0], words, amplify_name(a));
	}
	return judge_run(c, a, for_ns, &res, em);
}

static int all_runs(struct check *c, struct errmsg *em)
{
	u32 left = 0;
	bool first = true;

	c->result.verdict = VERDICT_CONSISTENT;
	for (int a = 0; a < N_RUNS; a++)
		left += c->run_amplified[a];
	for (int a = 0; a < N_RUNS; a++) {
		int err;

		if (!c->run_amplified[a])
			continue;
		err = interrupted ? errmsg_set(em, EINTR, "the other runs") :
				    one_run(c, a, first, c->for_ns / left, em);
		if (err < 0 && !first) {
			/* what was judged until then counts */
			explore_incomplete(&c->result, em->text);
			return 0;
		}
		if (err < 0)
			return err;
		first = false;
	}
	return 0;
}

static int write_reports(struct check *c, struct errmsg *em)
{
	_cleanup_free_ char *json = report_json("check", &c->result);
	_cleanup_free_ char *junit = report_junit(c->title, &c->result);
	int err = 0;

	if (c->json)
		err = report_write(c->json, json, em);
	if (!err && c->junit)
		err = report_write(c->junit, junit, em);
	if (!err && c->dir) {
		_cleanup_free_ char *path = xasprintf("%s/report.json", c->dir);

		err = report_write(path, json, em);
	}
	return err;
}

/* Without a finding nobody asks for the recordings again. */
static void drop_recordings(struct check *c)
{
	static const char *const names[] = { "report.json", "report.txt" };

	if (!c->dir)
		return;
	for (int a = 0; a < N_RUNS; a++)
		if (c->recordings[a])
			unlink(c->recordings[a]);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s", c->dir,
						      names[i]);

		unlink(path);
	}
	rmdir(c->dir);
}

static int report(struct check *c, struct errmsg *em)
{
	bool to_stdout = c->json && !strcmp(c->json, "-");
	FILE *out = to_stdout ? stderr : stdout;
	int err = write_reports(c, em);

	if (err < 0)
		return err;
	report_text(out, c->title, &c->result, c->verbose);
	if (c->dir && c->result.exit_status != EXIT_CONSISTENT) {
		_cleanup_free_ char *path = xasprintf("%s/report.txt", c->dir);
		_cleanup_fclose_ FILE *f = fopen(path, "we");

		if (f)
			report_text(f, c->title, &c->result, true);
		fprintf(out, "Recordings and reports: %s\n", c->dir);
	} else if (c->output) {
		fprintf(out, "Recordings: %s and beside it\n", c->output);
	} else {
		drop_recordings(c);
	}
	return 0;
}

static void clean_up(struct check *c)
{
	if (c->cgroup.path)
		cgroup_remove(&c->cgroup);
	if (c->scratch.dir)
		scratch_done(&c->scratch);
	if (c->janitor.pid)
		janitor_finish(&c->janitor);
}

/* What our parent had us ignore (nohup) stays ignored. */
static void handle_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction sa = { .sa_handler = on_signal };
	struct sigaction was;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (sigaction(signals[i], NULL, &was) == 0 &&
		    was.sa_handler != SIG_IGN)
			sigaction(signals[i], &sa, NULL);
}

int verb_check(int argc, char **argv)
{
	struct check c = {
		.scratch_opts = { .fs_type = "ext4" },
		.run_amplified = { true, true, true },
		.k = 1,
		.for_ns = DEFAULT_FOR_NS,
		.scratch = { .image_fd = -1 },
		.cgroup = { .dir_fd = -1, .procs_fd = -1, .threads_fd = -1,
			    .freeze_fd = -1, .events_fd = -1 },
	};
	struct errmsg em = { "" };
	int status = check_parse_options(&c, argc, argv), err;

	if (status >= 0)
		return status;
	handle_signals();
	err = prepare(&c, &em);
	if (!err)
		err = all_runs(&c, &em);
	if (!err)
		err = report(&c, &em);
	clean_up(&c);
	if (err < 0) {
		fprintf(stderr, "blkbox check: %s\n", em.text);
		drop_recordings(&c);
		return EXIT_CANNOT_RUN;
	}
	status = c.result.exit_status;
	explore_result_done(&c.result);
	return status;
}
