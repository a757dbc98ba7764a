/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What user space tells the BPF programs, and what they count. Both live in
 * the programs' own memory (.bss), which user space has mapped.
 *
 * Invariants:
 *  1. Everything is zero until user space has set it, and nothing is recorded
 *     while config.enabled is 0.
 *  2. op and flag values are the running kernel's own, read from its BTF.
 *  3. Only fixed-width types; user space and BPF see the same layout.
 */
#ifndef BLKBOX_CONFIG_H
#define BLKBOX_CONFIG_H

#define BPF_CGROUP_LEVELS 16

struct bpf_config {
	__u32 enabled;
	__u32 self_tgid;	/* blkbox itself is never recorded */
	__u32 all_pids;
	__u32 n_pids;		/* the pids map is in use */
	__u64 cgroup_id;	/* 0: none */
	__u32 stop_ops;		/* recorder_opts.stop_ops */
	__u32 stacks;
	__u32 payload;		/* 0: page_constant is not known */
	__u32 page_bytes;	/* sizeof(struct page) */
	/* address of page p's bytes: p * (4096 / page_bytes) + page_constant */
	__u64 page_constant;
	__u32 op_mask;		/* of cmd_flags */
	__u32 op_read;
	__u32 op_write;
	__u32 op_drv_in;	/* a driver's own reads */
	__u32 pad[4];
};

struct bpf_counters {
	__u64 next_seq;		/* the next event's number */
	__u64 unannounced_events; /* lost, and notices was full too */
	__u64 unannounced_bytes;
	__u64 ring_peak_bytes;	/* most bytes seen waiting in the ring */
	__u64 vmemmap_base;	/* found by calibrate.bpf.c, 0: not there */
	__u64 page_offset_base;
	__u64 buffer_page;	/* a page, and the address of its bytes */
	__u64 buffer_address;
};

/* Value of devs and file_systems. */
struct bpf_scope {
	__u64 unannounced_events;
	__u64 unannounced_bytes;
};

#endif
