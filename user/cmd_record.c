// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * blkbox record: a recording of disks and file systems, for a time, until told
 * to stop, or for as long as a command runs.
 *
 * CMD is in scope before its first instruction: it is forked, waits at a pipe,
 * becomes known to the BPF programs, and only then is executed.
 */
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../replay/json_out.h"
#include "base_copy.h"
#include "record_options.h"
#include "spawn.h"
#include "verbs.h"

#define POLL_MS 20

struct recording {
	struct record_options o;
	struct recorder *recorder;
	int signals;		/* signalfd */
	sigset_t old_mask;
	pid_t child;		/* 0: none, or it has ended */
	int go;			/* write end of the pipe the child waits at */
	int status;		/* of CMD, as wait() has it */
	u64 start_ns;
	bool stop;		/* as soon as CMD has ended */
	bool leave;		/* now, whether CMD has ended or not */
	struct recorder_summary sum;
};

static int watch_signals(struct recording *r)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &r->old_mask);
	r->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return r->signals < 0 ? -errno : 0;
}

static void __attribute__((noreturn))
child(const struct recording *r, int wait_fd)
{
	char **argv = r->o.command;
	char byte;

	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
	/* Our parent gave up: nothing is executed. */
	if (read(wait_fd, &byte, 1) != 1)
		_exit(EXIT_CANNOT_RUN);
	close(wait_fd);
	execvp(argv[0], argv);
	fprintf(stderr, "blkbox record: running %s: %s\n", argv[0],
		strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static int prepare_command(struct recording *r, struct errmsg *em)
{
	int fds[2], err;

	if (!r->o.command)
		return 0;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return errmsg_set(em, errno, "making a pipe");
	r->child = fork();
	if (r->child == 0) {
		close(fds[1]);
		child(r, fds[0]);
	}
	close(fds[0]);
	if (r->child < 0) {
		err = errno;
		r->child = 0;
		close(fds[1]);
		return errmsg_set(em, err, "starting %s", r->o.command[0]);
	}
	r->go = fds[1];
	err = recorder_add_pid(r->recorder, r->child);
	return err < 0 ? errmsg_set(em, err, "watching process %d", r->child) :
			 0;
}

static void reap(struct recording *r)
{
	int status;

	if (r->child && waitpid(r->child, &status, WNOHANG) == r->child) {
		r->status = status;
		r->child = 0;
		r->stop = true;
	}
}

/* The first signal goes to CMD, which may want to end well; the second, or the
 * first where there is no CMD, ends the recording. */
static void take_signals(struct recording *r)
{
	struct signalfd_siginfo si;

	while (read(r->signals, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD) {
			reap(r);
		} else if (r->child && !r->stop) {
			kill(r->child, si.ssi_signo);
			r->stop = true;
		} else {
			r->stop = r->leave = true;
		}
	}
}

static bool time_is_up(const struct recording *r)
{
	return r->o.for_ns && now_ns() - r->start_ns >= r->o.for_ns;
}

static int run(struct recording *r, struct errmsg *em)
{
	int err;

	if (r->go >= 0) {
		if (write(r->go, "", 1) != 1)
			return errmsg_set(em, errno, "starting %s",
					  r->o.command[0]);
		closep(&r->go);
		r->go = -1;
	}
	r->start_ns = now_ns();
	if (!r->o.command || r->o.verbose)
		fprintf(stderr, "recording into %s\n", r->o.output);
	while (!time_is_up(r)) {
		err = recorder_poll(r->recorder, POLL_MS);
		if (err < 0)
			return errmsg_set(em, err, "recording into %s",
					  r->o.output);
		take_signals(r);
		if (r->leave || (r->stop && !r->child))
			break;
	}
	return 0;
}

static int take_bases(struct recording *r, struct errmsg *em)
{
	if (strcmp(r->o.base, "full"))
		return 0;
	for (u32 i = 0; i < r->o.n_devs; i++) {
		int err = base_copy(r->recorder, &r->o.devs[i], em);

		if (err < 0)
			return err;
	}
	return 0;
}

static int put_json(const struct recording *r, int exit_status)
{
	const struct recorder_summary *s = &r->sum;
	cJSON *o = cJSON_CreateObject();
	_cleanup_fclose_ FILE *f = NULL;
	FILE *out = stdout;

	if (strcmp(r->o.json, "-")) {
		f = fopen(r->o.json, "we");
		out = f;
	}
	if (!out) {
		fprintf(stderr, "blkbox record: creating %s: %s\n", r->o.json,
			strerror(errno));
		cJSON_Delete(o);
		return EXIT_CANNOT_RUN;
	}
	cJSON_AddNumberToObject(o, "version", 1);
	cJSON_AddNumberToObject(o, "exit_status", exit_status);
	json_u64(o, "events", s->events);
	json_u64(o, "gaps", s->gaps);
	json_u64(o, "lost_events", s->lost_events);
	json_u64(o, "lost_bytes", s->lost_bytes);
	json_u64(o, "unreadable_bytes", s->unreadable_bytes);
	json_u64(o, "raw_bytes", s->raw_bytes);
	json_u64(o, "file_bytes", s->file_bytes);
	json_u64(o, "ring_bytes", s->ring_bytes);
	json_u64(o, "ring_peak_bytes", s->ring_peak_bytes);
	cJSON_AddNumberToObject(o, "seconds",
				(now_ns() - r->start_ns) / 1e9);
	if (r->o.command && WIFEXITED(r->status))
		cJSON_AddNumberToObject(o, "command_status",
					WEXITSTATUS(r->status));
	if (r->o.command && WIFSIGNALED(r->status))
		cJSON_AddNumberToObject(o, "command_signal",
					WTERMSIG(r->status));
	json_print(out, o, true);
	cJSON_Delete(o);
	return exit_status;
}

static int report(struct recording *r)
{
	int status = r->sum.gaps ? EXIT_INCOMPLETE : EXIT_CONSISTENT;

	if (r->o.command) {
		_cleanup_free_ char *words = wait_status_words(r->status);

		fprintf(stderr, "%s %s\n", r->o.command[0],
			r->child ? "is still running" : words);
	}
	if (r->o.json)
		status = put_json(r, status);
	if (r->o.verbose)
		fprintf(stderr, "%s: %llu bytes; %llu bytes of data; ring: at "
			"most %llu of %llu bytes in use\n", r->o.output,
			(unsigned long long)r->sum.file_bytes,
			(unsigned long long)r->sum.raw_bytes,
			(unsigned long long)r->sum.ring_peak_bytes,
			(unsigned long long)r->sum.ring_bytes);
	recorder_print_summary(stderr, &r->sum);
	return status;
}

/* A child that waits at its pipe sees it closed, and ends. */
static void give_up_child(struct recording *r)
{
	closep(&r->go);
	r->go = -1;
	if (r->child)
		waitpid(r->child, NULL, 0);
}

static int record(struct recording *r, struct errmsg *em)
{
	int err = record_find_scope(&r->o, em);

	if (err < 0)
		return err;
	err = watch_signals(r);
	if (err < 0)
		return errmsg_set(em, err, "watching for signals");
	err = recorder_open(&r->o.opts, &r->recorder, em);
	if (err < 0)
		return err;
	err = take_bases(r, em);
	if (!err)
		err = prepare_command(r, em);
	if (!err)
		err = run(r, em);
	if (r->go >= 0)
		give_up_child(r);
	if (err < 0) {
		recorder_close(r->recorder, NULL, NULL);
		return err;
	}
	return recorder_close(r->recorder, &r->sum, em);
}

int verb_record(int argc, char **argv)
{
	struct recording r = { .signals = -1, .go = -1 };
	struct errmsg em = { "" };
	int status = record_parse_options(&r.o, argc, argv);

	if (status < 0) {
		status = record(&r, &em) < 0 ? EXIT_CANNOT_RUN : report(&r);
		if (em.text[0])
			fprintf(stderr, "blkbox record: %s\n", em.text);
	}
	closep(&r.signals);
	record_options_done(&r.o);
	return status;
}
