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
void mm_page_free_bulk(struct mm *mm, struct page *const *pages, size_t count);
