/*
 * Pages that a case holds, any number of them, on a chain (mm/memmap/page.h).
 *
 *	struct page *chain = NULL;
 *	u64 count = chain_take_all(&chain, mm, 0, 0, NODE_NONE);
 *	...
 *	chain_give(&chain, mm);
 */
#pragma once

#include "mm/mm.h"
#include "mm/page/page_alloc.h"

/*
 * Allocate up to `most` movable pages of this order onto the chain. Returns how many there were.
 */
static inline u64 chain_take(struct page **chain, struct mm *mm, u64 most, unsigned order,
			     unsigned request, node_t node)
{
	u64 count;

	for (count = 0; count < most; count++) {
		struct page *page = mm_page_alloc(mm, order, USE_MOVABLE, request, node);

		if (!page)
			break;
		page_chain_push(chain, page);
	}
	return count;
}

/* Allocate movable pages of this order onto the chain until there are none. */
static inline u64 chain_take_all(struct page **chain, struct mm *mm, unsigned order,
				 unsigned request, node_t node)
{
	return chain_take(chain, mm, ~0ULL, order, request, node);
}

/* Free all pages of the chain. Returns how many there were. */
static inline u64 chain_give(struct page **chain, struct mm *mm)
{
	struct page *page;
	u64 count = 0;

	for (; (page = page_chain_pop(chain)); count++)
		mm_page_free(mm, page);
	return count;
}
