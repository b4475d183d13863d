/*
 * Blocks change their type: see migratetype.h.
 */
#include "mm/zone/migratetype.h"

#include "kernel/core/panic.h"
#include "mm/memmap/enter.h"
#include "mm/zone/buddy.h"
#include "mm/zone/buddy_small.h"
#include "mm/zone/gigablock.h"
#include "mm/zone/section.h"

/*
 * The zone's lock is held. The other fields of a record belong to its owner, which may be changing
 * them at this moment.
 */
static void write_types(struct zone *zone, u32 index, u32 end, u8 clear, u8 set)
{
	const struct block_word cleared = {.type = clear}, added = {.type = set};

	for (; index < end; index++)
		block_change(block_at(zone->mm, index), cleared, added);
}

/*
 * Free runs leave their list, change their type, and go back, merging with neighbours that now have
 * the same type. `word` is what the head's record says.
 */
static int change_free(struct zone *zone, u32 head, struct block_word word, u32 index, u32 end,
		       u8 clear, u8 set)
{
	const enum free_class class = block_free_class(word);
	const unsigned order = word.order;
	u32 stop;

	if (class == FREE_HUGE && (head < index || head + order_blocks(order) > end))
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
	struct block_word word;
	const u32 head = block_run_head(zone->mm, index, &word);

	ASSERT(spin_held(&zone->lock), "block %u changes its type without the zone lock", index);
	if (word.flags & BLOCK_FREE)
		return change_free(zone, head, word, index, end, clear, set);
	if (word.order > BLOCK_ORDER && clear != BLOCK_ISOLATED) {
		const u32 blocks = order_blocks(word.order);

		if (word.flags & BLOCK_TRANSIT)
			return -EAGAIN;
		if (head != index || head + blocks > end)
			return -EBUSY;
		write_types(zone, head, head + blocks, clear, set);
		return (int)blocks;
	}
	/* free pages of a full block, which stays full while the lock is held */
	if (head == index && word.free_pages > 0)
		buddy_move_pages(zone, index, (u8)((word.type & ~clear) | set));
	write_types(zone, index, index + 1, clear, set);
	return 1;
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
		const struct block_word word = block_look_any(mm, index);

		if (word.state == BLOCK_ABSENT || word.state == BLOCK_UNOPENED ||
		    (*zone && word.zone != (*zone)->index))
			return -EINVAL;
		*zone = &mm->zone[word.zone];
	}
	return *zone ? 0 : -EINVAL;
}

/* Zone lock held. */
static int range_can_change(struct zone *zone, u32 first, u32 end)
{
	for (u32 index = first; index < end; index++) {
		struct block_word head;
		const u32 at = block_run_head(zone->mm, index, &head);
		const u32 blocks = head.order ? order_blocks(head.order) : 1;
		const struct block_word word = at == index ? head : block_look_at(zone->mm, index);
		const bool whole = at >= first && at + blocks <= end;

		if (word.zone != zone->index || word.state == BLOCK_UNOPENED ||
		    word.state == BLOCK_RESERVED || word.state == BLOCK_META ||
		    block_word_is_isolated(word) || (head.flags & BLOCK_TRANSIT))
			return -EBUSY;
		if (!whole && (!(head.flags & BLOCK_FREE) || head.state == BLOCK_HUGE))
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
	err = range_can_change(zone, first, first + count);
	for (u32 index = first; !err && index < first + count;)
		index += (u32)migratetype_change(zone, index, first + count, BLOCK_TYPE_MASK,
						 (u8)type);
	zone_unlock(zone);
	return err;
}

/* One turn at the lock. */
static void retype_slice(struct zone *zone, u32 first, u32 end, enum migratetype from,
			 enum migratetype to)
{
	zone_lock(zone);
	for (u32 index = first; index < end;) {
		const struct block_word word = block_look_any(zone->mm, index);
		int done = 1;

		if (word.zone == zone->index && word.type == from && word.state != BLOCK_ABSENT &&
		    buddy_find_run(zone->mm, index) != BLOCK_NONE)
			done = migratetype_change(zone, index, end, BLOCK_TYPE_MASK, (u8)to);
		index += done > 0 ? (u32)done : 1; /* a free 1 GiB page keeps its type */
	}
	zone_unlock(zone);
}

void migratetype_retype_free(struct zone *zone, u32 first, u32 count, enum migratetype from,
			     enum migratetype to)
{
	for (u32 done = 0; done < count; done += LOCK_SLICE)
		retype_slice(zone, first + done, first + MIN(count, done + LOCK_SLICE), from, to);
}

/* ---- from another type's blocks ---- */

/* Lists to look at when a type has nothing left: the first entry does the least harm. */
static const u8 fallback[MIGRATE_CMA][MIGRATE_CMA - 1] = {
	[MIGRATE_UNMOVABLE] = {MIGRATE_RECLAIMABLE, MIGRATE_MOVABLE},
	[MIGRATE_MOVABLE] = {MIGRATE_RECLAIMABLE, MIGRATE_UNMOVABLE},
	[MIGRATE_RECLAIMABLE] = {MIGRATE_UNMOVABLE, MIGRATE_MOVABLE},
};

/*
 * Claim the block of the largest free chunk of `other` if at least half of the block is free. A
 * request that gigablock_steers() claims it in any case, and its caller taints the GiB.
 */
static bool claim_block(struct zone *zone, unsigned order, enum migratetype other,
			enum migratetype type)
{
	const unsigned orders = zone->page_orders[other] & (~0u << order);
	const bool steers = gigablock_steers(zone->mm, type) && other == MIGRATE_MOVABLE;
	struct block_word word;
	const struct page *page;
	u32 index;

	/* placed by GiB, a block with unmovable pages keeps its type, with movable ones in it */
	if (!orders || (type == MIGRATE_MOVABLE && gigablock_steers(zone->mm, other)))
		return false;
	page = zone->page_list[other][31 - (unsigned)__builtin_clz(orders)];
	index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	word = block_look_at(zone->mm, index);
	if (word.state != BLOCK_FULL || (word.free_pages < BLOCK_FRAMES / 2 && !steers))
		return false;
	migratetype_change(zone, index, index + 1, BLOCK_TYPE_MASK, (u8)type);
	return true;
}

bool migratetype_can_share(struct zone *zone, unsigned order, enum migratetype type)
{
	bool can;

	zone_lock(zone);
	can = zone->page_orders[fallback[type][0]] >> order;
	zone_unlock(zone);
	return can;
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
