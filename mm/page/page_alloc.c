/*
 * Allocating pages: where memory is looked for.
 *
 *   page_alloc()              the word at hand (page_fast.h)
 *   page_alloc_slowly()       what else this CPU holds; then the phases[], until one finds a page
 *     alloc_from_nodes()      the zones of the nodes whose turn it is, by
 *       alloc_small()         the CPU's list, refilled from the zone's (pcp.c); a block, split
 *                             (page_split.c); memory of another type
 *       alloc_huge()          the CPU's list (pcp_huge.c); a page made as hvo= has it
 *
 * Freeing is in page_free.c. A zone that is short keeps its remaining memory for callers that
 * cannot wait (watermark.h); such callers have only the first two phases.
 */
#include <arch/check.h>

#include "kernel/core/context.h"
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

/*
 * What a page that cannot be moved may do, placed by GiB, where no tainted GiB has room.
 * HARM_SEARCH: evacuate also where no chunk was found lately.
 */
enum harm { HARM_NONE, HARM_EVACUATE, HARM_SEARCH, HARM_TAINT };

/* A request, and how far the phases below have come with it. */
struct request {
	struct mm *mm;
	unsigned order, flags;
	enum migratetype type;
	node_t near; /* its own node: the one that the others are near to */
	node_t first,
		last;   /* nodes to ask now: the first-th nearest to the last-th, without that */
	enum harm harm; /* the most that this request may do now */
	struct wait wait;
};

static bool may_wait(const struct request *r)
{
	return !(r->flags & PAGE_NOFLUSH);
}

/* ---- small pages ---- */

/* Take pages from the zone's lists by buddy_take_pages() or migratetype_take(). */
static struct page *take_from_zone(struct zone *zone, unsigned order, enum migratetype type,
				   struct page *(*take)(struct zone *, unsigned, enum migratetype))
{
	struct page *page;

	zone_lock(zone);
	page = take(zone, order, type);
	zone_unlock(zone);
	if (page)
		pcp_count_in_use(zone, (s64)order_pages(order));
	return page;
}

/* Take pages of this type, splitting blocks until there are some. */
static struct page *take_or_split(struct zone *zone, const struct request *r, enum migratetype type)
{
	struct page *page;

	do {
		page = r->order < PCP_ORDERS
			       ? pcp_alloc(zone, r->order, type)
			       : take_from_zone(zone, r->order, type, buddy_take_pages);
	} while (!page && page_split_some(zone, r->order, type, may_wait(r)));
	return page;
}

enum { TAINTING_TRIES = 16 };

/*
 * The last way to find small pages in a zone: at the cost of other types, or of another GiB. A zone
 * from which movable pages are driven away keeps what it keeps back, because they go elsewhere.
 */
static struct page *steal(struct zone *zone, const struct request *r, bool admitted)
{
	const bool steers = gigablock_steers(zone->mm, r->type);
	struct page *page = NULL;
	unsigned tries = 0; /* other CPUs may take what this one has emptied */

	if (r->harm == HARM_EVACUATE || r->harm == HARM_SEARCH)
		while (!page && may_wait(r) && tries++ < TAINTING_TRIES &&
		       mm_upward.evacuate(zone, r->order, r->type, r->harm == HARM_SEARCH))
			page = take_or_split(zone, r, r->type);
	if (!admitted)
		return page;
	if (r->harm == HARM_TAINT && steers)
		while (!page && tries++ < TAINTING_TRIES && page_split_tainting(zone, may_wait(r)))
			page = take_or_split(zone, r, r->type);
	if (!page && (r->harm == HARM_TAINT || migratetype_can_share(zone, r->order, r->type))) {
		page = take_from_zone(zone, r->order, r->type, migratetype_take);
		if (page && steers)
			gigablock_taint(zone, (u32)(page_to_pfn(page) >> BLOCK_ORDER));
	}
	return page;
}

static struct page *alloc_small(struct zone *zone, const struct request *r)
{
	const bool admitted = zone_admits(zone, r->order, r->flags);
	struct page *page = admitted ? take_or_split(zone, r, r->type) : NULL;

	/* CMA blocks are kept for ranges, but movable pages may live there meanwhile. */
	if (!page && r->type == MIGRATE_MOVABLE &&
	    atomic_load_relaxed(&zone->free_type[MIGRATE_CMA]) > 0)
		page = take_or_split(zone, r, MIGRATE_CMA);
	if (may_wait(r) && zone_ready(zone) < zone->ready)
		page_split_ahead(zone, r->type);
	if (!page)
		page = steal(zone, r, admitted);
	if (page)
		page_prepare(page, r->order);
	return page;
}

/* ---- huge pages ---- */

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
 * Find a run for a page as a pool would have it with hvo=. The baselines make each page anew, in
 * mapped sections; a page that is free and already huge does not have the form they require. Memory
 * in any other state is free all the same, so if a baseline finds nothing the page is made as
 * hvo=on makes it, before the search moves to the next zone. A caller that cannot wait gets only
 * pages that need no making.
 */
static u32 find_huge(struct zone *zone, const struct request *r)
{
	const struct hvo_mode *mode = hvo_mode_selected();
	const bool admitted = zone_admits(zone, r->order, r->flags),
		   may_make = may_wait(r) && admitted;
	u32 index = BLOCK_NONE;

	if (mode->mapped && may_make)
		index = make_huge(zone, mode, r->order);
	if (index == BLOCK_NONE && r->order == BLOCK_ORDER)
		index = pcp_alloc_huge(zone, admitted, may_wait(r));
	if (index == BLOCK_NONE && may_make)
		index = make_huge(zone, &hvo_modes[HVO_ON], r->order);
	return index;
}

static struct page *alloc_huge(struct zone *zone, const struct request *r)
{
	const u32 index = find_huge(zone, r);
	struct page *head;

	if (index == BLOCK_NONE)
		return NULL;
	check_frames_reused(block_pfn(index), order_pages(r->order));
	head = block_page(zone->mm, index);
	page_set_kind(head, head->flags & (u16)~PAGE_HUGETLB, r->order);
	atomic_store_release(&head->refcount, 1);
	return head;
}

/* ---- the phases ---- */

/* Ask the zones of the nodes whose turn it is. */
static struct page *alloc_from_nodes(const struct request *r)
{
	struct page *page = NULL;

	for (node_t i = r->first; i < r->last && !page; i++) {
		const struct node *node = node_near(&r->mm->node[r->near], i);
		int kind = r->flags & PAGE_DMA32 ? ZONE_DMA32 : ZONE_NORMAL;

		for (; kind >= 0 && !page; kind--) {
			struct zone *zone = node_zone(node, kind);

			if (zone)
				page = r->order < BLOCK_ORDER ? alloc_small(zone, r)
							      : alloc_huge(zone, r);
		}
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

	if (order < BLOCK_ORDER)
		clear_pages(addr, order_pages(order));
	else
		clear_huge_as_selected(addr, order_pages(order) * PAGE_SIZE, CLEAR_NO_HINT,
				       mm->zone[page->zone].node);
}

/*
 * Placed by GiB (gigablock.h), all zones are asked first for what tainted GiB have. Only then does
 * a page that cannot be moved drive others away, and only then spoil another GiB.
 */
static bool own_node(struct request *r, unsigned attempt)
{
	const bool by_gib = gigablock_steers(r->mm, r->type) && r->order < BLOCK_ORDER;

	r->harm = by_gib ? (enum harm)MIN(attempt, (unsigned)HARM_TAINT) : HARM_TAINT;
	return attempt <= (by_gib ? (unsigned)HARM_TAINT : 0);
}

static bool other_nodes(struct request *r, unsigned attempt)
{
	r->first = 1;
	r->last = r->flags & PAGE_NODE ? 1 : r->mm->nodes;
	return r->first < r->last && own_node(r, attempt);
}

/* Other CPUs are changing memory just now: wait for as long as they are. */
static bool transit(struct request *r, unsigned attempt)
{
	r->first = 0; /* of all nodes, from here on */
	if (!may_wait(r) || !memory_is_moving(r->mm))
		return false;
	if (attempt == 0)
		r->wait = wait_begin(WAIT_MEMORY, "memory that other CPUs are changing");
	if (r->wait.late == 0)
		wait_spin(&r->wait, CPU_NONE);
	return r->wait.late == 0;
}

/* CPUs give back what they hold. */
static bool drain(struct request *r, unsigned attempt)
{
	if (!may_wait(r) || attempt > 0 || r->order == GIGA_ORDER)
		return false;
	pcp_drain_all(r->mm);
	return true;
}

/* Everything that is free leaves the places where a whole GiB could be. */
static bool give_back(struct request *r, unsigned attempt)
{
	if (!may_wait(r) || attempt > 0 || r->order != GIGA_ORDER)
		return false;
	sections_give_back(r->mm, hvo_style(hvo_mode_selected()));
	return true;
}

/*
 * Bit of a request, for this file only: it was made by a call of mm.h, so its context is checked.
 */
enum { PAGE_OUTERMOST = 1 << 15 };

/*
 * Where memory is looked for, in this order. Each phase makes the zones of some nodes worth asking,
 * as often as it likes, and says false when it has nothing more to offer.
 */
static bool (*const phases[])(struct request *r, unsigned attempt) = {
	own_node, other_nodes, transit, drain, give_back,
};

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

/* Refuse a request that can never be served, or that is chosen to fail. */
static bool is_refused(struct mm *mm, unsigned order, enum page_use use, unsigned request,
		       node_t node)
{
	enum reason why = REASON_NONE;

	if (order > BLOCK_ORDER && order != GIGA_ORDER)
		why = REASON_BAD_ORDER;
	else if (use > USE_RECLAIMABLE)
		why = REASON_BAD_USE;
	else if ((request & PAGE_NODE) && node >= mm->nodes && node != NODE_NONE)
		why = REASON_BAD_NODE;
	else if (fail_here(&mm->fail, FAIL_ALLOC))
		why = REASON_NO_MEMORY;
	if (why != REASON_NONE)
		reason_set(why);
	return why != REASON_NONE;
}

/* A page was found for the request. */
static void page_finish(const struct request *r, struct page *page, virt_t caller)
{
	if (unlikely(atomic_load_relaxed(&r->mm->watch)))
		page_watch_allocated(r->mm, page, caller);
	if (r->flags & PAGE_ZERO)
		page_clear(r->mm, page, r->order);
}

/* Any request that page_alloc_quickly() does not serve. */
static __attribute__((noinline)) struct page *page_alloc_slowly(struct mm *mm, unsigned order,
								enum page_use use, unsigned request,
								node_t node, virt_t caller)
{
	struct page *page = NULL;
	struct request r;

	if (request & PAGE_OUTERMOST)
		context_assert_for("page_alloc",
				   request & PAGE_NOFLUSH ? CONTEXT_LOCKED : CONTEXT_ORDINARY);
	if (likely((order == BLOCK_ORDER || order < PCP_ORDERS) &&
		   !has_more_to_do(mm, use, request)))
		page = alloc_at_hand(mm, order, use, request, node);
	if (likely(page) || is_refused(mm, order, use, request, node))
		return page;
	r = (struct request){.mm = mm,
			     .order = order,
			     .flags = request,
			     .type = (enum migratetype)use,
			     .near = page_first_node(mm, node),
			     .last = 1};
	if (unlikely(atomic_load_relaxed(&mm->watch) & WATCH_REPORTED) && may_wait(&r))
		/* withdraw reported bad frames before they can be given out */
		mm_upward.take_reported(mm);
	for (unsigned i = 0; i < ARRAY_LEN(phases) && !page; i++)
		for (unsigned attempt = 0; !page && phases[i](&r, attempt); attempt++)
			page = alloc_from_nodes(&r);
	if (page)
		page_finish(&r, page, caller);
	else
		reason_set(may_wait(&r) ? REASON_NO_MEMORY : REASON_CONTEXT);
	return page;
}

struct page *mm_page_alloc(struct mm *mm, unsigned order, enum page_use use, unsigned request,
			   node_t node)
{
	struct page *page = order == 0 ? page_alloc_quickly(mm, use, request, node) : NULL;

	return likely(page) ? page : page_alloc_slowly(mm, order, use, request, node, CALLER);
}

struct page *page_alloc(unsigned order, enum page_use use, unsigned request, node_t node)
{
	struct page *page = NULL;

	if (order == 0 && likely(context_may(CONTEXT_ORDINARY)))
		page = page_alloc_quickly(&mm_kernel, use, request, node);
	return likely(page) ? page
			    : page_alloc_slowly(&mm_kernel, order, use, request | PAGE_OUTERMOST,
						node, CALLER);
}
