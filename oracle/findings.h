/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From judged disks to findings: what was found at many sites is one finding
 * with a count and its worst witness.
 *
 * Invariants:
 *  1. Two sites share a finding when its kind and its words are the same: for
 *     a distance the nearest expected state and what became of each file, for
 *     a broken promise the call and the name, for the kernel's and a checker's
 *     words the words without their numbers.
 *  2. The witness of a finding is the site with the largest distance, of these
 *     the one that drops least, of these the earliest.
 *  3. Which findings there are, and their order, does not depend on the order
 *     in which workers answered.
 */
#ifndef BLKBOX_FINDINGS_H
#define BLKBOX_FINDINGS_H

#include "judge.h"
#include "sites.h"

/* What became of a disk. */
struct site_verdict {
	enum mount_outcome outcome;	/* MOUNT_OK or MOUNT_FAILED */
	int error;
	char *log;			/* new words of the kernel, NULL */
	struct judgement j;		/* MOUNT_OK */
};

struct verdict_table {
	struct intern keys;
	u32 cap;
	struct site_verdict *v;
	struct intern check_keys;
	u32 cap_checks;
	struct check_result *checks;	/* those that did not pass */
};

/*
 * The verdict's number. usual is what the kernel says of the undamaged file
 * system; lines of log that are in it, numbers aside, are no news. -EBADMSG
 * when core is not a judgement.
 */
int verdict_add(struct verdict_table *vt, enum mount_outcome outcome, int error,
		const char *usual, const char *log, const void *core,
		size_t core_len, u32 *ret);
u32 verdict_add_check(struct verdict_table *vt, const struct check_result *r);
void verdict_table_done(struct verdict_table *vt);

/* A finding before it is put into words. */
struct found {
	enum finding_kind kind;
	u32 entry;		/* witness, in the site book */
	u32 verdict;
	u32 promise;		/* FIND_DURABILITY */
	u32 check;		/* FIND_CHECK */
	u32 n_drop, point;	/* of the witness */
	u64 distance;
	u64 count;
	bool gone_only;		/* see files_gone_only() */
};

struct found_list {
	u32 n, cap;
	struct found *f;	/* worst first */
	u64 n_disks;		/* distinct disks with a finding */
	u64 n_excused;		/* distinct disks that may have lost data, but
				 * what was expected is not known */
	u64 max_distance;	/* over all sites, finding or not */
};

struct findings_input {
	const struct trace *t;
	const struct expected *e;
	const struct promises *p;	/* may be NULL */
	const struct site_book *book;
	const struct verdict_table *vt;
	u64 threshold;
	bool distance_judges;
	u64 data_seq;		/* no data is expected before it; 0 */
	u64 lost_seq;		/* no expected state is known from here on */
};

void findings_collect(const struct findings_input *in, struct found_list *ret);
void found_list_done(struct found_list *l);

/*
 * Is no file there with its bytes lost? An empty file under the right name
 * misleads whoever comes next (make finds it up to date, an editor opens it);
 * a missing one is missed at once. So of two equal losses the first is worse.
 */
bool files_gone_only(const struct file_finding *f, u32 n);

/* Worst first; the order of reports. */
int finding_compare(const struct finding *a, const struct finding *b);
void finding_done(struct finding *f);

#endif
