/*
 * The allocator of any struct mm. mm.h offers the same calls, with the same contracts, for the
 * machine's own.
 */
#pragma once

#include "mm/memmap/zone.h"

struct page *mm_page_alloc(struct mm *mm, unsigned order, enum page_use use, unsigned request,
			   node_t node);
void mm_page_free(struct mm *mm, struct page *page);
void mm_page_put(struct mm *mm, struct page *page);

bool mm_page_peek(const struct mm *mm, pfn_t pfn, struct page *copy);
size_t mm_page_alloc_bulk(struct mm *mm, enum page_use use, unsigned request, node_t node,
			  struct page **pages, size_t count);

/*
 * Single pages that their taker will form one by one, so that each struct page is written when it
 * is used: bit n of `bits` is first[n], and `in_use` the state to give it.
 */
struct page_word {
	struct page *first;
	u64 bits, in_use;
};

/*
 * Take up to `count`, at most 64, of the pages that this CPU has at hand of the zone that serves a
 * request first. Returns how many; 0 leaves word->bits as they are.
 */
unsigned mm_page_take_word(struct mm *mm, unsigned request, node_t node, enum migratetype type,
			   unsigned count, struct page_word *word);
void mm_page_free_bulk(struct mm *mm, struct page *const *pages, size_t count);
