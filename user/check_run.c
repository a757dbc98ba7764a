// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The order of things in a run, and why:
 *
 *  1. the file system is mounted, so that its s_dev is known;
 *  2. the recorder is attached, then everything is synced, then the device is
 *     copied: what a background thread might write during the copy is in the
 *     stream (design: the base image);
 *  3. MARK_BEGIN: crash points begin here; state 0 is what is there;
 *  4. the program runs in its cgroup;
 *  5. what it left dirty is let out in the orders a file system really uses;
 *  6. MARK_END: crash points end here; the unmount is recorded too, so that
 *     the rebuilt image can be compared with the device.
 */
#include "check_run.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../replay/image.h"
#include "../replay/trace.h"

#define POLL_MS 20

struct run {
	const struct check_run_opts *opts;
	struct scratch_run disk;
	struct amplifier amplifier;
	struct stopper stopper;
	struct recorder *recorder;
	pid_t pid;
	int go_fd;	/* a byte here lets the program start */
};

const char *amplify_name(enum amplify a)
{
	static const char *const names[] = { "plain", "sync", "commit" };

	return names[a];
}

static void __attribute__((noreturn))
program(const struct check_run_opts *o, int wait_fd)
{
	const bool has_dir = strchr(o->argv[0], '/');
	char *from_here = has_dir ? realpath(o->argv[0], NULL) : NULL;
	int null = open("/dev/null", O_RDWR);
	sigset_t none;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(wait_fd, &byte, 1) != 1)
		_exit(127);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		/* Our standard output is the report's. */
		dup2(o->quiet ? null : STDERR_FILENO, STDOUT_FILENO);
		if (o->quiet)
			dup2(null, STDERR_FILENO);
	}
	for (char *const *e = o->env; e && *e; e++)
		putenv(*e);
	/* As it was typed it is looked for where it runs, ... */
	if (chdir(o->scratch->mount_point) == 0)
		execvp(o->argv[0], o->argv);
	/* ... and then where it was typed. */
	if (errno == ENOENT && from_here)
		execv(from_here, o->argv);
	dprintf(STDERR_FILENO, "blkbox check: running %s: %s\n", o->argv[0],
		strerror(errno));
	_exit(127);
}

/* The process exists, in its cgroup, and waits for a byte. */
static int prepare_program(struct run *r, struct errmsg *em)
{
	int fds[2], err;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return errmsg_set(em, errno, "making a pipe");
	fflush(NULL);
	r->pid = fork();
	if (r->pid == 0) {
		close(fds[1]);
		program(r->opts, fds[0]);
	}
	close(fds[0]);
	r->go_fd = fds[1];
	if (r->pid < 0)
		return errmsg_set(em, errno, "starting the program");
	err = cgroup_add(r->opts->cgroup, r->pid);
	if (err < 0)
		return errmsg_set(em, err, "putting the program into %s",
				  r->opts->cgroup->path);
	return 0;
}

static int open_recorder(struct run *r, struct errmsg *em)
{
	const struct check_run_opts *o = r->opts;
	const struct scratch *s = o->scratch;
	struct recorder_dev dev = { .dev = r->disk.loop.dev };
	struct recorder_fs fs = { .dev = r->disk.fs_dev,
				  .block_dev = r->disk.loop.dev,
				  .mount_point = s->mount_point,
				  .mount_options = (char *)s->mount_options };
	struct recorder_opts ro = {
		.path = o->recording,
		.overwrite = o->overwrite,
		.brief = true,
		.n_devs = 1,
		.devs = &dev,
		.n_fs = 1,
		.fs = &fs,
		.cgroup_id = o->cgroup->id,
		.stop_ops = stopper_ops(o->amplify, !o->trace_states),
		.base = "embedded",
		.expected_states = o->trace_states ? "trace" : "stop",
		.command = o->argv,
		.stopped = stopper_stopped,
		.event = stopper_event,
		.ctx = &r->stopper,
	};

	snprintf(dev.name, sizeof(dev.name), "%s",
		 r->disk.loop.path + strlen("/dev/"));
	snprintf(fs.type, sizeof(fs.type), "%s", s->fs_type);
	return recorder_open(&ro, &r->recorder, em);
}

/* A callback's own words are better than the number it returned. */
static int recorder_failed(struct run *r, int err, const char *what,
			   struct errmsg *em)
{
	if (*r->stopper.em.text) {
		*em = r->stopper.em;
		return err;
	}
	return errmsg_set(em, err, "%s", what);
}

static int begin(struct run *r, struct errmsg *em)
{
	int err = amplify_sync(&r->amplifier, em);

	if (err < 0)
		return err;
	err = rec_put_base_image(recorder_writer(r->recorder),
				 r->disk.loop.dev, r->disk.image_fd,
				 r->opts->scratch->bytes, em);
	if (err < 0)
		return err;
	err = stopper_snapshot(&r->stopper, 0, "the start", em);
	if (err < 0)
		return err;
	err = recorder_mark(r->recorder, MARK_BEGIN);
	if (err < 0)
		return errmsg_set(em, err, "marking the start");
	return 0;
}

static int run_program(struct run *r, struct check_run_result *res,
		       struct errmsg *em)
{
	int err;

	if (write_full(r->go_fd, "g", 1) < 0)
		return errmsg_set(em, EPIPE, "starting the program");
	for (;;) {
		pid_t pid = waitpid(r->pid, &res->wait_status, WNOHANG);

		if (pid == r->pid)
			break;
		if (*r->opts->interrupted)
			return errmsg_set(em, EINTR, "running the program");
		err = recorder_poll(r->recorder, POLL_MS);
		if (err < 0)
			return recorder_failed(r, err, "recording", em);
		err = stopper_exits(&r->stopper, em);
		if (err < 0)
			return err;
		stopper_unstick(&r->stopper);
	}
	r->pid = 0;
	/* The end of the program is the end of what it started. */
	res->leftover_threads = cgroup_threads(r->opts->cgroup, 1000);
	if (res->leftover_threads)
		cgroup_kill(r->opts->cgroup->path);
	err = recorder_fence(r->recorder);
	if (err < 0)
		return recorder_failed(r, err, "recording", em);
	return stopper_exits(&r->stopper, em);
}

static int mark(struct run *r, const char *text, struct errmsg *em)
{
	int err = recorder_mark(r->recorder, text);

	return err < 0 ? errmsg_set(em, err, "marking '%s'", text) : 0;
}

/*
 * What is still dirty goes out: the journal without the data first where that
 * is what brings losses out, the data without the journal first in the run
 * that is amplified by sync; then everything.
 */
static int let_out(struct run *r, struct errmsg *em)
{
	bool data_first = r->opts->amplify == AMPLIFY_SYNC;
	int err = 0;

	for (int step = 0; !err && step < 2; step++) {
		if (data_first == (step == 0)) {
			err = mark(r, "blkbox: writeback", em);
			if (!err)
				err = amplify_writeback(&r->amplifier,
							&r->stopper.last, em);
		} else {
			err = mark(r, "blkbox: commit", em);
			if (!err)
				err = amplify_commit(&r->amplifier, em);
		}
		if (!err && recorder_poll(r->recorder, 0) < 0)
			err = recorder_failed(r, -EIO, "recording", em);
	}
	if (!err)
		err = mark(r, "blkbox: syncfs", em);
	if (!err)
		err = amplify_sync(&r->amplifier, em);
	return err ?: mark(r, MARK_END, em);
}

/* The states' last word: what the files are when all is done. */
static int final_state(struct run *r, struct errmsg *em)
{
	int err = mark(r, "blkbox: the program has ended", em);

	if (!err && recorder_fence(r->recorder) < 0)
		err = recorder_failed(r, -EIO, "recording", em);
	if (!err)
		err = stopper_snapshot(&r->stopper, r->stopper.last_seq,
				       "the end of the program", em);
	return err;
}

static int compare_image(const struct run *r, struct check_run_result *res,
			 struct errmsg *em)
{
	const struct trace_opts topts = { 0 };
	struct image_index *index = NULL;
	struct image *image = NULL;
	struct trace *t = NULL;
	_cleanup_close_ int fd = -1;
	int err = trace_load(r->opts->recording, &topts, &t, em);

	if (err < 0)
		return err;
	index = image_index_new(t);
	fd = memfd_new("blkbox-rebuilt", t->bytes, em);
	err = fd < 0 ? fd : image_new(t, index, fd, &image, em);
	if (!err) {
		struct disk_state all = { .n_units = t->n_units };

		err = image_goto(image, &all, em);
	}
	if (!err) {
		err = scratch_images_equal(fd, r->disk.image_fd, t->bytes);
		res->image_equal = err == 1;
		if (err < 0)
			errmsg_set(em, err, "comparing the rebuilt image");
	}
	image_free(image);
	image_index_free(index);
	trace_free(t);
	return MIN(err, 0);
}

static int record_run(struct run *r, struct check_run_result *res,
		      struct errmsg *em)
{
	int err = begin(r, em);

	if (!err)
		err = run_program(r, res, em);
	/* A program that failed is not judged: nothing to let out. */
	if (!err)
		err = final_state(r, em);
	if (!err)
		err = let_out(r, em);
	if (!err)
		amplifier_done(&r->amplifier);
	if (!err)
		err = scratch_run_unmount(r->opts->scratch, &r->disk, em);
	if (!err && recorder_fence(r->recorder) < 0)
		err = recorder_failed(r, -EIO, "recording", em);
	return err;
}

static void end_program(struct run *r)
{
	if (r->go_fd >= 0)
		close(r->go_fd);
	if (r->pid <= 0)
		return;
	cgroup_kill(r->opts->cgroup->path);
	kill(r->pid, SIGKILL);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int check_run(const struct check_run_opts *opts, struct check_run_result *ret,
	      struct errmsg *em)
{
	struct run r = { .opts = opts, .go_fd = -1,
			 .amplifier = { .root_fd = -1, .unrelated_fd = -1 } };
	struct check_run_result res = { 0 };
	struct errmsg ignored;
	int err = scratch_run_start(opts->scratch, &r.disk, em), closed;

	if (err < 0)
		return err;
	err = amplifier_new(opts->scratch->fs_type, opts->scratch->mount_point,
			    &r.amplifier, em);
	r.stopper = (struct stopper){ .cgroup = opts->cgroup,
				      .amplifier = &r.amplifier,
				      .amplify = opts->amplify,
				      .take_states = !opts->trace_states,
				      .store = store_new() };
	stopper_init(&r.stopper);
	if (!err)
		err = prepare_program(&r, em);
	if (!err)
		err = open_recorder(&r, em);
	if (!err) {
		r.stopper.recorder = r.recorder;
		err = record_run(&r, &res, em);
		end_program(&r);
		closed = recorder_close(r.recorder, &res.summary,
					err < 0 ? &ignored : em);
		err = err ?: closed;
	} else {
		end_program(&r);
	}
	if (!err)
		err = compare_image(&r, &res, em);
	res.stops = r.stopper.stops;
	res.states = r.stopper.states;
	amplifier_done(&r.amplifier);
	scratch_run_done(opts->scratch, &r.disk);
	stopper_done(&r.stopper);
	store_free(r.stopper.store);
	if (!err)
		*ret = res;
	return err;
}
