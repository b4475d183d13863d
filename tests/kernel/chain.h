/*
 * Pages that a case holds, chained through private[0] of their heads. A chain may have any number
 * of pages and needs no memory of its own.
 *
 *	struct page *chain = NULL;
 *	u64 count = chain_take_all(&chain, mm, 0, 0, NODE_NONE);
 *	...
 *	chain_give(&chain, mm);
 */
#pragma once

#include "mm/mm.h"

/* Make `page` the first of the chain. */
static inline void chain_push(struct page **chain, struct page *page)
{
	page->private[0] = (u64)(virt_t)*chain;
	*chain = page;
}

static inline struct page *chain_next(const struct page *page)
{
	return (struct page *)(virt_t)page->private[0];
}

/*
 * Allocate movable pages of this order onto the chain until there are none. Returns the number of
 * pages.
 */
static inline u64 chain_take_all(struct page **chain, struct mm *mm, unsigned order,
				 unsigned request, node_t node)
{
	struct page *page;
	u64 count;

	for (count = 0; (page = mm_page_alloc(mm, order, USE_MOVABLE, request, node)); count++)
		chain_push(chain, page);
	return count;
}

/* Free all pages of the chain. */
static inline void chain_give(struct page **chain, struct mm *mm)
{
	struct page *page;

	while ((page = *chain)) {
		*chain = chain_next(page);
		mm_page_free(mm, page);
	}
}
