// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * File operations through io_uring: described at submission, reported at
 * completion.
 *
 * Invariants:
 *  1. What a request is comes from its submission queue entry, whose layout is
 *     ABI; it is the last one the ring has taken when the tracepoint fires.
 *  2. What the process may change after submission (paths, iovecs) is saved
 *     at submission. Data may not change before completion and is read then,
 *     before the completion can be seen.
 *  3. The file is taken at completion, from the request, which holds it; at
 *     submission a linked request's file need not exist yet. Only for a close
 *     it is the descriptor's at submission.
 *  4. A request whose success is not to be reported (CQE_SKIP_SUCCESS) never
 *     completes visibly: it is reported at submission, as OP_IO_URING, its
 *     data unknown.
 */
#include "fileops_data.h"
#include "fileops_opened.h"

#define MAX_REQUESTS 4096

#define IOSQE_FIXED_FILE 1
#define IOSQE_CQE_SKIP_SUCCESS 64
#define IORING_SETUP_SQE128 (1U << 10)
#define IORING_SETUP_NO_SQARRAY (1U << 16)
#define IORING_FSYNC_DATASYNC 1

enum {
	URING_WRITEV = 2,
	URING_FSYNC = 3,
	URING_WRITE_FIXED = 5,
	URING_SYNC_FILE_RANGE = 8,
	URING_FALLOCATE = 17,
	URING_OPENAT = 18,
	URING_CLOSE = 19,
	URING_WRITE = 23,
	URING_OPENAT2 = 28,
	URING_SPLICE = 30,
	URING_RENAMEAT = 35,
	URING_UNLINKAT = 36,
	URING_MKDIRAT = 37,
	URING_SYMLINKAT = 38,
	URING_LINKAT = 39,
	URING_FTRUNCATE = 55,
	URING_WRITEV_FIXED = 61,
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_REQUESTS);
	__type(key, u64);	/* struct io_kiocb * */
	__type(value, struct uring_call);
} uring_calls SEC(".maps");

/* ---- submission --------------------------------------------------------------- */

static __always_inline bool read_sqe(struct io_ring_ctx *ring_ctx,
				     struct io_uring_sqe *ret_sqe)
{
	u32 head = BPF_CORE_READ(ring_ctx, cached_sq_head) - 1;
	u32 entries = BPF_CORE_READ(ring_ctx, sq_entries);
	u32 flags = BPF_CORE_READ(ring_ctx, flags);
	u32 *array = BPF_CORE_READ(ring_ctx, sq_array);
	u64 sqes = (u64)BPF_CORE_READ(ring_ctx, sq_sqes);
	u32 at = head & (entries - 1);

	if (!(flags & IORING_SETUP_NO_SQARRAY) &&
	    bpf_probe_read_kernel(&at, sizeof(at), array + at))
		return false;
	if (at >= entries)
		return false;
	if (flags & IORING_SETUP_SQE128)
		at *= 2;
	return !bpf_probe_read_kernel(ret_sqe, sizeof(*ret_sqe),
				      (void *)(sqes + at * sizeof(*ret_sqe)));
}

static __always_inline void save_path(struct scratch *s, u32 kind, u64 addr)
{
	struct saved_key key = { .req = s->uring_req, .kind = kind };
	struct call *c = &s->uring.call;

	if (kind == EV_PATH_1) {
		c->path = addr;
		c->flags |= CALL_PATH;
	} else {
		c->path2 = addr;
		c->flags |= CALL_PATH2;
	}
	if (bpf_probe_read_user_str(s->path.text, EV_PATH_MAX,
				    (const void *)addr) < 0)
		return;
	if (s->path.text[0] == '/')
		c->flags |= kind == EV_PATH_1 ? CALL_ABS : CALL_ABS2;
	/* Full: the path is marked unreadable. */
	bpf_map_update_elem(&saved_paths, &key, s->path.text, BPF_ANY);
}

static __always_inline void describe_write(struct scratch *s,
					   struct io_uring_sqe *q)
{
	struct call *c = &s->uring.call;

	c->op = BOP_WRITE;
	c->addr = q->addr;
	c->len = q->len;
	c->off = q->off;
	c->rwf = q->rw_flags;
	if (q->off != (u64)-1)
		c->flags |= CALL_OFF;
	if (q->opcode != URING_WRITEV && q->opcode != URING_WRITEV_FIXED)
		return;
	c->flags |= CALL_VEC;
	c->iovs = q->len;
	if (c->iovs > MAX_SAVED_IOVS ||
	    bpf_probe_read_user(s->uring.iov,
				c->iovs * sizeof(struct iovec),
				(const void *)c->addr))
		c->event_flags |= BFOP_DATA_UNKNOWN;
}

static __always_inline void describe_open(struct scratch *s,
					  struct io_uring_sqe *q)
{
	struct call *c = &s->uring.call;

	c->op = BOP_OPEN;
	c->fd = BFD_NONE;
	c->dfd = q->fd;
	if (q->opcode == URING_OPENAT) {
		c->open_flags = q->rw_flags;
		c->mode = q->len;
	} else {
		c->how = q->off;
		read_how(c);
	}
	if (q->file_index)
		c->flags |= CALL_DIRECT;
	save_path(s, EV_PATH_1, q->addr);
}

static __always_inline void describe_close(struct scratch *s,
					   struct io_uring_sqe *q)
{
	struct call *c = &s->uring.call;
	struct file *f;

	c->op = BOP_CLOSE;
	if (q->file_index)
		return;
	f = file_of_fd(q->fd);
	if (!f)
		return;
	call_file(c, f);
	c->fd = q->fd;
}

static __always_inline void describe_names(struct scratch *s,
					   struct io_uring_sqe *q)
{
	struct call *c = &s->uring.call;

	c->fd = BFD_NONE;
	c->dfd = q->fd;
	c->mode = q->rw_flags;
	if (q->opcode == URING_UNLINKAT) {
		c->op = BOP_UNLINK;
	} else if (q->opcode == URING_MKDIRAT) {
		c->op = BOP_MKDIR;
		c->mode = q->len;
	} else if (q->opcode == URING_SYMLINKAT) {
		c->op = BOP_SYMLINK;
		c->mode = 0;
		c->dfd2 = q->fd;
		c->flags |= CALL_TARGET;
	} else {
		c->op = q->opcode == URING_RENAMEAT ? BOP_RENAME : BOP_LINK;
		c->dfd2 = q->len;
	}
	save_path(s, EV_PATH_1, q->addr);
	if (c->op != BOP_UNLINK && c->op != BOP_MKDIR)
		save_path(s, EV_PATH_2, q->off);
}

static __always_inline void describe_fd(struct call *c, struct io_uring_sqe *q)
{
	c->off = q->off;
	c->len = q->len;
	if (q->opcode == URING_FSYNC) {
		c->op = q->rw_flags & IORING_FSYNC_DATASYNC ? BOP_FDATASYNC
							    : BOP_FSYNC;
	} else if (q->opcode == URING_SYNC_FILE_RANGE) {
		c->op = BOP_SYNC_FILE_RANGE;
		c->mode = q->rw_flags;
	} else if (q->opcode == URING_FTRUNCATE) {
		c->op = BOP_TRUNCATE;
		c->len = q->off;
		c->off = 0;
	} else {
		c->op = BOP_FALLOCATE;
		c->len = q->addr;
		c->mode = q->len;
	}
}

static __always_inline void describe_splice(struct call *c,
					    struct io_uring_sqe *q)
{
	struct file *in = NULL;

	c->op = BOP_COPY;
	c->off = q->off;
	c->len = q->len;
	c->mode = q->rw_flags;
	c->src_off = q->addr;
	c->event_flags |= BFOP_DATA_UNKNOWN;
	if (!(q->rw_flags & 1U << 31))	/* SPLICE_F_FD_IN_FIXED */
		in = file_of_fd(q->file_index);
	if (in)
		c->src_inode = (u64)BPF_CORE_READ(in, f_inode);
}

/* False when the request changes nothing. */
static __always_inline bool describe(struct scratch *s, struct io_uring_sqe *q)
{
	struct call *c = &s->uring.call;

	switch (q->opcode) {
	case URING_WRITE:
	case URING_WRITEV:
	case URING_WRITE_FIXED:
	case URING_WRITEV_FIXED:
		describe_write(s, q);
		return true;
	case URING_FSYNC:
	case URING_SYNC_FILE_RANGE:
	case URING_FTRUNCATE:
	case URING_FALLOCATE:
		describe_fd(c, q);
		return true;
	case URING_SPLICE:
		describe_splice(c, q);
		return true;
	case URING_CLOSE:
		describe_close(s, q);
		return true;
	case URING_OPENAT:
	case URING_OPENAT2:
		describe_open(s, q);
		return can_change(c->open_flags);
	case URING_RENAMEAT:
	case URING_UNLINKAT:
	case URING_MKDIRAT:
	case URING_SYMLINKAT:
	case URING_LINKAT:
		describe_names(s, q);
		return true;
	}
	return false;
}

/* How it ends will not be told. */
static __always_inline void put_unknown(struct scratch *s, u32 opcode, s32 fd)
{
	struct file *f = file_of_fd(fd);
	struct call *c = &s->call;

	s->call = s->uring.call;
	if (f && !(c->flags & (CALL_PATH | CALL_DIRECT))) {
		if (!file_in_scope(f))
			return;
		call_file(c, f);
		note_written(f, false);
	}
	c->op = BOP_IO_URING;
	c->mode = opcode;
	c->event_flags |= BFOP_DATA_UNKNOWN;
	op_begin(s, 0, c->dev);
	if (c->flags & CALL_PATH)
		put_user_path(s, c->path, EV_PATH_1);
	if (c->flags & CALL_PATH2)
		put_user_path(s, c->path2, EV_PATH_2);
	op_end(s);
}

static __always_inline void drop_paths(struct scratch *s)
{
	struct saved_key key = { .req = s->uring_req, .kind = EV_PATH_1 };

	if (!(s->call.flags & CALL_PATH))
		return;
	bpf_map_delete_elem(&saved_paths, &key);
	key.kind = EV_PATH_2;
	bpf_map_delete_elem(&saved_paths, &key);
}

static __always_inline int on_submit(struct io_kiocb *req)
{
	struct io_uring_sqe sqe = {};
	struct io_ring_ctx *ring_ctx;
	struct scratch *s;
	struct call *c;
	u64 key = (u64)req;

	if (!in_pid_scope())
		return 0;
	s = get_scratch();
	ring_ctx = BPF_CORE_READ(req, ctx);
	/* Left by a request that completed without being told of. */
	bpf_map_delete_elem(&uring_calls, &key);
	if (!s || !read_sqe(ring_ctx, &sqe) ||
	    sqe.opcode != BPF_CORE_READ(req, opcode))
		return 0;
	s->uring_req = key;
	c = &s->uring.call;
	__builtin_memset(c, 0, sizeof(*c));
	call_start(c, 0, BSYSCALL_NONE);
	c->flags = CALL_SAVED;
	c->event_flags = BFOP_IO_URING;
	c->fd = sqe.flags & IOSQE_FIXED_FILE ? BFD_NONE : sqe.fd;
	s->uring.tgid_tid = bpf_get_current_pid_tgid();
	bpf_get_current_comm(s->uring.comm, EV_COMM_BYTES);
	if (!describe(s, &sqe))
		return 0;
	if (sqe.flags & IOSQE_CQE_SKIP_SUCCESS) {
		put_unknown(s, sqe.opcode,
			    sqe.flags & IOSQE_FIXED_FILE ? -1 : sqe.fd);
		drop_paths(s);
	} else if (bpf_map_update_elem(&uring_calls, &key, &s->uring,
				       BPF_ANY)) {
		put_lost(next_seq(), c->dev, EV_FILE_OP, 0);
	}
	return 0;
}

/* ---- completion --------------------------------------------------------------- */

static __always_inline void complete_close(struct scratch *s, s64 ret)
{
	struct call *c = &s->call;
	struct file *f = (struct file *)c->file;
	struct written *w;
	u64 key = c->file;

	if (!f)
		return;
	w = written_of(f);
	if (!w || w->ino != c->ino)
		return;
	c->event_flags |= BFOP_WRITTEN;
	/* The reference is gone already. */
	if (ret >= 0 && (s64)file_refs(f) <= 0) {
		c->event_flags |= BFOP_LAST_CLOSE;
		bpf_map_delete_elem(&written_files, &key);
	}
	op_begin(s, ret, c->dev);
	op_inode(s, (struct inode *)c->inode);
	op_end(s);
}

static __always_inline void complete_copy(struct scratch *s, s64 ret)
{
	struct call *c = &s->call;
	struct inode *src = (struct inode *)c->src_inode;
	struct file *f = (struct file *)c->file;
	s64 done = ret > 0 ? ret : 0;

	if (c->off == (u64)-1)
		c->off = BPF_CORE_READ(f, f_pos) - done;
	if (done)
		note_written(f, false);
	op_begin(s, ret, c->dev);
	op_inode(s, (struct inode *)c->inode);
	if (src) {
		s->ev.src_dev = BPF_CORE_READ(src, i_sb, s_dev);
		s->ev.src_ino = BPF_CORE_READ(src, i_ino);
		if ((BPF_CORE_READ(src, i_mode) & S_IFMT) == S_IFREG &&
		    c->src_off != (u64)-1)
			s->ev.src_off = c->src_off;
	}
	op_end(s);
}

/* The request's operation is on the file it holds. */
static __always_inline void complete_fd(struct scratch *s, struct io_kiocb *req,
					s64 ret, void *ctx)
{
	struct file *f = BPF_CORE_READ(req, file);
	struct call *c = &s->call;

	if (!f || !file_in_scope(f))
		return;
	call_file(c, f);
	if (c->op == BOP_WRITE) {
		if (!is_regular(f))
			return;
		/* Data can be read in the process's own memory only. */
		if (bpf_get_current_pid_tgid() >> 32 !=
		    s->uring.tgid_tid >> 32)
			c->event_flags |= BFOP_DATA_UNKNOWN;
		put_write(s, ret, ctx);
	} else if (c->op == BOP_COPY) {
		if (is_regular(f))
			complete_copy(s, ret);
	} else {
		op_begin(s, ret, c->dev);
		op_inode(s, (struct inode *)c->inode);
		op_end(s);
	}
}

static __always_inline int on_complete(struct io_kiocb *req, s64 ret, void *ctx)
{
	u64 key = (u64)req;
	struct uring_call *u;
	struct scratch *s;
	struct call *c;

	u = bpf_map_lookup_elem(&uring_calls, &key);
	if (!u)
		return 0;
	s = get_scratch();
	if (!s)
		return 0;
	bpf_probe_read_kernel(&s->uring, sizeof(s->uring), u);
	s->uring_req = key;
	s->call = u->call;
	bpf_map_delete_elem(&uring_calls, &key);
	c = &s->call;
	if (c->op == BOP_OPEN)
		put_open(s, ret, ctx);
	else if (c->op == BOP_CLOSE)
		complete_close(s, ret);
	else if (c->flags & CALL_PATH)
		put_names(s, ret, ctx);
	else
		complete_fd(s, req, ret, ctx);
	drop_paths(s);
	return 0;
}

SEC("raw_tp")
int uring_submit(struct bpf_raw_tracepoint_args *ctx)
{
	return on_submit((struct io_kiocb *)ctx->args[0]);
}

SEC("raw_tp")
int uring_complete(struct bpf_raw_tracepoint_args *ctx)
{
	struct io_kiocb *req = (struct io_kiocb *)ctx->args[1];
	struct io_uring_cqe cqe = {};

	if (!req ||
	    bpf_probe_read_kernel(&cqe, sizeof(cqe), (void *)ctx->args[2]))
		return 0;
	return on_complete(req, cqe.res, ctx);
}

/* Older kernels pass the parts of the completion entry. This one attaches to
 * no kernel that does not: it looks at more arguments than there are. */
SEC("raw_tp")
int uring_complete_parts(struct bpf_raw_tracepoint_args *ctx)
{
	struct io_kiocb *req = (struct io_kiocb *)ctx->args[1];

	if (!req)
		return 0;
	return on_complete(req, (s32)ctx->args[3], ctx);
}
