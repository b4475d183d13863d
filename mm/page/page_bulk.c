/*
 * Many single pages in one call: see mm.h.
 *
 * Allocation takes a whole word of a per-CPU slot at once, up to 64 pages for one entry into the
 * allocator. Freeing prefetches the struct pages that come next while one is being written.
 *
 * Source: Brouwer, "Introduce a bulk order-0 page API with two in-tree users", 2021-03, for what
 * callers want of it.
 */
#include "kernel/core/context.h"
#include "mm/page/page_alloc.h"
#include "mm/page/page_fast.h"

enum { AHEAD = 8, SECTION = 64 };

/* `word` is a copy, which the compiler keeps in registers. */
static void form_word(struct page_word word, struct page **pages)
{
	for (unsigned i = 0; word.bits; i++)
		pages[i] = page_word_next(&word);
}

unsigned mm_page_take_word(struct mm *mm, unsigned request, node_t node, enum migratetype type,
			   unsigned count, struct page_word *word)
{
	struct pcp *pcp = pcp_enter(mm);
	struct pcp_zone *mine = page_first_list(mm, pcp, request, node);
	unsigned taken = 0;

	if (mine) {
		word->in_use = mine->in_use;
		taken = pcp_alloc_word(&mm->zone[mine->zone], type, count, &word->first,
				       &word->bits);
	}
	pcp_leave(mm, pcp);
	return taken;
}

/* Take the pages that one word of the first zone holds. Returns 0 if none is at hand. */
static size_t alloc_word(struct mm *mm, unsigned request, node_t node, enum migratetype type,
			 struct page **pages, size_t count)
{
	struct page_word word;
	const unsigned taken =
		mm_page_take_word(mm, request, node, type, (unsigned)MIN(count, SECTION), &word);

	if (taken > 0)
		form_word(word, pages);
	return taken;
}

size_t mm_page_alloc_bulk(struct mm *mm, enum page_use use, unsigned request, node_t node,
			  struct page **pages, size_t count)
{
	const bool at_hand = !(request & (PAGE_ZERO | PAGE_DMA32)) && use <= USE_RECLAIMABLE;
	size_t done = 0, taken;

	while (done < count) {
		taken = at_hand && !atomic_load_relaxed(&mm->watch)
				? alloc_word(mm, request, node, (enum migratetype)use, pages + done,
					     count - done)
				: 0;
		if (taken == 0) {
			/* this also refills the per-CPU list */
			pages[done] = mm_page_alloc(mm, 0, use, request, node);
			if (!pages[done])
				break;
			taken = 1;
		}
		done += taken;
	}
	return done;
}

/*
 * pcp.type_cache=first: read each page's type before any page is freed, to see whether it is
 * isolated. Freeing the page reads the type again.
 */
static void look_first(struct mm *mm, struct page *const *pages, size_t count)
{
	struct pcp *pcp = pcp_enter(mm);

	for (size_t i = 0; i < count; i++) {
		if (!page_is_of(mm, pages[i]) || page_kind(pages[i]).zone >= mm->zones)
			continue; /* page_free() reports the misuse */
		block_look(block_of_used(mm, page_to_pfn(pages[i])));
		counter_add(&pcp->zone[page_kind(pages[i]).zone]->lookups, 1);
	}
	pcp_leave(mm, pcp);
}

void mm_page_free_bulk(struct mm *mm, struct page *const *pages, size_t count)
{
	if (unlikely(mm->pcp_types->twice))
		look_first(mm, pages, count);
	for (size_t i = 0; i < MIN(count, AHEAD); i++)
		page_prefetch(pages[i]);
	for (size_t i = 0; i < count; i++) {
		if (i + AHEAD < count)
			page_prefetch(pages[i + AHEAD]);
		page_free_quickly(mm, pages[i], CALLER);
	}
}

size_t page_alloc_bulk(enum page_use use, unsigned request, node_t node, struct page **pages,
		       size_t count)
{
	context_assert(request & PAGE_NOFLUSH ? CONTEXT_LOCKED : CONTEXT_ORDINARY);
	return mm_page_alloc_bulk(&mm_kernel, use, request, node, pages, count);
}

void page_free_bulk(struct page *const *pages, size_t count)
{
	context_assert(CONTEXT_ORDINARY);
	mm_page_free_bulk(&mm_kernel, pages, count);
}
