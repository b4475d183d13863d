/*
 * HVO, the way back: struct pages of their own for pages of mapped sections, and 2 MiB pages out of 1 GiB ones. See hvo.h;
 * why each order of steps is safe: hvo.c.
 */
#include "kernel/panic.h"
#include "mm/hvo_steps.h"
#include "mm/section.h"
#include "mm/transit.h"
#include "mm/vmemmap.h"

/* Where the struct pages of a block came from: its section's memmap, counted by that block's node. */
struct tails_source {
	struct node *node;
	enum meta_kind kind;
};

/*
 * Reserve `count` frames where the memmap of the section is, or else of any tails. A node that could not grow for an earlier page is in
 * *starved, and is not asked to again: what the batch gives back comes after it.
 */
static int reserve_tails(struct mm *mm, u32 index, u64 count, struct tails_source *source, struct node **starved)
{
	int err;

	struct node *home = block_at(mm, section_memmap(mm, index / SECTION_BLOCKS))->meta->node;

	*source = (struct tails_source){.node = home, .kind = META_MEMMAP};
	if (meta_reserve_now(home, META_MEMMAP, count) == 0)
		return 0;
	source->node = block_meta_node(mm, index);
	if (source->node == *starved)
		return -ENOMEM;
	err = meta_reserve_tails(source->node, count, &source->kind);
	if (err < 0)
		*starved = source->node;
	return err;
}

/* Frames [from, 8) of a block, filled with free struct pages: from its own section's memmap if that is the kind. Reserved. */
static void fill_tails(struct mm *mm, const struct tails_source *source, u32 index, unsigned from,
		       pfn_t frames[MEMMAP_FRAMES_PER_BLOCK])
{
	const u8 zone = block_look_at(mm, index).zone;
	const u32 memmap = source->kind == META_MEMMAP ? section_memmap(mm, index / SECTION_BLOCKS) : BLOCK_NONE;

	for (unsigned i = from; i < MEMMAP_FRAMES_PER_BLOCK; i++) {
		frames[i] = meta_take_from(source->node, source->kind, memmap);
		memmap_init_pages(phys_to_virt(frames[i] << PAGE_SHIFT), STRUCTS_PER_FRAME, zone);
	}
}

/* All frames of a run are reserved before its first line changes, so it is restored whole or not at all. */
static int restore_run(struct mm *mm, u32 index, struct node **starved)
{
	const u32 blocks = order_blocks(block_look_at(mm, index).order);
	struct tails_source source;
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK];

	if (reserve_tails(mm, index, (u64)blocks * MEMMAP_FRAMES_PER_BLOCK - 1, &source, starved) < 0)
		return -ENOMEM;
	for (u32 i = blocks; i-- > 1;) {
		fill_tails(mm, &source, index + i, 0, frames);
		vmemmap_set_full(mm, index + i, frames);
		block_set_state(mm, index + i, BLOCK_FULL);
	}
	fill_tails(mm, &source, index, 1, frames);
	vmemmap_unshare_tails(mm, index, frames);
	/* The head's frame, in place. */
	memmap_init_pages(pfn_page(mm, block_pfn(index)), STRUCTS_PER_FRAME, block_look_at(mm, index).zone);
	block_set_state(mm, index, BLOCK_FULL);
	return 0;
}

int hvo_restore(struct mm *mm, const struct hvo_mode *mode, struct block_list *list, struct block_list *done,
		u64 *restored)
{
	struct block_list kept = BLOCK_LIST_INIT;
	struct node *starved = NULL;
	u32 index;

	*restored = 0;
	while ((index = block_list_pop(mm, list)) != BLOCK_NONE) {
		const struct block_word word = block_look_at(mm, index);
		const bool huge = word.state == BLOCK_HUGE && (word.flags & BLOCK_MAPPED);

		if (huge && restore_run(mm, index, &starved) < 0) {
			block_list_push(mm, &kept, index);
			continue;
		}
		block_list_push(mm, done, index);
		*restored += huge;
		if (huge && mode->remap_each)
			hvo_round_of_page(mode, mm, index, word.order);
	}
	if (*restored > 0 && !mode->remap_each)
		hvo_round(mode);
	*list = kept;
	return kept.count ? -ENOMEM : 0;
}

/* ---- demotion ---- */

/* Phase 1: not present. The head's frame is kept for the first of the new pages. */
static pfn_t demote_clear(struct mm *mm, u32 index)
{
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK], head;

	vmemmap_clear(mm, index, frames);
	head = frames[0];
	for (u32 i = 1; i < GIB_BLOCKS; i++)
		vmemmap_clear(mm, index + i, frames);
	return head;
}

/* One of the `left` heads that the page still needs. */
static pfn_t next_head(struct mm *mm, struct head_stash *stash, u32 index, u32 left)
{
	if (stash->at == stash->count) {
		stash->at = 0;
		stash->count = MIN(left, HEADS_AT_ONCE);
		meta_take_many(block_meta_node(mm, index), META_LONG, stash->frame, stash->count);
	}
	return stash->frame[stash->at++];
}

/* Phase 2, after the round: 512 heads with tails of order 9. */
static void demote_map(struct mm *mm, u32 index, struct block_list *done)
{
	struct zone *zone = block_zone(mm, index);
	const pfn_t tail = vmemmap_shared_tail(mm, zone, BLOCK_ORDER), first = block_at(mm, index)->owner;
	struct head_stash stash = {.count = 0};

	block_at(mm, index)->owner = 0;
	block_cut(zone, index, done);
	for (u32 i = 0; i < GIB_BLOCKS; i++) {
		if (i == 0) {
			vmemmap_set_huge(mm, index, form_head_frame(mm, index, BLOCK_ORDER, first), tail);
		} else {
			const pfn_t head = next_head(mm, &stash, index, GIB_BLOCKS - i);

			vmemmap_set_huge(mm, index + i, form_head_frame(mm, index, BLOCK_ORDER, head), tail);
			block_set_state(mm, index + i, BLOCK_HUGE);
		}
	}
}

u64 hvo_demote(struct mm *mm, struct block_list *list, struct block_list *done)
{
	struct block_list cleared = BLOCK_LIST_INIT, kept = BLOCK_LIST_INIT;
	u64 demoted;
	u32 index;

	while ((index = block_list_pop(mm, list)) != BLOCK_NONE) {
		if (meta_reserve(block_meta_node(mm, index), META_LONG, GIB_BLOCKS - 1) < 0) {
			block_list_push(mm, &kept, index);
			continue;
		}
		block_at(mm, index)->owner = demote_clear(mm, index);
		block_list_push(mm, &cleared, index);
	}
	*list = kept;
	demoted = cleared.count;
	if (demoted > 0)
		shootdown_wait(shootdown_tag());
	while ((index = block_list_pop(mm, &cleared)) != BLOCK_NONE)
		demote_map(mm, index, done);
	return demoted;
}
