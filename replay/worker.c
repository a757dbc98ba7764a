// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A worker: mounts the disks it is given, one after the other, and lets
 * judge() look at each.
 *
 *    parent ---fork into a new process namespace---> init ---fork---> worker
 *
 * Invariants:
 *  1. init is process 1 of the namespace and does nothing but reap. When it
 *     ends, the kernel kills whatever lives in the namespace: the worker and
 *     what a checker left behind. It is killed when the parent dies.
 *  2. So the namespace holds the worker and processes the worker started,
 *     nothing else, and kill(-1) there reaches only those.
 *  3. The mount, the loop device and the image live as long as the worker:
 *     the mount is in its mount namespace alone, the device clears itself, the
 *     image is an unnamed file.
 *  4. A disk is changed (image_goto) only while nothing has the device open
 *     exclusively, that is, while no file system is on it; the device's page
 *     cache is emptied after the change and before the mount.
 *  5. What was written to the device is taken from the watch after unmount and
 *     BLKFLSBUF, when nothing is under way.
 */
#include "worker.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a file system may stay busy after everybody using it was killed. */
#define UNMOUNT_NS 5000000000ULL

struct worker {
	const struct worker_setup *setup;
	struct image *image;
	int memfd;
	struct loop loop;
	struct write_watch *watch;	/* NULL: writes are not known */
	struct kmsg kmsg;
	char *mount_point;
	int btrfs_fd;			/* /dev/btrfs-control, -1 */
	struct buf log, answer;
};

/* ---- talking to the parent ----------------------------------------------- */

/* Sends one message; a parent that is gone needs no answer. */
static void send_answer(struct worker *w, int kind, int error, const char *log)
{
	_cleanup_buf_ struct buf m = { 0 };
	u64 len;

	buf_put_u8(&m, kind);
	buf_put_u32(&m, error);
	buf_put_str(&m, log);
	len = m.len + w->answer.len;
	if (len > MESSAGE_BYTES_MAX) {
		buf_reset(&w->answer);
		send_answer(w, ANSWER_FATAL, -EMSGSIZE, "judging a disk: the"
			    " answer is too long");
		_exit(1);
	}
	if (write_full(w->setup->sock, &(u32){ len }, sizeof(u32)) < 0 ||
	    write_full(w->setup->sock, m.data, m.len) < 0 ||
	    write_full(w->setup->sock, w->answer.data, w->answer.len) < 0)
		_exit(0);
}

static void give_up(struct worker *w, int error, const struct errmsg *em)
	__attribute__((noreturn));
static void give_up(struct worker *w, int error, const struct errmsg *em)
{
	buf_reset(&w->answer);
	send_answer(w, ANSWER_FATAL, error, em->text);
	_exit(1);
}

/* The next job; ends the worker when the parent is gone. drop: heap. */
static struct job receive_job(struct worker *w, u32 **ret_drop)
{
	struct job j = { 0 };
	_cleanup_free_ u8 *message = NULL;
	struct cursor c;
	u32 len, *drop;

	if (read_full(w->setup->sock, &len, sizeof(len)) < 0 ||
	    len > MESSAGE_BYTES_MAX)
		_exit(0);
	message = xmalloc(len);
	if (read_full(w->setup->sock, message, len) < 0)
		_exit(0);
	c = cursor_of(message, len);
	j.id = cur_u64(&c);
	j.st.n_units = cur_u32(&c);
	j.st.n_drop = cur_u32(&c);
	if (c.bad || j.st.n_drop > cur_left(&c) / 4)
		_exit(0);
	drop = xreallocarray(NULL, j.st.n_drop, sizeof(*drop));
	for (u32 i = 0; i < j.st.n_drop; i++)
		drop[i] = cur_u32(&c);
	j.st.drop = *ret_drop = drop;
	return j;
}

/* ---- mounting and unmounting --------------------------------------------- */

/* Errors that speak of this machine, not of the disk. */
static bool is_environment(const struct worker *w, int err)
{
	static const int errors[] = { ENODEV, EPERM, EACCES, EBUSY, EMFILE,
				      ENFILE };

	/* another mount of the same btrfs, where the kernel allows one */
	if (w->btrfs_fd >= 0 && err == EEXIST)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (err == errors[i])
			return true;
	return false;
}

/*
 * btrfs finds its disks by the identity written on them, and all our disks
 * carry the same one. Only one at a time on the whole machine goes from being
 * scanned to being mounted; on kernels that cannot have two mounted, from
 * there to being forgotten too.
 */
static void btrfs_lock(struct worker *w)
{
	while (w->btrfs_fd >= 0 && flock(w->btrfs_fd, LOCK_EX) < 0)
		if (errno != EINTR)
			break;
}

static void btrfs_forget(struct worker *w)
{
	struct btrfs_ioctl_vol_args args = { 0 };

	if (w->btrfs_fd < 0)
		return;
	snprintf(args.name, sizeof(args.name), "%s", w->loop.path);
	(void)!ioctl(w->btrfs_fd, BTRFS_IOC_FORGET_DEV, &args);
}

static int mount_disk(struct worker *w)
{
	const struct mount_spec *spec = w->setup->spec;
	u64 end = now_ns() + UNMOUNT_NS;
	int r;

	btrfs_lock(w);
	do {
		r = mount(w->loop.path, w->mount_point, spec->fs_type,
			  spec->flags, spec->data) < 0 ? -errno : 0;
		/* somebody on the machine is having a look at it */
	} while (r == -EBUSY && now_ns() < end && poll(NULL, 0, 1) == 0);
	if (w->btrfs_fd >= 0 && !w->setup->btrfs_alone)
		flock(w->btrfs_fd, LOCK_UN);
	return r;
}

static void kill_leftovers(void)
{
	/* invariant 2; process 1 is init, so we are in its namespace */
	if (getppid() == 1)
		kill(-1, SIGKILL);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Is nothing on the device any more? */
static bool is_released(const struct worker *w)
{
	int fd = open(w->loop.path, O_RDONLY | O_EXCL | O_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static int unmount_disk(struct worker *w)
{
	u64 end = now_ns() + UNMOUNT_NS;

	(void)!chdir("/");
	for (;;) {
		kill_leftovers();
		/* EINVAL: a checker has unmounted it already */
		if ((umount2(w->mount_point, UMOUNT_NOFOLLOW) == 0 ||
		     errno == EINVAL) && is_released(w))
			return 0;
		if (now_ns() > end)
			return -EBUSY;
		poll(NULL, 0, 1);
	}
}

static void touched(void *ctx, u64 sector, u64 sectors)
{
	image_touched(ctx, sector, sectors);
}

/* After a mount, failed or over: the image learns what was written. */
static int settle(struct worker *w, struct errmsg *em)
{
	int r;

	btrfs_forget(w);
	if (w->setup->btrfs_alone && w->btrfs_fd >= 0)
		flock(w->btrfs_fd, LOCK_UN);
	r = loop_invalidate(&w->loop);
	if (r < 0)
		return errmsg_set(em, r, "flushing %s", w->loop.path);
	if (!w->watch ||
	    write_watch_drain(w->watch, touched, w->image) < 0)
		image_touched_unknown(w->image);
	return 0;
}

/* ---- one disk ------------------------------------------------------------ */

/* Does the image hold, sector for sector, what the state says? For tests. */
static int verify_image(struct worker *w, const struct disk_state *st,
			struct errmsg *em)
{
	const struct worker_setup *s = w->setup;
	u8 want[SECTOR_SIZE], have[64 * SECTOR_SIZE];
	u64 sectors = s->trace->bytes / SECTOR_SIZE;

	for (u64 sector = 0; sector < sectors; sector++) {
		u64 at = sector % 64;
		u64 n = MIN(64, sectors - sector);
		int r = 0;

		if (at == 0)
			r = pread_full(w->memfd, have, n * SECTOR_SIZE,
				       sector * SECTOR_SIZE);
		if (r < 0)
			return errmsg_set(em, r, "reading the image");
		disk_sector(s->trace, s->index, st, sector, want);
		if (memcmp(have + at * SECTOR_SIZE, want, SECTOR_SIZE))
			return errmsg_set(em, EUCLEAN, "sector %llu of the"
					  " image is not what it should be",
					  (unsigned long long)sector);
	}
	return 0;
}

static const char *log_text(struct worker *w)
{
	buf_put_u8(&w->log, 0);
	w->log.len--;
	return (const char *)w->log.data;
}

/* Calls judge() on what is mounted. Returns what it does. */
static int judge_disk(struct worker *w, const struct job *j,
		      struct errmsg *em)
{
	const struct pool_opts *o = w->setup->opts;
	_cleanup_close_ int root = -1;
	int r;

	root = open(w->mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return errmsg_set(em, errno, "opening the mounted %s",
				  w->mount_point);
	r = o->judge(o->ctx, j, root, w->mount_point, log_text(w), &w->answer);
	return r < 0 ? errmsg_set(em, r, "judging a disk") : 0;
}

static void run_job(struct worker *w, const struct job *j)
{
	struct errmsg em = { "" };
	int r, mounted;

	buf_reset(&w->log);
	buf_reset(&w->answer);
	r = image_goto(w->image, &j->st, &em);
	if (r == 0 && w->setup->opts->verify_image)
		r = verify_image(w, &j->st, &em);
	if (r == 0 && (r = loop_invalidate(&w->loop)) < 0)
		errmsg_set(&em, r, "flushing %s", w->loop.path);
	if (r < 0)
		give_up(w, r, &em);
	kmsg_take(&w->kmsg, NULL);
	mounted = mount_disk(w);
	kmsg_take(&w->kmsg, &w->log);
	if (mounted < 0 && is_environment(w, -mounted))
		give_up(w, errmsg_set(&em, mounted, "mounting %s (%s)",
				      w->loop.path, w->setup->spec->fs_type),
			&em);
	if (mounted == 0) {
		r = judge_disk(w, j, &em);
		if (r < 0)
			give_up(w, r, &em);
		if (unmount_disk(w) < 0)
			_exit(EBUSY);	/* another takes our place */
	}
	r = settle(w, &em);
	if (r < 0)
		give_up(w, r, &em);
	kmsg_take(&w->kmsg, &w->log);
	send_answer(w, mounted < 0 ? MOUNT_FAILED : MOUNT_OK, mounted,
		    log_text(w));
}

/* ---- setting up ---------------------------------------------------------- */

/* Adds what this worker must do without to w->log. */
static void note(struct worker *w, const char *what, const char *why)
{
	_cleanup_free_ char *s = xasprintf("%s (%s). ", what, why);

	buf_put(&w->log, s, strlen(s));
}

static int make_image(struct worker *w, struct errmsg *em)
{
	const struct worker_setup *s = w->setup;
	int fd, r;

	w->memfd = memfd_new("blkbox disk", s->trace->bytes, em);
	if (w->memfd < 0)
		return w->memfd;
	r = image_new(s->trace, s->index, w->memfd, &w->image, em);
	if (r == 0)
		r = loop_attach(w->memfd, false, &w->loop, em);
	if (r < 0)
		return r;
	/* Kernels may refuse to mount what somebody can write to. */
	fd = open(w->loop.path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errmsg_set(em, errno, "opening %s", w->loop.path);
	loop_detach(&w->loop);
	w->loop.fd = fd;
	return 0;
}

static void watch_writes(struct worker *w)
{
	struct errmsg em = { "" };
	int r;

	r = write_watch_new(w->loop.dev, &w->watch, &em);
	if (r == -ENOENT && mount("tracefs", "/sys/kernel/tracing", "tracefs",
				  MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
		r = write_watch_new(w->loop.dev, &w->watch, &em);
	if (r < 0)
		note(w, "Each disk is rebuilt as a whole, which is slow",
		     em.text);
}

static int set_up(struct worker *w, struct errmsg *em)
{
	const struct worker_setup *s = w->setup;
	char name[16];
	int r;

	snprintf(name, sizeof(name), "blkbox-w%u", s->number % 10000);
	prctl(PR_SET_NAME, name);
	r = mount_namespace_new(em);
	if (r == 0)
		r = make_image(w, em);
	if (r < 0)
		return r;
	watch_writes(w);
	r = kmsg_open(&w->kmsg, w->loop.path + strlen("/dev/"));
	if (r < 0)
		note(w, "Kernel warnings go unnoticed: /dev/kmsg cannot be"
		     " read", strerror(-r));
	/* Process numbers that checkers see are those of our namespace; where
	 * that is refused, /proc goes by the host's. */
	(void)!mount("proc", "/proc", "proc",
		     MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	if (!strcmp(s->spec->fs_type, "btrfs")) {
		w->btrfs_fd = open("/dev/btrfs-control", O_RDWR | O_CLOEXEC);
		if (w->btrfs_fd < 0)
			return errmsg_set(em, errno,
					  "opening /dev/btrfs-control");
	}
	return mount_point_make(s->opts->mount_point, &w->mount_point, em);
}

static void work(const struct worker_setup *setup) __attribute__((noreturn));
static void work(const struct worker_setup *setup)
{
	struct worker w = {
		.setup = setup,
		.memfd = -1,
		.loop.fd = -1,
		.kmsg = { .fd = -1, .proc_fd = -1 },
		.btrfs_fd = -1,
	};
	struct errmsg em = { "" };
	struct stat st;
	int r;

	r = set_up(&w, &em);
	if (r == 0 && fstat(w.memfd, &st) < 0)
		r = errmsg_set(&em, errno, "looking at the image");
	if (r < 0)
		give_up(&w, r, &em);
	buf_put_u64(&w.answer, (u64)st.st_blocks * 512);
	send_answer(&w, ANSWER_READY, 0, log_text(&w));
	for (;;) {
		u32 *drop;
		struct job j = receive_job(&w, &drop);

		run_job(&w, &j);
		free(drop);
	}
}

/* ---- init ---------------------------------------------------------------- */

static void default_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Reaps until the worker ends, and ends the same way. */
static void reap(pid_t worker) __attribute__((noreturn));
static void reap(pid_t worker)
{
	int status;
	pid_t pid;

	do {
		pid = waitpid(-1, &status, 0);
	} while (pid != worker && (pid > 0 || errno == EINTR));
	if (pid == worker && WIFSIGNALED(status))
		_exit(WTERMSIG(status));
	_exit(INIT_EXIT_STATUS + (pid == worker ? WEXITSTATUS(status) & 127 :
						 1));
}

void worker_init(const struct worker_setup *setup)
{
	struct pollfd p = { .fd = setup->sock };
	pid_t pid;

	if (getpid() != 1)	/* kill(-1) must not reach the host */
		_exit(INIT_EXIT_STATUS + EPERM);
	default_signals();
	setsid();	/* a terminal's signals are the parent's affair */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (poll(&p, 1, 0) < 0 || (p.revents & POLLHUP))
		_exit(0);	/* the parent was gone before that */
	pid = fork();
	if (pid < 0)
		_exit(INIT_EXIT_STATUS + (errno & 127));
	if (pid == 0)
		work(setup);
	close_range(0, ~0U, 0);
	reap(pid);
}
