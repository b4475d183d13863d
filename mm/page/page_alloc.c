/*
 * Allocating pages: where memory is looked for when none is at hand (page_fast.h).
 *
 *   per-CPU list -> small lists of the zone -> a whole block, split -> the next zone
 *                -> the next node
 *
 * Splitting is in page_split.c, freeing in page_free.c. A zone that is short keeps its remaining
 * memory for callers that cannot wait (watermark.h). When nothing is left anywhere, the allocator
 * waits, once, for memory that other CPUs are changing or hold.
 */
#include <arch/check.h>

#include "kernel/core/context.h"
#include "kernel/core/percpu.h"
#include "kernel/core/reason_set.h"
#include "kernel/core/wait.h"
#include "mm/clear/clear.h"
#include "mm/hvo/hvo.h"
#include "mm/hvo/hvo_take.h"
#include "mm/page/page_alloc.h"
#include "mm/page/page_fast.h"
#include "mm/page/page_split.h"
#include "mm/page/pcp_drain.h"
#include "mm/page/pcp_huge.h"
#include "mm/page/pressure.h"
#include "mm/zone/buddy.h"
#include "mm/zone/buddy_small.h"
#include "mm/zone/gigablock.h"
#include "mm/zone/migratetype.h"
#include "mm/zone/section_close.h"
#include "mm/zone/transit.h"
#include "mm/zone/watermark.h"

static void page_prepare(struct page *page, unsigned order)
{
	memmap_form_compound(page, order);
	check_frames_reused(page_to_pfn(page), order_pages(order));
}

static struct page *take_from_others(struct zone *zone, unsigned order, enum migratetype type)
{
	struct page *page;

	zone_lock(zone);
	page = migratetype_take(zone, order, type);
	zone_unlock(zone);
	if (!page)
		return NULL;
	pcp_count_in_use(zone, (s64)order_pages(order));
	if (gigablock_steers(zone->mm, type))
		gigablock_taint(zone, (u32)(page_to_pfn(page) >> BLOCK_ORDER));
	return page;
}

static struct page *take_small(struct zone *zone, unsigned order, enum migratetype type)
{
	struct page *page;
	struct pcp *pcp;

	if (order < PCP_ORDERS) {
		pcp = pcp_enter(zone->mm);
		page = pcp_alloc(zone, order, type);
		pcp_leave(zone->mm, pcp);
		return page;
	}
	zone_lock(zone);
	page = buddy_take_pages(zone, order, type);
	zone_unlock(zone);
	if (page)
		pcp_count_in_use(zone, (s64)order_pages(order));
	return page;
}

static struct page *take_or_split(struct zone *zone, unsigned order, enum migratetype type,
				  bool may_wait)
{
	struct page *page;

	do {
		page = take_small(zone, order, type);
	} while (!page && page_split_some(zone, order, type, may_wait));
	return page;
}

/*
 * Bits of a request, for this file only, with gigablock=on (zone/gigablock.h). PAGE_APART: all
 * zones of a node are asked first for memory of the request's own kind. Only then is a movable page
 * placed among those that cannot move, and only then do these spoil another GiB. PAGE_SPARE:
 * nothing was found on any node, so a movable page may have the part that is kept for the others.
 */
enum { PAGE_APART = 1 << 15, PAGE_SPARE = 1 << 14, TAINTING_TRIES = 16 };

/* The last way to find small pages in a zone: at the cost of other types, or of another GiB. */
static struct page *take_at_a_cost(struct zone *zone, unsigned order, enum migratetype type,
				   unsigned request)
{
	const bool may_wait = !(request & PAGE_NOFLUSH);
	const bool steers = gigablock_steers(zone->mm, type);
	struct page *page = NULL;
	unsigned tries = 0; /* other CPUs may take what this one has emptied */

	if (!steers && !(request & PAGE_SPARE) && !gigablock_spares(zone))
		return NULL;
	if ((request & PAGE_APART) && !(steers && migratetype_can_share(zone, order, type)))
		return NULL;
	while (!page && steers && !(request & PAGE_APART) && tries++ < TAINTING_TRIES &&
	       page_split_tainting(zone, order, type, may_wait))
		page = take_or_split(zone, order, type, may_wait);
	if (!page)
		page = take_from_others(zone, order, type);
	if (!page && (request & PAGE_SPARE) && !(request & PAGE_APART) &&
	    page_split_spare(zone, order, may_wait))
		page = take_or_split(zone, order, type, may_wait);
	return page;
}

static struct page *alloc_small(struct zone *zone, unsigned order, enum migratetype type,
				unsigned request)
{
	const bool may_wait = !(request & PAGE_NOFLUSH),
		   admitted = zone_admits(zone, order, request);
	struct page *page = admitted ? take_or_split(zone, order, type, may_wait) : NULL;

	/* CMA blocks are kept for ranges, but movable pages may live there meanwhile. */
	if (!page && type == MIGRATE_MOVABLE &&
	    atomic_load_relaxed(&zone->free_type[MIGRATE_CMA]) > 0)
		page = take_or_split(zone, order, MIGRATE_CMA, may_wait);
	if (may_wait && zone_ready(zone) < zone->ready)
		page_split_ahead(zone, type);
	if (!page && admitted)
		page = take_at_a_cost(zone, order, type, request);
	if (page)
		page_prepare(page, order);
	return page;
}

/*
 * Change one run into a 2 MiB or 1 GiB page, from memory that `mode` accepts and with the rounds
 * that `mode` needs.
 */
static u32 make_huge(struct zone *zone, const struct hvo_mode *mode, unsigned order)
{
	struct block_list list = BLOCK_LIST_INIT;

	if (hvo_take_blocks(zone, mode, order, 1, &list) == 0)
		return BLOCK_NONE;
	hvo_make_all(zone->mm, mode, &list);
	hvo_complete_round(zone->mm, list.head);
	block_list_publish_used(zone->mm, &list, 0);
	pcp_count_in_use(zone, (s64)order_pages(order));
	return list.head;
}

/*
 * Take a block that is huge and free from this CPU's list, filling the list if it is empty and the
 * zone may give memory.
 */
static u32 take_huge(struct zone *zone, bool admitted, bool may_wait)
{
	struct pcp *pcp = pcp_enter(zone->mm);
	u32 index = BLOCK_NONE;

	if (admitted || pcp->zone[zone->index]->huge_count > 0)
		index = pcp_alloc_huge(zone, may_wait);
	pcp_leave(zone->mm, pcp);
	return index;
}

/*
 * Find a run for a page as a pool would have it with hvo=. The baselines make each page anew, in
 * mapped sections; a page that is free and already huge does not have the form they require. Memory
 * in any other state is free all the same, so if a baseline finds nothing the page is made as
 * hvo=on makes it, before the search moves to the next zone. A caller that cannot wait gets only
 * pages that need no making. A cleared page is wanted from the zone first, if zero ones are there.
 */
static u32 find_huge(struct zone *zone, unsigned order, unsigned request)
{
	const struct hvo_mode *mode = hvo_mode_selected();
	const bool admitted = zone_admits(zone, order, request),
		   may_wait = !(request & PAGE_NOFLUSH);
	u32 index = BLOCK_NONE;

	if (mode->mapped && may_wait && admitted)
		index = make_huge(zone, mode, order);
	else if ((request & PAGE_ZERO) && may_wait && admitted && order == BLOCK_ORDER &&
		 atomic_load_relaxed(&zone->free_zero) > 0)
		index = make_huge(zone, &hvo_modes[HVO_ON], order);
	if (index == BLOCK_NONE && order == BLOCK_ORDER)
		index = take_huge(zone, admitted, may_wait);
	if (index == BLOCK_NONE && may_wait && admitted)
		index = make_huge(zone, &hvo_modes[HVO_ON], order);
	return index;
}

static struct page *alloc_huge(struct zone *zone, unsigned order, unsigned request)
{
	const u32 index = find_huge(zone, order, request);
	struct page *head;

	if (index == BLOCK_NONE)
		return NULL;
	check_frames_reused(block_pfn(index), order_pages(order));
	head = block_page(zone->mm, index);
	page_set_kind(head, head->flags & (u16)~PAGE_HUGETLB, order);
	atomic_store_release(&head->refcount, 1);
	return head;
}

static struct page *alloc_from_zone(struct zone *zone, unsigned order, enum migratetype type,
				    unsigned request)
{
	if (order < BLOCK_ORDER)
		return alloc_small(zone, order, type, request);
	return alloc_huge(zone, order, request);
}

static struct page *alloc_from_node(struct node *node, unsigned order, enum migratetype type,
				    unsigned request)
{
	unsigned apart = unlikely(node->mm->gigablock) && order < BLOCK_ORDER ? PAGE_APART : 0;
	struct page *page = NULL;
	int kind = request & PAGE_DMA32 ? ZONE_DMA32 : ZONE_NORMAL;

	while (!page && kind >= 0) {
		if (node_zone(node, kind))
			page = alloc_from_zone(node_zone(node, kind), order, type, request | apart);
		kind--;
		if (unlikely(apart) && kind < 0) {
			kind = request & PAGE_DMA32 ? ZONE_DMA32 : ZONE_NORMAL;
			apart = 0;
		}
	}
	return page;
}

static struct page *alloc_from_nodes(struct mm *mm, node_t first, unsigned order,
				     enum migratetype type, unsigned request)
{
	struct page *page = NULL;

	for (node_t i = 0; i < mm->nodes && !page; i++) {
		page = alloc_from_node(node_near(&mm->node[first], i), order, type, request);
		if (request & PAGE_NODE)
			break;
	}
	return page;
}

/*
 * Sections are being opened or blocks are in transit, so memory that is missing now may be there in
 * a moment.
 */
static bool memory_is_moving(const struct mm *mm)
{
	u64 transit = 0;

	for (unsigned z = 0; z < mm->zones; z++)
		transit += atomic_load_relaxed(&mm->zone[z].transit);
	return transit > atomic_load_relaxed(&mm->transit_kept) || sections_moving(mm) > 0;
}

static void page_clear(struct mm *mm, const struct page *page, unsigned order)
{
	void *addr = phys_to_virt(page_to_pfn(page) << PAGE_SHIFT);
	struct clear_how how;

	if (order < BLOCK_ORDER) {
		clear_pages(addr, order_pages(order));
		return;
	}
	how = clear_how_selected();
	clear_huge(&how, addr, order_pages(order) * PAGE_SIZE, CLEAR_NO_HINT,
		   mm->zone[page->zone].node);
}

/*
 * A huge page taken from the zone may be known to be zero (block.h). Its user may write to it, so
 * that is forgotten here. Returns true if it was.
 */
static bool forget_zero(struct mm *mm, const struct page *page, unsigned order)
{
	return order >= BLOCK_ORDER &&
	       block_forget_zero(mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER));
}

static u64 held_by_cpus(const struct mm *mm)
{
	u64 frames = 0;

	for (unsigned z = 0; z < mm->zones; z++)
		frames += pcp_count(mm, &mm->zone[z]);
	return frames;
}

/* Nothing is free anywhere. Try again if other CPUs are changing memory just now, or hold some. */
static __attribute__((noinline)) struct page *alloc_last_resort(struct mm *mm, node_t first,
								unsigned order,
								enum migratetype type,
								unsigned request)
{
	struct page *page = NULL;
	struct wait wait;

	if (request & PAGE_NOFLUSH)
		return NULL;
	wait = wait_begin(WAIT_MEMORY, "memory that other CPUs are changing");
	wait.soft = true;
	while (!page && memory_is_moving(mm) && wait.late == 0) {
		wait_spin(&wait, CPU_NONE);
		page = alloc_from_nodes(mm, first, order, type, request);
	}
	if (!page && (held_by_cpus(mm) > 0 || order == GIGA_ORDER)) {
		if (order == GIGA_ORDER)
			sections_give_back(mm, hvo_style(hvo_mode_selected()));
		else
			pcp_drain_all(mm);
		page = alloc_from_nodes(mm, first, order, type, request);
	}
	return page;
}

_Static_assert((int)USE_UNMOVABLE == (int)MIGRATE_UNMOVABLE &&
		       (int)USE_MOVABLE == (int)MIGRATE_MOVABLE &&
		       (int)USE_RECLAIMABLE == (int)MIGRATE_RECLAIMABLE,
	       "the use of a page is the type of the block that it comes from");

/* Does a request have to be cleared, watched or refused, or does it want another zone? */
static inline bool has_more_to_do(const struct mm *mm, enum page_use use, unsigned request)
{
	return (request & (PAGE_ZERO | PAGE_DMA32)) || use > USE_RECLAIMABLE ||
	       atomic_load_relaxed(&mm->watch) || atomic_load_relaxed(&mm->fail.armed);
}

/*
 * Take a page of order 0..3 that this CPU holds. NULL if the zone would have to be asked. Entered.
 */
static inline struct page *run_alloc_quickly(struct mm *mm, struct pcp_zone *mine, unsigned order,
					     enum page_use use)
{
	struct page *page =
		pcp_alloc_held(&mm->zone[mine->zone], mine, order, (enum migratetype)use);

	if (likely(page))
		page_prepare(page, order);
	return page;
}

/*
 * Take a 2 MiB page from this CPU's list, if nothing has to be filled or waited for. The head is
 * written, not read. Entered.
 */
static inline struct page *huge_alloc_quickly(struct mm *mm, struct pcp_zone *mine)
{
	const u32 index = hvo_mode_selected()->mapped ? BLOCK_NONE : pcp_pop_huge(mm, mine);
	struct page *head;

	if (unlikely(index == BLOCK_NONE))
		return NULL;
	head = block_page(mm, index);
	check_frames_reused(block_pfn(index), BLOCK_FRAMES);
	atomic_store_release(&head->state, mine->in_use | page_state(PAGE_COMPOUND | PAGE_OPTIMISED,
								     BLOCK_ORDER, 0, 0));
	return head;
}

/* Take a page of order 0..3 or 9 from this CPU's lists. NULL if it has none at hand. */
static inline struct page *alloc_at_hand(struct mm *mm, unsigned order, enum page_use use,
					 unsigned request, node_t node)
{
	struct page *page = NULL;
	struct pcp_zone *mine;
	struct pcp *pcp;

	pcp = pcp_enter(mm);
	mine = page_first_list(mm, pcp, request, node);
	if (likely(mine))
		page = order == BLOCK_ORDER ? huge_alloc_quickly(mm, mine)
					    : run_alloc_quickly(mm, mine, order, use);
	pcp_leave(mm, pcp);
	return page;
}

/* Why a request was refused before any memory was looked for. */
static enum reason why_refused(const struct mm *mm, unsigned order, enum page_use use,
			       unsigned request, node_t node)
{
	if (order > BLOCK_ORDER && order != GIGA_ORDER)
		return REASON_BAD_ORDER;
	if (use > USE_RECLAIMABLE)
		return REASON_BAD_USE;
	return page_node_is_missing(mm, request, node) ? REASON_BAD_NODE : REASON_NO_MEMORY;
}

struct page *page_alloc_slowly(struct mm *mm, unsigned order, enum page_use use, unsigned request,
			       node_t node, virt_t caller)
{
	const node_t first = page_first_node(mm, node);
	const enum migratetype type = (enum migratetype)use;
	struct page *page;
	bool zeroed;

	if ((order > BLOCK_ORDER && order != GIGA_ORDER) || use > USE_RECLAIMABLE ||
	    page_node_is_missing(mm, request, node) || fail_here(&mm->fail, FAIL_ALLOC)) {
		reason_set(why_refused(mm, order, use, request, node));
		return NULL;
	}
	if (unlikely(atomic_load_relaxed(&mm->watch) & WATCH_REPORTED) && !(request & PAGE_NOFLUSH))
		/* withdraw reported bad frames before they can be given out */
		mm_upward.take_reported(mm);
	page = alloc_from_nodes(mm, first, order, type, request);
	if (unlikely(mm->gigablock) && !page && type == MIGRATE_MOVABLE && order < BLOCK_ORDER) {
		request |= PAGE_SPARE;
		page = alloc_from_nodes(mm, first, order, type, request);
	}
	if (!page)
		page = alloc_last_resort(mm, first, order, type, request);
	zeroed = page && forget_zero(mm, page, order);
	if (page && unlikely(atomic_load_relaxed(&mm->watch)))
		page_watch_allocated(mm, page, order, caller);
	if (page && (request & PAGE_ZERO) && !zeroed)
		page_clear(mm, page, order);
	if (!page)
		reason_set(request & PAGE_NOFLUSH ? REASON_CONTEXT : REASON_NO_MEMORY);
	return page;
}

/* Any request that page_alloc_quickly() does not serve. */
static inline __attribute__((always_inline)) struct page *
alloc_otherwise(struct mm *mm, unsigned order, enum page_use use, unsigned request, node_t node,
		virt_t caller)
{
	struct page *page = NULL;

	if (likely((order == BLOCK_ORDER || order < PCP_ORDERS) &&
		   !has_more_to_do(mm, use, request)))
		page = alloc_at_hand(mm, order, use, request, node);
	return page ? page : page_alloc_slowly(mm, order, use, request, node, caller);
}

struct page *mm_page_alloc(struct mm *mm, unsigned order, enum page_use use, unsigned request,
			   node_t node)
{
	struct page *page = order == 0 ? page_alloc_quickly(mm, use, request, node) : NULL;

	return likely(page) ? page : alloc_otherwise(mm, order, use, request, node, CALLER);
}

/* ---- mm.h ---- */

/* Kept out of page_alloc(), which would otherwise need more registers. */
static __attribute__((noinline)) struct page *
alloc_in_context(unsigned order, enum page_use use, unsigned request, node_t node, virt_t caller)
{
	context_assert_for("page_alloc",
			   request & PAGE_NOFLUSH ? CONTEXT_LOCKED : CONTEXT_ORDINARY);
	return page_alloc_slowly(&mm_kernel, order, use, request, node, caller);
}

static bool is_possible(unsigned order, enum page_use use, unsigned request, node_t node)
{
	return (order <= BLOCK_ORDER || order == GIGA_ORDER) && use <= USE_RECLAIMABLE &&
	       !page_node_is_missing(&mm_kernel, request, node);
}

/*
 * Any request that page_alloc_quickly() does not serve. Look everywhere, and if there is nothing,
 * ask programs for memory and look again.
 */
static __attribute__((noinline)) struct page *
alloc_or_ask(unsigned order, enum page_use use, unsigned request, node_t node, virt_t caller)
{
	struct page *page = alloc_otherwise(&mm_kernel, order, use, request, node, caller);
	unsigned next = 0;

	if (likely(page) || (request & PAGE_NOFLUSH) || !is_possible(order, use, request, node))
		return page;
	while (!page && pressure_ask(&next, order))
		page = page_alloc_slowly(&mm_kernel, order, use, request, node, caller);
	return page;
}

struct page *page_alloc(unsigned order, enum page_use use, unsigned request, node_t node)
{
	struct page *page;

	if (unlikely(!context_may(CONTEXT_ORDINARY)))
		return alloc_in_context(order, use, request, node, CALLER);
	page = order == 0 ? page_alloc_quickly(&mm_kernel, use, request, node) : NULL;
	return likely(page) ? page : alloc_or_ask(order, use, request, node, CALLER);
}
