/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The worker's side of exploring: what the kernel recovered is read and
 * compared, and the outcome travels to the parent as bytes.
 *
 * Invariants:
 *  1. A verdict depends on the recovered tree alone (names, types, inode
 *     numbers, contents, read errors), so equal trees share one. Which of the
 *     broken promises bind depends on the crash point and is the parent's
 *     affair.
 *  2. A checker's outcome may also depend on modes, times and the marks made
 *     before the crash: it is shared only where all of these are equal.
 *  3. Of an expected state whose content is partly unknown, what is known gives
 *     a lower bound of the distance; nothing is a finding that such a state
 *     could explain.
 *  4. Equal trees give equal bytes, whichever worker met them.
 */
#ifndef BLKBOX_JUDGE_H
#define BLKBOX_JUDGE_H

#include "../replay/pool.h"
#include "checker.h"
#include "explore.h"
#include "intern.h"

#define JUDGE_MAX_FILES 256	/* file fates kept of one site */

struct judge {
	const struct trace *t;
	const struct expected *e;
	const struct promises *promises;
	u64 threshold;
	const char *check;	/* NULL: none */
	u64 check_timeout_ns;
	u32 n_unknown;		/* expected states with unknown content ... */
	u64 (*known)[256];	/* ... and the bytes known of each */

	/* The worker's own, empty at the fork. */
	struct store *store;
	struct intern trees;	/* by tree: its verdict */
	struct buf *verdicts;
	u32 cap_verdicts;
	struct intern checked;	/* by tree, times and marks: its outcome */
	struct buf *outcomes;
	u32 cap_outcomes;
};

/*
 * Job numbers. A site is judged: entry is the parent's number for it. Or the
 * files of a site are compared with a given expected state.
 */
#define JOB_EXPLAIN (1ULL << 63)
#define JOB_MAX_NUMBER 0x7fffffffU
u64 job_judge_id(u32 entry, u32 point);
u64 job_explain_id(u32 state, u32 point);
u32 job_number(u64 id);		/* entry or state */
u32 job_point(u64 id);

/* What a tree is worth. */
struct judgement {
	char *unreadable;	/* what could not be listed or read; NULL */
	u64 distance;
	u32 nearest;		/* expected state */
	bool excused;		/* the distance is smaller than threshold only
				 * for a state whose content is unknown */
	u32 n_broken;		/* bits in broken */
	u8 *broken;		/* bit per promise that is not kept */
	u32 n_files;		/* where distance >= threshold */
	struct file_finding *files;
	u32 n_files_left;	/* more of them */
};

/* judge() of struct pool_opts; ctx is a struct judge. */
int judge_disk(void *ctx, const struct job *j, int root_fd,
	       const char *root_path, const char *recovery_log,
	       struct buf *ret);
/* Fills in n_unknown and known from e. */
void judge_count_known(struct judge *g);
void judge_done(struct judge *g);

/*
 * Takes an answer apart: the bytes of the judgement (equal for equal trees)
 * and the checker's outcome, outcome 0 where none ran. -EBADMSG.
 */
int answer_split(const void *answer, size_t len, const void **ret_core,
		 size_t *ret_core_len, struct check_result *ret_check);
int judgement_decode(const void *core, size_t len, struct judgement *ret);
void judgement_done(struct judgement *g);
bool judgement_breaks(const struct judgement *g, u32 promise);

/* Workload marks at or before seq; blkbox's own are left out. */
char *marks_text(const struct trace *t, u64 seq);
u32 marks_before(const struct trace *t, u64 seq);	/* how many */

void file_findings_free(struct file_finding *files, u32 n);

#endif
