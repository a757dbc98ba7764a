// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loading. libbpf loads all programs or none, and says in words only which one
 * the kernel refused; so the words are read, that program is left out, and
 * loading is tried again.
 */
#include "programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <unistd.h>

#include "attach.h"
#include "blkbox.skel.h"

#define RING_BYTES_MIN (64ULL << 10)
#define NOTICES_BYTES (1U << 20)
#define REFUSED_MAX 32

/* What libbpf said last. libbpf's print function has no argument of ours, so
 * this is per thread. */
static _Thread_local struct {
	char program[64];	/* refused */
	char text[512];		/* the last warning */
} said;

static int on_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	static const char failed[] = "failed to load";
	char line[512];
	char *quote;

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = 0;
	if (!strncmp(line, "libbpf: prog '", 14) && strstr(line, failed)) {
		quote = strchr(line + 14, '\'');
		if (quote)
			snprintf(said.program, sizeof(said.program), "%.*s",
				 (int)(quote - line - 14), line + 14);
	}
	snprintf(said.text, sizeof(said.text), "%s", line);
	return 0;
}

/* The default: enough for what a page cache lets out in one go while the
 * recorder compresses, on a machine that has the memory. */
static u64 default_ring(void)
{
	u64 memory = (u64)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);

	return MIN(MAX(memory / 64, 64ULL << 20), 256ULL << 20);
}

static u64 ring_size(u64 wanted)
{
	u64 size = RING_BYTES_MIN;

	if (!wanted)
		wanted = default_ring();
	while (size < wanted && size < RING_MAX_BYTES)
		size *= 2;
	return size;
}

static int try_load(struct programs *p, const struct btf *kernel,
		    char refused[][64], u32 n_refused)
{
	struct bpf_program *prog;
	int err;

	p->skel = blkbox_bpf__open();
	if (!p->skel)
		return -errno;
	p->obj = p->skel->obj;
	bpf_map__set_max_entries(p->skel->maps.ring, p->ring_bytes);
	bpf_map__set_max_entries(p->skel->maps.notices, NOTICES_BYTES);
	attach_prepare(p->obj, kernel);
	for (u32 i = 0; i < n_refused; i++) {
		prog = bpf_object__find_program_by_name(p->obj, refused[i]);
		if (prog)
			bpf_program__set_autoload(prog, false);
	}
	err = blkbox_bpf__load(p->skel);
	if (err) {
		blkbox_bpf__destroy(p->skel);
		p->skel = NULL;
	}
	return err;
}

static int load(struct programs *p, const struct btf *kernel)
{
	char refused[REFUSED_MAX][64];
	int err = 0;

	for (u32 n = 0; n < REFUSED_MAX; n++) {
		said.program[0] = 0;
		err = try_load(p, kernel, refused, n);
		if (!err || !said.program[0])
			return err;
		memcpy(refused[n], said.program, sizeof(refused[n]));
	}
	return err;
}

static const char *advice(int err)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
		return " (run as root, or with CAP_BPF, CAP_PERFMON and "
		       "CAP_SYS_ADMIN)";
	case -ENOMEM:
	case -E2BIG:
		return " (a smaller --ring needs less memory)";
	}
	return " (see 'blkbox doctor')";
}

int programs_load(u64 ring_bytes, const struct kernel_info *k,
		  struct programs *ret, struct errmsg *em)
{
	struct programs p = { .ring_bytes = ring_size(ring_bytes) };
	int err;

	/* For good: trying one way after the other is no news either. */
	libbpf_set_print(on_print);
	said.text[0] = 0;
	err = load(&p, k->btf);
	if (err)
		return errmsg_set(em, err, "loading the BPF programs%s: %s",
				  advice(err), said.text);
	p.config = &p.skel->bss->config;
	p.counters = &p.skel->bss->counters;
	p.ring_fd = bpf_map__fd(p.skel->maps.ring);
	p.notices_fd = bpf_map__fd(p.skel->maps.notices);
	p.devs_fd = bpf_map__fd(p.skel->maps.devs);
	p.file_systems_fd = bpf_map__fd(p.skel->maps.file_systems);
	p.pids_fd = bpf_map__fd(p.skel->maps.pids);
	p.calibrate_fd = bpf_program__fd(p.skel->progs.calibrate_ksyms);
	p.counters->next_seq = 1;
	*ret = p;
	return 0;
}

void programs_free(struct programs *p)
{
	if (p->skel)
		blkbox_bpf__destroy(p->skel);
	*p = (struct programs){ 0 };
}

int programs_scope(int map_fd, u32 dev)
{
	struct bpf_scope s = { 0 };

	return bpf_map_update_elem(map_fd, &dev, &s, BPF_ANY);
}
