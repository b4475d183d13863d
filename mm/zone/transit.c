/*
 * Blocks in transit: see transit.h.
 */
#include "mm/zone/transit.h"

#include <arch/check.h>

#include "kernel/core/panic.h"
#include "kernel/core/shootdown.h"
#include "mm/memmap/enter.h"
#include "mm/memmap/vmemmap.h"
#include "mm/zone/buddy.h"
#include "mm/zone/poison.h"

void block_begin(struct zone *zone, u32 index, unsigned order, enum block_state to)
{
	struct block *block = block_at(zone->mm, index);
	struct block_word word = block_look(block);

	ASSERT(spin_held(&zone->lock), "block %u begins a change without the zone lock", index);
	ASSERT(!(word.flags & (BLOCK_FREE | BLOCK_TRANSIT)),
	       "block %u begins a change while flags are %x", index, word.flags);
	word.flags |= BLOCK_TRANSIT;
	word.target = (u8)to;
	word.order = (u8)order;
	block_put(block, word);
	if (word.state == BLOCK_FULL && to != BLOCK_FULL)
		poison_forget(zone->mm, index, order_blocks(order));
	counter_add(&zone->transit, order_pages(order));
}

/*
 * Take a run that supplies up to `count` pieces of `order`: the smallest run that there is, and all
 * of it unless it is too large, so that taking many pieces splits few runs. *taken_order receives
 * its order. Huge runs are never split, so they have exactly `order`.
 */
static u32 take_run(struct zone *zone, enum free_class class, enum migratetype type, unsigned order,
		    u64 count, unsigned *taken_order)
{
	const unsigned orders = zone->block_lists[class][type] & (~0u << (order - BLOCK_ORDER));
	unsigned wanted = order;

	if (!orders)
		return BLOCK_NONE;
	while (class != FREE_HUGE && wanted < GIGA_ORDER &&
	       order_pages(wanted + 1 - order) <= count &&
	       (orders & ~0u << (wanted + 1 - BLOCK_ORDER)) &&
	       !(orders & 1u << (wanted - BLOCK_ORDER)))
		wanted++;
	*taken_order = wanted;
	return buddy_take_blocks(zone, wanted, class, type);
}

/*
 * The types from which blocks are taken, in this order. Metadata memory never moves, so it prefers
 * blocks whose contents do not move either; all other callers take movable blocks first. CMA blocks
 * are for movable pages only, so the only change that takes them is one that leaves them free
 * (BARE).
 */
static enum migratetype type_to_take(enum block_state to, unsigned turn)
{
	static const u8 for_meta[] = {MIGRATE_UNMOVABLE, MIGRATE_RECLAIMABLE, MIGRATE_MOVABLE};
	static const u8 others[] = {MIGRATE_MOVABLE, MIGRATE_RECLAIMABLE, MIGRATE_UNMOVABLE,
				    MIGRATE_CMA};

	return to == BLOCK_META ? for_meta[turn] : others[turn];
}

/*
 * One turn at the lock: take a slice of the blocks asked for, of the first `types` types in their
 * order. A result below `count` means that no more are free.
 */
static u64 take_turn(struct zone *zone, enum free_class class, unsigned order, u64 count,
		     enum block_state to, unsigned types, struct block_list *list)
{
	const u32 step = order_blocks(order);
	unsigned run_order;
	u64 taken = 0;

	zone_lock(zone);
	for (unsigned i = 0; i < types; i++) {
		const enum migratetype type = type_to_take(to, i);

		while (taken < count) {
			const u32 index =
				take_run(zone, class, type, order, count - taken, &run_order);

			if (index == BLOCK_NONE)
				break;
			for (u32 piece = index; piece < index + order_blocks(run_order);
			     piece += step) {
				block_begin(zone, piece, order, to);
				block_list_push(zone->mm, list, piece);
				taken++;
			}
		}
	}
	zone_unlock(zone);
	return taken;
}

static u64 take_of(struct zone *zone, enum free_class class, unsigned order, u64 count,
		   enum block_state to, unsigned types, struct block_list *list)
{
	u64 taken = 0, wanted = 0, got = 0;

	while (got == wanted && taken < count) {
		wanted = MIN(count - taken, MAX(LOCK_SLICE / order_blocks(order), 1));
		got = take_turn(zone, class, order, wanted, to, types, list);
		taken += got;
	}
	return taken;
}

u64 block_take(struct zone *zone, enum free_class class, unsigned order, u64 count,
	       enum block_state to, struct block_list *list)
{
	return take_of(zone, class, order, count, to, to == BLOCK_BARE ? 4 : 3, list);
}

u64 block_take_movable(struct zone *zone, enum free_class class, unsigned order, u64 count,
		       enum block_state to, struct block_list *list)
{
	return take_of(zone, class, order, count, to, 2, list);
}

u32 block_take_one(struct zone *zone, enum free_class class, enum block_state to)
{
	struct block_list list = BLOCK_LIST_INIT;

	block_take(zone, class, BLOCK_ORDER, 1, to, &list);
	return block_list_pop(zone->mm, &list);
}

/* A record says which class its block would be free in, even inside a run. */
static bool may_take(const struct zone *zone, struct block_word word, unsigned from)
{
	const enum migratetype list = type_list(word.type);

	return word.zone == zone->index && (from >> block_free_class(word) & 1) &&
	       (list < MIGRATE_CMA || (from & (list == MIGRATE_CMA ? TAKE_CMA : TAKE_ISOLATED)));
}

unsigned block_take_at(struct zone *zone, u32 index, unsigned order, unsigned from,
		       enum block_state to)
{
	struct block_word word;
	u32 head;

	if (!may_take(zone, block_look_any(zone->mm, index), from))
		return 0;
	head = block_run_head(zone->mm, index, &word);
	if (!(word.flags & BLOCK_FREE))
		return 0;
	if (word.state == BLOCK_HUGE)
		order = word.order;
	else if (index + order_blocks(order) > head + order_blocks(word.order))
		order = BLOCK_ORDER;
	buddy_unlink_within(zone, head, index, index + order_blocks(order));
	block_begin(zone, index, order, to);
	return order;
}

u32 block_take_in(struct zone *zone, u32 first, u32 count, unsigned from, enum block_state to)
{
	u32 index = first;

	zone_lock(zone);
	/* a look at the record first, because most blocks are ruled out by it */
	while (index < first + count && !(may_take(zone, block_look_any(zone->mm, index), from) &&
					  block_take_at(zone, index, BLOCK_ORDER, from, to)))
		index++;
	zone_unlock(zone);
	return index < first + count ? index : BLOCK_NONE;
}

/*
 * May 512 pieces in transit become one run? Zone lock held, so a CPU that isolates one of them does
 * so either before this or after the pieces have become one.
 */
static int can_join(struct zone *zone, u32 first)
{
	const u8 style = block_look_at(zone->mm, first).flags & BLOCK_MAPPED;

	for (u32 index = first; index < first + GIB_BLOCKS; index++) {
		const struct block_word word = block_look_at(zone->mm, index);

		ASSERT((word.flags & BLOCK_TRANSIT) && word.order == BLOCK_ORDER,
		       "block %u is joined, but is no piece in transit", index);
		if (word.type >= MIGRATE_CMA || (word.flags & BLOCK_MAPPED) != style)
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
		struct block *block = block_at(zone->mm, index);
		struct block_word word = block_look(block);

		word.type = MIGRATE_MOVABLE; /* none of them is isolated */
		word.order = index == first ? GIGA_ORDER : 0;
		if (index > first)
			word.flags &= (u8)~BLOCK_TRANSIT; /* the head's mark covers it */
		block_put(block, word);
	}
	zone_unlock(zone);
	return err;
}

void block_cut(struct zone *zone, u32 first, struct block_list *pieces)
{
	struct block_word head;

	zone_lock(zone);
	head = block_look_at(zone->mm, first);
	ASSERT(head.flags & BLOCK_TRANSIT, "block %u is cut while it is not in transit", first);
	for (u32 index = first; index < first + order_blocks(head.order); index++) {
		struct block *block = block_at(zone->mm, index);
		struct block_word word = block_look(block);

		word.flags |= BLOCK_TRANSIT;
		word.order = BLOCK_ORDER;
		block_put(block, word);
		block_list_push(zone->mm, pieces, index);
	}
	zone_unlock(zone);
}

/*
 * End the transit of a run. `clear` and `set` are the flags that change with it. Zone lock held.
 * Returns the new contents of the record's word.
 */
static struct block_word transit_end(struct zone *zone, u32 index, unsigned order, u8 clear, u8 set)
{
	struct block *block = block_at(zone->mm, index);
	struct block_word word = block_look(block);

	ASSERT(word.flags & BLOCK_TRANSIT, "block %u published but not in transit", index);
	/* otherwise hvo_complete_round() reports this, before the page is used */
	if (word.state != BLOCK_HUGE || block->tag <= shootdown_done())
		check_event(CHECK_SETTLED, vmemmap_of_block(zone->mm, index),
			    order_pages(order - BLOCK_ORDER));
	word.flags = (u8)((word.flags & ~(BLOCK_TRANSIT | clear)) | set);
	block_put(block, word);
	counter_sub(&zone->transit, order_pages(order));
	return word;
}

void block_publish_used(struct zone *zone, u32 index, unsigned order)
{
	zone_lock(zone);
	transit_end(zone, index, order, 0, 0);
	zone_unlock(zone);
}

void block_publish_free(struct zone *zone, u32 index, unsigned order)
{
	zone_lock(zone);
	buddy_free_blocks(zone, index, order,
			  block_free_class(transit_end(zone, index, order, 0, 0)));
	zone_unlock(zone);
}

void block_free(struct zone *zone, u32 index, unsigned order)
{
	zone_lock(zone);
	buddy_free_blocks(zone, index, order, block_free_class(block_look_at(zone->mm, index)));
	zone_unlock(zone);
}

/*
 * Decides whether the block at `index` belongs to the present turn. A list is processed in its
 * order, with turns at a zone's lock for all neighbours in the list that lie in that zone, a slice
 * in each. `*left` is the number of blocks that the turn may still handle. A run counts with all
 * its blocks, and a large one has a turn of its own.
 */
static bool in_this_turn(struct zone *zone, u32 index, u32 *left)
{
	u32 blocks;

	if (index == BLOCK_NONE || *left == 0 || block_zone(zone->mm, index) != zone)
		return false;
	blocks = order_blocks(block_look_at(zone->mm, index).order);
	if (blocks > *left && *left < LOCK_SLICE)
		return false;
	*left -= MIN(blocks, *left);
	return true;
}

void block_list_begin(struct mm *mm, struct block_list *list, enum block_state to)
{
	for (u32 index = list->head; index != BLOCK_NONE;) {
		struct zone *zone = block_zone(mm, index);
		u32 left = LOCK_SLICE;

		zone_lock(zone);
		for (; in_this_turn(zone, index, &left); index = block_at(mm, index)->next)
			block_begin(zone, index, block_look_at(mm, index).order, to);
		zone_unlock(zone);
	}
}

void block_list_publish_used(struct mm *mm, struct block_list *list, u8 flags)
{
	for (u32 index = list->head; index != BLOCK_NONE;) {
		struct zone *zone = block_zone(mm, index);
		u32 left = LOCK_SLICE;

		zone_lock(zone);
		for (; in_this_turn(zone, index, &left); index = block_at(mm, index)->next) {
			transit_end(zone, index, block_look_at(mm, index).order, 0, flags);
			if (flags) /* the run goes to a pool, which does not check the poison */
				poison_forget(mm, index, 1);
		}
		zone_unlock(zone);
	}
}

static void block_to_buddy(struct zone *zone, u32 index, bool in_transit)
{
	struct block *block = block_at(zone->mm, index);
	struct block_word word = block_look(block);
	const unsigned order = word.order;

	if (in_transit) {
		word = transit_end(zone, index, order, BLOCK_POOL, 0);
	} else {
		word.flags &= (u8)~BLOCK_POOL;
		block_put(block, word);
	}
	buddy_free_blocks(zone, index, order, block_free_class(word));
}

static void list_to_buddy(struct mm *mm, struct block_list *list, bool in_transit)
{
	while (list->head != BLOCK_NONE) {
		struct zone *zone = block_zone(mm, list->head);
		u32 left = LOCK_SLICE;

		zone_lock(zone);
		while (in_this_turn(zone, list->head, &left))
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
