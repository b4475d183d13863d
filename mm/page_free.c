/*
 * Freeing pages: what page_fast.h leaves over. Any order, pages that others can find, boot pages, debugging, and misuse.
 *
 *   page_free()  the only reference: dropped by a plain store, or, if the page carries a flag, with care
 *   page_put()   one of several: dropped by one subtraction, and all that follows is decided on what that returned (page_drop())
 *
 * The last reference sends the page where it belongs. Orders 0..3 stay with this CPU (pcp.c), so do 2 MiB pages that are huge
 * (pcp_huge.c); a pool's page goes to its pool (struct page_pool_ops); all else goes to the zone.
 */
#include <arch/check.h>

#include "kernel/context.h"
#include "kernel/panic.h"
#include "mm/migrate.h"
#include "mm/page_alloc.h"
#include "mm/page_fast.h"
#include "mm/transit.h"

static void free_huge(struct zone *zone, struct pcp_zone *mine, struct page *page)
{
	const u32 index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	const struct block_word word = block_look_at(zone->mm, index);
	const unsigned order = word.order;

	ASSERT(word.state == BLOCK_HUGE || word.state == BLOCK_FULL, "huge page at frame %llx in a block that is %s",
	       (unsigned long long)page_to_pfn(page), block_state_name(word.state));
	page_set_kind(page, word.state == BLOCK_HUGE ? PAGE_COMPOUND | PAGE_OPTIMISED | PAGE_HUGETLB : 0, order);
	if (order == BLOCK_ORDER && word.state == BLOCK_HUGE && pcp_free_huge(zone, mine, index, word))
		return;
	block_free(zone, index, order);
	pcp_add_in_use(zone, -(s64)order_pages(order));
}

/* Pages given out by memblock were never in this CPU's count: they come into it now. */
static void count_boot(struct zone *zone, unsigned order)
{
	atomic_fetch_sub(&zone->boot, order_pages(order));
	pcp_add_in_use(zone, (s64)order_pages(order));
}

/* Its last reference was just dropped, and it was checked. */
static void page_free_unreferenced(struct mm *mm, struct page *page, virt_t caller)
{
	const struct page_kind kind = page_kind(page);
	const unsigned order = kind.flags & PAGE_COMPOUND ? kind.order : 0;
	struct zone *zone = &mm->zone[kind.zone];
	struct pcp *pcp;

	if (unlikely(page->flags & PAGE_MOVABLE))
		page_forget_mover(mm, page);
	if (unlikely(atomic_load_relaxed(&mm->watch)))
		page_watch_freed(mm, page, order, caller);
	pcp = pcp_enter(mm);
	if (unlikely(kind.flags & PAGE_BOOT))
		count_boot(zone, order);
	if (order < PCP_ORDERS) {
		page_set_kind(page, PAGE_PCP, 0); /* its pages may be given out one by one */
		pcp_free(zone, pcp->zone[kind.zone], block_of_used(mm, page_to_pfn(page)), page_to_pfn(page), order);
	} else if (order < BLOCK_ORDER) {
		pcp_give_back(zone, page, order);
	} else {
		free_huge(zone, pcp->zone[kind.zone], page);
	}
	pcp_leave(mm, pcp);
}

/* The last reference was dropped: the page is this CPU's alone, and was in `state` before. */
static void page_put_last(struct mm *mm, struct page *head, u64 state, virt_t caller)
{
	if (unlikely((state & (PAGE_HUGETLB | PAGE_MAPPINGS)) == PAGE_HUGETLB) && mm->pool_ops)
		mm->pool_ops->put_last(mm, head, state);
	else if (likely(page_check_free(mm, head)))
		page_free_unreferenced(mm, head, caller);
	else
		page_undrop(head); /* as it was */
}

void page_put_head(struct mm *mm, struct page *head, virt_t caller)
{
	const u64 state = page_drop(head);

	if (state_references(state) > 1)
		return;
	if (likely(state_references(state) == 1)) {
		page_put_last(mm, head, state, caller);
		return;
	}
	page_undrop(head);
	page_misused(mm, head, "reference underflow of frame %llx", (unsigned long long)page_to_pfn(head));
}

/* A 2 MiB page whose struct page says all that need be known, as a single one's does on the fast path. */
static inline bool free_huge_quickly(struct mm *mm, struct page *page)
{
	const u64 state = atomic_load_relaxed(&page->state);
	const pfn_t pfn = page_to_pfn(page);
	const u8 zone = (u8)(state >> 24);
	struct block_word word;
	struct pcp *pcp;

	if ((state & ~page_state(0, 0, 0xff, 0)) != page_state(PAGE_COMPOUND | PAGE_OPTIMISED, BLOCK_ORDER, 0, 1) ||
	    pfn % BLOCK_FRAMES || atomic_load_relaxed(&mm->watch))
		return false;
	word = block_look(block_of_used(mm, pfn));
	if (word.state != BLOCK_HUGE || word.order != BLOCK_ORDER)
		return false;
	pcp = pcp_enter(mm);
	atomic_store_relaxed(&page->state,
			     page_state(PAGE_COMPOUND | PAGE_OPTIMISED | PAGE_HUGETLB, BLOCK_ORDER, zone, 0));
	if (!pcp_free_huge(&mm->zone[zone], pcp->zone[zone], (u32)(pfn >> BLOCK_ORDER), word)) {
		block_free(&mm->zone[zone], (u32)(pfn >> BLOCK_ORDER), BLOCK_ORDER);
		pcp_add_in_use(&mm->zone[zone], -(s64)BLOCK_FRAMES);
	}
	pcp_leave(mm, pcp);
	return true;
}

/*
 * page_free() says that nobody else has a reference. If others can find the page, one may look just now whether it can move: then it is
 * put. Else more references are a mistake, and it is not touched.
 */
void page_free_slowly(struct mm *mm, struct page *page, virt_t caller)
{
	u64 state;

	if (page_is_of(mm, page) && free_huge_quickly(mm, page))
		return;
	if (!page_check_free(mm, page))
		return;
	state = atomic_load_relaxed(&page->state);
	if (unlikely(state & PAGE_MOVABLE))
		page_put_head(mm, page, caller);
	else if (likely(state_references(state) == 1 && atomic_cas(&page->state, state, state - PAGE_REFERENCE)))
		page_free_unreferenced(mm, page, caller);
	else
		page_misused(mm, page, "free of frame %llx with %u references", (unsigned long long)page_to_pfn(page),
			     atomic_load_relaxed(&page->refcount));
}

struct page *page_leave_draining(struct mm *mm, struct pcp *pcp, struct page *page) __releases(pcp)
{
	pcp_leave(mm, pcp);
	return page;
}

void page_keep_and_leave(struct mm *mm, struct pcp *pcp, u8 zone, pfn_t pfn) __releases(pcp)
{
	pcp_free(&mm->zone[zone], pcp->zone[zone], block_of_used(mm, pfn), pfn, 0);
	pcp_leave(mm, pcp);
}

void mm_page_free(struct mm *mm, struct page *page)
{
	page_free_quickly(mm, page, CALLER);
}

void mm_page_put(struct mm *mm, struct page *page)
{
	page_put_head(mm, page_head(page), CALLER);
}

void page_free(struct page *page)
{
	context_assert(CONTEXT_ORDINARY);
	page_free_quickly(&mm_kernel, page, CALLER);
}
