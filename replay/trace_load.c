// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A recording into a trace. The recording is a stranger's: what the head says
 * of the device is checked here, events in intake.c, bodies in the decoders.
 */
#include <cjson/cJSON.h>
#include <limits.h>
#include <string.h>

#include "intake.h"

struct load {
	const char *path;
	const struct trace_opts *opts;
	struct rec_reader *reader;
	cJSON *head;
	struct intake *in;
	struct trace *t;	/* the intake's */
	u32 cap_states;
	bool one_device;
};

/* ---- the head ---------------------------------------------------------- */

/* A member that is a whole number in min .. 2^53. */
static bool head_number(const cJSON *o, const char *name, u64 min, u64 *ret)
{
	const cJSON *m = cJSON_GetObjectItemCaseSensitive(o, name);

	if (!cJSON_IsNumber(m) || !(m->valuedouble >= (double)min) ||
	    m->valuedouble > 9007199254740992.0 ||
	    m->valuedouble != (double)(u64)m->valuedouble)
		return false;
	*ret = (u64)m->valuedouble;
	return true;
}

static bool head_dev(const cJSON *o, const char *name, u32 *ret)
{
	u64 dev;

	if (!head_number(o, name, 1, &dev) || dev > UINT32_MAX)
		return false;
	*ret = dev;
	return true;
}

static char *head_text(const cJSON *o, const char *name)
{
	const char *s = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(o, name));

	return s ? xstrdup(s) : NULL;
}

static bool head_true(const cJSON *o, const char *name)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, name));
}

static const cJSON *find_device(const cJSON *devices, u32 dev)
{
	const cJSON *d;
	u32 have;

	cJSON_ArrayForEach(d, devices)
		if (head_dev(d, "dev", &have) && (!dev || have == dev))
			return d;
	return NULL;
}

static int device_missing(const struct load *l, const cJSON *devices,
			  struct errmsg *em)
{
	const u32 dev = l->opts->dev;
	char list[256] = "";
	const cJSON *d;
	size_t n = 0;
	u32 have;

	cJSON_ArrayForEach(d, devices)
		if (head_dev(d, "dev", &have) && n < sizeof(list) - 16)
			n += snprintf(list + n, sizeof(list) - n, " %u:%u",
				      have >> 20, have & 0xfffff);
	if (!n)
		return errmsg_set(em, EBADMSG, "%s: no block device was"
				  " recorded", l->path);
	if (dev)
		return errmsg_set(em, ENODEV, "%s: device %u:%u was not"
				  " recorded; these were:%s", l->path,
				  dev >> 20, dev & 0xfffff, list);
	return errmsg_set(em, 0, "%s: several devices were recorded, choose"
			  " one with --dev:%s", l->path, list);
}

/* Text that says something; heap or NULL. */
static char *head_name(const cJSON *o, const char *name)
{
	char *text = head_text(o, name);

	if (text && *text)
		return text;
	free(text);
	return NULL;
}

static int load_device(struct load *l, struct errmsg *em)
{
	const cJSON *all = cJSON_GetObjectItemCaseSensitive(l->head, "devices");
	const cJSON *d = find_device(all, l->opts->dev);
	u64 sectors;
	char *name;
	u32 dev;

	if (!d || (!l->opts->dev && cJSON_GetArraySize(all) != 1))
		return device_missing(l, all, em);
	if (!head_dev(d, "dev", &dev) ||
	    !head_number(d, "sectors", 1, &sectors) ||
	    sectors > INT64_MAX / SECTOR_SIZE)
		return errmsg_set(em, EBADMSG, "%s: the head does not say how"
				  " large the device was", l->path);
	l->one_device = cJSON_GetArraySize(all) == 1;
	l->in = intake_new(dev, sectors * SECTOR_SIZE,
			   head_true(d, "write_cache"));
	l->t = intake_trace(l->in);
	l->t->fua = head_true(d, "fua");
	name = head_text(d, "name");
	if (name)
		snprintf(l->t->name, sizeof(l->t->name), "%s", name);
	free(name);
	return 0;
}

static void load_file_system(struct load *l)
{
	const cJSON *all =
		cJSON_GetObjectItemCaseSensitive(l->head, "file_systems");
	struct trace *t = l->t;
	const cJSON *f;
	u32 dev;

	/* before it is mounted a file system has its device's number */
	t->fs_dev = t->dev;
	cJSON_ArrayForEach(f, all) {
		if (!head_dev(f, "block_dev", &dev) || dev != t->dev)
			continue;
		if (head_dev(f, "dev", &dev))
			t->fs_dev = dev;
		t->fs_type = head_name(f, "type");
		t->mount_point = head_name(f, "mount_point");
		t->mount_options = head_name(f, "mount_options");
		return;
	}
}

/* The operation's path from the process's root; NULL: not known, or not
 * written as the kernel would. */
static char *path_from_root(const struct rec_file_op *op)
{
	const char *dir = op->path[0] == '/' ? "" : op->dir_path;
	char *path;

	if (op->path[0] != '/' &&
	    (!dir || !(op->flags & FOP_DIR_ABSOLUTE) ||
	     op->flags & FOP_DIR_TRUNCATED))
		return NULL;
	path = xasprintf("%s%s%s", dir,
			 op->path[0] == '/' || !strcmp(dir, "/") ? "" : "/",
			 op->path);
	if (strstr(path, "//") || strstr(path, "/./") || strstr(path, "/../")) {
		free(path);
		return NULL;
	}
	return path;
}

/*
 * A file system that was not mounted yet when recording began has no mount
 * point in HEAD. A file that was opened by an absolute path, or from outside,
 * tells it: its path from the file system's root is the end of that path.
 */
static void find_mount_point(struct trace *t)
{
	for (u32 i = 0; i < t->n_ops && !t->mount_point; i++) {
		const struct rec_file_op *op = &t->ops[i].op;
		_cleanup_free_ char *path = NULL;
		size_t all, inner;

		if (op->op != OP_OPEN || op->ret < 0 ||
		    t->ops[i].dev != t->fs_dev || !op->path || !op->file_path)
			continue;
		path = path_from_root(op);
		all = path ? strlen(path) : 0;
		inner = strlen(op->file_path);
		if (inner && all > inner + 1 && path[all - inner - 1] == '/' &&
		    !strcmp(path + all - inner, op->file_path))
			t->mount_point = xasprintf("%.*s",
						   (int)(all - inner - 1),
						   path);
	}
}

/* A base image beside the recording: as named, or in the same directory. */
static int open_base(struct load *l, const char *file, const char *xxh3,
		     u64 bytes, struct errmsg *em)
{
	const char *slash = strrchr(l->path, '/');
	_cleanup_free_ char *beside = NULL;
	int err;

	err = base_image_open(l->t->base, file, xxh3, bytes, em);
	if (err == -ENOENT && slash && *file != '/' && !l->opts->base_file) {
		beside = xasprintf("%.*s/%s", (int)(slash - l->path), l->path,
				   file);
		err = base_image_open(l->t->base, beside, xxh3, bytes, em);
	}
	if (err == -ENOENT && !l->opts->base_file)
		return errmsg_wrap(em, err, "give its place with --base");
	if (!err)
		intake_base_quiet(l->in);
	return err;
}

static int load_base_reference(struct load *l, struct errmsg *em)
{
	const cJSON *b = cJSON_GetObjectItemCaseSensitive(l->head, "base");
	_cleanup_free_ char *file = NULL, *xxh3 = NULL;
	u64 bytes = 0;

	if (!cJSON_IsObject(b)) {
		if (!l->opts->base_file)
			return 0;
		return open_base(l, l->opts->base_file, NULL, 0, em);
	}
	file = head_text(b, "file");
	xxh3 = head_text(b, "xxh3");
	if (!file || !xxh3 || !head_number(b, "bytes", 1, &bytes))
		return errmsg_set(em, EBADMSG, "%s: the head's reference to a"
				  " base image is damaged", l->path);
	return open_base(l, l->opts->base_file ? l->opts->base_file : file,
			 xxh3, bytes, em);
}

static int load_head(struct load *l, struct errmsg *em)
{
	const char *text = rec_head(l->reader);
	int err;

	l->head = cJSON_Parse(text);
	if (!cJSON_IsObject(l->head))
		return errmsg_set(em, EBADMSG, "%s: the head is not a JSON"
				  " object", l->path);
	err = load_device(l, em);
	if (err)
		return err;
	l->t->head_json = xstrdup(text);
	l->t->store = store_new();
	load_file_system(l);
	return load_base_reference(l, em);
}

/* ---- records ----------------------------------------------------------- */

static int on_base(struct load *l, const struct record *r, struct errmsg *em)
{
	struct rec_base b;
	int err;

	if (r->dev != l->t->dev || base_image_is_file(l->t->base))
		return 0;
	err = rec_get_base(r, &b);
	return err ? err : intake_base(l->in, &b, em);
}

static int on_base_end(struct load *l, const struct record *r,
		       struct errmsg *em)
{
	u64 bytes;
	int err;

	if (r->dev != l->t->dev || base_image_is_file(l->t->base))
		return 0;
	err = rec_get_base_end(r, &bytes);
	if (err)
		return err;
	if (bytes != l->t->bytes)
		return errmsg_set(em, EBADMSG, "the base image is of a device"
				  " of %llu bytes, the head says %llu",
				  (unsigned long long)bytes,
				  (unsigned long long)l->t->bytes);
	intake_base_end(l->in);
	return 0;
}

static int on_issue(struct load *l, const struct record *r, struct errmsg *em)
{
	struct rec_issue i;
	int err;

	if (r->dev != l->t->dev)
		return 0;
	err = rec_get_issue(r, &i);
	return err ? err : intake_issue(l->in, r->seq, r->time_ns, &i, em);
}

static int on_complete(struct load *l, const struct record *r,
		       struct errmsg *em)
{
	struct rec_complete c;
	int err;

	if (r->dev != l->t->dev)
		return 0;
	err = rec_get_complete(r, &c);
	return err ? err : intake_complete(l->in, r->seq, &c, em);
}

static int on_requeue(struct load *l, const struct record *r, struct errmsg *em)
{
	struct rec_requeue q;
	int err;

	if (r->dev != l->t->dev)
		return 0;
	err = rec_get_requeue(r, &q);
	return err ? err : intake_requeue(l->in, r->seq, &q, em);
}

/*
 * A btrfs gives its super block an anonymous number (major 0) when it is
 * mounted; HEAD cannot know it where that happened later. With one disk
 * recorded such a number can only be that of its file system.
 */
static void learn_fs_dev(struct load *l, u32 dev)
{
	if (l->one_device && l->t->fs_dev == l->t->dev && dev && !(dev >> 20))
		l->t->fs_dev = dev;
}

static int on_file_op(struct load *l, const struct record *r, struct errmsg *em)
{
	struct rec_file_op op;
	int err = rec_get_file_op(r, &op);

	learn_fs_dev(l, r->dev);

	return err ? err : intake_file_op(l->in, r->seq, r->time_ns, r->dev,
					  &op, em);
}

static int on_mark(struct load *l, const struct record *r, struct errmsg *em)
{
	struct rec_mark m;
	int err = rec_get_mark(r, &m);

	return err ? err : intake_mark(l->in, r->seq, &m, em);
}

static int on_gap(struct load *l, const struct record *r, struct errmsg *em)
{
	struct trace *t = l->t;
	struct rec_gap g;
	int err = rec_get_gap(r, &g);

	(void)em;
	if (err || (r->dev && r->dev != t->dev && r->dev != t->fs_dev))
		return err;
	t->n_gaps++;
	if (__builtin_add_overflow(t->lost_events, g.events, &t->lost_events))
		t->lost_events = UINT64_MAX;
	if (__builtin_add_overflow(t->lost_bytes, g.bytes, &t->lost_bytes))
		t->lost_bytes = UINT64_MAX;
	t->first_gap_seq = MIN(t->first_gap_seq, r->seq);
	return 0;
}

static int on_chunk(struct load *l, const struct record *r, struct errmsg *em)
{
	(void)em;
	return store_load_chunk(l->t->store, r);
}

static int on_state(struct load *l, const struct record *r, struct errmsg *em)
{
	struct trace *t = l->t;
	struct rec_state st;
	int err = rec_get_state(t->store, r, &st);

	(void)em;
	if (err)
		return err;
	GROW(t->states, t->n_states, l->cap_states);
	t->states[t->n_states++] = st;
	return 0;
}

static const struct {
	u16 type;
	int (*take)(struct load *l, const struct record *r, struct errmsg *em);
} takers[] = {
	{ REC_BASE, on_base },	       { REC_BASE_END, on_base_end },
	{ REC_ISSUE, on_issue },       { REC_COMPLETE, on_complete },
	{ REC_REQUEUE, on_requeue },   { REC_FILE_OP, on_file_op },
	{ REC_MARK, on_mark },	       { REC_GAP, on_gap },
	{ REC_CHUNK, on_chunk },       { REC_STATE, on_state },
};

static int take_record(struct load *l, const struct record *r,
		       struct errmsg *em)
{
	struct errmsg why = { "" };
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(takers) && !err; i++)
		if (takers[i].type == r->type)
			err = takers[i].take(l, r, &why);
	if (!err)
		return 0;
	if (!*why.text)
		errmsg_set(&why, err, "it contradicts itself");
	errmsg_set(em, 0, "%s: %s record %llu in frame %llu: %s", l->path,
		   rec_type_name(r->type), (unsigned long long)r->seq,
		   (unsigned long long)r->frame, why.text);
	return err;
}

static int load_records(struct load *l, struct errmsg *em)
{
	struct record r;
	int got, err;

	while ((got = rec_next(l->reader, &r, em)) > 0) {
		err = take_record(l, &r, em);
		if (err)
			return err;
	}
	if (got < 0)
		return got;
	l->t->closed = rec_is_closed(l->reader);
	return 0;
}

int trace_load(const char *path, const struct trace_opts *opts,
	       struct trace **ret, struct errmsg *em)
{
	struct load l = { .path = path, .opts = opts };
	int err;

	err = rec_open(path, &l.reader, em);
	if (err)
		return err;
	err = load_head(&l, em);
	if (!err)
		err = load_records(&l, em);
	if (!err)
		err = intake_finish(l.in, opts, ret, em);
	if (err)
		intake_free(l.in);
	else
		find_mount_point(*ret);
	cJSON_Delete(l.head);
	rec_reader_free(l.reader);
	return err;
}
