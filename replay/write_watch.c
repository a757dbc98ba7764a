// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which sectors of a device were written, from a perf event on the
 * block_rq_issue tracepoint: one event and one ring per processor, counting
 * whoever issues, filtered to the device by the kernel.
 *
 * Invariants:
 *  1. A request is in its processor's ring before it is with the driver. So
 *     whoever knows that a request is over (umount and BLKFLSBUF wait) finds
 *     it here at the next drain.
 *  2. Only what is known to be no write is left out: reads and empty flushes.
 *     blk_fill_rwbs() writes an F for PREFLUSH, then the letter of the
 *     operation; a WRITE_ZEROES has been 'N' or 'W' over the years.
 *  3. A ring is emptied by nobody but drain, so between two drains its free
 *     space only shrinks. An event is lost only where it does not fit, hence
 *     a ring with room for the largest event at a drain has lost none; the
 *     LOST record alone would not do, for it is written with the next event.
 *  4. A processor that was offline at the start has no ring. While there is
 *     one, each drain makes sure that no more are online than then.
 */
#include "loop.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENT_BYTES_MAX 1024
#define RING_BYTES_MAX (512U << 10)
#define RING_BYTES_MIN (32U << 10)
#define RINGS_BYTES (4U << 20)	/* all rings of a device together */

static const char *const event_dirs[] = {
	"/sys/kernel/tracing/events/block/block_rq_issue",
	"/sys/kernel/debug/tracing/events/block/block_rq_issue",
};

/* Where a field stands in the event. bytes 0: the kernel has no such field. */
struct field {
	u32 offset, bytes;
};

struct layout {
	u32 id;
	struct field dev, sector, nr_sector, bytes, rwbs;
};

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
	bool was_full;	/* a loss is reported, its LOST record yet to come */
};

struct write_watch {
	struct layout layout;
	u32 dev;
	u32 ring_bytes, page_bytes;
	u32 n_rings;
	struct ring *rings;
	long online;	/* processors; 0: all there are had a ring */
};

struct span {
	u64 sector, sectors;
};

/* ---- the event's layout -------------------------------------------------- */

/* Reads a whole tracefs file; they report no size. */
static int slurp(const char *dir, const char *name, char *text, size_t room)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, text + len, room - 1 - len)) > 0)
		len += n;
	if (n < 0)
		return -errno;
	if (len == room - 1)
		return -EFBIG;
	text[len] = 0;
	return 0;
}

/* A line is "\tfield:TYPE NAME[N];\toffset:O;\tsize:S;\tsigned:D;". */
static void parse_field(const char *line, struct layout *l)
{
	const struct {
		const char *name;
		struct field *f;
	} known[] = {
		{ "dev", &l->dev },	      { "sector", &l->sector },
		{ "nr_sector", &l->nr_sector }, { "bytes", &l->bytes },
		{ "rwbs", &l->rwbs },
	};
	const char *end = strchr(line, ';'), *name;
	struct field f;

	if (!end || sscanf(end, "; offset:%u; size:%u;", &f.offset,
			   &f.bytes) != 2)
		return;
	name = end;
	while (name > line && name[-1] != ' ')
		name--;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		size_t len = strlen(known[i].name);

		if (!strncmp(name, known[i].name, len) &&
		    (name[len] == ';' || name[len] == '['))
			*known[i].f = f;
	}
}

static int read_layout(struct layout *ret)
{
	struct layout l = { 0 };
	char text[8192];
	size_t i = 0;
	char *save = NULL;
	int r;

	while ((r = slurp(event_dirs[i], "id", text, sizeof(text))) < 0)
		if (++i == ARRAY_SIZE(event_dirs))
			return r;
	l.id = strtoul(text, NULL, 10);
	r = slurp(event_dirs[i], "format", text, sizeof(text));
	if (r < 0)
		return r;
	for (char *s = strtok_r(text, "\n", &save); s;
	     s = strtok_r(NULL, "\n", &save))
		if (!strncmp(s, "\tfield:", 7))
			parse_field(s, &l);
	if (!l.id || l.dev.bytes != 4 || l.sector.bytes != 8 ||
	    l.nr_sector.bytes != 4 || !l.rwbs.bytes)
		return -EPROTO;
	*ret = l;
	return 0;
}

/* ---- reading events ------------------------------------------------------ */

/* False when the event is too short for the field. */
static bool get_uint(const void *raw, u32 len, const struct field *f, u64 *ret)
{
	u64 v8;
	u32 v4;

	if (f->offset > len || f->bytes > len - f->offset)
		return false;
	if (f->bytes == 8) {
		memcpy(&v8, (const u8 *)raw + f->offset, 8);
		*ret = v8;
	} else {
		memcpy(&v4, (const u8 *)raw + f->offset, 4);
		*ret = v4;
	}
	return true;
}

/* False only for a request that surely changes nothing. */
static bool may_write(const char *rwbs, u32 len)
{
	u32 i = len && rwbs[0] == 'F';

	return !(i < len && rwbs[i] == 'R');
}

/* 1 and what the event says was written, 0 for nothing, -EPROTO. */
static int decode(const struct write_watch *w, const void *raw, u32 len,
		  struct span *ret)
{
	const struct layout *l = &w->layout;
	u64 dev, sector, sectors, bytes = 0;

	if (!get_uint(raw, len, &l->dev, &dev) ||
	    !get_uint(raw, len, &l->sector, &sector) ||
	    !get_uint(raw, len, &l->nr_sector, &sectors) ||
	    l->rwbs.offset > len || l->rwbs.bytes > len - l->rwbs.offset)
		return -EPROTO;
	if (l->bytes.bytes == 4 && !get_uint(raw, len, &l->bytes, &bytes))
		return -EPROTO;
	if (dev != w->dev ||
	    !may_write((const char *)raw + l->rwbs.offset, l->rwbs.bytes))
		return 0;
	sectors = MAX(sectors, (bytes + SECTOR_SIZE - 1) >> SECTOR_SHIFT);
	*ret = (struct span){ .sector = sector, .sectors = sectors };
	return sectors > 0;
}

/* Copies out of the ring, which wraps. */
static void ring_copy(const struct write_watch *w, const struct ring *r,
		      u64 pos, void *to, u32 len)
{
	const u8 *data = (const u8 *)r->page + w->page_bytes;
	u32 at = pos & (w->ring_bytes - 1);
	u32 first = MIN(len, w->ring_bytes - at);

	memcpy(to, data + at, first);
	memcpy((u8 *)to + first, data, len - first);
}

static int take_event(const struct write_watch *w, struct ring *r,
		      const u8 *event, u32 len, struct span *ret)
{
	struct perf_event_header h;
	u32 raw_len;

	memcpy(&h, event, sizeof(h));
	if (h.type == PERF_RECORD_LOST && r->was_full) {
		r->was_full = false;
		return 0;
	}
	if (h.type != PERF_RECORD_SAMPLE)	/* LOST, THROTTLE, ... */
		return -EOVERFLOW;
	if (len < sizeof(h) + sizeof(raw_len))
		return -EPROTO;
	memcpy(&raw_len, event + sizeof(h), sizeof(raw_len));
	if (raw_len > len - sizeof(h) - sizeof(raw_len))
		return -EPROTO;
	return decode(w, event + sizeof(h) + sizeof(raw_len), raw_len, ret);
}

static int drain_ring(const struct write_watch *w, struct ring *r,
		      void (*touched)(void *ctx, u64 sector, u64 sectors),
		      void *ctx)
{
	u64 head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	u64 tail = r->page->data_tail;
	bool full = head - tail > w->ring_bytes - EVENT_BYTES_MAX;
	bool lost = full;

	while (tail != head) {
		u8 event[EVENT_BYTES_MAX];
		struct perf_event_header h;
		struct span s;
		int n;

		ring_copy(w, r, tail, &h, sizeof(h));
		if (h.size < sizeof(h) || h.size > sizeof(event) ||
		    h.size > head - tail) {
			lost = true;
			break;
		}
		ring_copy(w, r, tail, event, h.size);
		n = take_event(w, r, event, h.size, &s);
		if (n > 0)
			touched(ctx, s.sector, s.sectors);
		lost |= n < 0;
		tail += h.size;
	}
	r->was_full |= full;
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
	return lost ? -EOVERFLOW : 0;
}

int write_watch_drain(struct write_watch *w,
		      void (*touched)(void *ctx, u64 sector, u64 sectors),
		      void *ctx)
{
	int r = 0;

	for (u32 i = 0; i < w->n_rings; i++)
		if (drain_ring(w, &w->rings[i], touched, ctx) < 0)
			r = -EOVERFLOW;
	if (w->online && sysconf(_SC_NPROCESSORS_ONLN) != w->online) {
		w->online = -1;		/* from here on nobody knows */
		r = -EOVERFLOW;
	}
	return r;
}

/* ---- setting up ---------------------------------------------------------- */

static int open_event(const struct write_watch *w, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = w->layout.id,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW,
		.disabled = 1,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,	/* nobody polls */
	};
	int fd;

	fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1,
		     PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_ring(struct write_watch *w, int cpu)
{
	struct ring r = { .fd = open_event(w, cpu) };
	char filter[32];
	void *map;
	int err;

	if (r.fd < 0)
		return r.fd;
	snprintf(filter, sizeof(filter), "dev == %u", w->dev);
	if (ioctl(r.fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0)
		goto fail;
	map = mmap(NULL, w->page_bytes + w->ring_bytes, PROT_READ | PROT_WRITE,
		   MAP_SHARED, r.fd, 0);
	if (map == MAP_FAILED)
		goto fail;
	r.page = map;
	w->rings[w->n_rings++] = r;
	return ioctl(r.fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
fail:
	err = -errno;
	close(r.fd);
	return err;
}

static u32 ring_size(long cpus)
{
	u32 bytes = RING_BYTES_MAX;

	while (bytes > RING_BYTES_MIN && (u64)bytes * cpus > RINGS_BYTES)
		bytes /= 2;
	return bytes;
}

int write_watch_new(u32 dev, struct write_watch **ret, struct errmsg *em)
{
	struct write_watch *w = xzalloc(sizeof(*w));
	long cpus = MAX(sysconf(_SC_NPROCESSORS_CONF), 1L);
	bool offline = false;
	int r;

	w->dev = dev;
	w->page_bytes = sysconf(_SC_PAGESIZE);
	w->ring_bytes = MAX(ring_size(cpus), w->page_bytes);
	w->rings = xreallocarray(NULL, cpus, sizeof(*w->rings));
	r = read_layout(&w->layout);
	if (r < 0) {
		errmsg_set(em, r, "reading the block_rq_issue event's format"
			   " (is tracefs mounted on /sys/kernel/tracing?)");
		goto fail;
	}
	w->online = sysconf(_SC_NPROCESSORS_ONLN);
	for (long cpu = 0; cpu < cpus; cpu++) {
		r = open_ring(w, cpu);
		if (r == -ENODEV) {
			offline = true;
			continue;
		}
		if (r < 0) {
			errmsg_set(em, r, "watching writes on processor %ld"
				   " (root or CAP_PERFMON is needed)", cpu);
			goto fail;
		}
	}
	if (!offline)
		w->online = 0;
	*ret = w;
	return 0;
fail:
	write_watch_free(w);
	return r;
}

void write_watch_free(struct write_watch *w)
{
	if (!w)
		return;
	for (u32 i = 0; i < w->n_rings; i++) {
		munmap(w->rings[i].page, w->page_bytes + w->ring_bytes);
		close(w->rings[i].fd);
	}
	free(w->rings);
	free(w);
}
