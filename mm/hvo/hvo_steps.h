/*
 * Steps that the way to huge pages (hvo.c) and the way back (hvo_restore.c) share. For those two
 * files only.
 */
#pragma once

#include "mm/hvo/hvo.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/vmemmap.h"

/*
 * The round after a step of `mode`. Baselines start a round of their own whatever other CPUs do,
 * because they are compared by its cost. Our mode joins a round that another CPU has started since.
 */
static inline void hvo_round(const struct hvo_mode *mode)
{
	if (mode->idle == SHOOTDOWN_SKIP_IDLE)
		shootdown_wait(shootdown_tag());
	else
		shootdown_full(mode->idle);
}

/*
 * The round of a mode that has one for each page. It flushes the translations of the page's struct
 * pages one by one (INVLPG) if they are few, else everything, as Linux's flush_tlb_kernel_range()
 * does. It completes no tag: the caller must know which frames it made reusable.
 */
static inline void hvo_round_of_page(const struct hvo_mode *mode, const struct mm *mm, u32 index,
				     unsigned order)
{
	struct shootdown_batch batch = {.ranges = 0};

	shootdown_batch_add(&batch, vmemmap_of_block(mm, index),
			    (u64)order_blocks(order) * MEMMAP_FRAMES_PER_BLOCK);
	shootdown_batch_flush(&batch, mode->idle);
}

/*
 * A stash of reserved frames for the heads of the next pages. They are taken many at a time to
 * spare the lock.
 */
enum { HEADS_AT_ONCE = 64 };
struct head_stash {
	pfn_t frame[HEADS_AT_ONCE];
	unsigned at, count;
};

/*
 * Write the head of block `index`, a page of `order`, and 63 tails into `frame`. Returns `frame`.
 */
static inline pfn_t form_head_frame(struct mm *mm, u32 index, unsigned order, pfn_t frame)
{
	memmap_init_head_frame(phys_to_virt(frame << PAGE_SHIFT), order,
			       block_look_at(mm, index).zone);
	return frame;
}
