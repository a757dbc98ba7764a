/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What all BPF programs of the recorder share: the configuration, the rings,
 * the scope and the sequence counter. Defined in common.bpf.c, so that the
 * objects can be linked into one.
 *
 * Invariants:
 *  1. A program asks for scope first, then takes a number (next_seq()), then
 *     reserves and submits its pieces and its event, or calls put_lost() with
 *     the number. It never ends in between, and never sleeps: once an RCU
 *     grace period has gone by, every number taken before it is in a ring or
 *     was given up in both (user/drain.c builds on this).
 *  2. The number is taken at the moment the event stands for: of a request
 *     before it is handed to the driver, of a completion before its issuer
 *     can know, of an operation at its exit.
 *  3. Bulk pieces leave a sixteenth of the ring free, so that the events
 *     themselves still fit when data no longer does.
 */
#ifndef BLKBOX_COMMON_BPF_H
#define BLKBOX_COMMON_BPF_H

#include <vmlinux.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* BPF_PROG() names a context that hardly any program uses. */
#pragma clang diagnostic ignored "-Wunused-parameter"

#include "config.h"
#include "event.h"

extern struct bpf_config config;
extern struct bpf_counters counters;

struct ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
};
extern struct ring_map ring SEC(".maps");
extern struct ring_map notices SEC(".maps");

struct scope_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct bpf_scope);
};
extern struct scope_map devs SEC(".maps");	   /* dev_t of whole disks */
extern struct scope_map file_systems SEC(".maps"); /* s_dev */

struct pids_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u32);	/* tgid */
	__type(value, u64);	/* start_time of its leader, 0: as asked */
};
extern struct pids_map pids SEC(".maps");

static __always_inline u64 next_seq(void)
{
	return __sync_fetch_and_add(&counters.next_seq, 1);
}

/* The first number an event from now on can have. */
static __always_inline u64 peek_seq(void)
{
	return *(volatile u64 *)&counters.next_seq;
}

static __always_inline struct bpf_scope *scope_of_dev(u32 dev)
{
	struct bpf_scope *s = bpf_map_lookup_elem(&devs, &dev);

	return s ?: bpf_map_lookup_elem(&file_systems, &dev);
}

/*
 * The event with this number is lost whole, and bytes of payload with it. dev
 * is the disk's or the file system's; type an enum ev_type.
 */
static __always_inline void put_lost(u64 seq, u32 dev, u32 type, u64 bytes)
{
	struct bpf_scope *s = scope_of_dev(dev);
	struct ev_lost *l;

	l = bpf_ringbuf_reserve(&notices, sizeof(*l), 0);
	if (!l) {
		/* User space sees that the number never comes, and asks
		 * these whose it was. */
		if (s) {
			__sync_fetch_and_add(&s->unannounced_events, 1);
			__sync_fetch_and_add(&s->unannounced_bytes, bytes);
		}
		__sync_fetch_and_add(&counters.unannounced_events, 1);
		__sync_fetch_and_add(&counters.unannounced_bytes, bytes);
		return;
	}
	l->seq = seq;
	l->time_ns = bpf_ktime_get_ns();
	l->dev = dev;
	l->type = type;
	l->bytes = bytes;
	bpf_ringbuf_submit(l, 0);
}

/* Is there room for bytes of bulk pieces (invariant 3)? */
static __always_inline bool ring_has_room(u64 bytes)
{
	u64 used = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
	u64 size = bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE);

	if (used > counters.ring_peak_bytes)
		counters.ring_peak_bytes = used;
	return used + bytes + (size >> 4) <= size;
}

static __always_inline void fill_hdr(struct ev_hdr *h, u32 type, u32 bytes,
				     u64 seq, u32 dev)
{
	u64 id = bpf_get_current_pid_tgid();

	h->type = type;
	h->bytes = bytes;
	h->seq = seq;
	h->time_ns = bpf_ktime_get_ns();
	h->dev = dev;
	h->tgid = id >> 32;
	h->tid = (u32)id;
	h->pad = 0;
	bpf_get_current_comm(h->comm, sizeof(h->comm));
}

static __always_inline bool in_cgroup_scope(u64 cgroup_id)
{
	for (int level = 0; level < BPF_CGROUP_LEVELS; level++) {
		u64 id = bpf_get_current_ancestor_cgroup_id(level);

		if (!id)
			return false;
		if (id == cgroup_id)
			return true;
	}
	return false;
}

/* Are the current process's file operations to be recorded? */
static __always_inline bool in_pid_scope(void)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;

	if (!config.enabled || tgid == config.self_tgid)
		return false;
	if (config.all_pids)
		return true;
	if (config.n_pids && bpf_map_lookup_elem(&pids, &tgid))
		return true;
	return config.cgroup_id && in_cgroup_scope(config.cgroup_id);
}

static __always_inline u32 disk_dev(struct gendisk *disk)
{
	return (u32)BPF_CORE_READ(disk, major) << 20 |
	       (u32)BPF_CORE_READ(disk, first_minor);
}

#define BTRFS_MAGIC 0x9123683e

/* The device a file system is mounted from; of a btrfs on several, one. */
static __always_inline struct block_device *sb_device(struct super_block *sb)
{
	struct block_device *bdev = BPF_CORE_READ(sb, s_bdev);
	struct btrfs_fs_devices___mod *devices = NULL;
	struct btrfs_fs_info___mod *info = NULL;
	struct btrfs_device___mod *dev = NULL;

	if (bdev || BPF_CORE_READ(sb, s_magic) != BTRFS_MAGIC ||
	    !bpf_core_field_exists(info->fs_devices) ||
	    !bpf_core_field_exists(devices->latest_dev) ||
	    !bpf_core_field_exists(dev->bdev))
		return bdev;
	info = BPF_CORE_READ(sb, s_fs_info);
	if (!info)
		return NULL;
	devices = BPF_CORE_READ(info, fs_devices);
	dev = BPF_CORE_READ(devices, latest_dev);
	return dev ? BPF_CORE_READ(dev, bdev) : NULL;
}

/*
 * Is this super block's file system recorded? Either it was named, or it is
 * mounted from a recorded disk (also by the program under test, meanwhile).
 */
static __always_inline bool sb_in_scope(struct super_block *sb)
{
	u32 dev = BPF_CORE_READ(sb, s_dev);
	struct block_device *bdev;
	struct gendisk *disk;

	if (bpf_map_lookup_elem(&file_systems, &dev))
		return true;
	bdev = sb_device(sb);
	if (!bdev)
		return false;
	disk = BPF_CORE_READ(bdev, bd_disk);
	if (!disk)
		return false;
	dev = disk_dev(disk);
	return bpf_map_lookup_elem(&devs, &dev) != NULL;
}

#endif
