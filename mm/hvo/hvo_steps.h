/*
 * A batch of runs, and what the way to huge pages (hvo_make.c) and the way back (hvo_restore.c)
 * share. The modes (hvo.c) work in steps over such a batch.
 */
#pragma once

#include "mm/hvo/hvo.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/vmemmap.h"

/* The CPU that works on a batch owns it, and the records, lines and struct pages of its runs. */
struct hvo_batch {
	struct mm *mm;
	const struct hvo_mode *mode;
	struct block_list list;     /* the runs, in transit */
	struct block_list left_out; /* runs that a step had to leave as they were, in transit */
	u64 to_do;                  /* runs that need work: decides how many CPUs share it */
	bool alike;                 /* all runs are in one state and zone, as far as is known */
	bool round_due;             /* a step changed translations; a round must follow */
};

/*
 * The round after a step, if one is due. Baselines start a round of their own whatever other CPUs
 * do, because they are compared by its cost, and interrupt every CPU that is not quiet. Ours is
 * content with a round that another CPU has started since, and idle CPUs may flush later.
 */
static inline void hvo_round(struct hvo_batch *batch)
{
	if (batch->round_due && batch->mode->mapped)
		shootdown_full(SHOOTDOWN_SKIP_QUIET);
	else if (batch->round_due)
		shootdown_wait(shootdown_tag());
	batch->round_due = false;
}

/*
 * The round of one page. It flushes the translations of the page's struct pages one by one (INVLPG)
 * if they are few, else everything, as Linux's flush_tlb_kernel_range() does. It completes no tag:
 * the caller must know which frames it made reusable.
 */
static inline void hvo_round_of_page(const struct mm *mm, u32 index, unsigned order)
{
	struct shootdown_batch batch = {.ranges = 0};

	shootdown_batch_add(&batch, vmemmap_of_block(mm, index),
			    (u64)order_blocks(order) * MEMMAP_FRAMES_PER_BLOCK);
	shootdown_batch_flush(&batch, SHOOTDOWN_ALL_CPUS);
}

/*
 * The runs that CPUs may divide among them. With a round for each page, they have these rounds
 * under way at the same time. The round of a 2 MiB page is ranged, a call that each CPU answers
 * separately, so there are as many rounds and messages as with one CPU. The round of a 1 GiB page
 * is a full one. A CPU that is asked for two full rounds at once flushes once for both, so pages
 * would share rounds; therefore one CPU makes all 1 GiB pages.
 */
static inline u64 hvo_to_share(const struct hvo_batch *batch)
{
	const u32 first = batch->list.head;

	if (first == BLOCK_NONE ||
	    (batch->mode->page_rounds && block_look_at(batch->mm, first).order > BLOCK_ORDER))
		return 0;
	return MIN(batch->to_do, batch->list.count);
}
