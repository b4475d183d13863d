/*
 * Freeing pages: the cases that page_fast.h leaves over. Any order, pages that others can find,
 * boot pages, debugging, and misuse.
 *
 *   page_free()  drops the only reference by a plain store, or with care if the page carries a flag
 *   page_put()   drops one of several references by one subtraction; its result (page_drop())
 *                decides everything that follows
 *
 * The last reference sends the page where it belongs. Orders 0..3 stay with this CPU (pcp.c), and
 * so do 2 MiB pages that are huge (pcp_huge.c). A pool's page goes to its pool (upward.h).
 * Everything else goes to the zone.
 */
#include "mm/page/page_alloc.h"

#include "kernel/core/context.h"
#include "kernel/core/panic.h"
#include "mm/hvo/hvo.h"
#include "mm/hvo/hvo_unshare.h"
#include "mm/memmap/block_state.h"
#include "mm/page/migrate.h"
#include "mm/page/page_fast.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/transit.h"

static void free_huge(struct zone *zone, struct pcp_zone *mine, struct page *page)
{
	const u32 index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	const struct block_word word = block_look_at(zone->mm, index);
	const unsigned order = word.order;

	ASSERT(word.state == BLOCK_HUGE || word.state == BLOCK_FULL,
	       "huge page at frame %llx in a block that is %s", page_to_pfn(page),
	       block_state_name(word.state));
	page_set_kind(page,
		      word.state == BLOCK_HUGE ? PAGE_COMPOUND | PAGE_OPTIMISED | PAGE_HUGETLB : 0,
		      order);
	if (order == BLOCK_ORDER && word.state == BLOCK_HUGE && !hvo_mode_selected()->mapped &&
	    pcp_free_huge(zone, mine, index, word))
		return;
	block_free(zone, index, order);
	pcp_add_in_use(zone, -(s64)order_pages(order));
}

/*
 * Is this a page that a baseline has made or would make, that is, a huge page in a mapped section?
 * Then it is freed as from a pool, with all its struct pages restored and the rounds that this
 * takes.
 */
static bool is_restored(const struct mm *mm, const struct page *page)
{
	const struct block_word word = block_look_at(mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER));

	return hvo_mode_selected()->mapped && word.state == BLOCK_HUGE &&
	       (word.flags & BLOCK_MAPPED);
}

/* Not entered: no CPU is inside the allocator while a round is waited for. */
static void free_restored(struct zone *zone, struct page *page)
{
	const u32 index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	const unsigned order = page_kind(page).order;

	page_set_kind(page, PAGE_COMPOUND | PAGE_OPTIMISED | PAGE_HUGETLB, order);
	pcp_count_in_use(zone, -(s64)order_pages(order));
	hvo_free_restored(zone, hvo_mode_selected(), index);
}

/* Pages given out by memblock were never in this CPU's count; they enter it now. */
static void count_boot(struct zone *zone, unsigned order)
{
	atomic_fetch_sub(&zone->boot, order_pages(order));
	pcp_add_in_use(zone, (s64)order_pages(order));
}

/* Free a checked page whose last reference was just dropped. */
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
	if (order >= BLOCK_ORDER && unlikely(is_restored(mm, page))) {
		free_restored(zone, page);
		return;
	}
	pcp = pcp_enter(mm);
	if (unlikely(kind.flags & PAGE_BOOT))
		count_boot(zone, order);
	if (order < PCP_ORDERS) {
		page_set_kind(page, PAGE_PCP, 0); /* its frames may be given out one by one */
		pcp_free(zone, pcp->zone[kind.zone], block_of_used(mm, page_to_pfn(page)),
			 page_to_pfn(page), order);
	} else if (order < BLOCK_ORDER) {
		pcp_give_back(zone, page, order);
	} else {
		free_huge(zone, pcp->zone[kind.zone], page);
	}
	pcp_leave(mm, pcp);
}

/*
 * The last reference was dropped, so the page is this CPU's alone. `state` is its state before
 * that.
 */
static void page_put_last(struct mm *mm, struct page *head, u64 state, virt_t caller)
{
	if (unlikely((state & (PAGE_HUGETLB | PAGE_MAPPINGS)) == PAGE_HUGETLB) && mm->pools)
		mm_upward.pool_put_last(mm, head, state);
	else if (likely(page_check_free(mm, head)))
		page_free_unreferenced(mm, head, caller);
	else
		page_undrop(head); /* the misuse was reported; the reference stays */
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
	page_misused(mm, head, "reference underflow of frame %llx", page_to_pfn(head));
}

/*
 * The caller of page_free() states that nobody else has a reference. If other CPUs can find the
 * page, one of them may be checking at this moment whether it can move; such a page is put. For any
 * other page further references are a mistake, and the page is not touched.
 */
static void page_free_slowly(struct mm *mm, struct page *page, virt_t caller)
{
	u64 state;

	if (!page_check_free(mm, page))
		return;
	state = atomic_load_relaxed(&page->state);
	if (unlikely(state & PAGE_MOVABLE))
		page_put_head(mm, page, caller);
	else if (likely(state_references(state) == 1 &&
			atomic_cas(&page->state, state, state - PAGE_REFERENCE)))
		page_free_unreferenced(mm, page, caller);
	else
		page_misused(mm, page, "free of frame %llx with %u references", page_to_pfn(page),
			     atomic_load_relaxed(&page->refcount));
}

/*
 * Free a 2 MiB page whose struct page tells all that is needed, as the fast path does for a single
 * page. This and the next function are not inline, because their caller would need more registers.
 */
static __attribute__((noinline)) void free_huge_quickly(struct mm *mm, struct page *page, u64 state,
							virt_t caller)
{
	const struct block_word word = block_look(block_of_used(mm, page_to_pfn(page)));
	const u32 index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	const u8 zone = state_kind(state).zone;
	struct pcp *pcp;

	if (unlikely(state != page_state(PAGE_COMPOUND | PAGE_OPTIMISED, BLOCK_ORDER, zone, 1) ||
		     page_to_pfn(page) % BLOCK_FRAMES || word.state != BLOCK_HUGE ||
		     word.order != BLOCK_ORDER || hvo_mode_selected()->mapped)) {
		page_free_slowly(mm, page, caller);
		return;
	}
	pcp = pcp_enter(mm);
	atomic_store_relaxed(&page->state, page_state(PAGE_COMPOUND | PAGE_OPTIMISED | PAGE_HUGETLB,
						      BLOCK_ORDER, zone, 0));
	if (!pcp_free_huge(&mm->zone[zone], pcp->zone[zone], index, word)) {
		block_free(&mm->zone[zone], index, BLOCK_ORDER);
		pcp_add_in_use(&mm->zone[zone], -(s64)BLOCK_FRAMES);
	}
	pcp_leave(mm, pcp);
}

/* Free a page of order 1..3 to this CPU's lists. Its first tail has to agree with its order. */
static __attribute__((noinline)) void free_run_quickly(struct mm *mm, struct page *page, u64 state,
						       virt_t caller)
{
	const struct page_kind kind = state_kind(state);
	const pfn_t pfn = page_to_pfn(page);
	struct pcp *pcp;

	if (unlikely(state != page_state(PAGE_COMPOUND, kind.order, kind.zone, 1) ||
		     pfn % order_pages(kind.order) || page->head_mask != head_mask_of(0) ||
		     page[1].head_mask != head_mask_of(kind.order))) {
		page_free_slowly(mm, page, caller);
		return;
	}
	pcp = pcp_enter(mm);
	/* its frames may be given out one by one */
	atomic_store_relaxed(&page->state, pcp->zone[kind.zone]->on_list);
	pcp_free(&mm->zone[kind.zone], pcp->zone[kind.zone], block_of_used(mm, pfn), pfn,
		 kind.order);
	pcp_leave(mm, pcp);
}

__attribute__((noinline)) struct page *page_leave_draining(struct mm *mm, struct pcp *pcp,
							   struct page *page) __releases(pcp)
{
	pcp_leave(mm, pcp);
	return page;
}

/*
 * Keep a single page in a word of its block that is not empty. False if that is not possible, or
 * not all that has to be done: then pcp_free() does it. Entered.
 */
static inline bool keep_in_word(struct zone *zone, struct pcp_zone *mine, const struct block *block,
				pfn_t pfn)
{
	const u32 slot = pcp_slot_of(mine, (u32)(pfn >> BLOCK_ORDER));
	const unsigned w = pfn % BLOCK_FRAMES / 64;
	u64 *word = &mine->map[slot % PCP_SLOTS][w];

	if (unlikely(slot == PCP_SLOTS || !*word || !pcp_has_room(mine) ||
		     block_look(block).type != mine->type[slot] || mine->recent.hot))
		return false;
	*word |= pcp_run_mask(pfn, 0);
	pcp_add_held(mine, 1);
	counter_add(&mine->lookups_fast, 1);
	pcp_freed_to(zone, mine, block, slot, w);
	return true;
}

/*
 * Free a page that is no plain single one; `state` is its state, or 0 if it is not the mm's. A
 * compound page that this CPU may keep takes no lock and no locked instruction.
 */
static inline void free_otherwise(struct mm *mm, struct page *page, u64 state, virt_t caller)
{
	const unsigned order = state_kind(state).order;
	const bool quick = state && IS_ALIGNED((virt_t)page, sizeof(*page)) &&
			   !atomic_load_relaxed(&mm->watch);

	if (quick && order == BLOCK_ORDER)
		free_huge_quickly(mm, page, state, caller);
	else if (quick && order > 0 && order < PCP_ORDERS)
		free_run_quickly(mm, page, state, caller);
	else
		page_free_slowly(mm, page, caller);
}

void page_free_elsewhere(struct mm *mm, struct page *page, virt_t caller)
{
	const pfn_t pfn = page_to_pfn(page);
	const struct block *block;
	struct zone *zone;
	struct pcp *pcp;
	u64 state;

	/* 0 is no plain page's state */
	state = page_is_of(mm, page) ? atomic_load_relaxed(&page->state) : 0;
	if (unlikely(!page_is_plain(mm, page, state) || atomic_load_relaxed(&mm->watch))) {
		free_otherwise(mm, page, state, caller);
		return;
	}
	pcp = pcp_enter(mm);
	/*
	 * The zone is guessed and then compared. If it were read from the struct page, everything
	 * that follows would wait for that line, which may be cold.
	 */
	if (unlikely(state != pcp->freed->in_use))
		pcp->freed = pcp->zone[(u8)(state >> 24)];
	atomic_store_relaxed(&page->state, pcp->freed->on_list);
	zone = &mm->zone[pcp->freed->zone];
	block = block_of_used(mm, pfn);
	/* where types are noted with the pages, pcp_free() asks for the type and counts that */
	if (unlikely(mm->pcp_types->by_page || !keep_in_word(zone, pcp->freed, block, pfn)))
		pcp_free(zone, pcp->freed, block, pfn, 0);
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
