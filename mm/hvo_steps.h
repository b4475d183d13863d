/*
 * Steps that both ways share, to huge pages (hvo.c) and back (hvo_restore.c). Not for others.
 */
#pragma once

#include "mm/hvo.h"
#include "mm/memmap.h"
#include "mm/meta.h"
#include "mm/vmemmap.h"

/*
 * The round after a step of `mode`. Baselines start a round of their own, whatever others do: its cost is what they are compared by. Ours
 * joins one that another CPU has started since.
 */
static inline void hvo_round(const struct hvo_mode *mode)
{
	if (mode->idle == SHOOTDOWN_SKIP_IDLE)
		shootdown_wait(shootdown_tag());
	else
		shootdown_full(mode->idle);
}

/*
 * The round of a mode that has one for each page: of the entries of its struct pages alone where they are few, page by page (INVLPG), and
 * else a full one, as Linux's flush_tlb_kernel_range() does. It completes no tag: what it was for is the caller's to know.
 */
static inline void hvo_round_of_page(const struct hvo_mode *mode, const struct mm *mm, u32 index, unsigned order)
{
	struct shootdown_batch batch = {.ranges = 0};

	shootdown_batch_add(&batch, vmemmap_of_block(mm, index), (u64)order_blocks(order) * MEMMAP_FRAMES_PER_BLOCK);
	shootdown_batch_flush(&batch, mode->idle);
}

/* Frames for the heads of the pages that come next: taken many at a time, for the lock's sake. They are reserved. */
enum { HEADS_AT_ONCE = 64 };
struct head_stash {
	pfn_t frame[HEADS_AT_ONCE];
	unsigned at, count;
};

/* `frame` becomes that of the head of block `index`, a page of `order`, and of 63 tails. */
static inline pfn_t form_head_frame(struct mm *mm, u32 index, unsigned order, pfn_t frame)
{
	memmap_init_head_frame(phys_to_virt(frame << PAGE_SHIFT), order, block_look_at(mm, index).zone);
	return frame;
}
