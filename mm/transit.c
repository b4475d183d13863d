/*
 * Blocks in transit: see transit.h.
 */
#include "mm/transit.h"

#include "kernel/panic.h"
#include "mm/buddy.h"

void block_begin(struct zone *zone, u32 index, unsigned order, enum block_state to)
{
	struct block *block = block_at(zone->mm, index);

	ASSERT(spin_held(&zone->lock), "block %u begins a change without the zone lock", index);
	ASSERT(!(block->flags & (BLOCK_FREE | BLOCK_TRANSIT)), "block %u begins a change while flags are %x", index,
	       block->flags);
	block->flags |= BLOCK_TRANSIT;
	block->target = (u8)to;
	block->order = (u8)order;
	zone->transit += order_pages(order);
}

u64 block_take(struct zone *zone, enum free_class class, unsigned order, u64 count, enum block_state to,
	       struct block_list *list)
{
	u64 taken = 0;

	spin_lock(&zone->lock);
	for (unsigned type = 0; type < MIGRATE_TYPES; type++) {
		while (taken < count) {
			const u32 index = buddy_take_blocks(zone, order, class, type);

			if (index == BLOCK_NONE)
				break;
			block_begin(zone, index, order, to);
			block_list_push(zone->mm, list, index);
			taken++;
		}
	}
	spin_unlock(&zone->lock);
	return taken;
}

u32 block_take_one(struct zone *zone, enum free_class class, enum block_state to)
{
	struct block_list list = BLOCK_LIST_INIT;

	block_take(zone, class, BLOCK_ORDER, 1, to, &list);
	return block_list_pop(zone->mm, &list);
}

/* Zone lock held. */
static void transit_end(struct zone *zone, u32 index, unsigned order)
{
	struct block *block = block_at(zone->mm, index);

	ASSERT(block->flags & BLOCK_TRANSIT, "block %u published but not in transit", index);
	block->flags &= (u8)~BLOCK_TRANSIT;
	zone->transit -= order_pages(order);
}

void block_publish_used(struct zone *zone, u32 index, unsigned order)
{
	spin_lock(&zone->lock);
	transit_end(zone, index, order);
	spin_unlock(&zone->lock);
}

void block_publish_free(struct zone *zone, u32 index, unsigned order)
{
	spin_lock(&zone->lock);
	transit_end(zone, index, order);
	buddy_free_blocks(zone, index, order, block_free_class(block_at(zone->mm, index)));
	spin_unlock(&zone->lock);
}

void block_free(struct zone *zone, u32 index, unsigned order)
{
	spin_lock(&zone->lock);
	buddy_free_blocks(zone, index, order, block_free_class(block_at(zone->mm, index)));
	spin_unlock(&zone->lock);
}

/* Move the lock to the zone of `index`, if it is not there already. */
static struct zone *lock_zone_of(struct mm *mm, struct zone *held, u32 index)
{
	struct zone *zone = block_zone(mm, index);

	if (zone == held)
		return held;
	if (held)
		spin_unlock(&held->lock);
	spin_lock(&zone->lock);
	return zone;
}

void block_list_begin(struct mm *mm, struct block_list *list, enum block_state to)
{
	struct zone *zone = NULL;

	for (u32 index = list->head; index != BLOCK_NONE; index = block_at(mm, index)->next) {
		zone = lock_zone_of(mm, zone, index);
		block_begin(zone, index, block_at(mm, index)->order, to);
	}
	if (zone)
		spin_unlock(&zone->lock);
}

void block_list_publish_used(struct mm *mm, struct block_list *list, struct block_list *published)
{
	struct zone *zone = NULL;
	u32 index;

	while ((index = block_list_pop(mm, list)) != BLOCK_NONE) {
		zone = lock_zone_of(mm, zone, index);
		transit_end(zone, index, block_at(mm, index)->order);
		block_list_push(mm, published, index);
	}
	if (zone)
		spin_unlock(&zone->lock);
}

void block_list_publish_free(struct mm *mm, struct block_list *list)
{
	struct zone *zone = NULL;
	unsigned order;
	u32 index;

	while ((index = block_list_pop(mm, list)) != BLOCK_NONE) {
		zone = lock_zone_of(mm, zone, index);
		order = block_at(mm, index)->order;
		transit_end(zone, index, order);
		buddy_free_blocks(zone, index, order, block_free_class(block_at(mm, index)));
	}
	if (zone)
		spin_unlock(&zone->lock);
}
