/*
 * Placement by GiB: see gigablock.h.
 */
#include "mm/zone/gigablock.h"

#include "kernel/core/cmdline.h"
#include "mm/memmap/enter.h"
#include "mm/zone/buddy.h"
#include "mm/zone/migratetype.h"
#include "mm/zone/section.h"
#include "mm/zone/transit.h"

bool gigablock_at_boot = true;
OPTION_BOOL(gigablock, gigablock_at_boot,
	    "with memmap=lazy, gather memory that cannot be moved in as few GiB as possible",
	    .boot_only = true);

/*
 * Frames that CPUs may hold of a GiB, roughly. They look as if they could not be moved, so GiB that
 * differ by fewer are ranked alike when a new one is chosen.
 */
enum { HELD_SHIFT = 13 };

static struct gib *gib_number(const struct mm *mm, u64 number)
{
	return &mm->gib[number - mm->first_gib];
}

/* ---- marks ---- */

static void retype(struct zone *zone, u64 number, enum migratetype from, enum migratetype to)
{
	migratetype_retype_free(zone, (u32)number * GIB_BLOCKS, GIB_BLOCKS, from, to);
}

static void taint(struct zone *zone, u64 number)
{
	atomic_store_relaxed(&gib_number(zone->mm, number)->tainted, true);
	retype(zone, number, MIGRATE_MOVABLE, MIGRATE_UNMOVABLE);
}

void gigablock_taint(struct zone *zone, u32 index)
{
	if (zone->mm->gigablock && !gigablock_is_tainted(zone->mm, index))
		taint(zone, index / GIB_BLOCKS);
}

u8 gigablock_type_of_freed(const struct mm *mm, u32 index, u8 type)
{
	if (type >= MIGRATE_CMA) /* or isolated */
		return type;
	if (type != MIGRATE_MOVABLE)
		atomic_store_relaxed(&gib_of(mm, index)->emptied, true);
	return MIGRATE_UNMOVABLE;
}

/* Does the block hold memory that cannot be moved? Racy; any context. */
static bool is_stuck(const struct mm *mm, u32 index)
{
	const struct block_word word = block_look_any(mm, index);
	struct block_word head;
	u32 at;

	if (word.state == BLOCK_META || word.state == BLOCK_RESERVED)
		return true;
	if (word.state != BLOCK_FULL || block_word_type(word) == MIGRATE_MOVABLE ||
	    word.order == BLOCK_ORDER)
		return false;
	at = block_run_head(mm, index, &head);
	return !(head.flags & BLOCK_FREE) && (at == index || head.order == 0);
}

static bool has_stuck_block(const struct mm *mm, u64 number)
{
	for (u32 index = (u32)number * GIB_BLOCKS; index < (number + 1) * GIB_BLOCKS; index++)
		if (is_stuck(mm, index))
			return true;
	return false;
}

/*
 * A tainted GiB has lost a block of unmovable pages. If that was the last one, the GiB is clean.
 * Another CPU may take a block there meanwhile. Under the zone's lock, or before an atomic
 * operation, it makes the block show that, and then looks for the mark. So either it sees no mark,
 * or its block is seen by the second look here. No lock held.
 */
static bool became_clean(struct zone *zone, u64 number)
{
	struct gib *gib = gib_number(zone->mm, number);

	if (!gib->whole || !atomic_load_relaxed(&gib->emptied))
		return false;
	atomic_store_relaxed(&gib->emptied, false);
	if (has_stuck_block(zone->mm, number))
		return false;
	zone_lock(zone);
	atomic_store_relaxed(&gib->tainted, false);
	zone_unlock(zone);
	fence_full(); /* pairs with the operation on gib->meta (meta_grow.c) */
	if (has_stuck_block(zone->mm, number)) {
		atomic_store_relaxed(&gib->tainted, true);
		return false;
	}
	retype(zone, number, MIGRATE_UNMOVABLE, MIGRATE_MOVABLE);
	return true;
}

/* ---- order ---- */

u64 gigablock_next(const struct zone *zone, u64 *before)
{
	const u64 first = zone_first_gib(zone), count = zone_end_gib(zone) - first;

	/* places [count, 2 * count) are for those that are not whole */
	for (*before = MIN(*before, 2 * count); *before > 0;) {
		const u64 number = first + --*before % count;
		const struct gib *gib = gib_number(zone->mm, number);

		if (atomic_load_relaxed(&gib->tainted) && gib->whole == (*before < count))
			return number;
	}
	return GIGABLOCK_NONE;
}

/*
 * Frames that are neither free nor movable, as far as the summary says. All of a GiB that is not
 * whole, so that it comes first.
 */
static u64 stuck_frames(const struct mm *mm, u64 number)
{
	const struct gib *gib = gib_number(mm, number);
	const u64 good = atomic_load_relaxed(&gib->free) + atomic_load_relaxed(&gib->movable);
	u64 frames = 0;

	if (!gib->whole)
		return order_pages(GIGA_ORDER);
	for (u64 section = number * GIB_SECTIONS; section < (number + 1) * GIB_SECTIONS; section++)
		if (section_state(mm, section) == SECTION_OPEN)
			frames += SECTION_FRAMES;
	return saturating_sub(frames, good);
}

/* ---- finding room ---- */

/* Could a block of it be free? */
static bool may_have_block(const struct gib *gib)
{
	return !gib->whole || atomic_load_relaxed(&gib->free) >= BLOCK_FRAMES;
}

u32 gigablock_take(struct zone *zone, enum free_class class, enum block_state to)
{
	gigablock_foreach(number, zone)
	{
		u32 index;

		/* free blocks of a tainted GiB are on these lists, whatever lies beside them */
		if (atomic_load_relaxed(&zone->block_lists[class][MIGRATE_UNMOVABLE]) == 0)
			break;
		if (!may_have_block(gib_number(zone->mm, number)) || became_clean(zone, number))
			continue;
		index = block_take_in(zone, (u32)number * GIB_BLOCKS, GIB_BLOCKS, 1u << class, to);
		if (index != BLOCK_NONE)
			return index;
	}
	return BLOCK_NONE;
}

/* Claim blocks of a slice that could have a chunk, until there is a chunk. One turn at the lock. */
static bool claim_slice(struct zone *zone, u32 first, unsigned order, enum migratetype type)
{
	bool found = zone->page_orders[type] >> order;

	for (u32 index = first; index < first + LOCK_SLICE && !found; index++) {
		const struct block_word word = block_look_at(zone->mm, index);

		if (word.zone != zone->index || word.state != BLOCK_FULL || word.order != 0 ||
		    word.type != MIGRATE_MOVABLE || word.free_pages < order_pages(order) ||
		    (word.flags & (BLOCK_FREE | BLOCK_TRANSIT)) ||
		    buddy_find_run(zone->mm, index) != BLOCK_NONE)
			continue;
		migratetype_change(zone, index, index + 1, BLOCK_TYPE_MASK, (u8)type);
		found = zone->page_orders[type] >> order;
	}
	return found;
}

static bool claim_in(struct zone *zone, u64 number, unsigned order, enum migratetype type)
{
	const u32 end = (u32)(number + 1) * GIB_BLOCKS;
	bool found = false;

	for (u32 index = end - GIB_BLOCKS; index < end && !found; index += LOCK_SLICE) {
		if (!block_at(zone->mm, index))
			continue;
		zone_lock(zone);
		found = claim_slice(zone, index, order, type);
		zone_unlock(zone);
	}
	if (has_stuck_block(zone->mm, number))
		gigablock_taint(zone, end - 1); /* if it was found to be clean just now */
	return found;
}

bool gigablock_claim(struct zone *zone, unsigned order, enum migratetype type)
{
	gigablock_foreach(number, zone) if (claim_in(zone, number, order, type)) return true;
	return false;
}

/* An unopened section of the GiB with RAM of the zone; section_end() if there is none. */
static u64 unopened_section(const struct zone *zone, u64 number)
{
	const u64 first = zone->start_pfn / SECTION_FRAMES;
	const u64 end = DIV_ROUND_UP(zone->end_pfn, (u64)SECTION_FRAMES);

	for (u64 section = MAX(number * GIB_SECTIONS, first);
	     section < MIN((number + 1) * GIB_SECTIONS, end); section++)
		if (section_state(zone->mm, section) == SECTION_UNOPENED)
			return section;
	return section_end(zone->mm);
}

bool gigablock_open(struct zone *zone)
{
	if (atomic_load_relaxed(&zone->unopened) == 0)
		return false;
	gigablock_foreach(number, zone)
	{
		const u64 section = unopened_section(zone, number);

		if (section < section_end(zone->mm) &&
		    section_open(zone->mm, section, zone->mm->style) == 0)
			return true;
	}
	return false;
}

/* Has a free block memory for pages that cannot be moved, without a change of struct pages? */
static bool is_ready(struct block_word word)
{
	return word.state != BLOCK_HUGE && word.type < MIGRATE_CMA;
}

/* Is it a free block that gigablock_take() does not find? A free 1 GiB page keeps its type. */
static bool is_of_other_type(struct block_word word)
{
	return word.type != MIGRATE_UNMOVABLE && word.type < MIGRATE_CMA &&
	       !(word.state == BLOCK_HUGE && word.order == GIGA_ORDER);
}

/* Has the zone a free block there that is so? Racy. */
static bool has_block(const struct zone *zone, u64 number, bool (*is_so)(struct block_word))
{
	const u32 first = (u32)number * GIB_BLOCKS;

	if (!may_have_block(gib_number(zone->mm, number)))
		return false;
	for (u32 index = first; index < first + GIB_BLOCKS; index++) {
		const struct block_word word = block_look_any(zone->mm, index);

		if ((word.flags & BLOCK_FREE) && word.zone == zone->index && is_so(word))
			return true;
	}
	return false;
}

bool gigablock_gather(struct zone *zone)
{
	unsigned lists = 0;

	for (unsigned class = 0; class < FREE_CLASSES; class ++)
		lists |= atomic_load_relaxed(&zone->block_lists[class][MIGRATE_MOVABLE]) |
			 atomic_load_relaxed(&zone->block_lists[class][MIGRATE_RECLAIMABLE]);
	if (lists == 0)
		return false;
	gigablock_foreach(number, zone)
	{
		if (!has_block(zone, number, is_of_other_type))
			continue;
		retype(zone, number, MIGRATE_MOVABLE, MIGRATE_UNMOVABLE);
		retype(zone, number, MIGRATE_RECLAIMABLE, MIGRATE_UNMOVABLE);
		return true;
	}
	return false;
}

/*
 * The next GiB is the one that has most memory that cannot be moved; among equals the highest,
 * because metadata memory begins at that end.
 */
static u64 gib_key(const void *ctx, u64 number)
{
	const struct zone *zone = ctx;
	const struct mm *mm = zone->mm;

	if (atomic_load_relaxed(&gib_number(mm, number)->tainted) ||
	    (unopened_section(zone, number) >= section_end(mm) &&
	     !has_block(zone, number, is_ready)))
		return 0;
	return ((stuck_frames(mm, number) >> HELD_SHIFT) + 1) << 32 | number;
}

bool gigablock_taint_next(struct zone *zone)
{
	const u64 best = gib_best(zone, gib_key, zone);

	if (best != 0)
		taint(zone, best & ~0U);
	return best != 0;
}

/* ---- the beginning ---- */

static void taint_partial(struct mm *mm, u64 number)
{
	gib_number(mm, number)->tainted = !gib_number(mm, number)->whole;
}

bool gigablock_begin(struct mm *mm, u64 least)
{
	u64 whole = 0;

	/* by range, because each GiB costs start-up time */
	for (size_t i = 0; i < mm->memory->count; i++)
		whole += saturating_sub(mm->memory->range[i].end / GIB(1),
					DIV_ROUND_UP(mm->memory->range[i].start, GIB(1)));
	if (whole < least)
		return false;
	mm->gigablock = true;
	for (size_t i = 0; i < mm->memory->count; i++) {
		taint_partial(mm, mm->memory->range[i].start / GIB(1));
		taint_partial(mm, (mm->memory->range[i].end - 1) / GIB(1));
	}
	for (size_t i = 0; i < mm->reserved->count; i++) {
		const struct memblock_range *range = &mm->reserved->range[i];
		const u64 end = MIN(range->end, (mm->first_gib + mm->gibs) * GIB(1));

		for (u64 number = MAX(range->start / GIB(1), mm->first_gib); number * GIB(1) < end;
		     number++)
			gib_number(mm, number)->tainted = true;
	}
	return true;
}
