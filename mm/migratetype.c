/*
 * Blocks change their type: see migratetype.h.
 */
#include "mm/migratetype.h"

#include "kernel/panic.h"
#include "mm/buddy.h"
#include "mm/pcp.h"
#include "mm/section.h"

static void write_types(struct zone *zone, u32 index, u32 end, u8 clear, u8 set)
{
	for (; index < end; index++) {
		struct block *block = block_at(zone->mm, index);

		atomic_store_relaxed(&block->type, (u8)((block->type & ~clear) | set));
	}
}

/* Free runs leave their list, change, and come back, merging with what they now agree with. */
static int change_free(struct zone *zone, u32 head, u32 index, u32 end, u8 clear, u8 set)
{
	const struct block *block = block_at(zone->mm, head);
	const enum free_class class = block_free_class(block);
	const unsigned order = block->order;
	u32 stop;

	if (class == FREE_HUGE && (head < index || head + (1u << (order - BLOCK_ORDER)) > end))
		return -EBUSY;
	stop = buddy_unlink_within(zone, head, index, end);
	write_types(zone, index, stop, clear, set);
	if (class == FREE_HUGE)
		buddy_free_blocks(zone, head, order, class);
	else
		buddy_free_range(zone, index, stop - index, class);
	return (int)(stop - index);
}

int migratetype_change(struct zone *zone, u32 index, u32 end, u8 clear, u8 set)
{
	const u32 head = block_run_head(zone->mm, index);
	struct block *block = block_at(zone->mm, head);
	const unsigned order = atomic_load_relaxed(&block->order);
	const u8 flags = atomic_load_relaxed(&block->flags);

	ASSERT(spin_held(&zone->lock), "block %u changes its type without the zone lock", index);
	if (flags & BLOCK_FREE)
		return change_free(zone, head, index, end, clear, set);
	if (order > BLOCK_ORDER) {
		const u32 blocks = 1u << (order - BLOCK_ORDER);

		if (flags & BLOCK_TRANSIT)
			return -EAGAIN;
		if (head != index || head + blocks > end)
			return -EBUSY;
		write_types(zone, head, head + blocks, clear, set);
		return (int)blocks;
	}
	if (block->free_pages > 0)
		buddy_move_pages(zone, index, (u8)((block->type & ~clear) | set));
	write_types(zone, index, index + 1, clear, set);
	return 1;
}

u32 migratetype_unisolate(struct zone *zone, u32 index, u32 end)
{
	const u32 head = buddy_find_run(zone->mm, index);
	struct block *block = block_at(zone->mm, index);

	ASSERT(spin_held(&zone->lock), "isolation of block %u ends without the zone lock", index);
	if (head != BLOCK_NONE) {
		const int done = change_free(zone, head, index, end, BLOCK_ISOLATED, 0);

		ASSERT(done > 0, "a part of the free 1 GiB page at block %u was isolated", head);
		return (u32)done;
	}
	if (block->free_pages > 0)
		buddy_move_pages(zone, index, (u8)(block->type & ~BLOCK_ISOLATED));
	write_types(zone, index, index + 1, BLOCK_ISOLATED, 0);
	return 1;
}

void migratetype_set_one(struct zone *zone, u32 index, enum migratetype type)
{
	ASSERT(spin_held(&zone->lock), "block %u retyped without the zone lock", index);
	ASSERT(!(block_at(zone->mm, index)->flags & BLOCK_FREE), "block %u retyped while it is on a list", index);
	write_types(zone, index, index + 1, BLOCK_TYPE_MASK, (u8)type);
}

/* ---- ranges ---- */

int migratetype_range_zone(struct mm *mm, u32 first, u32 count, struct zone **zone)
{
	int err;

	if (count == 0 || first + count < first || first < mm->first_gib * GIB_BLOCKS ||
	    first + count > (mm->first_gib + mm->gibs) * GIB_BLOCKS)
		return -EINVAL;
	err = section_open_range(mm, first, count, mm->style);
	if (err)
		return err;
	*zone = NULL;
	for (u32 index = first; index < first + count; index++) {
		const struct block *block = block_at(mm, index);
		const u8 state = block ? atomic_load_relaxed(&block->state) : BLOCK_ABSENT;

		if (state == BLOCK_ABSENT || state == BLOCK_UNOPENED || (*zone && block->zone != (*zone)->index))
			return -EINVAL;
		*zone = &mm->zone[block->zone];
	}
	return *zone ? 0 : -EINVAL;
}

/* Zone lock held. */
static int range_can_change(struct mm *mm, u32 first, u32 end)
{
	for (u32 index = first; index < end; index++) {
		const struct block *block = block_at(mm, index), *head = block_at(mm, block_run_head(mm, index));
		const u32 at = block_run_head(mm, index), blocks = head->order ? 1u << (head->order - BLOCK_ORDER) : 1;
		const bool whole = at >= first && at + blocks <= end;

		if (block->state == BLOCK_RESERVED || block->state == BLOCK_META || block_is_isolated(block) ||
		    (head->flags & BLOCK_TRANSIT))
			return -EBUSY;
		if (!whole && (!(head->flags & BLOCK_FREE) || head->state == BLOCK_HUGE))
			return -EBUSY;
	}
	return 0;
}

int migratetype_set(struct mm *mm, u32 first, u32 count, enum migratetype type)
{
	struct zone *zone;
	int err = type < MIGRATE_TYPES ? migratetype_range_zone(mm, first, count, &zone) : -EINVAL;

	if (err)
		return err;
	zone_lock(zone);
	err = range_can_change(mm, first, first + count);
	for (u32 index = first; !err && index < first + count;)
		index += (u32)migratetype_change(zone, index, first + count, BLOCK_TYPE_MASK, (u8)type);
	zone_unlock(zone);
	return err;
}

/* ---- from another type's blocks ---- */

/* Where to look when a type has nothing left: first where it does the least harm. */
static const u8 fallback[MIGRATE_CMA][MIGRATE_CMA - 1] = {
	[MIGRATE_UNMOVABLE] = {MIGRATE_RECLAIMABLE, MIGRATE_MOVABLE},
	[MIGRATE_MOVABLE] = {MIGRATE_RECLAIMABLE, MIGRATE_UNMOVABLE},
	[MIGRATE_RECLAIMABLE] = {MIGRATE_UNMOVABLE, MIGRATE_MOVABLE},
};

/* The block of the largest free chunk of `other`: claimed if half of it or more is free. */
static bool claim_block(struct zone *zone, unsigned order, enum migratetype other, enum migratetype type)
{
	const unsigned orders = zone->page_orders[other] & (~0u << order);
	const struct page *page;
	u32 index;

	if (!orders)
		return false;
	page = zone->page_list[other][31 - (unsigned)__builtin_clz(orders)];
	index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	if (block_at(zone->mm, index)->state != BLOCK_FULL || block_at(zone->mm, index)->free_pages < BLOCK_FRAMES / 2)
		return false;
	migratetype_change(zone, index, index + 1, BLOCK_TYPE_MASK, (u8)type);
	return true;
}

struct page *migratetype_take(struct zone *zone, unsigned order, enum migratetype type)
{
	if (type >= MIGRATE_CMA)
		return NULL;
	for (unsigned i = 0; i < ARRAY_LEN(fallback[0]); i++) {
		const enum migratetype other = fallback[type][i];

		if (claim_block(zone, order, other, type))
			return buddy_take_pages(zone, order, type);
		if (zone->page_orders[other] >> order)
			return buddy_take_pages(zone, order, other);
	}
	return NULL;
}
