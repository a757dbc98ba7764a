// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * blkbox doctor: what this machine can do, found out by doing it, and what to
 * install or enable where it cannot.
 */
#include <bpf/libbpf.h>
#include <cjson/cJSON.h>
#include <getopt.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../replay/json_out.h"
#include "../replay/loop.h"
#include "attach.h"
#include "calibrate.h"
#include "recorder.h"
#include "verbs.h"

#define SMALL_RING (1U << 20)

/* What the examinations find out for each other. */
struct patient {
	struct kernel_info kernel;
	bool has_kernel;
	struct programs programs;
	bool loaded;
	struct attach_set attached;
};

/* An examination: true and what there is, or false and why not, in em. */
struct examination {
	const char *name;	/* for JSON */
	const char *what;
	bool required;		/* without it nothing can be recorded */
	bool (*examine)(struct patient *p, const char *arg, struct errmsg *em);
	const char *arg;
	const char *advice;
};

static bool see_root(struct patient *p, const char *arg, struct errmsg *em)
{
	(void)p;
	(void)arg;
	snprintf(em->text, sizeof(em->text), "running as user %u", geteuid());
	return geteuid() == 0;
}

static bool see_btf(struct patient *p, const char *arg, struct errmsg *em)
{
	struct utsname u;

	(void)arg;
	if (kernel_info_read(&p->kernel, em) < 0)
		return false;
	p->has_kernel = true;
	snprintf(em->text, sizeof(em->text), "kernel %s: %u request "
		 "operations, %u flags", uname(&u) < 0 ? "?" : u.release,
		 p->kernel.n_ops, p->kernel.n_flags);
	return true;
}

static bool see_tracefs(struct patient *p, const char *arg, struct errmsg *em)
{
	(void)p;
	(void)arg;
	recorder_mount_tracefs();
	snprintf(em->text, sizeof(em->text), "/sys/kernel/tracing");
	return access("/sys/kernel/tracing/events/syscalls", F_OK) == 0 ||
	       access("/sys/kernel/debug/tracing/events/syscalls", F_OK) == 0;
}

static bool see_programs(struct patient *p, const char *arg, struct errmsg *em)
{
	struct bpf_program *prog;
	u32 n = 0;

	(void)arg;
	if (!p->has_kernel) {
		errmsg_set(em, 0, "needs the kernel's BTF");
		return false;
	}
	if (programs_load(SMALL_RING, &p->kernel, &p->programs, em) < 0)
		return false;
	p->loaded = true;
	bpf_object__for_each_program(prog, p->programs.obj)
		n += bpf_program__fd(prog) >= 0;
	snprintf(em->text, sizeof(em->text), "%u programs loaded", n);
	return true;
}

static bool attach(struct patient *p, const struct attach_event *events,
		   bool brief, struct errmsg *em)
{
	u32 before = p->attached.n, kinds[ATTACH_DISPATCH + 1] = { 0 };
	size_t len = 0;
	int err;

	if (!p->loaded) {
		errmsg_set(em, 0, "needs the BPF programs");
		return false;
	}
	err = brief ? attach_dispatched(p->programs.obj, events, &p->attached,
					em) :
		      attach_events(p->programs.obj, events, &p->attached, em);
	if (err < 0)
		return false;
	for (u32 i = before; i < p->attached.n; i++)
		kinds[p->attached.items[i].kind]++;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i] && len < sizeof(em->text))
			len += snprintf(em->text + len, sizeof(em->text) - len,
					"%s%u by %s", len ? ", " : "",
					kinds[i], attach_kind_name(i));
	return true;
}

static bool see_block(struct patient *p, const char *arg, struct errmsg *em)
{
	(void)arg;
	return attach(p, attach_block_events, false, em);
}

static bool see_processes(struct patient *p, const char *arg,
			  struct errmsg *em)
{
	(void)arg;
	return attach(p, attach_process_events, false, em);
}

static bool see_files(struct patient *p, const char *arg, struct errmsg *em)
{
	(void)arg;
	return attach(p, attach_file_events, true, em);
}

static bool see_payload(struct patient *p, const char *arg, struct errmsg *em)
{
	const char *source;

	(void)arg;
	if (!p->attached.n) {
		errmsg_set(em, 0, "needs the block tracepoints");
		return false;
	}
	if (calibrate(&p->programs, &p->kernel, &source, em) < 0)
		return false;
	snprintf(em->text, sizeof(em->text), "a pattern written to a scratch "
		 "device came back (constant from %s)", source);
	return true;
}

static bool see_loop(struct patient *p, const char *arg, struct errmsg *em)
{
	_cleanup_close_ int mem = memfd_new("blkbox-doctor", 1 << 20, em);
	struct loop l;

	(void)p;
	(void)arg;
	if (mem < 0 || loop_attach(mem, false, &l, em) < 0)
		return false;
	snprintf(em->text, sizeof(em->text), "over memory, as %s", l.path);
	loop_detach(&l);
	return true;
}

static bool see_kprobes(struct patient *p, const char *arg, struct errmsg *em)
{
	static const char path[] = "/sys/bus/event_source/devices/kprobe/type";

	(void)p;
	(void)arg;
	snprintf(em->text, sizeof(em->text), "%s", path);
	return access(path, F_OK) == 0;
}

static bool see_cgroup2(struct patient *p, const char *arg, struct errmsg *em)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mounts", "re");
	char point[512], type[64];

	(void)p;
	(void)arg;
	while (f && fscanf(f, "%*s %511s %63s %*[^\n]", point, type) == 2) {
		if (strcmp(type, "cgroup2"))
			continue;
		snprintf(em->text, sizeof(em->text), "%s", point);
		return true;
	}
	snprintf(em->text, sizeof(em->text), "not mounted");
	return false;
}

static bool kernel_knows(const char *fs)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/filesystems", "re");
	char line[128], *name;

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		name = strrchr(line, '\t');
		if (name && !strcmp(name + 1, fs))
			return true;
	}
	return false;
}

static bool in_path(const char *program, char *ret, size_t bytes)
{
	_cleanup_free_ char *dirs =
		xstrdup(getenv("PATH") ?: "/usr/sbin:/usr/bin:/sbin:/bin");
	char *save;

	for (char *d = strtok_r(dirs, ":", &save); d;
	     d = strtok_r(NULL, ":", &save)) {
		snprintf(ret, bytes, "%s/%s", d, program);
		if (access(ret, X_OK) == 0)
			return true;
	}
	return false;
}

static bool see_fs(struct patient *p, const char *arg, struct errmsg *em)
{
	char mkfs[64], path[512];

	(void)p;
	snprintf(mkfs, sizeof(mkfs), "mkfs.%s", arg);
	if (!in_path(mkfs, path, sizeof(path))) {
		snprintf(em->text, sizeof(em->text), "no %s", mkfs);
		return false;
	}
	/* A module is loaded by the first mount. */
	snprintf(em->text, sizeof(em->text), "%s%s", path, kernel_knows(arg) ?
		 "" : ", not in the kernel yet (a module may be)");
	return true;
}

static const struct examination examinations[] = {
	{ "root", "privilege", true, see_root, NULL,
	  "run as root" },
	{ "btf", "kernel types (BTF)", true, see_btf, NULL,
	  "a kernel with CONFIG_DEBUG_INFO_BTF=y" },
	{ "tracefs", "tracefs, with system calls", true, see_tracefs, NULL,
	  "mount -t tracefs tracefs /sys/kernel/tracing; "
	  "CONFIG_FTRACE_SYSCALLS=y" },
	{ "programs", "BPF programs", true, see_programs, NULL,
	  "CAP_BPF and CAP_PERFMON, CONFIG_BPF_SYSCALL=y; check "
	  "vmlinux/check" },
	{ "block", "block tracepoints", true, see_block, NULL,
	  "CONFIG_BLK_DEV_IO_TRACE or CONFIG_TRACEPOINTS" },
	{ "processes", "process tracepoints", true, see_processes, NULL,
	  "CONFIG_TRACEPOINTS=y" },
	{ "file_operations", "file operations", true, see_files, NULL,
	  "CONFIG_FTRACE_SYSCALLS=y" },
	{ "loop", "loop devices", true, see_loop, NULL,
	  "modprobe loop; CONFIG_BLK_DEV_LOOP" },
	{ "payload", "data of writes", true, see_payload, NULL,
	  "report it, with the kernel's version" },
	{ "kprobes", "kprobes (cheaper hooks)", false, see_kprobes, NULL,
	  "not needed; CONFIG_KPROBES=y makes a long recording cheaper" },
	{ "cgroup2", "cgroup version 2", false, see_cgroup2, NULL,
	  "not needed, but for --cgroup: mount -t cgroup2 cgroup2 DIR" },
	{ "ext4", "ext4", false, see_fs, "ext4", "apt install e2fsprogs" },
	{ "xfs", "xfs", false, see_fs, "xfs", "apt install xfsprogs" },
	{ "btrfs", "btrfs", false, see_fs, "btrfs", "apt install btrfs-progs" },
};

static cJSON *examine_all(struct patient *p, bool quiet, bool *ret_well)
{
	cJSON *list = cJSON_CreateArray();

	*ret_well = true;
	for (size_t i = 0; i < ARRAY_SIZE(examinations); i++) {
		const struct examination *e = &examinations[i];
		struct errmsg em = { "" };
		bool ok = e->examine(p, e->arg, &em);
		cJSON *o = cJSON_CreateObject();

		if (!ok && e->required)
			*ret_well = false;
		cJSON_AddStringToObject(o, "name", e->name);
		cJSON_AddBoolToObject(o, "ok", ok);
		cJSON_AddBoolToObject(o, "required", e->required);
		cJSON_AddStringToObject(o, "what", em.text);
		if (!ok)
			cJSON_AddStringToObject(o, "advice", e->advice);
		cJSON_AddItemToArray(list, o);
		if (quiet)
			continue;
		printf("%-7s %-26s %s\n", ok ? "ok" : e->required ? "MISSING" :
		       "without", e->what, em.text);
		if (!ok)
			printf("%-7s %-26s -> %s\n", "", "", e->advice);
	}
	return list;
}

static int put_json(const char *path, cJSON *list, bool well)
{
	FILE *out = strcmp(path, "-") ? fopen(path, "we") : stdout;
	cJSON *o = cJSON_CreateObject();
	int status = well ? 0 : EXIT_CANNOT_RUN;

	cJSON_AddNumberToObject(o, "version", 1);
	cJSON_AddBoolToObject(o, "can_record", well);
	cJSON_AddItemToObject(o, "examinations", list);
	if (!out) {
		fprintf(stderr, "blkbox doctor: creating %s: %s\n", path,
			strerror(errno));
		status = EXIT_CANNOT_RUN;
	} else {
		json_print(out, o, true);
		if (out != stdout)
			fclose(out);
	}
	cJSON_Delete(o);
	return status;
}

static void usage(FILE *out)
{
	fprintf(out,
"Usage: blkbox doctor [--json FILE]\n"
"Tries everything a recording needs on this machine, and says what works and\n"
"what to install or enable where it does not.\n\n"
"  --json FILE    the findings, as JSON (- for standard output)\n"
"\nExit status: 0 this machine can record, 2 it cannot.\n");
}

int verb_doctor(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", required_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct patient p = { 0 };
	const char *json = NULL;
	cJSON *list;
	bool well;
	int opt;

	optind = 0;
	while ((opt = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (opt == 'h') {
			usage(stdout);
			return 0;
		}
		if (opt != 'j') {
			fprintf(stderr, "Try 'blkbox doctor --help'.\n");
			return EXIT_CANNOT_RUN;
		}
		json = optarg;
	}
	list = examine_all(&p, json && !strcmp(json, "-"), &well);
	attach_set_done(&p.attached);
	programs_free(&p.programs);
	kernel_info_done(&p.kernel);
	if (json)
		return put_json(json, list, well);
	cJSON_Delete(list);
	return well ? 0 : EXIT_CANNOT_RUN;
}
