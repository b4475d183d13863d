/*
 * Blocks in transit: see transit.h.
 */
#include "mm/transit.h"

#include <arch/check.h>

#include "kernel/panic.h"
#include "kernel/shootdown.h"
#include "mm/buddy.h"
#include "mm/migratetype.h"
#include "mm/page_poison.h"
#include "mm/pcp.h"
#include "mm/vmemmap.h"

void block_begin(struct zone *zone, u32 index, unsigned order, enum block_state to)
{
	struct block *block = block_at(zone->mm, index);

	ASSERT(spin_held(&zone->lock), "block %u begins a change without the zone lock", index);
	ASSERT(!(block->flags & (BLOCK_FREE | BLOCK_TRANSIT)), "block %u begins a change while flags are %x", index,
	       block->flags);
	block_set_flags(block, BLOCK_TRANSIT);
	if (block->state == BLOCK_FULL && to != BLOCK_FULL)
		page_poison_forget(zone->mm, index, 1u << (order - BLOCK_ORDER));
	block->target = (u8)to;
	block_set_order(block, order);
	counter_add(&zone->transit, order_pages(order));
}

/*
 * A run to take `count` pieces of `order` from: the smallest there is, whole if it is not too large, so that taking many
 * splits few. *taken_order says how large it is; huge runs are of their own order only.
 */
static u32 take_run(struct zone *zone, enum free_class class, enum migratetype type, unsigned order, u64 count,
		    unsigned *taken_order)
{
	const unsigned orders = zone->block_lists[class][type] & (~0u << (order - BLOCK_ORDER));
	unsigned wanted = order;

	if (!orders)
		return BLOCK_NONE;
	while (class != FREE_HUGE && wanted < GIGA_ORDER && order_pages(wanted + 1 - order) <= count &&
	       (orders & ~0u << (wanted + 1 - BLOCK_ORDER)) && !(orders & 1u << (wanted - BLOCK_ORDER)))
		wanted++;
	*taken_order = wanted;
	return buddy_take_blocks(zone, wanted, class, type);
}

/* META lives where nothing moves; pools anywhere else first. */
static const u8 order_of_types[2][MIGRATE_TYPES] = {
	{MIGRATE_MOVABLE, MIGRATE_RECLAIMABLE, MIGRATE_UNMOVABLE, MIGRATE_CMA},
	{MIGRATE_UNMOVABLE, MIGRATE_RECLAIMABLE, MIGRATE_MOVABLE, MIGRATE_CMA},
};

u64 block_take(struct zone *zone, enum free_class class, unsigned order, u64 count, enum block_state to,
	       struct block_list *list)
{
	const u32 step = 1u << (order - BLOCK_ORDER);
	const unsigned types = to == BLOCK_BARE ? MIGRATE_TYPES : MIGRATE_CMA; /* CMA: its blocks only become free ones again */
	unsigned run_order;
	u64 taken = 0;

	zone_lock(zone);
	for (unsigned i = 0; i < types; i++) {
		const enum migratetype type = order_of_types[to == BLOCK_META][i];

		while (taken < count) {
			const u32 index = take_run(zone, class, type, order, count - taken, &run_order);

			if (index == BLOCK_NONE)
				break;
			for (u32 i = 0; i < 1u << (run_order - BLOCK_ORDER); i += step) {
				block_begin(zone, index + i, order, to);
				block_list_push(zone->mm, list, index + i);
				taken++;
			}
		}
	}
	zone_unlock(zone);
	return taken;
}

u32 block_take_one(struct zone *zone, enum free_class class, enum block_state to)
{
	struct block_list list = BLOCK_LIST_INIT;

	block_take(zone, class, BLOCK_ORDER, 1, to, &list);
	return block_list_pop(zone->mm, &list);
}

/* A record says what class its block would be free in, inside a run as well; most that are looked at are out at this. */
static bool may_be_free_in(const struct block *block, unsigned classes)
{
	return (block->state == BLOCK_BARE || block->state == BLOCK_HUGE || block->state == BLOCK_FULL) &&
	       (classes >> block_free_class(block) & 1) && atomic_load_relaxed(&block->type) < MIGRATE_CMA;
}

/* Head of the free run that block_take_in() may cut, or BLOCK_NONE. Zone lock held. */
static u32 takeable_run(struct zone *zone, u32 index, unsigned classes)
{
	const struct block *block = block_at(zone->mm, index);

	if (!block || block->zone != zone->index || !may_be_free_in(block, classes))
		return BLOCK_NONE;
	return buddy_find_run(zone->mm, index);
}

u32 block_take_in(struct zone *zone, u32 first, u32 count, unsigned classes, enum block_state to)
{
	u32 index = first, head = BLOCK_NONE;

	zone_lock(zone);
	while (index < first + count && (head = takeable_run(zone, index, classes)) == BLOCK_NONE)
		index++;
	if (head != BLOCK_NONE) {
		buddy_unlink_within(zone, head, index, index + 1);
		block_begin(zone, index, BLOCK_ORDER, to);
	}
	zone_unlock(zone);
	return head == BLOCK_NONE ? BLOCK_NONE : index;
}

/* May 512 pieces in transit be one? Zone lock held: who isolates one of them does it before, or meets the whole. */
static int can_join(struct zone *zone, u32 first)
{
	const u8 style = block_at(zone->mm, first)->flags & BLOCK_MAPPED;

	for (u32 index = first; index < first + GIB_BLOCKS; index++) {
		const struct block *block = block_at(zone->mm, index);

		ASSERT((block->flags & BLOCK_TRANSIT) && block->order == BLOCK_ORDER, "block %u joined, but no piece in transit",
		       index);
		if (block->type >= MIGRATE_CMA || (block->flags & BLOCK_MAPPED) != style)
			return -EBUSY;
	}
	return 0;
}

int block_join(struct zone *zone, u32 first)
{
	int err;

	zone_lock(zone);
	err = can_join(zone, first);
	for (u32 index = first; !err && index < first + GIB_BLOCKS; index++) {
		migratetype_set_one(zone, index, MIGRATE_MOVABLE);
		block_set_order(block_at(zone->mm, index), index == first ? GIGA_ORDER : 0);
		if (index > first)
			block_clear_flags(block_at(zone->mm, index), BLOCK_TRANSIT); /* covered by the head's mark */
	}
	zone_unlock(zone);
	return err;
}

void block_cut(struct zone *zone, u32 first, struct block_list *pieces)
{
	u32 end;

	zone_lock(zone);
	ASSERT(block_at(zone->mm, first)->flags & BLOCK_TRANSIT, "block %u cut while nobody changes it", first);
	end = first + (1u << (block_at(zone->mm, first)->order - BLOCK_ORDER));
	for (u32 index = first; index < end; index++) {
		block_set_flags(block_at(zone->mm, index), BLOCK_TRANSIT);
		block_set_order(block_at(zone->mm, index), BLOCK_ORDER);
		block_list_push(zone->mm, pieces, index);
	}
	zone_unlock(zone);
}

/* Zone lock held. */
static void transit_end(struct zone *zone, u32 index, unsigned order)
{
	struct block *block = block_at(zone->mm, index);

	ASSERT(block->flags & BLOCK_TRANSIT, "block %u published but not in transit", index);
	if (block->state != BLOCK_HUGE || block->tag <= shootdown_done()) /* else hvo_settle() says it, before it is used */
		check_event(CHECK_SETTLED, vmemmap_of_block(zone->mm, index), order_pages(order - BLOCK_ORDER));
	block_clear_flags(block, BLOCK_TRANSIT);
	counter_sub(&zone->transit, order_pages(order));
}

void block_publish_used(struct zone *zone, u32 index, unsigned order)
{
	zone_lock(zone);
	transit_end(zone, index, order);
	zone_unlock(zone);
}

void block_publish_free(struct zone *zone, u32 index, unsigned order)
{
	zone_lock(zone);
	transit_end(zone, index, order);
	buddy_free_blocks(zone, index, order, block_free_class(block_at(zone->mm, index)));
	zone_unlock(zone);
}

void block_free(struct zone *zone, u32 index, unsigned order)
{
	zone_lock(zone);
	buddy_free_blocks(zone, index, order, block_free_class(block_at(zone->mm, index)));
	zone_unlock(zone);
}

/* A list is gone through zone by zone, as its blocks come: one turn at a zone's lock for all that lie in it in a row. */
static bool lies_in(struct zone *zone, u32 index)
{
	return index != BLOCK_NONE && block_zone(zone->mm, index) == zone;
}

void block_list_begin(struct mm *mm, struct block_list *list, enum block_state to)
{
	for (u32 index = list->head; index != BLOCK_NONE;) {
		struct zone *zone = block_zone(mm, index);

		zone_lock(zone);
		for (; lies_in(zone, index); index = block_at(mm, index)->next)
			block_begin(zone, index, block_at(mm, index)->order, to);
		zone_unlock(zone);
	}
}

void block_list_publish_used(struct mm *mm, struct block_list *list, u8 flags)
{
	for (u32 index = list->head; index != BLOCK_NONE;) {
		struct zone *zone = block_zone(mm, index);

		zone_lock(zone);
		for (; lies_in(zone, index); index = block_at(mm, index)->next) {
			transit_end(zone, index, block_at(mm, index)->order);
			block_set_flags(block_at(mm, index), flags);
			if (flags) /* a pool's, which does not look */
				page_poison_forget(mm, index, 1);
		}
		zone_unlock(zone);
	}
}

static void block_to_buddy(struct zone *zone, u32 index, bool in_transit)
{
	struct block *block = block_at(zone->mm, index);
	const unsigned order = block->order;

	if (in_transit)
		transit_end(zone, index, order);
	block_clear_flags(block, BLOCK_POOL);
	buddy_free_blocks(zone, index, order, block_free_class(block));
}

static void list_to_buddy(struct mm *mm, struct block_list *list, bool in_transit)
{
	while (list->head != BLOCK_NONE) {
		struct zone *zone = block_zone(mm, list->head);

		zone_lock(zone);
		while (lies_in(zone, list->head))
			block_to_buddy(zone, block_list_pop(mm, list), in_transit);
		zone_unlock(zone);
	}
}

void block_list_publish_free(struct mm *mm, struct block_list *list)
{
	list_to_buddy(mm, list, true);
}

void block_list_free(struct mm *mm, struct block_list *list)
{
	list_to_buddy(mm, list, false);
}
