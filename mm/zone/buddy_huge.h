/* Free huge pages, many in one turn at the zone's lock. Zone lock held. */
#pragma once

#include "kernel/core/panic.h"
#include "mm/zone/buddy.h"

/*
 * Many huge pages at once. buddy_take_huge() takes up to `count` of exactly `order` (9 or 18)
 * and returns how many there were. buddy_free_huge() puts 2 MiB pages (BLOCK_HUGE) back, each on
 * the list of its type. Their records keep the order.
 */
u32 buddy_take_huge(struct zone *zone, unsigned order, enum migratetype type, u32 *pages,
		    u32 count);
void buddy_free_huge(struct zone *zone, const u32 *pages, u32 count);

/*
 * buddy_take_huge() of pages that go in transit to state `to`, counted as such and appended to
 * `list`.
 */
u64 buddy_begin_huge(struct zone *zone, unsigned order, enum migratetype type, u64 count,
		     enum block_state to, struct block_list *list);

/*
 * Put a 2 MiB page, whose record is to say `word`, onto the list of its type. `ahead`: see
 * buddy_huge.c. The caller adds its frames to free_class[FREE_HUGE].
 */
static inline void buddy_add_huge(struct zone *zone, u32 index, struct block *block,
				  struct block_word word, u64 ahead)
{
	const unsigned type = type_list(word.type),
		       list = buddy_list_of(FREE_HUGE, index, BLOCK_ORDER);
	u32 *head = &zone->block_list[FREE_HUGE][type][list];

	ASSERT(word.state == BLOCK_HUGE && word.order == BLOCK_ORDER &&
		       !(word.flags & (BLOCK_FREE | BLOCK_TRANSIT | BLOCK_POOL)),
	       "block %u freed as a huge page while its flags are %x", index, word.flags);
	block->ahead = ahead;
	block->prev = BLOCK_NONE;
	block->next = *head;
	if (*head != BLOCK_NONE)
		block_existing(zone->mm, *head)->prev = index;
	*head = index;
	word.flags |= BLOCK_FREE;
	block_put(block, word);
	zone->block_lists[FREE_HUGE][type] |= (u16)(1u << list);
	counter_add(&zone->free_type[type], BLOCK_FRAMES);
	gib_count_free(zone->mm, index, BLOCK_FRAMES);
}
