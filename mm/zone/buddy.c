/*
 * The buddy for whole blocks, orders 9..18: see buddy.h. Small orders: buddy_small.c.
 *
 *   order 11 run   [head: order 11, FREE][order 0][order 0][order 0]
 *                  only the head's record says "free"
 *
 * The interior records keep their state, type and zone, so splitting or merging a run writes one
 * record only. Neighbours merge if their class and type are equal. Huge pages never merge, because
 * the shared tails depend on the order.
 */
#include "mm/zone/buddy.h"

#include "kernel/core/panic.h"
#include "mm/memmap/block_state.h"
#include "mm/zone/buddy_huge.h"

/* The zone lock owns the record: it was taken off a list, or is being given back under the lock. */
static void list_add(struct zone *zone, u32 index, unsigned order, enum free_class class)
{
	struct block *block = block_existing(zone->mm, index);
	struct block_word word = block_look(block);
	const unsigned list = buddy_list_of(class, index, order), type = type_list(word.type);
	u32 *head = &zone->block_list[class][type][list];

	block->prev = BLOCK_NONE;
	block->next = *head;
	if (*head != BLOCK_NONE)
		block_existing(zone->mm, *head)->prev = index;
	*head = index;
	word.order = (u8)order;
	word.flags |= BLOCK_FREE;
	block_put(block, word);
	atomic_store_relaxed(&zone->block_lists[class][type], /* read without the lock, too */
			     (u16)(zone->block_lists[class][type] | 1u << list));
	counter_add(&zone->free_class[class], order_pages(order));
	counter_add(&zone->free_type[type], order_pages(order));
	gib_count_free(zone->mm, index, (s64)order_pages(order));
}

static void list_remove(struct zone *zone, u32 index, enum free_class class)
{
	struct block *block = block_existing(zone->mm, index);
	struct block_word word = block_look(block);
	const unsigned list = buddy_list_of(class, index, word.order), type = type_list(word.type);
	const u64 pages = order_pages(word.order);
	u32 *head = &zone->block_list[class][type][list];

	if (block->prev == BLOCK_NONE)
		*head = block->next;
	else
		block_existing(zone->mm, block->prev)->next = block->next;
	if (block->next != BLOCK_NONE)
		block_existing(zone->mm, block->next)->prev = block->prev;
	if (*head == BLOCK_NONE)
		atomic_store_relaxed(&zone->block_lists[class][type],
				     (u16)(zone->block_lists[class][type] & ~(1u << list)));
	counter_sub(&zone->free_class[class], pages);
	counter_sub(&zone->free_type[type], pages);
	gib_count_free(zone->mm, index, -(s64)pages);
	block->next = block->prev = BLOCK_NONE;
	block->owner = 0; /* `ahead` of a huge page */
	word.order = 0;
	word.flags &= (u8)~BLOCK_FREE;
	block_put(block, word);
}

/*
 * May this neighbour merge with a run of (zone, order, class, type)? Its record may belong to any
 * CPU, so one load of the word decides.
 */
static bool can_merge(const struct zone *zone, u32 index, unsigned order, enum free_class class,
		      u8 type)
{
	const struct block *block = block_at(zone->mm, index);
	struct block_word word;

	if (!block)
		return false;
	word = block_look(block);
	return (word.flags & BLOCK_FREE) && word.order == order && word.zone == zone->index &&
	       word.type == type && block_free_class(word) == class;
}

void buddy_free_blocks(struct zone *zone, u32 index, unsigned order, enum free_class class)
{
	struct block *block = block_at(zone->mm, index);
	struct block_word word = block_look(block);

	ASSERT(spin_held(&zone->lock), "block %u freed without the zone lock", index);
	ASSERT(class < FREE_CLASSES, "block %u freed in state %s, in which no block is free", index,
	       block_state_name(word.state));
	ASSERT(!(word.flags & (BLOCK_FREE | BLOCK_TRANSIT | BLOCK_POOL)),
	       "block %u freed with flags %x: a double free, or the caller does not own it", index,
	       word.flags);
	word.order = 0; /* the block may become the interior of a run */
	block_put(block, word);
	/* max_order was lowered while the run was in transit */
	if (unlikely(class != FREE_HUGE && order > zone->max_order)) {
		buddy_free_range(zone, index, order_blocks(order), class);
		return;
	}
	DEBUG_ASSERT(buddy_find_run(zone->mm, index) == BLOCK_NONE,
		     "block %u lies in a run that is free", index);
	while (class != FREE_HUGE && order < zone->max_order) {
		const u32 buddy = index ^ order_blocks(order);

		if (!can_merge(zone, buddy, order, class, word.type))
			break;
		list_remove(zone, buddy, class);
		index = MIN(index, buddy);
		order++;
	}
	list_add(zone, index, order, class);
}

void buddy_free_range(struct zone *zone, u32 index, u32 count, enum free_class class)
{
	while (count > 0) {
		unsigned order = BLOCK_ORDER;

		while (class != FREE_HUGE && order < zone->max_order &&
		       IS_ALIGNED(index, 2u << (order - BLOCK_ORDER)) &&
		       count >= 2u << (order - BLOCK_ORDER))
			order++;
		buddy_free_blocks(zone, index, order, class);
		index += 1u << (order - BLOCK_ORDER);
		count -= 1u << (order - BLOCK_ORDER);
	}
}

u32 buddy_take_blocks(struct zone *zone, unsigned order, enum free_class class,
		      enum migratetype type)
{
	const unsigned orders = zone->block_lists[class][type] & (~0u << (order - BLOCK_ORDER));
	unsigned found;
	u32 index;

	if (class == FREE_HUGE)
		return buddy_take_huge(zone, order, type, &index, 1) ? index : BLOCK_NONE;
	if (!orders)
		return BLOCK_NONE;
	found = BLOCK_ORDER + (unsigned)__builtin_ctz(orders);
	index = zone->block_list[class][type][found - BLOCK_ORDER];
	list_remove(zone, index, class);
	while (found > order) {
		found--;
		list_add(zone, index + (1u << (found - BLOCK_ORDER)), found, class);
	}
	return index;
}

u32 buddy_find_run(struct mm *mm, u32 index)
{
	struct block_word word;
	const u32 head = block_run_head(mm, index, &word);

	return word.flags & BLOCK_FREE ? head : BLOCK_NONE;
}

u32 buddy_unlink_within(struct zone *zone, u32 head, u32 first, u32 end)
{
	const struct block_word word = block_look_at(zone->mm, head);
	const enum free_class class = block_free_class(word);
	const u32 count = order_blocks(word.order);

	ASSERT(class != FREE_HUGE || (head >= first && head + count <= end),
	       "a free huge page at block %u is cut", head);
	ASSERT(word.flags & BLOCK_FREE, "block %u heads no free run", head);
	list_remove(zone, head, class);
	/* the rest keeps its type, and cannot merge with the part taken, which is not free */
	if (head < first)
		buddy_free_range(zone, head, first - head, class);
	if (head + count > end)
		buddy_free_range(zone, end, head + count - end, class);
	return MIN(head + count, end);
}
