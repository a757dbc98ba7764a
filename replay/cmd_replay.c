// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * blkbox replay: the disk as it was, or could have been, in the user's hands:
 * as a file, or mounted.
 *
 * Mount options in a recording are not used: they are a stranger's, and some
 * name other devices.
 */
#include <fcntl.h>
#include <getopt.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop.h"
#include "site_spec.h"
#include "verbs.h"
#include "worker.h"

struct replay {
	const char *recording, *image, *mount_dir, *mount_options;
	const char *at, *at_mark, *drops;
	bool end, force;
	struct trace_opts opts;
	struct trace *t;
	u64 seq;
	struct disk_state st;
	int fd;			/* the image */
	bool made_file;
};

enum { OPT_AT = 256, OPT_AT_MARK, OPT_END, OPT_DROP, OPT_MOUNT, OPT_MODEL,
       OPT_DISCARD, OPT_TORN, OPT_BASE, OPT_DEV, OPT_MOUNT_OPTIONS, OPT_FORCE,
       OPT_IGNORE_FLUSHES, OPT_HELP };

static const struct option options[] = {
	{ "at", required_argument, NULL, OPT_AT },
	{ "at-mark", required_argument, NULL, OPT_AT_MARK },
	{ "end", no_argument, NULL, OPT_END },
	{ "drop", required_argument, NULL, OPT_DROP },
	{ "output", required_argument, NULL, 'o' },
	{ "mount", required_argument, NULL, OPT_MOUNT },
	{ "mount-options", required_argument, NULL, OPT_MOUNT_OPTIONS },
	{ "crash-model", required_argument, NULL, OPT_MODEL },
	{ "discard", required_argument, NULL, OPT_DISCARD },
	{ "torn", required_argument, NULL, OPT_TORN },
	{ "base", required_argument, NULL, OPT_BASE },
	{ "dev", required_argument, NULL, OPT_DEV },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "ignore-flushes", no_argument, NULL, OPT_IGNORE_FLUSHES },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static void usage(FILE *out)
{
	fputs(
"Usage: blkbox replay FILE (--at SEQ | --at-mark TEXT | --end) [OPTION]...\n"
"Rebuilds the recorded disk as it was, or could have been after a crash, just\n"
"after an event. Everything issued up to there is on it, save what is dropped.\n\n"
"      --at SEQ            just after event SEQ ('blkbox show' numbers them)\n"
"      --at-mark TEXT      just after the mark TEXT\n"
"      --end               at the end of the recording\n"
"      --drop SEQ,...      lose these writes; SEQ:SECTOR loses the part of a\n"
"                          write, cut by --torn, that begins at SECTOR\n"
"  -o, --output IMAGE      write the disk to a new file (sparse, mode 0600)\n"
"      --force             ... or over an old one\n"
"      --mount DIR         mount it at DIR, where it stays; without -o it is\n"
"                          kept in memory, with -o recovery changes IMAGE\n"
"      --mount-options O   added to what the file system needs\n"
"      --crash-model M     what may be dropped: device (default), epoch, prefix\n"
"      --discard D         what discarded sectors hold: zero (default), keep\n"
"                          or random\n"
"      --torn BYTES        cut writes into pieces of BYTES (512)\n"
"      --base FILE         the disk as it was when recording began\n"
"      --dev MAJ:MIN       which device, if several were recorded\n"
"      --help              this text\n\n"
"Exit status: 0 the disk is rebuilt, 2 it could not be, 3 it is, but something\n"
"is missing in the recording and it may be wrong.\n", out);
}

static int wrong(const char *what, const char *value)
{
	if (what)
		fprintf(stderr, "blkbox replay: %s%s%s\n", what,
			value ? ": " : "", value ? value : "");
	fputs("Try 'blkbox replay --help'.\n", stderr);
	return EXIT_CANNOT_RUN;
}

static void complain(const struct errmsg *em)
{
	fputs("blkbox replay: ", stderr);
	print_safe(stderr, em->text);
	fputc('\n', stderr);
}

/* ---- options ----------------------------------------------------------- */

/* Options that take their value as it is; false: not one of these. */
static bool take_text(struct replay *r, int opt, const char *v)
{
	switch (opt) {
	case OPT_AT:
		r->at = v;
		return true;
	case OPT_AT_MARK:
		r->at_mark = v;
		return true;
	case OPT_DROP:
		r->drops = v;
		return true;
	case 'o':
		r->image = v;
		return true;
	case OPT_MOUNT:
		r->mount_dir = v;
		return true;
	case OPT_MOUNT_OPTIONS:
		r->mount_options = v;
		return true;
	case OPT_BASE:
		r->opts.base_file = v;
		return true;
	}
	return false;
}

/* -1: go on; otherwise the exit status. */
static int take_option(struct replay *r, int opt, int index)
{
	if (take_text(r, opt, optarg))
		return -1;
	switch (opt) {
	case OPT_HELP:
		usage(stdout);
		return EXIT_CONSISTENT;
	case OPT_END:
		r->end = true;
		return -1;
	case OPT_FORCE:
		r->force = true;
		return -1;
	case OPT_IGNORE_FLUSHES:
		r->opts.drop_flushes = true;
		return -1;
	case '?':
		return wrong(NULL, NULL);
	}
	if (trace_opts_parse(&r->opts, options[index].name, optarg) == 0)
		return -1;
	fprintf(stderr, "blkbox replay: --%s does not take this value\n",
		options[index].name);
	return wrong(NULL, NULL);
}

static int parse_args(struct replay *r, int argc, char **argv)
{
	int opt, index = 0, status;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "o:", options, &index)) >= 0) {
		status = take_option(r, opt, index);
		if (status >= 0)
			return status;
	}
	if (optind + 1 != argc)
		return wrong("one recording is needed", NULL);
	r->recording = argv[optind];
	if (!!r->at + !!r->at_mark + r->end != 1)
		return wrong("one of --at, --at-mark and --end is needed",
			     NULL);
	if (!r->image && !r->mount_dir)
		return wrong("say where the disk goes: -o IMAGE, --mount DIR",
			     NULL);
	if (r->at && parse_u64(r->at, 0, SEQ_NEVER - 1, &r->seq) < 0)
		return wrong("--at takes the number of an event", r->at);
	return -1;
}

/* ---- the image --------------------------------------------------------- */

/* What --force must not overwrite. */
static int check_target(const struct replay *r, struct errmsg *em)
{
	struct stat st, rec;

	if (fstat(r->fd, &st) < 0)
		return errmsg_set(em, errno, "%s", r->image);
	if (!S_ISREG(st.st_mode))
		return errmsg_set(em, 0, "%s is not a regular file, and is left"
				  " as it is", r->image);
	if ((stat(r->recording, &rec) == 0 && rec.st_dev == st.st_dev &&
	     rec.st_ino == st.st_ino) ||
	    trace_base_is(r->t, st.st_dev, st.st_ino))
		return errmsg_set(em, 0, "%s is what the disk is rebuilt from,"
				  " and is left as it is", r->image);
	return 0;
}

static int open_image(struct replay *r, struct errmsg *em)
{
	const int flags = O_RDWR | O_CLOEXEC;
	int err;

	if (!r->image) {
		r->fd = memfd_new("blkbox replay", r->t->bytes, em);
		return r->fd < 0 ? r->fd : 0;
	}
	r->fd = open(r->image, flags | O_CREAT | O_EXCL, 0600);
	r->made_file = r->fd >= 0;
	if (r->fd < 0 && errno == EEXIST && !r->force)
		return errmsg_set(em, EEXIST, "%s is left as it is (--force"
				  " overwrites it)", r->image);
	if (r->fd < 0 && errno == EEXIST)
		r->fd = open(r->image, flags | O_NONBLOCK);
	if (r->fd < 0)
		return errmsg_set(em, errno, "creating %s", r->image);
	err = check_target(r, em);
	if (err)
		return err;
	if (fchmod(r->fd, 0600) < 0)
		return errmsg_set(em, errno, "making %s yours alone", r->image);
	return 0;
}

static int write_image(struct replay *r, struct errmsg *em)
{
	struct image_index *x;
	struct image *m = NULL;
	int err;

	err = open_image(r, em);
	if (err)
		return err;
	x = image_index_new(r->t);
	err = image_new(r->t, x, r->fd, &m, em);
	if (!err)
		err = image_goto(m, &r->st, em);
	image_free(m);
	image_index_free(x);
	if (err && r->made_file)
		unlink(r->image);
	return err ? errmsg_wrap(em, err, "%s", r->image ? r->image :
				 "memory") : 0;
}

static int mount_image(struct replay *r, struct errmsg *em)
{
	struct mount_spec spec;
	struct loop loop;
	int err;

	err = mount_spec_parse(r->t->fs_type, r->mount_options, &spec, em);
	if (err)
		return err;
	err = loop_attach(r->fd, false, &loop, em);
	if (err)
		goto out;
	if (mount(loop.path, r->mount_dir, spec.fs_type, spec.flags,
		  spec.data) < 0)
		err = errmsg_set(em, errno, "mounting the disk (%s) at %s; the"
				 " kernel's log may say more", spec.fs_type,
				 r->mount_dir);
	else
		printf("mounted at %s; 'umount %s' ends it%s\n", r->mount_dir,
		       r->mount_dir, r->image ? "" : " and frees the memory");
	/* the mount holds the device from here on, and frees it at its end */
	loop_detach(&loop);
out:
	mount_spec_done(&spec);
	return err;
}

/* ---- the verb ---------------------------------------------------------- */

static int find_site(struct replay *r, struct errmsg *em)
{
	int err = 0;

	if (r->at_mark)
		err = site_mark(r->t, r->at_mark, &r->seq, em);
	else if (r->end)
		r->seq = r->t->end_seq;
	return err ? err : site_state(r->t, r->seq, r->drops, &r->st, em);
}

static int evidence_status(const struct replay *r)
{
	struct errmsg em = { "" };
	int status = EXIT_CONSISTENT;

	if (site_evidence(r->t, r->seq, &em) < 0) {
		complain(&em);
		status = EXIT_INCOMPLETE;
	}
	if (r->end && !r->t->closed) {
		fputs("blkbox replay: the recording was cut off; this is the"
		      " disk at the end of what is whole\n", stderr);
		status = EXIT_INCOMPLETE;
	}
	return status;
}

static int replay(struct replay *r, struct errmsg *em)
{
	int err = trace_load(r->recording, &r->opts, &r->t, em);

	if (!err)
		err = find_site(r, em);
	if (!err)
		err = write_image(r, em);
	if (err)
		return err;
	if (r->image)
		printf("%s holds the disk just after event %llu%s\n", r->image,
		       (unsigned long long)r->seq,
		       r->st.n_drop ? ", with writes lost" : "");
	return r->mount_dir ? mount_image(r, em) : 0;
}

int verb_replay(int argc, char **argv)
{
	struct replay r = { .fd = -1 };
	struct errmsg em = { "" };
	int status;

	status = parse_args(&r, argc, argv);
	if (status >= 0)
		return status;
	status = EXIT_CANNOT_RUN;
	if (replay(&r, &em) < 0)
		complain(&em);
	else
		status = evidence_status(&r);
	closep(&r.fd);
	free((void *)r.st.drop);
	trace_free(r.t);
	return status;
}
