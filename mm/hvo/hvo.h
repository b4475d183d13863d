/*
 * HVO, huge page vmemmap optimisation. A huge page needs its head and one page of tails, not the 8
 * (or 4096) frames of struct pages that describe small pages.
 *
 *   before the HVO series (Kravetz 2023)
 *               unbatched   flush all CPUs after each PMD split and after each page's remap
 *   the HVO series
 *               batched     split all, one flush, remap all, one flush; restore with one flush
 *   2025-26     preinit     the HVO series, and 1 GiB pages made at boot are born without tails,
 *                           before all other struct pages are made
 *   ours        on          tails that were never needed are never built: bare -> huge is not
 *                           present -> present, no flush; freed huge blocks stay huge; only
 *                           blocks that were split before are remapped
 *               off         struct pages as they are, all tails written
 *
 * The modes are rows of one table (hvo.c). They share their steps and differ in the memory that
 * they take, in rounds, and in the place of the head. Orders: BLOCK_ORDER (2 MiB) and GIGA_ORDER
 * (1 GiB, 512 blocks: HUGE and 511 NOHEAD).
 */
#pragma once

#include "kernel/core/shootdown.h"
#include "mm/memmap/zone.h"

struct hvo_batch;

struct hvo_mode {
	const char *name;

	/* ---- what it takes and does ---- */

	/* the classes of free runs that it takes, in this order (hvo_take.c) */
	u8 classes;
	enum free_class class[FREE_CLASSES];
	/* make every run of the batch a page: hvo_make.h; off: hvo_form(), else tails are shared */
	void (*make)(struct hvo_batch *batch);

	/* ---- facts about it ---- */

	bool mapped; /* it works on blocks of mapped sections: the baselines */
	/*
	 * 1 GiB pages of pools at boot are made before the memmap and never had more struct pages
	 * (pool_boot.h). Benchmarks run it only when it is named.
	 */
	bool born;
	/*
	 * A frame for its head is reserved for each run that is taken, and the head moves there, as
	 * in the HVO series. Otherwise only a bare run has one, and other heads stay in place.
	 */
	bool new_head;
	/* each split, and each page, has a round of its own: benchmarks give it fewer pages */
	bool page_rounds;
};

extern const struct hvo_mode hvo_modes[]; /* ends with a NULL name */
enum { HVO_ON = 3 };                      /* the place of ours */

extern unsigned hvo_selected; /* the place of the mode chosen with hvo=, `on` by default */

/* The chosen mode. Inline, because every 2 MiB page that is allocated or freed asks for it. */
static inline const struct hvo_mode *hvo_mode_selected(void)
{
	return &hvo_modes[hvo_selected];
}

/* The mode of a caller that may leave the choice to hvo= (NULL). */
static inline const struct hvo_mode *hvo_mode_or_selected(const struct hvo_mode *mode)
{
	return mode ? mode : hvo_mode_selected();
}

/* The sections in which the mode finds most memory. */
static inline enum section_style hvo_style(const struct hvo_mode *mode)
{
	return mode->mapped && !mode->born ? SECTION_MAPPED : SECTION_ON_DEMAND;
}

/* For pools at boot: as hvo=on, but only bare runs are taken, and they stay bare (pool.h). */
extern const struct hvo_mode hvo_leave_bare;

/*
 * Make every run of `list` (in transit) a huge page: head formed, frozen and marked PAGE_HUGETLB,
 * tails as the mode has them.
 *
 * If metadata memory has no frame for the table that splits a section, the other runs are done
 * first, the frames that they gave up are flushed, and the rest is tried again, as long as that
 * helps. Runs that remain undone go to `left`, in transit, with all their struct pages as they
 * were; the result is their number.
 */
u64 hvo_optimise(struct mm *mm, const struct hvo_mode *mode, struct block_list *list,
		 struct block_list *left);

/*
 * hvo_optimise() for runs of which each becomes a page: those that cannot be optimised are pages
 * with all their struct pages.
 */
void hvo_make_all(struct mm *mm, const struct hvo_mode *mode, struct block_list *list);

/*
 * Complete the round that the remap of a page left due, unless one was completed since. Code that
 * gives a page to a user must call this first: until the round is done, a CPU may still see the
 * struct pages that described the tails before. No lock held. Usually there is nothing to do.
 */
void hvo_complete_round(struct mm *mm, u32 index);
