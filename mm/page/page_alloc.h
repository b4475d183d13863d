/*
 * The allocator of any struct mm. mm.h offers the same calls, with the same contracts, for the
 * machine's own.
 */
#pragma once

#include <arch/check.h>

#include "mm/memmap/memmap.h"

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

/* Form the next page of a word, which has one. */
static inline struct page *page_word_next(struct page_word *word)
{
	struct page *page = word->first + __builtin_ctzll(word->bits);

	word->bits &= word->bits - 1;
	memmap_form_single(page, word->in_use);
	check_frames_reused(page_to_pfn(page), 1);
	return page;
}

void mm_page_free_bulk(struct mm *mm, struct page *const *pages, size_t count);
