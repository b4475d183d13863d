/*
 * HVO, huge page vmemmap optimisation: a huge page needs its head and one page of tails, not the 8 (or 4096) frames of struct
 * pages that describe small ones.
 *
 *   before S0   unbatched   flush all CPUs after each PMD split and after each page's remap
 *   S0          batched     split all, one flush, remap all, one flush; restore with one flush
 *     in part   split-only  splits share a flush, each remap has its own: the 10th patch alone
 *               remap-only  each split has its own, remaps share one: the 11th and 12th alone
 *   ours        on          tails that were never needed are never built: bare -> huge is not present -> present, no flush;
 *                           freed huge blocks stay huge; only blocks that were split before are remapped
 *               off         struct pages as they are, all tails written
 *
 * The modes are rows of one table and share every function; they differ in what they take and where the flush stands.
 * Orders: BLOCK_ORDER (2 MiB) and GIGA_ORDER (1 GiB, 512 blocks: HUGE and 511 NOHEAD).
 */
#pragma once

#include "kernel/shootdown.h"
#include "mm/zone.h"

struct hvo_mode {
	const char *name;
	bool optimise;   /* share the tails; else all struct pages stay */
	bool mapped;     /* take blocks of mapped sections only: the baselines */
	bool split_each; /* a round for each split instead of one for a batch: before the series' 10th patch */
	bool remap_each; /* a round for each page remapped or restored: before its 11th and 12th */
	bool part;       /* one patch without the others: benchmarks run it where it is named */
	bool new_head;   /* the head moves to a frame of its own, as in S0; else it stays in place */
	bool keep;       /* freed pages that have all their struct pages stay formed, for the next to grow */
	bool defer;      /* the round after a remap may wait until somebody uses the page: see hvo_settle() */
	bool parallel;   /* many pages are divided among CPUs */
	enum shootdown_idle idle; /* baselines interrupt every CPU, and join nobody's round (hvo_steps.h) */
};

extern const struct hvo_mode hvo_modes[]; /* ends with a NULL name */

/* The mode chosen with hvo=, on by default; by name, NULL if there is none. */
const struct hvo_mode *hvo_mode_selected(void);
const struct hvo_mode *hvo_mode_find(const char *name);

/*
 * Append up to `count` free runs of `order` of one zone that suit the mode to `list`, in transit, opening sections as needed. A head
 * frame is reserved for each that will need one, before it is unlinked. Returns how many. No lock held.
 */
u64 hvo_take_blocks(struct zone *zone, const struct hvo_mode *mode, unsigned order, u64 count, struct block_list *list);

/*
 * Make every run of `list` (in transit) a huge page: head formed, frozen and marked PAGE_HUGETLB, tails as the mode has them. Where a page
 * table can not be had to split a section, the others are done first, what they gave up is flushed, and the rest is tried again, while
 * that helps. Runs that are left, all their struct pages as they were, go to `left`, in transit; their number is the result.
 */
u64 hvo_optimise(struct mm *mm, const struct hvo_mode *mode, struct block_list *list, struct block_list *left);

/*
 * How many CPUs hvo_optimise() gives `pages` to: idle ones must be woken, so each is to have something to do; virtual ones share few real
 * ones, and one that its host does not run just now keeps everybody waiting for its stretch. Context: any.
 */
unsigned hvo_threads_for(const struct hvo_mode *mode, u64 pages);

/* FULL runs of `list`, in transit, become huge pages with all their struct pages, as hvo=off makes them. */
void hvo_form(struct mm *mm, const struct hvo_mode *mode, const struct block_list *list);

/*
 * Whoever gives a page to a user calls this first: the round that its remap left due, if nobody had one since, is done now. Until
 * then a CPU may still see the struct pages that were the tails before. No lock held; nothing to do, usually.
 */
void hvo_settle(struct mm *mm, u32 index);

/*
 * The opposite, before pages of mapped sections go back to the buddy: all struct pages are private again. Goes on past what there are no
 * frames for: 0 or -ENOMEM, and *restored counts what was restored and moved to `done`; the rest stays in `list`, still
 * huge and whole (S0's contract: error *and* count). Pages that have all their struct pages just move.
 */
int hvo_restore(struct mm *mm, const struct hvo_mode *mode, struct block_list *list, struct block_list *done,
		u64 *restored);

/*
 * 1 GiB pages of `list` (in transit) become 512 pages of 2 MiB each, in `done`: two-phase (cleared, one round for all,
 * mapped anew). 511 heads a page are reserved first; pages for which there are none stay in `list`, unchanged. Returns
 * how many were demoted.
 */
u64 hvo_demote(struct mm *mm, struct block_list *list, struct block_list *done);

/* Huge runs of `list`, of on-demand sections, in transit, lose their struct pages: BARE, in transit still. One round. */
void hvo_make_bare(struct mm *mm, struct block_list *list);

/*
 * 512 pieces from `first` on, each in transit, bare and full ones of on-demand sections, become one huge page in transit; one round if
 * any was full. 0; -ENOMEM, or -EBUSY as block_join() says it, with nothing changed. (hvo_gather.c)
 */
int hvo_gather(struct mm *mm, u32 first);

/*
 * Free huge runs of a zone become bare, or full in mapped sections, with one round (and one for restores): up to `count` of
 * 2 MiB, and of 1 GiB as many as the rest fills, the last perhaps in part. Returns runs. No lock held.
 */
enum { HVO_BARE_BATCH = 64 };
u64 hvo_bare_free_huge(struct zone *zone, u64 count);

/* The same for one huge run in transit: free when this returns, bare, or full in mapped sections (still huge for lack of frames). */
void hvo_bare_run(struct zone *zone, u32 index);

/* Up to `count` free full blocks of on-demand sections become free huge ones, one round. Returns blocks. No lock held. */
u64 hvo_huge_free_full(struct zone *zone, u64 count);
