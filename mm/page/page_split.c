/*
 * Blocks become small pages: see page_split.h.
 *
 * The order of preference for a block to split is full, mapped, bare, unopened, huge. Blocks that
 * are cheapest to give struct pages come first, and huge blocks stay huge as long as anything else
 * is left. A whole block taken for another type is claimed for that type: its type is changed
 * before it is split, so the free-list type always equals the block's type.
 *
 * The frames that a change of state needs are reserved before the block is unlinked, and no lock is
 * held during the change.
 */
#include "mm/page/page_split.h"

#include "mm/hvo/hvo_unshare.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/upward.h"
#include "mm/memmap/vmemmap.h"
#include "mm/memmap/enter.h"
#include "mm/zone/buddy.h"
#include "mm/zone/buddy_small.h"
#include "mm/zone/gigablock.h"
#include "mm/zone/migratetype.h"
#include "mm/zone/section.h"
#include "mm/zone/transit.h"
#include "mm/zone/watermark.h"

/*
 * Which blocks may be claimed. Blocks of unmovable pages are kept together as long as there are
 * others. CLAIM_TAINTED: only those of tainted GiB (gigablock.h).
 */
enum claim { CLAIM_MOVABLE, CLAIM_ANY, CLAIM_TAINTED };

/* The block to split: this one, or, with BLOCK_NONE, any that may be claimed for `type`. */
struct wanted {
	u32 index;
	unsigned also; /* this one may be of these (enum block_source) */
	enum migratetype type;
	enum claim claim;
};

/* May a block of `type` be claimed, whole? CMA keeps its own blocks and claims none. */
static bool may_claim(const struct wanted *want, unsigned type)
{
	if (want->claim == CLAIM_TAINTED)
		return type == MIGRATE_UNMOVABLE;
	return type == want->type || (want->type != MIGRATE_CMA && type < MIGRATE_CMA &&
				      (want->claim == CLAIM_ANY || type != MIGRATE_UNMOVABLE));
}

/* Might a search find one? Without it no lock is taken, and no frame reserved, for nothing. */
static bool may_find(const struct zone *zone, enum free_class class, const struct wanted *want)
{
	if (want->index != BLOCK_NONE)
		return atomic_load_relaxed(&zone->free_class[class]) > 0;
	for (unsigned type = 0; type <= MIGRATE_CMA; type++)
		if (may_claim(want, type) &&
		    atomic_load_relaxed(&zone->block_lists[class][type]) != 0)
			return true;
	return false;
}

static u32 take_block(struct zone *zone, enum free_class class, const struct wanted *want)
{
	u32 index;

	if (!may_find(zone, class, want))
		return BLOCK_NONE;
	if (want->index != BLOCK_NONE)
		return block_take_in(zone, want->index, 1, 1u << class | want->also, BLOCK_FULL);
	if (want->claim == CLAIM_TAINTED)
		return gigablock_take(zone, class, BLOCK_FULL);
	zone_lock(zone);
	index = buddy_take_blocks(zone, BLOCK_ORDER, class, want->type);
	for (unsigned type = 0; type < MIGRATE_CMA && index == BLOCK_NONE; type++)
		if (may_claim(want, type))
			index = buddy_take_blocks(zone, BLOCK_ORDER, class, type);
	if (index != BLOCK_NONE)
		block_begin(zone, index, BLOCK_ORDER, BLOCK_FULL);
	zone_unlock(zone);
	return index;
}

/*
 * Put a full block in transit on the small lists. If another CPU has meanwhile split a block for
 * the same need, so that a chunk of at least `order` is there, the block stays whole and free,
 * because two halves of it would keep its section from ever being closed. With `order` PAGE_ORDERS
 * the block is split in any case.
 */
static void block_publish_split(struct zone *zone, u32 index, unsigned order,
				const struct wanted *want)
{
	struct block *block = block_at(zone->mm, index);
	struct block_word word;

	zone_lock(zone);
	word = block_look(block);
	word.flags &= (u8)~BLOCK_TRANSIT;
	word.order = 0;
	if (want->index == BLOCK_NONE)
		word.type = (u8)((word.type & ~BLOCK_TYPE_MASK) | want->type);
	block_put(block, word);
	counter_sub(&zone->transit, BLOCK_FRAMES);
	if (zone->page_orders[type_list(word.type)] >> order)
		buddy_free_blocks(zone, index, BLOCK_ORDER, block_free_class(word));
	else
		buddy_split_block(zone, index);
	zone_unlock(zone);
	if (want->claim == CLAIM_TAINTED)
		gigablock_taint(zone, index); /* if it was found to be clean just now */
}

void block_full_from_bare(struct zone *zone, struct node *node, enum meta_kind kind, u32 index)
{
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK];

	meta_take_many(node, kind, BLOCK_NONE, frames, MEMMAP_FRAMES_PER_BLOCK);
	for (unsigned i = 0; i < MEMMAP_FRAMES_PER_BLOCK; i++)
		memmap_form_free(phys_to_virt(frames[i] << PAGE_SHIFT), STRUCTS_PER_FRAME,
				 zone->index);
	vmemmap_set_private(zone->mm, index, 0, frames);
	block_set_state(zone->mm, index, BLOCK_FULL);
}

static bool split_bare_block(struct zone *zone, unsigned order, const struct wanted *want)
{
	struct node *node = zone_meta_node(zone);
	enum meta_kind kind;
	u32 index;

	/* Metadata memory must not grow for nothing */
	if (!may_find(zone, FREE_BARE, want))
		return false;
	if (meta_reserve_tails(node, MEMMAP_FRAMES_PER_BLOCK, &kind) < 0)
		return false;
	index = take_block(zone, FREE_BARE, want);
	if (index == BLOCK_NONE) {
		meta_unreserve(node, kind, MEMMAP_FRAMES_PER_BLOCK);
		return false;
	}
	block_full_from_bare(zone, node, kind, index);
	block_publish_split(zone, index, order, want);
	return true;
}

/* Split a block that has its struct pages. */
static bool split_full_block(struct zone *zone, unsigned order, const struct wanted *want)
{
	u32 index = take_block(zone, FREE_FULL, want);

	if (index == BLOCK_NONE)
		index = take_block(zone, FREE_MAPPED, want);
	if (index == BLOCK_NONE)
		return false;
	block_publish_split(zone, index, order, want);
	return true;
}

static bool split_free_block(struct zone *zone, unsigned order, enum migratetype type,
			     bool may_wait, enum claim claim)
{
	const struct wanted want = {.index = BLOCK_NONE, .type = type, .claim = claim};

	return split_full_block(zone, order, &want) ||
	       (may_wait && split_bare_block(zone, order, &want));
}

bool page_split_block(struct zone *zone, u32 index, unsigned also)
{
	const struct wanted want = {.index = index, .also = also};

	return split_full_block(zone, PAGE_ORDERS, &want) ||
	       split_bare_block(zone, PAGE_ORDERS, &want);
}

/*
 * Make free huge pages small: 4, 8, ... 128 with one round, doubling until a block is whole and
 * free again (buddy_small.c). So the first small page waits for few struct pages to be written, and
 * many small pages pay for few rounds. Where frames for struct pages are missing, or only 1 GiB
 * pages are left, huge pages give their frames back first.
 */
static bool split_huge_blocks(struct zone *zone)
{
	const u32 batch = atomic_load_relaxed(&zone->split_batch);

	if (hvo_full_free_huge(zone, batch) == 0)
		return hvo_bare_free_huge(zone, 1) > 0;
	atomic_store_relaxed(&zone->split_batch, MIN(2 * batch, SPLIT_BATCH_MAX));
	return true;
}

/*
 * A block for pages that cannot be moved, placed by GiB: in tainted GiB only. If blocks of the
 * other such type have pages left, the caller takes these, and the answer is false. A caller that
 * may wait claims no blocks of movable pages here: evacuate() does that too, and looks at fewer.
 */
static bool split_by_gib(struct zone *zone, unsigned order, enum migratetype type, bool may_wait)
{
	if (split_free_block(zone, order, type, may_wait, CLAIM_TAINTED) || gigablock_gather(zone))
		return true;
	if (may_wait && gigablock_open(zone))
		return true;
	if (may_wait && atomic_load_relaxed(&zone->block_lists[FREE_HUGE][MIGRATE_UNMOVABLE]) > 0)
		gigablock_foreach(number, zone) if (hvo_bare_in(zone, (u32)number * GIB_BLOCKS,
								GIB_BLOCKS)) return true;
	return !may_wait && !migratetype_can_share(zone, order, type) &&
	       gigablock_claim(zone, order, type);
}

bool page_split_tainting(struct zone *zone, bool may_wait)
{
	return gigablock_taint_next(zone) || (may_wait && split_huge_blocks(zone));
}

/*
 * Do blocks of unmovable pages have no more free frames than struct pages for the whole zone need?
 * Without such frames metadata memory would grow in a GiB that could still become a page.
 */
static bool unmovable_is_short(const struct zone *zone)
{
	return atomic_load_relaxed(&zone->free_type[MIGRATE_UNMOVABLE]) <=
	       zone->ram / STRUCTS_PER_FRAME;
}

bool page_split_some(struct zone *zone, unsigned order, enum migratetype type, bool may_wait)
{
	if (gigablock_steers(zone->mm, type))
		return split_by_gib(zone, order, type, may_wait);
	if (split_free_block(zone, order, type, may_wait, CLAIM_MOVABLE))
		return true;
	if (may_wait && section_open_next(zone, zone->mm->style) == 0)
		return true; /* the caller looks again: the section's blocks are bare or full now */
	if (may_wait && unmovable_is_short(zone) && split_huge_blocks(zone))
		return true;
	if (split_free_block(zone, order, type, may_wait, CLAIM_ANY))
		return true;
	return may_wait && split_huge_blocks(zone);
}

void page_split_ahead(struct zone *zone, enum migratetype type)
{
	/* placed by GiB, blocks kept ready are movable until somebody claims them */
	const struct wanted want = {.index = BLOCK_NONE,
				    .type = gigablock_steers(zone->mm, type) ? MIGRATE_MOVABLE
									     : type,
				    .claim = CLAIM_MOVABLE};

	for (u64 blocks = zone->ready / BLOCK_FRAMES + 1;
	     blocks > 0 && zone_ready(zone) < zone->ready; blocks--)
		if (!split_bare_block(zone, 0, &want) &&
		    section_open_next(zone, zone->mm->style) < 0 && !split_huge_blocks(zone))
			return;
}
