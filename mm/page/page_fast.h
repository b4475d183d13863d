/*
 * The fast halves of allocating and freeing pages, shared by the calls of mm.h. They are inline.
 * They use no lock, no locked instruction and no cache line of another CPU, and touch one line of
 * the struct page.
 *
 * They leave the other cases to page_alloc.c and page_free.c (no page at hand, other orders,
 * debugging) and to pcp.c (another block than last time, too many frames held). Such a call is
 * always the last thing they do, so that no register has to survive a call.
 *
 * Cost: `make bench WHAT=native`.
 */
#pragma once

#include <arch/check.h>

#include "mm/memmap/memmap.h"
#include "mm/page/page_check.h"
#include "mm/page/pcp.h"

/*
 * Drop a reference to a head: the one implementation of put, for all pages. The last reference
 * frees the page, or returns a pool's page to its pool. The caller holds a reference and no lock,
 * and must not look at the page afterwards.
 */
void page_put_head(struct mm *mm, struct page *head, virt_t caller);

/* Leave when a drain was requested meanwhile; returns `page`, which is not NULL. */
struct page *page_leave_draining(struct mm *mm, struct pcp *pcp, struct page *page) __releases(pcp)
	__attribute__((returns_nonnull));

/*
 * Free a single page to another block than the last one, or any page that has to be looked at with
 * more care.
 */
void page_free_elsewhere(struct mm *mm, struct page *page, virt_t caller);

/* The node to look on first: `node` if it exists, otherwise this CPU's. */
static inline node_t page_first_node(const struct mm *mm, node_t node)
{
	return node < mm->nodes ? node : MIN(this_cpu()->node, mm->nodes - 1);
}

/*
 * This CPU's list of the zone that serves a request first; NULL for a missing node or one without
 * memory. Entered.
 */
static inline struct pcp_zone *page_first_list(const struct mm *mm, const struct pcp *pcp,
					       unsigned request, node_t node)
{
	const node_t entry = node + 1; /* 0 for NODE_NONE */

	if (unlikely(entry > mm->nodes))
		return request & PAGE_NODE ? NULL : pcp->first[0];
	return pcp->first[entry];
}

/* Take the hot page, or one from the word at hand. NULL if there is neither. Entered. */
static inline struct page *page_take_quickly(struct pcp_zone *mine, enum page_use use)
{
	struct page *page = pcp_take_hot(mine, (enum migratetype)use);
	u64 *word, bits;

	if (page)
		return page;
	word = mine->word[use];
	bits = *word;
	if (unlikely(!bits))
		return NULL;
	*word = bits & (bits - 1);
	pcp_add_held(mine, -1);
	return mine->word_page[use] + __builtin_ctzll(bits);
}

/*
 * Take a page that is at hand. NULL if there is none. The struct page is written, not read.
 */
static inline __attribute__((always_inline)) struct page *
page_alloc_quickly(struct mm *mm, enum page_use use, unsigned request, node_t node)
{
	struct pcp_zone *mine;
	struct page *page;
	struct pcp *pcp;

	if (unlikely((request & (PAGE_ZERO | PAGE_DMA32)) || use > USE_RECLAIMABLE ||
		     atomic_load_relaxed(&mm->watch)))
		return NULL;
	pcp = pcp_enter(mm);
	mine = page_first_list(mm, pcp, request, node);
	page = likely(mine) ? page_take_quickly(mine, use) : NULL;
	if (unlikely(!page)) {
		pcp_left(pcp); /* the caller enters again, and then drains if that was requested */
		return NULL;
	}
	memmap_form_single(page, mine->in_use);
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

/*
 * The number of frames from one struct page to another, if both are equally aligned; otherwise, and
 * if the second is the lower one, a number of at least 2^58.
 */
static inline u64 frame_after(virt_t first, const struct page *page)
{
	const u64 bytes = (virt_t)page - first;

	return bytes >> PAGE_STRUCT_SHIFT | bytes << (64 - PAGE_STRUCT_SHIFT);
}

/*
 * Keep a page of the block that was freed to last, as the hot page or in a word that is not empty.
 * False if the CPU may hold no more or the word is empty. The hot page needs no look at what the
 * CPU may hold: while it has a recent block, its lists are enabled and have room for one. Entered.
 */
static inline bool page_keep_quickly(struct pcp_zone *mine, struct page *page, u64 frame)
{
	u64 *word;

	if (mine->recent.hot) {
		word = &mine->recent.map[frame / 64];
		if (unlikely(!*word || !pcp_has_room(mine)))
			return false;
		*word |= 1ULL << frame % 64;
		pcp_add_held(mine, 1);
	} else {
		atomic_store_relaxed(&mine->recent.hot, page);
	}
	atomic_store_relaxed(&page->state, mine->on_list);
	counter_add(&mine->lookups_fast, 1);
	return true;
}

/*
 * page_free(): the caller holds the only reference, so a plain store drops it; a locked instruction
 * would cost as much as all the rest. Pages that other CPUs can find (PAGE_MOVABLE, boot pages,
 * pool pages) carry a flag and take the slow path.
 *
 * Only freeing to the block that was freed to last is inline. Its struct pages belong to the mm, so
 * one comparison shows that the page does, is aligned, and lies in that block.
 */
static inline __attribute__((always_inline)) void
page_free_quickly(struct mm *mm, struct page *page, virt_t caller)
{
	struct pcp *pcp = pcp_enter(mm);
	struct pcp_zone *mine = pcp->freed;
	const u64 frame = frame_after(mine->recent.pages, page);

	if (unlikely(frame >= BLOCK_FRAMES || atomic_load_relaxed(&page->state) != mine->in_use ||
		     page->head_mask != head_mask_of(0) || atomic_load_relaxed(&mm->watch) ||
		     block_look(mine->recent.block).type != mine->recent.type ||
		     !page_keep_quickly(mine, page, frame))) {
		pcp_left(pcp); /* the callee enters again, and then drains if that was requested */
		page_free_elsewhere(mm, page, caller);
		return;
	}
	fence_compiler();
	if (unlikely(atomic_load_relaxed(&pcp->drain_wanted))) {
		page_leave_draining(mm, pcp, page);
		return;
	}
	pcp_left(pcp);
}
