// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Block requests: what goes to a recorded disk, with its data, and what comes
 * back.
 *
 * Invariants:
 *  1. An issue that took a number stands in in_flight until it completes or is
 *     requeued, keyed by its request, which is the kernel's own until then.
 *  2. A completion is reported once per issue: when all bytes came back, or
 *     with the first error. Completions of what is not in in_flight (reads,
 *     requests older than the recording, the outer request of a flush sequence
 *     the block layer made into several) are none of ours.
 *  3. Data is walked as the driver will: from rq->bio along bi_next, each bio
 *     by its bi_iter. A split bio shares its bi_io_vec with others, so that
 *     bi_vcnt means nothing.
 *  4. Only writes carry data. A discard's page, where there is one, is the
 *     driver's own (RQF_SPECIAL_PAYLOAD) and not disk content.
 */
#include "common.bpf.h"

#define PAGE_BYTES 4096
#define MAX_STEPS (1 << 17)	/* pieces, bvecs and bios of one request */
#define BDEVFS_MAGIC 0x62646576
#define S_IFMT 0170000
#define S_IFBLK 0060000
#define PAGE_MAPPING_FLAGS 3UL	/* mapping is not an address_space */

struct in_flight {
	u64 seq;
	u32 dev;
	u32 bytes_left;
	u32 bytes;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct in_flight);
} in_flight SEC(".maps");

/* Where the walk over a request's data stands. In a map, because on the stack
 * the verifier follows every counter and gives up. */
struct walk {
	u64 seq;
	u64 bio;
	u64 bio_vec;
	u32 bio_left;		/* bytes, current bvec included */
	u32 offset;		/* bytes of the request behind us */
	u32 total;
	u32 vec_off;		/* in bytes from vec_page's start */
	u64 vec_page;
	u32 vec_left;
	u32 pieces;
	u32 lost_pieces;
	u32 lost_bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct walk);
} walks SEC(".maps");

static __always_inline struct walk *this_walk(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&walks, &zero);
}

static __always_inline u32 request_dev(struct request *rq)
{
	struct request___old *old = (void *)rq;
	struct gendisk *disk = NULL;
	struct request_queue *q;

	if (bpf_core_field_exists(old->rq_disk)) {
		disk = BPF_CORE_READ(old, rq_disk);
	} else {
		q = BPF_CORE_READ(rq, q);
		disk = BPF_CORE_READ(q, disk);
	}
	return disk ? disk_dev(disk) : 0;
}

static __always_inline u64 page_index(struct page *page)
{
	struct page___new *n = (void *)page;
	struct page___old *o = (void *)page;

	if (bpf_core_field_exists(n->__folio_index))
		return BPF_CORE_READ(n, __folio_index);
	return BPF_CORE_READ(o, index);
}

/*
 * Which file the page's bytes belong to. Slab and driver memory keep other
 * things where a page keeps its mapping; only a mapping that its inode calls
 * its own is believed.
 */
static __always_inline void page_owner(struct ev_page *p, u64 addr, u32 in_page)
{
	struct page *page = (void *)addr;
	struct address_space *mapping;
	struct super_block *sb;
	struct inode *inode;
	u64 head, index = 0;

	p->flags |= EV_PAGE_ANON;
	p->fs_dev = 0;
	p->ino = 0;
	p->file_offset = 0;
	head = BPF_CORE_READ(page, compound_head);
	if (head & 1) {
		head--;
		if (config.page_bytes)
			index = (addr - head) / config.page_bytes;
		page = (void *)head;
	}
	mapping = BPF_CORE_READ(page, mapping);
	if (!mapping || (u64)mapping & PAGE_MAPPING_FLAGS)
		return;
	inode = BPF_CORE_READ(mapping, host);
	if (!inode || BPF_CORE_READ(inode, i_mapping) != mapping)
		return;
	sb = BPF_CORE_READ(inode, i_sb);
	p->flags &= ~EV_PAGE_ANON;
	p->file_offset = (page_index(page) + index) * PAGE_BYTES + in_page;
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK &&
	    BPF_CORE_READ(sb, s_magic) == BDEVFS_MAGIC) {
		p->flags |= EV_PAGE_BLOCKDEV;
		p->fs_dev = BPF_CORE_READ(inode, i_rdev);
		return;
	}
	p->fs_dev = BPF_CORE_READ(sb, s_dev);
	p->ino = BPF_CORE_READ(inode, i_ino);
}

static __always_inline void fill_page(struct ev_page *p, struct walk *w,
				      u64 page, u32 in_page, u32 len)
{
	p->type = EV_PAGE;
	p->bytes = sizeof(*p);
	p->seq = w->seq;
	p->offset = w->offset;
	p->len = len;
	p->flags = 0;
	page_owner(p, page, in_page);
}

static __always_inline bool put_page_info(struct walk *w, u64 page, u32 in_page,
					  u32 len)
{
	struct ev_page *p = bpf_ringbuf_reserve(&ring, sizeof(*p), 0);

	if (!p)
		return false;
	fill_page(p, w, page, in_page, len);
	p->flags |= EV_PAGE_NODATA;
	bpf_ringbuf_submit(p, 0);
	return true;
}

static __always_inline bool put_page(struct walk *w, u64 page, u32 in_page,
				     u32 len)
{
	struct ev_page *p;
	u64 address;

	p = bpf_ringbuf_reserve(&ring, sizeof(*p) + PAGE_BYTES, 0);
	if (!p)
		return false;
	fill_page(p, w, page, in_page, len);
	p->bytes += len;
	address = config.page_constant + in_page;
	if (config.page_bytes)
		address += page * (PAGE_BYTES / config.page_bytes);
	if (len > PAGE_BYTES ||
	    bpf_probe_read_kernel(p->data, len, (void *)address))
		p->flags |= EV_PAGE_UNREADABLE;
	bpf_ringbuf_submit(p, 0);
	return true;
}

/* Takes the next bvec of the bio, or the next bio. False at the end. */
static __always_inline bool next_vec(struct walk *w)
{
	struct bio_vec *vec = (void *)w->bio_vec;
	struct bio *bio = (void *)w->bio;

	if (!w->bio_left) {
		bio = BPF_CORE_READ(bio, bi_next);
		w->bio = (u64)bio;
		if (!bio)
			return false;
		w->bio_left = BPF_CORE_READ(bio, bi_iter.bi_size);
		vec = BPF_CORE_READ(bio, bi_io_vec);
		w->bio_vec = (u64)vec +
			     (u64)BPF_CORE_READ(bio, bi_iter.bi_idx) *
				     bpf_core_type_size(struct bio_vec);
		w->vec_off = BPF_CORE_READ(bio, bi_iter.bi_bvec_done);
		return true;
	}
	w->vec_left = BPF_CORE_READ(vec, bv_len);
	/* bi_bvec_done of the bio's first bvec is already behind us. */
	if (w->vec_off > w->vec_left)
		return false;
	w->vec_left -= w->vec_off;
	w->vec_off += BPF_CORE_READ(vec, bv_offset);
	w->vec_page = (u64)BPF_CORE_READ(vec, bv_page);
	if (w->vec_left > w->bio_left)
		w->vec_left = w->bio_left;
	w->bio_vec += bpf_core_type_size(struct bio_vec);
	return w->vec_left != 0;
}

static long walk_step(u32 i, void *ctx)
{
	struct walk *w = this_walk();
	u32 in_page, len;
	bool ok;
	u64 page;

	if (!w || w->offset >= w->total)
		return 1;
	if (!w->vec_left)
		return !next_vec(w);
	in_page = w->vec_off % PAGE_BYTES;
	page = w->vec_page +
	       (u64)(w->vec_off / PAGE_BYTES) * config.page_bytes;
	len = PAGE_BYTES - in_page;
	if (len > w->vec_left)
		len = w->vec_left;
	if (len > PAGE_BYTES)
		return 1;
	if (config.payload)
		ok = put_page(w, page, in_page, len);
	else
		ok = put_page_info(w, page, in_page, len);
	if (ok) {
		w->pieces++;
	} else {
		w->lost_pieces++;
		w->lost_bytes += len;
	}
	w->offset += len;
	w->vec_off += len;
	w->vec_left -= len;
	w->bio_left -= len;
	if (!w->vec_left)
		w->vec_off = 0;
	return 0;
}

static __always_inline void walk_start(struct walk *w, struct request *rq,
				       u64 seq, u32 total)
{
	struct bio *bio = BPF_CORE_READ(rq, bio);
	struct bio_vec *vec;

	__builtin_memset(w, 0, sizeof(*w));
	w->seq = seq;
	w->total = total;
	w->bio = (u64)bio;
	if (!bio)
		return;
	w->bio_left = BPF_CORE_READ(bio, bi_iter.bi_size);
	vec = BPF_CORE_READ(bio, bi_io_vec);
	w->bio_vec = (u64)vec + (u64)BPF_CORE_READ(bio, bi_iter.bi_idx) *
					bpf_core_type_size(struct bio_vec);
	w->vec_off = BPF_CORE_READ(bio, bi_iter.bi_bvec_done);
}

/* Sends the data of a write. What is not sent is counted in w. */
static __always_inline void put_data(struct walk *w, struct request *rq,
				     u64 seq, u32 bytes)
{
	u32 pieces = bytes / PAGE_BYTES + 2;

	walk_start(w, rq, seq, bytes);
	if (!ring_has_room((u64)pieces * (sizeof(struct ev_page) + PAGE_BYTES +
					  8))) {
		w->lost_pieces = pieces;
		w->lost_bytes = bytes;
		w->offset = bytes;
		return;
	}
	if (w->bio)
		bpf_loop(MAX_STEPS, walk_step, NULL, 0);
}

static __always_inline int on_issue(struct request *rq)
{
	u32 dev, op, bytes, cmd_flags;
	struct in_flight f = {};
	struct ev_issue *e;
	struct walk *w;
	u64 key = (u64)rq;

	if (!config.enabled)
		return 0;
	cmd_flags = BPF_CORE_READ(rq, cmd_flags);
	op = cmd_flags & config.op_mask;
	if (op == config.op_read || op == config.op_drv_in)
		return 0;
	dev = request_dev(rq);
	if (!bpf_map_lookup_elem(&devs, &dev))
		return 0;
	w = this_walk();
	if (!w)
		return 0;
	bytes = BPF_CORE_READ(rq, __data_len);
	f.seq = next_seq();
	f.dev = dev;
	f.bytes_left = bytes;
	f.bytes = bytes;
	if (bpf_map_update_elem(&in_flight, &key, &f, BPF_ANY)) {
		/* Its completion could not be told: an event lost. */
		put_lost(next_seq(), dev, EV_COMPLETE, 0);
	}
	if (op == config.op_write)
		put_data(w, rq, f.seq, bytes);
	else
		__builtin_memset(w, 0, sizeof(*w));
	e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);
	if (!e) {
		put_lost(f.seq, dev, EV_ISSUE, w->total);
		return 0;
	}
	fill_hdr(&e->h, EV_ISSUE, sizeof(*e), f.seq, dev);
	e->sector = BPF_CORE_READ(rq, __sector);
	e->sectors = bytes >> 9;
	e->cmd_flags = cmd_flags;
	e->pieces = w->pieces;
	e->lost_pieces = w->lost_pieces;
	e->lost_bytes = w->lost_bytes;
	e->too_large = w->total - w->offset;
	bpf_ringbuf_submit(e, 0);
	return 0;
}

static __always_inline void put_complete(struct in_flight *f, int error,
					 u32 bytes_done)
{
	u64 seq = next_seq();
	struct ev_complete *e;

	e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);
	if (!e) {
		put_lost(seq, f->dev, EV_COMPLETE, 0);
		return;
	}
	fill_hdr(&e->h, EV_COMPLETE, sizeof(*e), seq, f->dev);
	e->issue_seq = f->seq;
	e->error = error;
	e->bytes_done = bytes_done;
	bpf_ringbuf_submit(e, 0);
}

static __always_inline int on_complete(struct request *rq, int error,
				       u32 nr_bytes)
{
	u64 key = (u64)rq;
	struct in_flight *f, copy;

	if (!config.enabled)
		return 0;
	f = bpf_map_lookup_elem(&in_flight, &key);
	if (!f)
		return 0;
	if (!error && nr_bytes < f->bytes_left) {
		f->bytes_left -= nr_bytes;
		return 0;
	}
	copy = *f;
	bpf_map_delete_elem(&in_flight, &key);
	put_complete(&copy, error,
		     error ? copy.bytes - copy.bytes_left : copy.bytes);
	return 0;
}

/* The device did not take it. What it had taken before (a partial completion)
 * is on the disk, and the rest comes as a request of its own. */
static __always_inline int on_requeue(struct request *rq)
{
	u64 key = (u64)rq, seq;
	struct in_flight *f, copy;
	struct ev_requeue *e;

	if (!config.enabled)
		return 0;
	f = bpf_map_lookup_elem(&in_flight, &key);
	if (!f)
		return 0;
	copy = *f;
	bpf_map_delete_elem(&in_flight, &key);
	if (copy.bytes_left < copy.bytes) {
		put_complete(&copy, 0, copy.bytes - copy.bytes_left);
		return 0;
	}
	seq = next_seq();
	e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);
	if (!e) {
		put_lost(seq, copy.dev, EV_REQUEUE, 0);
		return 0;
	}
	fill_hdr(&e->h, EV_REQUEUE, sizeof(*e), seq, copy.dev);
	e->issue_seq = copy.seq;
	bpf_ringbuf_submit(e, 0);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(block_issue_btf, struct request *rq)
{
	return on_issue(rq);
}

SEC("raw_tp/block_rq_issue")
int BPF_PROG(block_issue_raw, struct request *rq)
{
	return on_issue(rq);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_complete_btf, struct request *rq, int error,
	     unsigned int nr_bytes)
{
	return on_complete(rq, error, nr_bytes);
}

SEC("raw_tp/block_rq_complete")
int BPF_PROG(block_complete_raw, struct request *rq, int error,
	     unsigned int nr_bytes)
{
	return on_complete(rq, error, nr_bytes);
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(block_requeue_btf, struct request *rq)
{
	return on_requeue(rq);
}

SEC("raw_tp/block_rq_requeue")
int BPF_PROG(block_requeue_raw, struct request *rq)
{
	return on_requeue(rq);
}

char LICENSE[] SEC("license") = "GPL";
