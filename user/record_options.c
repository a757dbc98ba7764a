// SPDX-License-Identifier: GPL-2.0-or-later
#include "record_options.h"

#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "devices.h"

/* Below this the time detaching takes weighs more than what hooks cost. */
#define BRIEF_NS 60000000000ULL

enum {
	OPT_DEVICE = 256,
	OPT_MOUNT,
	OPT_PID,
	OPT_CGROUP,
	OPT_BASE,
	OPT_FOR,
	OPT_RING,
	OPT_FORCE,
	OPT_LEVEL,
	OPT_JSON,
	OPT_STACKS,
};

static const struct option options[] = {
	{ "device", required_argument, NULL, OPT_DEVICE },
	{ "mount", required_argument, NULL, OPT_MOUNT },
	{ "pid", required_argument, NULL, OPT_PID },
	{ "cgroup", required_argument, NULL, OPT_CGROUP },
	{ "base", required_argument, NULL, OPT_BASE },
	{ "for", required_argument, NULL, OPT_FOR },
	{ "output", required_argument, NULL, 'o' },
	{ "ring", required_argument, NULL, OPT_RING },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "level", required_argument, NULL, OPT_LEVEL },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "stacks", no_argument, NULL, OPT_STACKS },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void usage(FILE *out)
{
	fprintf(out,
"Usage: blkbox record (--device DEV | --mount DIR)... [OPTION]... -o FILE\n"
"                     [-- CMD [ARG]...]\n"
"Records every write to a disk, with its data, and every operation on its file\n"
"systems, until CMD ends, the time is up, or SIGINT or SIGTERM comes.\n\n"
"  --device DEV   a whole disk, whoever writes to it\n"
"  --mount DIR    the file system mounted there, and the disk below it; with\n"
"                 --device it may still be to be mounted\n"
"  --pid P        file operations of this process and its descendants\n"
"  --cgroup PATH  ... of the processes in this cgroup (version 2)\n"
"                 (with neither, and no CMD: of every process)\n"
"  --base WHAT    none (default); full: the disk as it is, into the recording;\n"
"                 or the file that holds it as it is now\n"
"  --for TIME     stop after TIME (10, 500ms, 2m)\n"
"  -o, --output FILE  the recording; must not exist, or --force\n"
"  --force        overwrite FILE\n"
"  --ring SIZE    memory between kernel and recorder (a 64th of the\n"
"                 machine's, 64M to 256M)\n"
"  --level N      of compression, 1 to 19 (3)\n"
"  --stacks       record the user stack of each file operation\n"
"  --json FILE    the summary, as JSON (- for standard output)\n"
"  -v, --verbose  say more\n"
"\nExit status: 0 recorded whole, 2 could not run, 3 something was lost.\n");
}

static int bad_value(const char *option, const char *value)
{
	fprintf(stderr, "blkbox record: --%s does not take '%s'\n"
		"Try 'blkbox record --help'.\n", option, value);
	return EXIT_CANNOT_RUN;
}

static void add_text(char ***list, u32 *n, u32 *cap, char *text)
{
	GROW(*list, *n, *cap);
	(*list)[(*n)++] = text;
}

static int take_option(struct record_options *o, int opt, char *arg)
{
	u32 v;

	switch (opt) {
	case OPT_DEVICE:
		add_text(&o->devices, &o->n_devices, &o->cap_devices, arg);
		return 0;
	case OPT_MOUNT:
		add_text(&o->mounts, &o->n_mounts, &o->cap_mounts, arg);
		return 0;
	case OPT_PID:
		if (parse_u32(arg, 1, INT_MAX, &v) < 0)
			return bad_value("pid", arg);
		GROW(o->pids, o->n_pids, o->cap_pids);
		o->pids[o->n_pids++] = v;
		return 0;
	case OPT_FOR:
		return parse_time_ns(arg, &o->for_ns) < 0 || !o->for_ns ?
			       bad_value("for", arg) : 0;
	case OPT_RING:
		return parse_size(arg, &o->opts.ring_bytes) < 0 ||
				       !o->opts.ring_bytes ?
			       bad_value("ring", arg) : 0;
	case OPT_LEVEL:
		if (parse_u32(arg, 1, 19, &v) < 0)
			return bad_value("level", arg);
		o->opts.level = v;
		return 0;
	case OPT_CGROUP:
		o->cgroup = arg;
		return 0;
	case OPT_BASE:
		o->base = arg;
		return 0;
	case 'o':
		o->output = arg;
		return 0;
	case OPT_FORCE:
		o->opts.overwrite = true;
		return 0;
	case OPT_JSON:
		o->json = arg;
		return 0;
	case OPT_STACKS:
		o->opts.stacks = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	}
	return EXIT_CANNOT_RUN;
}

int record_parse_options(struct record_options *o, int argc, char **argv)
{
	const char *missing = NULL;
	int opt, err;

	optind = 0;
	o->base = "none";
	while ((opt = getopt_long(argc, argv, "+o:vh", options, NULL)) != -1) {
		if (opt == 'h') {
			usage(stdout);
			return 0;
		}
		if (opt == '?') {
			fprintf(stderr, "Try 'blkbox record --help'.\n");
			return EXIT_CANNOT_RUN;
		}
		err = take_option(o, opt, optarg);
		if (err)
			return err;
	}
	if (optind < argc)
		o->command = argv + optind;
	if (!o->n_devices && !o->n_mounts)
		missing = "what to record: --device DEV or --mount DIR";
	else if (!o->output)
		missing = "where to record to: -o FILE";
	if (missing) {
		fprintf(stderr, "blkbox record: say %s\n"
			"Try 'blkbox record --help'.\n", missing);
		return EXIT_CANNOT_RUN;
	}
	return -1;
}

/* ---- scope --------------------------------------------------------------- */

static void add_dev(struct record_options *o, const struct device_info *d)
{
	struct recorder_dev dev = { .dev = d->dev };

	for (u32 i = 0; i < o->n_devs; i++)
		if (o->devs[i].dev == d->dev)
			return;
	memcpy(dev.name, d->name, sizeof(dev.name));
	GROW(o->devs, o->n_devs, o->cap_devs);
	o->devs[o->n_devs++] = dev;
}

static void add_fs(struct record_options *o, u32 dev, u32 block_dev,
		   const char *type, const char *mount_point,
		   const char *mount_options)
{
	struct recorder_fs fs = {
		.dev = dev,
		.block_dev = block_dev,
		.mount_point = mount_point ? xstrdup(mount_point) : NULL,
		.mount_options = mount_options ? xstrdup(mount_options) : NULL,
	};

	snprintf(fs.type, sizeof(fs.type), "%s", type);
	GROW(o->fs, o->n_fs, o->cap_fs);
	o->fs[o->n_fs++] = fs;
}

static bool has_fs_of(const struct record_options *o, u32 block_dev)
{
	for (u32 i = 0; i < o->n_fs; i++)
		if (o->fs[i].block_dev == block_dev)
			return true;
	return false;
}

static bool has_dev(const struct record_options *o, u32 dev)
{
	for (u32 i = 0; i < o->n_devs; i++)
		if (o->devs[i].dev == dev)
			return true;
	return false;
}

/* DIR is where CMD is going to mount the device that was named. */
static int add_future_mount(struct record_options *o, const char *dir)
{
	char type[16];

	device_fs_type(o->devices[0], type);
	add_fs(o, 0, o->devs[0].dev, type, dir, NULL);
	return 0;
}

static int add_mount(struct record_options *o, const char *dir,
		     struct errmsg *em)
{
	_cleanup_free_ char *real = realpath(dir, NULL);
	struct device_info d;
	struct mount_info m;
	int err;

	if (!real)
		return errmsg_set(em, errno, "looking at %s", dir);
	err = mount_of_path(real, &m, em);
	if (err < 0)
		return err;
	if (o->n_devices && !has_dev(o, m.block_dev)) {
		mount_info_done(&m);
		return add_future_mount(o, real);
	}
	if (!m.block_dev)
		err = errmsg_set(em, 0, "the %s file system of %s lies on no "
				 "disk that could be recorded", m.type, dir);
	else if (!m.whole_disk)
		err = errmsg_set(em, 0, "the file system of %s lies on a "
				 "partition (%s); recordings are of whole disks",
				 dir, m.source);
	else
		err = device_by_dev(m.block_dev, &d, em);
	if (!err) {
		add_dev(o, &d);
		add_fs(o, m.dev, m.block_dev, m.type, m.mount_point,
		       m.options);
	}
	mount_info_done(&m);
	return err;
}

/* The file system of a device nobody named a mount of. */
static int add_fs_of_dev(struct record_options *o, const char *path, u32 dev,
			 struct errmsg *em)
{
	struct mount_info m;
	char type[16];
	int err;

	if (has_fs_of(o, dev))
		return 0;
	err = mount_of_disk(dev, &m, em);
	if (err == -ENOENT) {
		device_fs_type(path, type);
		add_fs(o, 0, dev, type, NULL, NULL);
		return 0;
	}
	if (err < 0)
		return err;
	add_fs(o, m.dev, dev, m.type, m.mount_point, m.options);
	mount_info_done(&m);
	return 0;
}

/* The id BPF knows a cgroup by is its directory's file handle, 64 bits. */
static int cgroup_id_of(const char *path, u64 *ret, struct errmsg *em)
{
	struct {
		struct file_handle h;
		u64 id;
	} fh = { .h.handle_bytes = sizeof(u64) };
	struct mount_info m;
	bool v2;
	int mnt, err;

	err = mount_of_path(path, &m, em);
	if (err < 0)
		return err;
	v2 = !strcmp(m.type, "cgroup2");
	mount_info_done(&m);
	if (!v2)
		return errmsg_set(em, 0, "%s is no cgroup of version 2", path);
	if (name_to_handle_at(AT_FDCWD, path, &fh.h, &mnt, 0) < 0)
		return errmsg_set(em, errno, "looking at the cgroup %s", path);
	memcpy(ret, fh.h.f_handle, sizeof(*ret));
	return 0;
}

static int find_devices(struct record_options *o, struct errmsg *em)
{
	struct device_info d;
	int err;

	for (u32 i = 0; i < o->n_devices; i++) {
		err = device_by_path(o->devices[i], &d, em);
		if (err < 0)
			return err;
		add_dev(o, &d);
	}
	for (u32 i = 0; i < o->n_mounts; i++) {
		err = add_mount(o, o->mounts[i], em);
		if (err < 0)
			return err;
	}
	for (u32 i = 0; i < o->n_devices; i++) {
		err = device_by_path(o->devices[i], &d, em);
		if (!err)
			err = add_fs_of_dev(o, o->devices[i], d.dev, em);
		if (err < 0)
			return err;
	}
	return 0;
}

int record_find_scope(struct record_options *o, struct errmsg *em)
{
	struct recorder_opts *r = &o->opts;
	int err = find_devices(o, em);

	if (err < 0)
		return err;
	for (u32 i = 0; i < o->n_pids; i++)
		if (kill(o->pids[i], 0) < 0)
			return errmsg_set(em, errno, "looking for process %u",
					  o->pids[i]);
	if (o->cgroup) {
		err = cgroup_id_of(o->cgroup, &r->cgroup_id, em);
		if (err < 0)
			return err;
	}
	r->path = o->output;
	r->n_devs = o->n_devs;
	r->devs = o->devs;
	r->n_fs = o->n_fs;
	r->fs = o->fs;
	r->n_pids = o->n_pids;
	r->pids = o->pids;
	r->all_pids = !o->n_pids && !o->cgroup && !o->command;
	r->brief = o->command || (o->for_ns && o->for_ns < BRIEF_NS);
	r->base = strcmp(o->base, "full") ? o->base : "embedded";
	r->expected_states = "trace";
	r->command = o->command;
	return 0;
}

void record_options_done(struct record_options *o)
{
	for (u32 i = 0; i < o->n_fs; i++) {
		free(o->fs[i].mount_point);
		free(o->fs[i].mount_options);
	}
	free(o->fs);
	free(o->devs);
	free(o->devices);
	free(o->mounts);
	free(o->pids);
}
