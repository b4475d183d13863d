/*
 * The fast halves of allocating and freeing pages, shared by the calls of mm.h. They are inline.
 * They use no lock, no locked instruction and no cache line of another CPU, and touch one line of
 * the struct page.
 *
 * They leave the other cases to page_alloc.c and page_free.c (no page at hand, other orders,
 * debugging) and to pcp.c (another block than last time, too many frames held). Such a call is
 * always the last thing they do, so that no register has to survive a call.
 *
 * Cost: `make bench-native`.
 */
#pragma once

#include <arch/check.h>

#include "mm/memmap/memmap.h"
#include "mm/page/page_check.h"
#include "mm/page/pcp.h"

struct page *page_alloc_slowly(struct mm *mm, unsigned order, enum page_use use, unsigned request,
			       node_t node, virt_t caller);

/* Free any page, fully checked. The caller holds the only reference. */
void page_free_slowly(struct mm *mm, struct page *page, virt_t caller);

/*
 * Drop a reference to a head: the one implementation of put, for all pages. The last reference
 * frees the page, or returns a pool's page to its pool. The caller holds a reference and no lock,
 * and must not look at the page afterwards.
 */
void page_put_head(struct mm *mm, struct page *head, virt_t caller);

/* Leave when a drain was requested meanwhile; returns `page`. */
struct page *page_leave_draining(struct mm *mm, struct pcp *pcp, struct page *page) __releases(pcp);

/* Call pcp_free() for a single page, and leave. */
void page_keep_and_leave(struct mm *mm, struct pcp *pcp, u8 zone, pfn_t pfn) __releases(pcp);

/* Does the request name a node that does not exist and refuse any other? */
static inline bool page_node_is_missing(const struct mm *mm, unsigned request, node_t node)
{
	return node >= mm->nodes && unlikely((request & PAGE_NODE) && node != NODE_NONE);
}

/* The node to look on first: `node` if it exists, otherwise this CPU's. */
static inline node_t page_first_node(const struct mm *mm, node_t node)
{
	return node < mm->nodes ? node : MIN(this_cpu()->node, mm->nodes - 1);
}

/* The zone that serves a request first; ZONE_NONE for a missing node or one without memory. */
static inline u8 page_first_zone(const struct mm *mm, unsigned request, node_t node)
{
	const u8 *zones;

	if (page_node_is_missing(mm, request, node))
		return ZONE_NONE;
	zones = mm->node[page_first_node(mm, node)].zone;
	return likely(zones[ZONE_NORMAL] != ZONE_NONE) ? zones[ZONE_NORMAL] : zones[ZONE_DMA32];
}

/*
 * Take one page from the word at hand. NULL if the word is empty. The struct page is written, not
 * read.
 */
static inline struct page *page_alloc_quickly(struct mm *mm, enum page_use use, unsigned request,
					      node_t node)
{
	const u8 zone = page_first_zone(mm, request, node);
	struct pcp_zone *mine;
	struct page *page;
	struct pcp *pcp;
	u64 *word, bits;

	if (unlikely((request & (PAGE_ZERO | PAGE_DMA32)) || use > USE_RECLAIMABLE ||
		     zone == ZONE_NONE || atomic_load_relaxed(&mm->watch)))
		return NULL;
	pcp = pcp_enter(mm);
	mine = pcp->zone[zone];
	word = mine->word[use];
	bits = *word;
	if (unlikely(!bits)) {
		pcp_left(pcp); /* the caller enters again, and then drains if that was requested */
		return NULL;
	}
	page = mine->word_page[use] + __builtin_ctzll(bits);
	*word = bits & (bits - 1);
	pcp_add_held(mine, -1);
	memmap_form_single(page, zone);
	check_frames_reused(page_to_pfn(page), 1);
	fence_compiler();
	if (unlikely(atomic_load_relaxed(&pcp->drain_wanted)))
		return page_leave_draining(mm, pcp, page);
	pcp_left(pcp);
	return page;
}

/*
 * Is this an aligned struct page whose state is single, in use, one reference, nothing unusual?
 * page_is_of() checks that it belongs to the mm.
 */
static inline bool page_is_plain(const struct mm *mm, const struct page *page, u64 state)
{
	const u64 offset = (virt_t)page - mm->vmemmap;

	return (state & ~page_state(0, 0, 0xff, 0)) == page_state(0, 0, 0, 1) &&
	       IS_ALIGNED(offset, sizeof(*page)) && page->head_mask == head_mask_of(0);
}

static inline bool page_is_of(const struct mm *mm, const struct page *page)
{
	const u64 offset = (virt_t)page - mm->vmemmap;

	return (offset >> (PAGE_STRUCT_SHIFT + GIGA_ORDER)) - mm->first_gib < mm->gibs;
}

/*
 * page_free(): the caller holds the only reference, so a plain store drops it; a locked instruction
 * would cost as much as all the rest. Pages that others can find (PAGE_MOVABLE, boot pages, pool
 * pages) carry a flag and take the slow path.
 */
static inline void page_free_quickly(struct mm *mm, struct page *page, virt_t caller)
{
	const pfn_t pfn = page_to_pfn(page);
	struct pcp_zone *mine;
	struct pcp *pcp;
	u64 state, *word;
	u32 slot;
	u8 zone;

	/* 0 is no plain page's state */
	state = page_is_of(mm, page) ? atomic_load_relaxed(&page->state) : 0;
	if (unlikely(!page_is_plain(mm, page, state) || atomic_load_relaxed(&mm->watch))) {
		page_free_slowly(mm, page, caller);
		return;
	}
	zone = (u8)(state >> 24);
	pcp = pcp_enter(mm);
	mine = pcp->zone[zone];
	atomic_store_relaxed(&page->state, page_state(PAGE_PCP, 0, zone, 0));
	slot = mine->last_slot;
	word = &mine->map[slot][pfn % BLOCK_FRAMES / 64];
	if (unlikely(mine->fast_tag != (u32)(pfn >> BLOCK_ORDER) + 1 || !*word ||
		     mine->held >= mine->high ||
		     block_look(block_of_used(mm, pfn)).type != mine->type[slot])) {
		page_keep_and_leave(mm, pcp, zone, pfn);
		return;
	}
	counter_add(&mine->lookups_fast, 1);
	*word |= 1ULL << pfn % 64;
	pcp_add_held(mine, 1);
	fence_compiler();
	if (unlikely(atomic_load_relaxed(&pcp->drain_wanted))) {
		page_leave_draining(mm, pcp, page);
		return;
	}
	pcp_left(pcp);
}
