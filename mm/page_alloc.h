/* The allocator of one struct mm: what mm.h offers for the machine's own. Contracts as there. */
#pragma once

#include "mm/zone.h"

struct page *mm_page_alloc(struct mm *mm, unsigned order, enum page_use use, unsigned request, node_t node);
void mm_page_free(struct mm *mm, struct page *page);

/*
 * Bare to full: eight frames of struct pages, written once, shown when they are ready. They are reserved, of this kind; the
 * block is in transit and the caller's.
 */
void block_full_from_bare(struct zone *zone, struct node *node, enum meta_kind kind, u32 index);

/*
 * A full block in transit goes to the small lists, unless another CPU has meanwhile split one for the same need (a chunk of at
 * least `order` is there; PAGE_ORDERS: split it anyway): then it stays whole and free, or two halves of it would keep its section from
 * ever being closed.
 */
void block_publish_split(struct zone *zone, u32 index, unsigned order);

bool mm_page_peek(const struct mm *mm, pfn_t pfn, struct page *copy);
size_t mm_page_alloc_bulk(struct mm *mm, enum page_use use, unsigned request, node_t node, struct page **pages,
			  size_t count);
void mm_page_free_bulk(struct mm *mm, struct page *const *pages, size_t count);
