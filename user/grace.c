// SPDX-License-Identifier: GPL-2.0-or-later
#include "grace.h"

#include <bpf/bpf.h>
#include <linux/types.h>

#include "../replay/base.h"

int grace_open(struct grace *ret)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	struct grace g = { -1, -1 };
	int err;

	g.inner_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "grace_inner", 4, 4, 1,
				    NULL);
	if (g.inner_fd < 0)
		return g.inner_fd;
	opts.inner_map_fd = g.inner_fd;
	g.outer_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "grace", 4, 4,
				    1, &opts);
	if (g.outer_fd < 0) {
		err = g.outer_fd;
		grace_close(&g);
		return err;
	}
	*ret = g;
	return 0;
}

void grace_close(struct grace *g)
{
	closep(&g->inner_fd);
	closep(&g->outer_fd);
	*g = (struct grace){ -1, -1 };
}

int grace_wait(const struct grace *g)
{
	u32 zero = 0;

	return bpf_map_update_elem(g->outer_fd, &zero, &g->inner_fd, BPF_ANY);
}
