/*
 * Making a 1 GiB page out of 512 blocks that became free one by one: some bare, some full. See
 * hvo.h.
 *
 *   bare   nothing -> [shared tail x8]         not present -> present: no flush
 *   full   [8 private] -> [shared tail x8]     frames gated, one round for all of them at the end
 *   first  its head frame: a new one, where frames live for ever, because the block of the one in
 *          place should not stay as long as the page
 *
 * All tails of order 18 are alike, so it does not matter what a block was before. No other code
 * uses the struct pages meanwhile, because the blocks are in transit.
 */
#include "mm/hvo/hvo_gather.h"

#include "kernel/core/panic.h"
#include "mm/hvo/hvo.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/vmemmap.h"
#include "mm/zone/transit.h"

static void gate(struct mm *mm, const pfn_t frames[MEMMAP_FRAMES_PER_BLOCK])
{
	const u64 tag = shootdown_tag();

	for (unsigned i = 0; i < MEMMAP_FRAMES_PER_BLOCK; i++)
		if (frames[i] != PFN_NONE)
			meta_give(mm, frames[i], tag);
}

/* Convert one of blocks 1..511. True if the block had struct pages that are shared now. */
static bool gather_tail(struct mm *mm, u32 index, pfn_t tail)
{
	const bool full = block_look_at(mm, index).state == BLOCK_FULL;
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK];

	if (full) {
		vmemmap_share_all(mm, index, tail, frames);
		gate(mm, frames);
	} else {
		vmemmap_set_nohead(mm, index, tail);
	}
	block_set_state(mm, index, BLOCK_NOHEAD);
	return full;
}

/* Convert the first block, with a reserved frame for its head. True as gather_tail(). */
static bool gather_head(struct mm *mm, struct node *node, u32 index, pfn_t tail)
{
	const struct block_word word = block_look_at(mm, index);
	const bool full = word.state == BLOCK_FULL;
	const pfn_t head = meta_take(node, META_LASTING);
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK];

	memmap_init_head_frame(phys_to_virt(head << PAGE_SHIFT), GIGA_ORDER, word.zone);
	if (full) {
		vmemmap_share_tails(mm, index, head, tail, frames);
		gate(mm, frames);
	} else {
		vmemmap_set_huge(mm, index, head, tail);
	}
	block_set_state(mm, index, BLOCK_HUGE);
	return full;
}

int hvo_gather(struct mm *mm, u32 first)
{
	struct zone *zone = block_zone(mm, first);
	struct node *node = zone_meta_node(zone);
	const pfn_t tail = vmemmap_shared_tail(mm, zone, GIGA_ORDER);
	bool round_due;

	if (meta_reserve(node, META_LASTING, 1) < 0)
		return -ENOMEM;
	/* before all else: from here on, other CPUs can cut or isolate only the whole */
	if (block_join(zone, first) < 0) {
		meta_unreserve(node, META_LASTING, 1);
		return -EBUSY;
	}
	round_due = gather_head(mm, node, first, tail);
	for (u32 index = first + 1; index < first + GIB_BLOCKS; index++)
		round_due |= gather_tail(mm, index, tail);
	if (round_due)
		shootdown_wait(shootdown_tag());
	return 0;
}
