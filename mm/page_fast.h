/*
 * The fast halves of allocating and freeing pages, shared by the calls of mm.h: inline, no lock, no locked instruction, no
 * other CPU's cache line, one line of the struct page. What they leave to others is in page_alloc.c and page_free.c (no page at
 * hand, other orders, debugging) and pcp.c (the block is another than last time, too many are held): always as the last thing they do, so that
 * nothing is kept in registers over a call.
 *
 * Cost: `make bench-native`.
 */
#pragma once

#include <arch/check.h>

#include "mm/memmap.h"
#include "mm/page_check.h"
#include "mm/pcp.h"

struct page *page_alloc_slowly(struct mm *mm, unsigned order, enum page_use use, unsigned request, node_t node,
			       virt_t caller);

/* Any page, fully checked, whose caller holds the only reference. */
void page_free_slowly(struct mm *mm, struct page *page, virt_t caller);

/*
 * Drop a reference to a head: the one put, of all pages. The last reference frees the page, or gives a pool's back to its pool. The caller
 * holds a reference and no lock, and looks at nothing of the page afterwards.
 */
void page_put_head(struct mm *mm, struct page *head, virt_t caller);

/* Leave after a drain was asked for meanwhile; returns `page`. */
struct page *page_leave_draining(struct mm *mm, struct pcp *pcp, struct page *page) __releases(pcp);

/* pcp_free() of a single page, and leave. */
void page_keep_and_leave(struct mm *mm, struct pcp *pcp, u8 zone, pfn_t pfn) __releases(pcp);

/* Does the request name a node that does not exist, and no other will do? */
static inline bool page_node_is_missing(const struct mm *mm, unsigned request, node_t node)
{
	return node >= mm->nodes && unlikely((request & PAGE_NODE) && node != NODE_NONE);
}

/* Node to look on first: `node`, or this CPU's. */
static inline node_t page_first_node(const struct mm *mm, node_t node)
{
	return node < mm->nodes ? node : MIN(this_cpu()->node, mm->nodes - 1);
}

/* Zone that a request is served from first; ZONE_NONE: a node without memory, or a missing one. */
static inline u8 page_first_zone(const struct mm *mm, unsigned request, node_t node)
{
	const u8 *zones;

	if (page_node_is_missing(mm, request, node))
		return ZONE_NONE;
	zones = mm->node[page_first_node(mm, node)].zone;
	return likely(zones[ZONE_NORMAL] != ZONE_NONE) ? zones[ZONE_NORMAL] : zones[ZONE_DMA32];
}

/* One page from the word at hand. NULL if that is empty. Its struct page is written, not read. */
static inline struct page *page_alloc_quickly(struct mm *mm, enum page_use use, unsigned request, node_t node)
{
	const u8 zone = page_first_zone(mm, request, node);
	struct pcp_zone *mine;
	struct page *page;
	struct pcp *pcp;
	u64 *word, bits;

	if (unlikely((request & (PAGE_ZERO | PAGE_DMA32)) || use > USE_RECLAIMABLE || zone == ZONE_NONE ||
		     atomic_load_relaxed(&mm->watch)))
		return NULL;
	pcp = pcp_enter(mm);
	mine = pcp->zone[zone];
	word = mine->word[use];
	bits = *word;
	if (unlikely(!bits)) {
		pcp_left(pcp); /* the caller enters again, and drains then if it is asked to */
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

/* Is this a struct page of the mm, and does it say: single, in use, one reference, nothing unusual? */
static inline bool page_is_plain(const struct mm *mm, const struct page *page, u64 state)
{
	const u64 offset = (virt_t)page - mm->vmemmap;

	return (state & ~page_state(0, 0, 0xff, 0)) == page_state(0, 0, 0, 1) && IS_ALIGNED(offset, sizeof(*page)) &&
	       page->head_mask == head_mask_of(0);
}

static inline bool page_is_of(const struct mm *mm, const struct page *page)
{
	const u64 offset = (virt_t)page - mm->vmemmap;

	return (offset >> (PAGE_STRUCT_SHIFT + GIGA_ORDER)) - mm->first_gib < mm->gibs;
}

/*
 * page_free(): its caller holds the only reference, so that is dropped by a plain store; a locked instruction would cost as
 * much as all the rest. Pages that others can find (PAGE_MOVABLE, boot pages, pool pages) carry a flag and go the slow way.
 */
static inline void page_free_quickly(struct mm *mm, struct page *page, virt_t caller)
{
	const pfn_t pfn = page_to_pfn(page);
	struct pcp_zone *mine;
	struct pcp *pcp;
	u64 state, *word;
	u32 slot;
	u8 zone;

	if (unlikely(!page_is_of(mm, page) || !page_is_plain(mm, page, state = atomic_load_relaxed(&page->state)) ||
		     atomic_load_relaxed(&mm->watch))) {
		page_free_slowly(mm, page, caller);
		return;
	}
	zone = (u8)(state >> 24);
	pcp = pcp_enter(mm);
	mine = pcp->zone[zone];
	atomic_store_relaxed(&page->state, page_state(PAGE_PCP, 0, zone, 0));
	slot = mine->last_slot;
	word = &mine->map[slot][pfn % BLOCK_FRAMES / 64];
	if (unlikely(mine->fast_tag != (u32)(pfn >> BLOCK_ORDER) + 1 || !*word || mine->held >= mine->high ||
		     block_look(block_of_used(mm, pfn)).type != mine->type[slot])) {
		page_keep_and_leave(mm, pcp, zone, pfn);
		return;
	}
	mine->lookups_fast++;
	*word |= 1ULL << pfn % 64;
	pcp_add_held(mine, 1);
	fence_compiler();
	if (unlikely(atomic_load_relaxed(&pcp->drain_wanted))) {
		page_leave_draining(mm, pcp, page);
		return;
	}
	pcp_left(pcp);
}
