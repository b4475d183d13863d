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
	return page;
}

static struct page *take_small(struct zone *zone, unsigned order, enum migratetype type)
{
	struct page *page;

	if (order < PCP_ORDERS)
		return pcp_alloc(zone, order, type);
	spin_lock(&zone->lock);
	page = buddy_take_pages(zone, order, type);
	spin_unlock(&zone->lock);
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

/* One 2 MiB or 1 GiB page, as a pool would have it. */
static struct page *alloc_huge(struct zone *zone, unsigned order)
{
	struct mm *mm = zone->mm;
	struct block_list list = BLOCK_LIST_INIT;
	const struct hvo_mode *mode = hvo_mode_find("on");
	struct page *head;

	if (hvo_take_blocks(zone, mode, order, 1, &list) == 0 || hvo_optimise(mm, mode, &list) > 0)
		return NULL;
	hvo_settle(mm, list.head);
	block_list_publish_used(mm, &list, 0);
	check_frames_reused(block_pfn(list.head), order_pages(order));
	head = pfn_page(mm, block_pfn(list.head));
	page_set_kind(head, head->flags & (u16)~PAGE_HUGETLB, order);
	atomic_store_release(&head->refcount, 1);
	return head;
}

static struct page *alloc_from_zone(struct zone *zone, unsigned order, enum migratetype type, unsigned request)
{
	struct page *page = NULL;

	if (order < BLOCK_ORDER)
		page = alloc_small(zone, order, type, request);
	else if (!(request & PAGE_NOFLUSH) && zone_admits(zone, order, request))
		page = alloc_huge(zone, order);
	if (page)
		pcp_add_in_use(zone, (s64)order_pages(order));
	return page;
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

	pcp_enter();
	for (node_t i = 0; i < mm->nodes && !page; i++) {
		page = alloc_from_node(&mm->node[mm->node[first].fallback[i]], order, type, request);
		if (request & PAGE_NODE)
			break;
	}
	pcp_leave(mm);
	return page;
}

/* Sections being opened or blocks in transit: what is not there now may be there in a moment. */
static bool memory_is_moving(const struct mm *mm)
{
	u64 transit = 0;

	for (unsigned z = 0; z < mm->zones; z++)
		transit += atomic_load_relaxed(&mm->zone[z].transit);
	return transit > 0 || atomic_load_relaxed(&mm->sections_moving) > 0;
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

static struct page *alloc_pages(struct mm *mm, unsigned order, enum page_use use, unsigned request, node_t node,
				virt_t caller)
{
	static const u8 type_of_use[] = {
		[USE_UNMOVABLE] = MIGRATE_UNMOVABLE,
		[USE_MOVABLE] = MIGRATE_MOVABLE,
		[USE_RECLAIMABLE] = MIGRATE_RECLAIMABLE,
	};
	const node_t first = node < mm->nodes ? node : MIN(this_cpu()->node, mm->nodes - 1);
	struct page *page;
	struct wait wait;

	if ((order > BLOCK_ORDER && order != GIGA_ORDER) || use >= ARRAY_LEN(type_of_use))
		return NULL;
	wait = wait_begin(wait_deadline_cpus(), "memory that other CPUs are changing");
	wait.soft = true;
	while (!(page = alloc_from_nodes(mm, first, order, type_of_use[use], request)) && !(request & PAGE_NOFLUSH) &&
	       memory_is_moving(mm) && wait.late == 0)
		wait_spin(&wait, CPU_NONE);
	if (unlikely(atomic_load_relaxed(&mm->watch)) && page)
		page_watch_allocated(mm, page, order, caller);
	if (page && (request & PAGE_ZERO))
		page_clear(mm, page, order);
	return page;
}

struct page *mm_page_alloc(struct mm *mm, unsigned order, enum page_use use, unsigned request, node_t node)
{
	return alloc_pages(mm, order, use, request, node, CALLER);
}

/* ---- freeing ---- */

static void free_huge(struct zone *zone, struct page *page)
{
	const u32 index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	const struct block *block = block_at(zone->mm, index);

	ASSERT(block->state == BLOCK_HUGE || block->state == BLOCK_FULL, "huge page at frame %llx in a block that is %s",
	       (unsigned long long)page_to_pfn(page), block_state_name(block->state));
	page_set_kind(page, block->state == BLOCK_HUGE ? PAGE_COMPOUND | PAGE_OPTIMISED | PAGE_HUGETLB : 0, block->order);
	block_free(zone, index, block->order);
}

/* Pages given out by memblock were never in this CPU's count. */
static void uncount(struct zone *zone, const struct page *page, unsigned order)
{
	if (page->flags & PAGE_BOOT)
		atomic_fetch_sub(&zone->boot, order_pages(order));
	else
		pcp_add_in_use(zone, -(s64)order_pages(order));
}

/* The last reference is gone. */
static void free_unreferenced(struct mm *mm, struct page *page, virt_t caller)
{
	const unsigned order = page->flags & PAGE_COMPOUND ? page->order : 0;
	struct zone *zone = &mm->zone[page->zone];

	if (unlikely(page->flags & PAGE_MOVABLE))
		page_forget_mover(mm, page);
	if (unlikely(atomic_load_relaxed(&mm->watch)))
		page_watch_freed(mm, page, order, caller);
	pcp_enter();
	uncount(zone, page, order);
	if (order >= BLOCK_ORDER) {
		free_huge(zone, page);
	} else if (order < PCP_ORDERS) {
		pcp_free(zone, page, order);
	} else {
		spin_lock(&zone->lock);
		page_set_kind(page, 0, 0);
		buddy_free_pages(zone, page, order);
		spin_unlock(&zone->lock);
	}
	pcp_leave(mm);
}

/* Drop a reference to a head; the last one frees it. */
static void put_page(struct mm *mm, struct page *head, virt_t caller)
{
	const u32 was = atomic_fetch_sub(&head->refcount, 1);

	if (was > 1)
		return;
	if (likely(was == 1 && page_check_free(mm, head))) {
		free_unreferenced(mm, head, caller);
		return;
	}
	atomic_store_relaxed(&head->refcount, was); /* as it was */
	if (was == 0)
		page_misused(mm, head, "reference underflow of frame %llx", (unsigned long long)page_to_pfn(head));
}

static void free_page(struct mm *mm, struct page *page, virt_t caller)
{
	if (!page_check_free(mm, page))
		return;
	if (unlikely(page->flags & PAGE_MOVABLE)) { /* somebody may just be looking whether it can move */
		put_page(mm, page, caller);
		return;
	}
	if (likely(atomic_cas(&page->refcount, 1u, 0u)))
		free_unreferenced(mm, page, caller);
	else
		page_misused(mm, page, "free of frame %llx with %u references", (unsigned long long)page_to_pfn(page),
			     atomic_load_relaxed(&page->refcount));
}

void mm_page_free(struct mm *mm, struct page *page)
{
	free_page(mm, page, CALLER);
}

void mm_page_put(struct mm *mm, struct page *page)
{
	put_page(mm, page_head(page), CALLER);
}

/* ---- mm.h ---- */

struct page *page_alloc(unsigned order, enum page_use use, unsigned request, node_t node)
{
	return alloc_pages(&mm_kernel, order, use, request, node, CALLER);
}

void page_free(struct page *page)
{
	free_page(&mm_kernel, page, CALLER);
}

void page_get(struct page *page)
{
	struct page *head = page_head(page);

	if (likely(atomic_fetch_add(&head->refcount, 1) > 0))
		return;
	atomic_store_relaxed(&head->refcount, 0);
	page_misused(&mm_kernel, page, "reference to free frame %llx", (unsigned long long)page_to_pfn(page));
}

void page_put(struct page *page)
{
	put_page(&mm_kernel, page_head(page), CALLER);
}

/* Looks before it writes: a tail may be on a read-only page, where even a failing compare-and-swap faults. */
bool page_try_get(struct page *page)
{
	u32 count = atomic_load_relaxed(&page->refcount);

	while (count > 0) {
		if (atomic_cas(&page->refcount, count, count + 1))
			return true;
		count = atomic_load_relaxed(&page->refcount);
	}
	return false;
}

pfn_t page_pfn(const struct page *page)
{
	return page_to_pfn(page);
}

void *page_address(const struct page *page)
{
	return phys_to_virt(page_to_pfn(page) << PAGE_SHIFT);
}

unsigned page_order(const struct page *page)
{
	const struct page *head = page_head(page);

	return head->flags & PAGE_COMPOUND ? head->order : 0;
}

struct page *pfn_to_page(pfn_t pfn)
{
	return pfn_page(&mm_kernel, pfn);
}

bool page_peek(pfn_t pfn, struct page *copy)
{
	return mm_page_peek(&mm_kernel, pfn, copy);
}

bool mm_page_peek(const struct mm *mm, pfn_t pfn, struct page *copy)
{
	const u64 *from = (const u64 *)pfn_page(mm, pfn);
	u64 *to = (u64 *)copy;

	for (size_t i = 0; i < sizeof(*copy) / sizeof(u64); i++)
		if (!peek_u64(from + i, &to[i]))
			return false;
	return true;
}
