/*
 * Allocating and freeing pages: the public calls of mm.h, and where memory is looked for.
 *
 *   per-CPU ring -> small lists of the zone -> a whole block, split -> the next zone -> the next node
 *
 * A block to split is taken in the order full, mapped, bare, unopened, huge: what costs least to give struct pages
 * comes first, and huge blocks stay huge as long as anything else is left. A whole block taken for another type is claimed for it:
 * its type is changed before it is split, so the free-list type always equals the block's type.
 *
 * What a change of state needs (frames) is reserved before the block is unlinked, and no lock is held while it is done.
 */
#include <arch/check.h>

#include "kernel/panic.h"
#include "kernel/percpu.h"
#include "kernel/wait.h"
#include "mm/buddy.h"
#include "mm/clear.h"
#include "mm/hvo.h"
#include "mm/memmap_open.h"
#include "mm/memmap.h"
#include "mm/meta.h"
#include "mm/migrate.h"
#include "mm/migratetype.h"
#include "mm/page_alloc.h"
#include "mm/page_fast.h"
#include "mm/page_check.h"
#include "mm/page_poison.h"
#include "mm/pcp.h"
#include "mm/section.h"
#include "mm/transit.h"
#include "mm/vmemmap.h"
#include "mm/watermark.h"

/* ---- a whole block for small orders ---- */

/* Whose blocks may be claimed: blocks of what never moves are kept together as long as there are others. */
enum claim { CLAIM_MOVABLE, CLAIM_ANY };

static u32 take_block(struct zone *zone, enum free_class class, enum migratetype type, enum claim claim)
{
	u32 index;

	spin_lock(&zone->lock);
	index = buddy_take_blocks(zone, BLOCK_ORDER, class, type);
	/* Another type's block: claim it whole. CMA keeps its own, and claims none. */
	for (unsigned other = claim == CLAIM_ANY ? 0 : MIGRATE_UNMOVABLE + 1;
	     other < MIGRATE_CMA && type != MIGRATE_CMA && index == BLOCK_NONE; other++)
		index = buddy_take_blocks(zone, BLOCK_ORDER, class, other);
	if (index != BLOCK_NONE) {
		block_begin(zone, index, BLOCK_ORDER, BLOCK_FULL);
		migratetype_set_one(zone, index, type);
	}
	spin_unlock(&zone->lock);
	return index;
}

void block_publish_split(struct zone *zone, u32 index, unsigned order)
{
	struct block *block = block_at(zone->mm, index);

	page_poison_split(zone->mm, index);
	spin_lock(&zone->lock);
	block_clear_flags(block, BLOCK_TRANSIT);
	counter_sub(&zone->transit, BLOCK_FRAMES);
	block_set_order(block, 0);
	if (zone->page_orders[type_list(block->type)] >> order)
		buddy_free_blocks(zone, index, BLOCK_ORDER, block_free_class(block));
	else
		buddy_split_block(zone, index);
	spin_unlock(&zone->lock);
}

void block_full_from_bare(struct zone *zone, struct node *node, enum meta_kind kind, u32 index)
{
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK];

	for (unsigned i = 0; i < MEMMAP_FRAMES_PER_BLOCK; i++) {
		frames[i] = meta_take(node, kind);
		memmap_init_pages(phys_to_virt(frames[i] << PAGE_SHIFT), STRUCTS_PER_FRAME, zone->index);
	}
	vmemmap_set_full(zone->mm, index, frames);
	block_set_state(zone->mm, index, BLOCK_FULL);
}

static bool split_bare_block(struct zone *zone, unsigned order, enum migratetype type, enum claim claim)
{
	struct node *node = &zone->mm->node[zone_node(zone)->meta_node];
	enum meta_kind kind;
	u32 index;

	if (meta_reserve_tails(node, MEMMAP_FRAMES_PER_BLOCK, &kind) < 0)
		return false;
	index = take_block(zone, FREE_BARE, type, claim);
	if (index == BLOCK_NONE) {
		meta_unreserve(node, kind, MEMMAP_FRAMES_PER_BLOCK);
		return false;
	}
	block_full_from_bare(zone, node, kind, index);
	block_publish_split(zone, index, order);
	return true;
}

static bool split_free_block(struct zone *zone, unsigned order, enum migratetype type, bool may_wait, enum claim claim)
{
	u32 index = take_block(zone, FREE_FULL, type, claim);

	if (index == BLOCK_NONE)
		index = take_block(zone, FREE_MAPPED, type, claim);
	if (index == BLOCK_NONE)
		return may_wait && split_bare_block(zone, order, type, claim);
	block_publish_split(zone, index, order);
	return true;
}

/* Put another block's worth of frames on the zone's small lists. False if the zone has no block left. No lock held. */
static bool split_some_block(struct zone *zone, unsigned order, enum migratetype type, bool may_wait)
{
	if (split_free_block(zone, order, type, may_wait, CLAIM_MOVABLE))
		return true;
	if (may_wait && section_open_next(zone, zone->mm->style) == 0)
		return true; /* the caller looks again: its blocks are bare or full now */
	if (split_free_block(zone, order, type, may_wait, CLAIM_ANY))
		return true;
	return may_wait && hvo_bare_free_huge(zone, HVO_BARE_BATCH) > 0;
}

/* ---- allocation ---- */

static void page_prepare(struct page *page, unsigned order)
{
	memmap_form_compound(page, order);
	check_frames_reused(page_to_pfn(page), order_pages(order));
}

static struct page *take_from_others(struct zone *zone, unsigned order, enum migratetype type)
{
	struct page *page;

	spin_lock(&zone->lock);
	page = migratetype_take(zone, order, type);
	spin_unlock(&zone->lock);
	if (page)
		pcp_count_in_use(zone, (s64)order_pages(order));
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
	spin_lock(&zone->lock);
	page = buddy_take_pages(zone, order, type);
	spin_unlock(&zone->lock);
	if (page)
		pcp_count_in_use(zone, (s64)order_pages(order));
	return page;
}

/* For those who may not wait: split before it is needed. Bounded: what it cannot do now the next caller tries. */
static void make_ready(struct zone *zone, enum migratetype type)
{
	for (u64 blocks = zone->ready / BLOCK_FRAMES + 1; blocks > 0 && zone_ready(zone) < zone->ready; blocks--)
		if (!split_bare_block(zone, 0, type, CLAIM_MOVABLE) && section_open_next(zone, zone->mm->style) < 0 &&
		    hvo_bare_free_huge(zone, 1) == 0)
			return;
}

static struct page *take_or_split(struct zone *zone, unsigned order, enum migratetype type, bool may_wait)
{
	struct page *page;

	do {
		page = take_small(zone, order, type);
	} while (!page && split_some_block(zone, order, type, may_wait));
	return page;
}

static struct page *alloc_small(struct zone *zone, unsigned order, enum migratetype type, unsigned request)
{
	const bool may_wait = !(request & PAGE_NOFLUSH), admitted = zone_admits(zone, order, request);
	struct page *page = admitted ? take_or_split(zone, order, type, may_wait) : NULL;

	/* Kept for ranges, but what can move may live there meanwhile. */
	if (!page && type == MIGRATE_MOVABLE && atomic_load_relaxed(&zone->free_type[MIGRATE_CMA]) > 0)
		page = take_or_split(zone, order, MIGRATE_CMA, may_wait);
	if (may_wait && zone_ready(zone) < zone->ready)
		make_ready(zone, type);
	if (!page && admitted)
		page = take_from_others(zone, order, type);
	if (page)
		page_prepare(page, order);
	return page;
}

/* One run changed into a 2 MiB or 1 GiB page. */
static u32 make_huge(struct zone *zone, unsigned order)
{
	struct block_list list = BLOCK_LIST_INIT;
	const struct hvo_mode *mode = hvo_mode_find("on");

	if (hvo_take_blocks(zone, mode, order, 1, &list) == 0 || hvo_optimise(zone->mm, mode, &list) > 0)
		return BLOCK_NONE;
	hvo_settle(zone->mm, list.head);
	block_list_publish_used(zone->mm, &list, 0);
	pcp_count_in_use(zone, (s64)order_pages(order));
	return list.head;
}

/* One 2 MiB or 1 GiB page, as a pool would have it. */
static struct page *alloc_huge(struct zone *zone, unsigned order, bool may_wait)
{
	u32 index = BLOCK_NONE;
	struct page *head;
	struct pcp *pcp;

	if (order == BLOCK_ORDER) {
		pcp = pcp_enter(zone->mm);
		index = pcp_alloc_huge(zone, may_wait);
		pcp_leave(zone->mm, pcp);
	}
	if (index == BLOCK_NONE && may_wait)
		index = make_huge(zone, order);
	if (index == BLOCK_NONE)
		return NULL;
	check_frames_reused(block_pfn(index), order_pages(order));
	head = pfn_page(zone->mm, block_pfn(index));
	page_set_kind(head, head->flags & (u16)~PAGE_HUGETLB, order);
	atomic_store_release(&head->refcount, 1);
	return head;
}

static struct page *alloc_from_zone(struct zone *zone, unsigned order, enum migratetype type, unsigned request)
{
	const bool may_wait = !(request & PAGE_NOFLUSH);

	if (order < BLOCK_ORDER)
		return alloc_small(zone, order, type, request);
	return zone_admits(zone, order, request) ? alloc_huge(zone, order, may_wait) : NULL;
}

static struct page *alloc_from_node(struct node *node, unsigned order, enum migratetype type, unsigned request)
{
	struct page *page = NULL;

	for (int kind = request & PAGE_DMA32 ? ZONE_DMA32 : ZONE_NORMAL; kind >= 0 && !page; kind--)
		if (node->zone[kind] != ZONE_NONE)
			page = alloc_from_zone(&node->mm->zone[node->zone[kind]], order, type, request);
	return page;
}

static struct page *alloc_from_nodes(struct mm *mm, node_t first, unsigned order, enum migratetype type, unsigned request)
{
	struct page *page = NULL;

	for (node_t i = 0; i < mm->nodes && !page; i++) {
		page = alloc_from_node(&mm->node[mm->node[first].fallback[i]], order, type, request);
		if (request & PAGE_NODE)
			break;
	}
	return page;
}

/* Sections being opened or blocks in transit: what is not there now may be there in a moment. */
static bool memory_is_moving(const struct mm *mm)
{
	u64 transit = 0;

	for (unsigned z = 0; z < mm->zones; z++)
		transit += atomic_load_relaxed(&mm->zone[z].transit);
	return transit > atomic_load_relaxed(&mm->transit_kept) || atomic_load_relaxed(&mm->sections_moving) > 0;
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
	clear_huge(&how, addr, order_pages(order) * PAGE_SIZE, CLEAR_NO_HINT, mm->zone[page->zone].node);
}

static u64 held_by_cpus(const struct mm *mm)
{
	u64 frames = 0;

	for (unsigned z = 0; z < mm->zones; z++)
		frames += pcp_count(mm, &mm->zone[z]);
	return frames;
}

/* Nothing anywhere: unless others are changing memory just now, or hold some. */
static __attribute__((noinline)) struct page *alloc_last_resort(struct mm *mm, node_t first, unsigned order,
								enum migratetype type, unsigned request)
{
	struct page *page = NULL;
	struct wait wait;

	if (request & PAGE_NOFLUSH)
		return NULL;
	wait = wait_begin(wait_deadline_cpus(), "memory that other CPUs are changing");
	wait.soft = true;
	while (!page && memory_is_moving(mm) && wait.late == 0) {
		wait_spin(&wait, CPU_NONE);
		page = alloc_from_nodes(mm, first, order, type, request);
	}
	if (!page && held_by_cpus(mm) > 0) {
		pcp_drain_all(mm);
		page = alloc_from_nodes(mm, first, order, type, request);
	}
	return page;
}

_Static_assert((int)USE_UNMOVABLE == (int)MIGRATE_UNMOVABLE && (int)USE_MOVABLE == (int)MIGRATE_MOVABLE &&
		       (int)USE_RECLAIMABLE == (int)MIGRATE_RECLAIMABLE,
	       "what a page is used for is the type of the block it comes from");

/* A 2 MiB page from this CPU's list of the first zone: its head is written, not read. */
static struct page *huge_at_hand(struct mm *mm, node_t node, unsigned request)
{
	const u8 zone = page_first_zone(mm, node);
	struct page *head = NULL;
	u32 index = BLOCK_NONE;
	struct pcp *pcp;

	if (zone == ZONE_NONE)
		return NULL;
	pcp = pcp_enter(mm);
	if (pcp->zone[zone]->huge_count > 0 || zone_admits(&mm->zone[zone], BLOCK_ORDER, request))
		index = pcp_alloc_huge(&mm->zone[zone], !(request & PAGE_NOFLUSH));

	if (index != BLOCK_NONE) {
		head = pfn_page(mm, block_pfn(index));
		check_frames_reused(block_pfn(index), BLOCK_FRAMES);
		atomic_store_release(&head->state, page_state(PAGE_COMPOUND | PAGE_OPTIMISED, BLOCK_ORDER, zone, 1));
	}
	pcp_leave(mm, pcp);
	return head;
}

struct page *page_alloc_slowly(struct mm *mm, unsigned order, enum page_use use, unsigned request, node_t node,
			       virt_t caller)
{
	const node_t first = node < mm->nodes ? node : MIN(this_cpu()->node, mm->nodes - 1);
	const enum migratetype type = (enum migratetype)use;
	struct page *page = NULL;

	if ((order > BLOCK_ORDER && order != GIGA_ORDER) || use > USE_RECLAIMABLE)
		return NULL;
	if (order == BLOCK_ORDER && !(request & PAGE_DMA32))
		page = huge_at_hand(mm, node, request);
	if (!page)
		page = alloc_from_nodes(mm, first, order, type, request);
	if (!page)
		page = alloc_last_resort(mm, first, order, type, request);
	if (page && unlikely(atomic_load_relaxed(&mm->watch)))
		page_watch_allocated(mm, page, order, caller);
	if (page && (request & PAGE_ZERO))
		page_clear(mm, page, order);
	return page;
}

static inline struct page *alloc_pages(struct mm *mm, unsigned order, enum page_use use, unsigned request, node_t node)
{
	struct page *page = likely(order == 0) ? page_alloc_quickly(mm, use, request, node) : NULL;

	return likely(page) ? page : page_alloc_slowly(mm, order, use, request, node, CALLER);
}

struct page *mm_page_alloc(struct mm *mm, unsigned order, enum page_use use, unsigned request, node_t node)
{
	return alloc_pages(mm, order, use, request, node);
}

/* ---- freeing ---- */

static void free_huge(struct zone *zone, struct pcp_zone *mine, struct page *page)
{
	const u32 index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	const struct block *block = block_at(zone->mm, index);
	const unsigned order = block->order;

	ASSERT(block->state == BLOCK_HUGE || block->state == BLOCK_FULL, "huge page at frame %llx in a block that is %s",
	       (unsigned long long)page_to_pfn(page), block_state_name(block->state));
	page_set_kind(page, block->state == BLOCK_HUGE ? PAGE_COMPOUND | PAGE_OPTIMISED | PAGE_HUGETLB : 0, order);
	if (order == BLOCK_ORDER && block->state == BLOCK_HUGE && pcp_free_huge(zone, mine, index, block))
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

void page_free_unreferenced(struct mm *mm, struct page *page, virt_t caller)
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

/* Drop a reference to a head; the last one frees it. */
void page_put_head(struct mm *mm, struct page *head, virt_t caller)
{
	const u32 was = atomic_fetch_sub(&head->refcount, 1);

	if (was > 1)
		return;
	if (likely(was == 1 && page_check_free(mm, head))) {
		page_free_unreferenced(mm, head, caller);
		return;
	}
	atomic_store_relaxed(&head->refcount, was); /* as it was */
	if (was == 0)
		page_misused(mm, head, "reference underflow of frame %llx", (unsigned long long)page_to_pfn(head));
}

/* A 2 MiB page whose struct page says all that need be known, as a single one's does on the fast path. */
static inline bool free_huge_quickly(struct mm *mm, struct page *page)
{
	const u64 state = atomic_load_relaxed(&page->state);
	const pfn_t pfn = page_to_pfn(page);
	const u8 zone = (u8)(state >> 24);
	const struct block *block;
	struct pcp *pcp;

	if ((state & ~page_state(0, 0, 0xff, 0)) != page_state(PAGE_COMPOUND | PAGE_OPTIMISED, BLOCK_ORDER, 0, 1) ||
	    pfn % BLOCK_FRAMES || atomic_load_relaxed(&mm->watch))
		return false;
	block = block_of_used(mm, pfn);
	if (block->state != BLOCK_HUGE || block->order != BLOCK_ORDER)
		return false;
	pcp = pcp_enter(mm);
	atomic_store_relaxed(&page->state,
			     page_state(PAGE_COMPOUND | PAGE_OPTIMISED | PAGE_HUGETLB, BLOCK_ORDER, zone, 0));
	if (!pcp_free_huge(&mm->zone[zone], pcp->zone[zone], (u32)(pfn >> BLOCK_ORDER), block)) {
		block_free(&mm->zone[zone], (u32)(pfn >> BLOCK_ORDER), BLOCK_ORDER);
		pcp_add_in_use(&mm->zone[zone], -(s64)BLOCK_FRAMES);
	}
	pcp_leave(mm, pcp);
	return true;
}

/* page_free() says that nobody else has a reference. A page that others can find is left the careful way all the same. */
void page_free_slowly(struct mm *mm, struct page *page, virt_t caller)
{
	if (page_is_of(mm, page) && free_huge_quickly(mm, page))
		return;
	if (!page_check_free(mm, page))
		return;
	if (unlikely(atomic_load_relaxed(&page->flags) & PAGE_MOVABLE)) { /* somebody may just be looking whether it can move */
		page_put_head(mm, page, caller);
		return;
	}
	if (likely(atomic_cas(&page->refcount, 1u, 0u)))
		page_free_unreferenced(mm, page, caller);
	else
		page_misused(mm, page, "free of frame %llx with %u references", (unsigned long long)page_to_pfn(page),
			     atomic_load_relaxed(&page->refcount));
}

struct page *page_leave_draining(struct mm *mm, struct pcp *pcp, struct page *page)
{
	pcp_leave(mm, pcp);
	return page;
}

void page_keep_and_leave(struct mm *mm, struct pcp *pcp, u8 zone, pfn_t pfn)
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

/* ---- mm.h ---- */

struct page *page_alloc(unsigned order, enum page_use use, unsigned request, node_t node)
{
	return alloc_pages(&mm_kernel, order, use, request, node);
}

void page_free(struct page *page)
{
	page_free_quickly(&mm_kernel, page, CALLER);
}
