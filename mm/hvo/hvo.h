/*
 * HVO, huge page vmemmap optimisation. A huge page needs its head and one page of tails, not the 8
 * (or 4096) frames of struct pages that describe small pages.
 *
 *   before the HVO series (Kravetz 2023)
 *               unbatched   flush all CPUs after each PMD split and after each page's remap
 *   the HVO series
 *               batched     split all, one flush, remap all, one flush; restore with one flush
 *     in part   split-only  splits share a flush, each remap has its own: the 10th patch alone
 *               remap-only  each split has its own, remaps share one: the 11th and 12th alone
 *   2025-26     preinit     the HVO series, and 1 GiB pages made at boot are born without tails,
 *                           before all other struct pages are made
 *   ours        on          tails that were never needed are never built: bare -> huge is not
 *                           present -> present, no flush; freed huge blocks stay huge; only
 *                           blocks that were split before are remapped
 *               off         struct pages as they are, all tails written
 *               off-keep    as off, and freed pages stay formed for the next use
 *
 * The modes are rows of one table and share every function. They differ in the blocks they take and
 * in the places of the flushes. Orders: BLOCK_ORDER (2 MiB) and GIGA_ORDER (1 GiB, 512 blocks: HUGE
 * and 511 NOHEAD).
 */
#pragma once

#include "kernel/core/shootdown.h"
#include "mm/memmap/zone.h"

struct hvo_mode {
	const char *name;
	bool optimise; /* share the tails; else all struct pages stay */
	bool mapped;   /* take blocks of mapped sections only: the baselines */
	/*
	 * a round for each split instead of one for a batch, as before the HVO series' 10th patch
	 */
	bool split_each;
	/* a round for each page remapped or restored, as before its 11th and 12th patches */
	bool remap_each;
	/*
	 * some patches of a series without the others, or another series' boot; run only when named
	 */
	bool part;
	/*
	 * 1 GiB pages of pools at boot are made before the memmap and never had more struct pages
	 * (pool_boot.h)
	 */
	bool born;
	/* the head moves to a frame of its own, as in the HVO series; else it stays in place */
	bool new_head;
	/*
	 * freed pages that have all their struct pages stay formed, for the next time a pool grows
	 */
	bool keep;
	/* the round after a remap may wait until the page is given to a user: see hvo_settle() */
	bool defer;
	/* baselines interrupt every CPU and never join another CPU's round (hvo_steps.h) */
	enum shootdown_idle idle;
};

extern const struct hvo_mode hvo_modes[]; /* ends with a NULL name */
enum { HVO_ON = 3 };                      /* the place of ours */

/*
 * Make every run of `list` (in transit) a huge page: head formed, frozen and marked PAGE_HUGETLB,
 * tails as the mode has them.
 *
 * If META has no frame for the table that splits a section, the other runs are done first, the
 * frames that they gave up are flushed, and the rest is tried again, as long as that helps. Runs
 * that remain undone go to `left`, in transit, with all their struct pages as they were; the result
 * is their number.
 */
u64 hvo_optimise(struct mm *mm, const struct hvo_mode *mode, struct block_list *list,
		 struct block_list *left);

/* Make FULL runs of `list`, in transit, huge pages with all their struct pages, as hvo=off does. */
void hvo_form(struct mm *mm, const struct hvo_mode *mode, struct block_list *list);

/*
 * Complete the round that the remap of a page left due, unless one was completed since. Code that
 * gives a page to a user must call this first: until the round is done, a CPU may still see the
 * struct pages that described the tails before. No lock held. Usually there is nothing to do.
 */
void hvo_settle(struct mm *mm, u32 index);
