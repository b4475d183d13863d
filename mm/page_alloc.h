/* The allocator of one struct mm: what mm.h offers for the machine's own. Contracts as there. */
#pragma once

#include "mm/zone.h"

struct page *mm_page_alloc(struct mm *mm, unsigned order, enum page_use use, unsigned request, node_t node);
void mm_page_free(struct mm *mm, struct page *page);

/* A bare block in transit gets its struct pages, of 8 reserved frames of `kind`. */
void block_full_from_bare(struct zone *zone, struct node *node, enum meta_kind kind, u32 index);
bool mm_page_peek(const struct mm *mm, pfn_t pfn, struct page *copy);
