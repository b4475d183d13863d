/* Free runs on the lists of a zone. */
#pragma once

#include "mm/zone/buddy.h"

/* Number of runs of one order on the lists of a class and type. */
static inline u64 buddy_count_runs(const struct zone *zone, enum free_class class, unsigned type,
				   unsigned order)
{
	u64 runs = 0;

	for (unsigned list = 0; list < BLOCK_ORDERS; list++)
		if (buddy_list_order(class, list) == order)
			for (u32 i = zone->block_list[class][type][list]; i != BLOCK_NONE;
			     i = block_at(zone->mm, i)->next)
				runs++;
	return runs;
}
