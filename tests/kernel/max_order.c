/* Another limit for runs of blocks: see max_order.h. */
#include "tests/kernel/max_order.h"

#include "mm/memmap/enter.h"

/* Put each free run of a GiB back, cut or merged as the new limit allows. Zone lock held. */
static void place_runs(struct zone *zone, u32 first)
{
	for (u32 index = first, blocks; index < first + GIB_BLOCKS; index += blocks) {
		const struct block_word word = block_look_at(zone->mm, index);
		const enum free_class class = block_free_class(word);
		const bool is_run =
			(word.flags & BLOCK_FREE) && word.zone == zone->index && class != FREE_HUGE;

		blocks = is_run ? order_blocks(word.order) : 1;
		if (!is_run)
			continue;
		buddy_unlink_within(zone, index, index, index + blocks);
		buddy_free_blocks(zone, index, word.order, class);
	}
}

void buddy_set_max_order(struct mm *mm, unsigned order)
{
	for (unsigned z = 0; z < mm->zones; z++) {
		struct zone *zone = &mm->zone[z];
		const u32 first = (u32)(zone->start_pfn >> GIGA_ORDER) * GIB_BLOCKS;

		if (zone->max_order == order)
			continue;
		zone_lock(zone);
		zone->max_order = order;
		for (u32 index = first; block_pfn(index) < zone->end_pfn; index += GIB_BLOCKS)
			if (block_at(mm, index))
				place_runs(zone, index);
		zone_unlock(zone);
	}
}
