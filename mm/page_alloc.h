/* The allocator of one struct mm: what mm.h offers for the machine's own. Contracts as there. */
#pragma once

#include "mm/zone.h"

struct page *mm_page_alloc(struct mm *mm, unsigned order, enum page_use use, unsigned request, node_t node);
void mm_page_free(struct mm *mm, struct page *page);

bool mm_page_peek(const struct mm *mm, pfn_t pfn, struct page *copy);
size_t mm_page_alloc_bulk(struct mm *mm, enum page_use use, unsigned request, node_t node, struct page **pages,
			  size_t count);
void mm_page_free_bulk(struct mm *mm, struct page *const *pages, size_t count);
