// SPDX-License-Identifier: GPL-2.0-or-later
/* What the recording says of itself: the machine, the disks, what was asked. */
#include "head.h"

#include <cjson/cJSON.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "../replay/json_out.h"
#include "devices.h"

static void add_clocks(cJSON *head)
{
	struct timespec wall;
	u64 mono = now_ns();

	clock_gettime(CLOCK_REALTIME, &wall);
	json_u64(head, "wall_time_ns",
		 (u64)wall.tv_sec * 1000000000 + wall.tv_nsec);
	json_u64(head, "monotonic_ns", mono);
}

static void add_kernel(cJSON *head)
{
	cJSON *kernel = cJSON_AddObjectToObject(head, "kernel");
	struct utsname u;

	if (uname(&u) < 0)
		return;
	cJSON_AddStringToObject(kernel, "release", u.release);
	cJSON_AddStringToObject(kernel, "machine", u.machine);
}

static void add_values(cJSON *head, const char *name,
		       const struct named_value *v, u32 n)
{
	cJSON *o = cJSON_AddObjectToObject(head, name);

	for (u32 i = 0; i < n; i++)
		cJSON_AddNumberToObject(o, v[i].name, (double)v[i].value);
}

static int add_devices(cJSON *head, const struct recorder_opts *opts,
		       struct errmsg *em)
{
	cJSON *list = cJSON_AddArrayToObject(head, "devices");

	for (u32 i = 0; i < opts->n_devs; i++) {
		struct device_info d;
		cJSON *o;
		int err = device_by_dev(opts->devs[i].dev, &d, em);

		if (err < 0)
			return err;
		o = cJSON_CreateObject();
		cJSON_AddNumberToObject(o, "dev", d.dev);
		cJSON_AddStringToObject(o, "name", d.name);
		json_u64(o, "sectors", d.sectors);
		cJSON_AddNumberToObject(o, "logical_block_bytes",
					d.logical_block_bytes);
		cJSON_AddBoolToObject(o, "write_cache", d.write_cache);
		cJSON_AddBoolToObject(o, "fua", d.fua);
		cJSON_AddItemToArray(list, o);
	}
	return 0;
}

static void add_file_systems(cJSON *head, const struct recorder_opts *opts)
{
	cJSON *list = cJSON_AddArrayToObject(head, "file_systems");

	for (u32 i = 0; i < opts->n_fs; i++) {
		const struct recorder_fs *fs = &opts->fs[i];
		cJSON *o = cJSON_CreateObject();

		cJSON_AddNumberToObject(o, "dev",
					fs->dev ? fs->dev : fs->block_dev);
		cJSON_AddNumberToObject(o, "block_dev", fs->block_dev);
		cJSON_AddStringToObject(o, "type", fs->type);
		cJSON_AddStringToObject(o, "mount_point",
					fs->mount_point ?: "");
		cJSON_AddStringToObject(o, "mount_options",
					fs->mount_options ?: "");
		cJSON_AddItemToArray(list, o);
	}
}

static void add_scope(cJSON *head, const struct recorder_opts *opts)
{
	cJSON *scope = cJSON_AddObjectToObject(head, "scope");
	cJSON *devices = cJSON_AddArrayToObject(scope, "devices");
	cJSON *mounts = cJSON_AddArrayToObject(scope, "mounts");
	cJSON *pids = cJSON_AddArrayToObject(scope, "pids");
	cJSON *command;

	for (u32 i = 0; i < opts->n_devs; i++)
		cJSON_AddItemToArray(devices,
				     cJSON_CreateString(opts->devs[i].name));
	for (u32 i = 0; i < opts->n_fs; i++)
		if (opts->fs[i].mount_point)
			cJSON_AddItemToArray(
				mounts,
				cJSON_CreateString(opts->fs[i].mount_point));
	for (u32 i = 0; i < opts->n_pids; i++)
		cJSON_AddItemToArray(pids, cJSON_CreateNumber(opts->pids[i]));
	cJSON_AddBoolToObject(scope, "all_pids", opts->all_pids);
	if (opts->cgroup_id)
		cJSON_AddNumberToObject(scope, "cgroup",
					(double)opts->cgroup_id);
	if (!opts->command)
		return;
	command = cJSON_AddArrayToObject(scope, "command");
	for (char *const *c = opts->command; *c; c++)
		cJSON_AddItemToArray(command, cJSON_CreateString(*c));
}

static void add_hooks(cJSON *head, const struct attach_set *attached)
{
	cJSON *list = cJSON_AddArrayToObject(head, "hooks");

	for (u32 i = 0; i < attached->n; i++) {
		const struct attached *a = &attached->items[i];
		cJSON *o = cJSON_CreateObject();

		cJSON_AddStringToObject(o, "event", a->event->name);
		cJSON_AddStringToObject(o, "attached_by",
					attach_kind_name(a->kind));
		cJSON_AddItemToArray(list, o);
	}
}

static int add_base(cJSON *head, const char *base, struct errmsg *em)
{
	struct stat st;
	cJSON *o;

	if (!base || !strcmp(base, "none") || !strcmp(base, "embedded")) {
		cJSON_AddStringToObject(head, "base", base ?: "none");
		return 0;
	}
	if (stat(base, &st) < 0)
		return errmsg_set(em, errno, "looking at the base image %s",
				  base);
	o = cJSON_AddObjectToObject(head, "base");
	cJSON_AddStringToObject(o, "file", base);
	cJSON_AddNumberToObject(o, "bytes", (double)st.st_size);
	return 0;
}

char *head_json(const struct recorder_opts *opts, const struct kernel_info *k,
		const struct attach_set *attached, const char *payload_source,
		struct errmsg *em)
{
	cJSON *head = cJSON_CreateObject();
	char *text = NULL;
	int err;

	cJSON_AddStringToObject(head, "format", "blkbox recording");
	cJSON_AddStringToObject(head, "version", BLKBOX_VERSION);
	add_kernel(head);
	add_clocks(head);
	add_values(head, "request_ops", k->ops, k->n_ops);
	add_values(head, "request_flags", k->flags, k->n_flags);
	err = add_devices(head, opts, em);
	add_file_systems(head, opts);
	add_scope(head, opts);
	add_hooks(head, attached);
	if (!err)
		err = add_base(head, opts->base, em);
	cJSON_AddStringToObject(head, "payload", "full");
	cJSON_AddStringToObject(head, "page_constant_from", payload_source);
	cJSON_AddStringToObject(head, "expected_states",
				opts->expected_states ?: "trace");
	if (!err) {
		text = cJSON_PrintUnformatted(head);
		if (!text)
			errmsg_set(em, ENOMEM, "writing the recording's head");
	}
	cJSON_Delete(head);
	return text;
}
