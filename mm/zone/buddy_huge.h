/* Free huge pages, many in one turn at the zone's lock. Zone lock held. */
#pragma once

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

/* Put a 2 MiB page, whose record is to say `word`, onto the list of its type. */
void buddy_add_huge(struct zone *zone, u32 index, struct block_word word);
