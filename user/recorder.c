// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The recorder: opens everything in order, and takes it down in the order that
 * loses nothing.
 *
 * Invariants:
 *  1. Opening: load, calibrate and prove, attach, create the file, set the
 *     scope, enable. Nothing is recorded before HEAD is in the file.
 *  2. Closing: disable, fence, detach, END. What was in the rings when it was
 *     disabled is in the recording.
 *  3. The recording never lies on a disk it records: each frame written would
 *     be events of its own.
 */
#include "recorder.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach.h"
#include "calibrate.h"
#include "devices.h"
#include "drain.h"
#include "head.h"
#include "mark.h"
#include "programs.h"

#define MISSED_EVERY_NS 1000000000
#define FLUSH_EVERY_NS	1000000000

struct recorder {
	struct programs programs;
	struct kernel_info kernel;
	struct attach_set attached;
	struct rec_writer *writer;
	struct drain *drain;
	u64 missed_checked_ns;
	u64 flushed_ns;
	char name[MARK_NAME_BYTES];	/* in marks of our own */
};

void recorder_mount_tracefs(void)
{
	static const char dir[] = "/sys/kernel/tracing";

	if (access("/sys/kernel/tracing/events", F_OK) == 0 ||
	    access("/sys/kernel/debug/tracing/events", F_OK) == 0)
		return;
	/* Where it cannot be mounted, attaching will say what is missing. */
	(void)!mount("tracefs", dir, "tracefs",
		     MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

static int refuse_recorded_output(const struct recorder_opts *opts,
				  struct errmsg *em)
{
	_cleanup_free_ char *copy = xstrdup(opts->path);
	const char *dir = dirname(copy);

	for (u32 i = 0; i < opts->n_devs; i++) {
		if (!file_lies_on(dir, opts->devs[i].dev))
			continue;
		return errmsg_set(em, 0, "the recording %s would lie on %s, "
				  "which it records: each write of it would be "
				  "recorded again; choose a place on another "
				  "disk", opts->path, opts->devs[i].name);
	}
	return 0;
}

static int set_scope(struct recorder *r, const struct recorder_opts *opts)
{
	struct bpf_config *c = r->programs.config;
	int err = 0;

	for (u32 i = 0; i < opts->n_devs && !err; i++)
		err = programs_scope(r->programs.devs_fd, opts->devs[i].dev);
	for (u32 i = 0; i < opts->n_fs && !err; i++)
		if (opts->fs[i].dev)
			err = programs_scope(r->programs.file_systems_fd,
					     opts->fs[i].dev);
	for (u32 i = 0; i < opts->n_pids && !err; i++)
		err = recorder_add_pid(r, opts->pids[i]);
	c->all_pids = opts->all_pids;
	c->cgroup_id = opts->cgroup_id;
	c->stop_ops = opts->stop_ops;
	c->stacks = opts->stacks;
	return err;
}

static int attach_all(struct recorder *r, bool brief, struct errmsg *em)
{
	struct bpf_object *obj = r->programs.obj;
	int err = attach_events(obj, attach_process_events, &r->attached, em);

	if (err < 0)
		return err;
	if (brief)
		return attach_dispatched(obj, attach_file_events, &r->attached,
					 em);
	return attach_events(obj, attach_file_events, &r->attached, em);
}

static int create(struct recorder *r, const struct recorder_opts *opts,
		  const char *source, struct errmsg *em)
{
	struct rec_writer_opts wo = {
		.level = opts->level,
		.overwrite = opts->overwrite,
	};
	struct drain_opts d = {
		.ring_fd = r->programs.ring_fd,
		.notices_fd = r->programs.notices_fd,
		.devs_fd = r->programs.devs_fd,
		.file_systems_fd = r->programs.file_systems_fd,
		.counters = r->programs.counters,
		.sink = {
			.kernel = &r->kernel,
			.name = r->name,
			.stopped = opts->stopped,
			.event = opts->event,
			.ctx = opts->ctx,
		},
	};
	_cleanup_free_ char *head = head_json(opts, &r->kernel, &r->attached,
					      source, em);
	int err;

	if (!head)
		return -EINVAL;
	err = rec_create(opts->path, head, &wo, &r->writer, em);
	if (err < 0)
		return err;
	d.sink.writer = r->writer;
	return drain_new(&d, &r->drain, em);
}

static void recorder_free(struct recorder *r)
{
	if (r->programs.config)
		r->programs.config->enabled = 0;
	attach_set_done(&r->attached);
	drain_free(r->drain);
	if (r->writer)
		rec_abandon(r->writer);
	programs_free(&r->programs);
	kernel_info_done(&r->kernel);
	free(r);
}

static int open_in_order(struct recorder *r, const struct recorder_opts *opts,
			 struct errmsg *em)
{
	const char *source = NULL;
	int err;

	err = refuse_recorded_output(opts, em);
	if (err < 0)
		return err;
	recorder_mount_tracefs();
	err = kernel_info_read(&r->kernel, em);
	if (err < 0)
		return err;
	err = programs_load(opts->ring_bytes, &r->kernel, &r->programs, em);
	if (err < 0)
		return err;
	err = attach_events(r->programs.obj, attach_block_events, &r->attached,
			    em);
	if (err < 0)
		return err;
	err = calibrate(&r->programs, &r->kernel, &source, em);
	if (err < 0)
		return err;
	err = attach_all(r, opts->brief, em);
	if (err < 0)
		return err;
	err = create(r, opts, source, em);
	if (err < 0)
		return err;
	err = set_scope(r, opts);
	if (err < 0)
		return errmsg_set(em, err, "telling the BPF programs what to "
				  "record");
	r->programs.counters->ring_peak_bytes = 0;
	__atomic_store_n(&r->programs.config->enabled, 1, __ATOMIC_RELEASE);
	return 0;
}

int recorder_open(const struct recorder_opts *opts, struct recorder **ret,
		  struct errmsg *em)
{
	struct recorder *r = xzalloc(sizeof(*r));
	int err;

	mark_name(r->name);
	err = open_in_order(r, opts, em);
	if (err < 0) {
		recorder_free(r);
		return err;
	}
	*ret = r;
	return 0;
}

struct rec_writer *recorder_writer(struct recorder *r)
{
	return r->writer;
}

int recorder_add_pid(struct recorder *r, u32 pid)
{
	u64 as_asked = 0;
	int err;

	err = bpf_map_update_elem(r->programs.pids_fd, &pid, &as_asked,
				  BPF_ANY);
	if (err < 0)
		return err;
	__atomic_add_fetch(&r->programs.config->n_pids, 1, __ATOMIC_RELEASE);
	return 0;
}

static int check_missed(struct recorder *r)
{
	r->missed_checked_ns = now_ns();
	return drain_missed(r->drain, attach_missed(&r->attached));
}

/* What a recorder that is killed may lose of a quiet machine's events: the
 * frame under way is closed by time, not only by its size. */
static int flush_in_time(struct recorder *r)
{
	if (now_ns() - r->flushed_ns < FLUSH_EVERY_NS)
		return 0;
	r->flushed_ns = now_ns();
	return rec_flush(r->writer);
}

int recorder_poll(struct recorder *r, int timeout_ms)
{
	int err = drain_poll(r->drain, timeout_ms);

	if (!err)
		err = flush_in_time(r);
	if (err < 0 || now_ns() - r->missed_checked_ns < MISSED_EVERY_NS)
		return err;
	return check_missed(r);
}

int recorder_mark(struct recorder *r, const char *text)
{
	return mark_put_own(text, r->name);
}

int recorder_fence(struct recorder *r)
{
	int err = drain_fence(r->drain);

	return err < 0 ? err : check_missed(r);
}

static void summarize(const struct recorder *r, struct recorder_summary *ret)
{
	drain_summary(r->drain, ret);
	ret->file_bytes = rec_writer_bytes(r->writer);
	ret->ring_bytes = r->programs.ring_bytes;
	ret->ring_peak_bytes = MIN(r->programs.counters->ring_peak_bytes,
				   ret->ring_bytes);
}

int recorder_close(struct recorder *r, struct recorder_summary *ret,
		   struct errmsg *em)
{
	int err;

	__atomic_store_n(&r->programs.config->enabled, 0, __ATOMIC_RELEASE);
	err = recorder_fence(r);
	if (err < 0)
		errmsg_set(em, err, "draining the last events");
	if (!err)
		err = rec_flush(r->writer);
	if (ret)
		summarize(r, ret);
	if (!err) {
		err = rec_close(r->writer, em);
		r->writer = NULL;
	}
	recorder_free(r);
	return err;
}

/* A ring with room for what was lost besides what it had would have held it. */
static void print_advice(FILE *out, const struct recorder_summary *s)
{
	u64 needed = s->ring_bytes + s->lost_bytes + s->lost_bytes / 16 +
		     s->lost_events * sizeof(struct ev_file_op);
	u64 ring = s->ring_bytes;

	while (ring < needed && ring < RING_MAX_BYTES)
		ring *= 2;
	if (ring < needed)
		fprintf(out, "; no --ring is large enough for this load: record"
			" less at a time");
	else
		fprintf(out, "; --ring %" PRIu64 "%s would have avoided it",
			ring >> 20 ? ring >> 20 : ring >> 10,
			ring >> 20 ? "M" : "K");
}

void recorder_print_summary(FILE *out, const struct recorder_summary *s)
{
	fprintf(out, "%" PRIu64 " events", s->events);
	if (!s->gaps) {
		fprintf(out, ", nothing lost\n");
		return;
	}
	fprintf(out, ", LOST %" PRIu64 " events and %" PRIu64 " bytes of data"
		" in %" PRIu64 " gaps", s->lost_events, s->lost_bytes, s->gaps);
	if (s->unreadable_bytes)
		fprintf(out, ", %" PRIu64 " bytes could not be read",
			s->unreadable_bytes);
	if (s->lost_events || s->lost_bytes)
		print_advice(out, s);
	fprintf(out, "\n");
}
