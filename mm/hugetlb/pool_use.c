/* Pools in use: taking and giving back pages, promises, surplus, and what HVO saves. See pool.h. */
#include "mm/hugetlb/pool_use.h"

#include <arch/cpu.h>

#include "kernel/core/context.h"
#include "kernel/core/panic.h"
#include "kernel/core/reason_set.h"
#include "mm/contig/bad_frames.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/vmemmap.h"
#include "mm/page/migrate.h"
#include "mm/page/page_alloc.h"
#include "mm/page/page_check.h"
#include "mm/page/page_fast.h"
#include "mm/page/page_owner.h"
#include "mm/zone/section.h"
#include "mm/zone/transit.h"

/*
 * Look once at the free pages and the surplus that is allowed. -ENOMEM with *missing not 0 means
 * that the free pages are promised and room for *missing surplus pages is claimed; the caller is to
 * make them.
 */
static int reserve(struct pool *pool, u64 count, u64 *missing)
{
	int err = -ENOMEM;
	u64 there, room;

	*missing = 0;
	spin_lock(&pool->lock);
	there = saturating_sub(pool->free, pool->reserved);
	room = saturating_sub(pool->overcommit, pool->surplus + pool->making);
	if (pool->free >= pool->reserved && there >= count) {
		pool_count(pool, NULL, (struct pool_delta){.reserved = (s64)count});
		err = 0;
	} else if (there < count && count - there <= room) {
		*missing = count - there;
		pool_count(pool, NULL, (struct pool_delta){.reserved = (s64)there});
		pool->making += *missing;
	}
	spin_unlock(&pool->lock);
	return err;
}

/* Give back `count` promises, and shed up to `shed` surplus pages that are free then. */
static inline __attribute__((always_inline)) void unreserve(struct pool *pool, u64 count, u64 shed)
{
	u64 surplus;

	spin_lock(&pool->lock);
	ASSERT(pool->reserved >= count, "%llu pages are unreserved, but only %llu are reserved",
	       count, pool->reserved);
	pool_count(pool, NULL, (struct pool_delta){.reserved = -(s64)count});
	surplus = pool->surplus;
	spin_unlock(&pool->lock);
	if (surplus > 0)
		pool_shed_surplus(pool, hvo_mode_selected(), shed);
}

int pool_reserve(struct pool *pool, u64 count)
{
	u64 missing, made;
	int err;

	context_assert(CONTEXT_ORDINARY);
	err = reserve(pool, count, &missing);
	if (missing == 0) {
		if (err)
			reason_set(REASON_NO_POOL_PAGE);
		return err;
	}
	made = pool_add_promised(pool, missing);
	if (made == missing)
		return 0;
	unreserve(pool, count - missing + made, made);
	return reason_error(REASON_NO_MEMORY, -ENOMEM);
}

void pool_unreserve(struct pool *pool, u64 count)
{
	context_assert(CONTEXT_ORDINARY);
	unreserve(pool, count, count);
}

/* Pool lock held. The nearest node that has free pages; NODE_NONE if none has. */
static node_t nearest_free(const struct pool *pool, node_t node)
{
	const struct node *from = &pool->mm->node[node < pool->mm->nodes ? node : 0];

	for (node_t i = 0; i < pool->mm->nodes; i++) {
		const node_t n = node_near(from, i)->id;

		if (pool->node[n].free.count > 0)
			return n;
	}
	return NODE_NONE;
}

/*
 * Pool lock held. Take the first page of the nearest node that has any. If the first page is bare,
 * so are all but those that were given back since, which stand last. BLOCK_NONE if no page is free.
 */
static u32 take_free(struct pool *pool, node_t node)
{
	const node_t near = nearest_free(pool, node);
	struct block_list *free;
	u32 index;

	if (near == NODE_NONE)
		return BLOCK_NONE;
	free = &pool->node[near].free;
	index = free->head;
	if (unlikely(atomic_load_relaxed(&pool->has_bare)) &&
	    block_look_at(pool->mm, index).state == BLOCK_BARE)
		index = free->tail;
	pool_take_out(pool, &pool->node[near], index, (struct pool_delta){.in_use = 1});
	return index;
}

/* Pool lock held. Take a promised page, or one that is promised to nobody, as `how` says. */
static u32 take_if_allowed(struct pool *pool, node_t node, enum pool_take how)
{
	u32 index;

	if (how != POOL_RESERVED)
		return pool->free > pool->reserved ? take_free(pool, node) : BLOCK_NONE;
	ASSERT(pool->reserved > 0, "a reserved page is taken, but the pool has none reserved");
	index = take_free(pool, node);
	if (index != BLOCK_NONE)
		pool_count(pool, NULL, (struct pool_delta){.reserved = -1});
	return index;
}

/*
 * Look under one hold of the lock at free pages and allowed surplus. Returns the block of a page
 * that belongs to the caller, or BLOCK_NONE. *claimed: room for one more surplus page is claimed
 * (`making`), and the caller is to make it.
 */
static u32 look_for_page(struct pool *pool, node_t node, enum pool_take how, bool *claimed)
{
	u32 index;

	spin_lock(&pool->lock);
	index = take_if_allowed(pool, node, how);
	*claimed = index == BLOCK_NONE && how != POOL_RESERVED &&
		   pool->surplus + pool->making < pool->overcommit;
	pool->making += *claimed;
	spin_unlock(&pool->lock);
	return index;
}

/* ---- surplus ---- */

/* Make one page, in transit, from the nearest node that has memory. */
u32 pool_make_near(struct pool *pool, node_t near)
{
	const struct node *from = &pool->mm->node[near < pool->mm->nodes ? near : 0];
	struct block_list list = BLOCK_LIST_INIT;

	context_assert(CONTEXT_ORDINARY);
	for (node_t i = 0; i < pool->mm->nodes; i++)
		if (pool_make(pool, hvo_mode_selected(), node_near(from, i)->id, 1, &list) > 0)
			break;
	block_list_publish_used(pool->mm, &list, BLOCK_POOL);
	return block_list_pop(pool->mm, &list);
}

/* Make a page that has been claimed. It is never free in the pool, so nobody else can take it. */
static u32 take_surplus(struct pool *pool, node_t near)
{
	const u32 index = pool_make_near(pool, near);

	spin_lock(&pool->lock);
	pool->making--;
	if (index != BLOCK_NONE)
		pool_count(pool, pool_node_of(pool, index),
			   (struct pool_delta){.pages = 1, .surplus = 1, .in_use = 1});
	spin_unlock(&pool->lock);
	meta_end_batch_all(pool->mm);
	return index;
}

/*
 * The page is the caller's already, so nobody changes it while its struct pages are made, or during
 * the wait for a round.
 */
static struct page *give_out(struct pool *pool, u32 index, virt_t caller)
{
	struct page *page = block_page(pool->mm, index);

	if (unlikely(atomic_load_relaxed(&pool->has_bare)))
		pool_page_make(pool, index);
	hvo_complete_round(pool->mm, index);
	atomic_store_release(&page->refcount, 1);
	if (unlikely(atomic_load_relaxed(&pool->mm->watch) & WATCH_OWNERS))
		page_owner_allocated(page, caller);
	return page;
}

struct page *pool_page_take(struct pool *pool, node_t node, enum pool_take how)
{
	bool claimed;
	u32 index;

	context_assert(CONTEXT_ORDINARY);
	/* withdraw reported bad frames before they can be given out */
	if (unlikely(atomic_load_relaxed(&pool->mm->watch) & WATCH_REPORTED))
		bad_frames_take_reported(pool->mm);
	index = look_for_page(pool, node, how, &claimed);
	if (claimed)
		index = take_surplus(pool, node);
	if (likely(index != BLOCK_NONE))
		return give_out(pool, index, CALLER);
	return reason_null(claimed ? REASON_NO_MEMORY : REASON_NO_POOL_PAGE);
}

/*
 * Pool lock held. The page has no user now. It goes back into the pool, or leaves the pool if its
 * node has one too many and no promise needs it. Returns true if it went into the pool.
 */
static inline __attribute__((always_inline)) bool put_back(struct pool *pool, u32 index)
{
	struct pool_node *node = pool_node_of(pool, index);
	const bool surplus = node->surplus > 0 && pool->free >= pool->reserved;

	if (surplus)
		pool_count(pool, node,
			   (struct pool_delta){.pages = -1, .surplus = -1, .in_use = -1});
	else
		pool_put_in(pool, node, index, (struct pool_delta){.in_use = -1});
	return !surplus;
}

int pool_release_page(struct pool *pool, u32 index)
{
	struct block_list list = BLOCK_LIST_INIT;

	block_list_push(pool->mm, &list, index);
	return pool_release(pool, hvo_mode_selected(), &list) ? 0 : -EBUSY;
}

/*
 * Pool lock held, which this function releases. The last reference to the page was dropped; `state`
 * is its state before that.
 */
static inline __attribute__((always_inline)) void put_last(struct pool *pool, struct page *page,
							   u64 state) __releases(&pool->lock)
{
	const u32 index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	bool stays;

	if (state & PAGE_MOVABLE)
		page_forget_mover(pool->mm, page);
	stays = put_back(pool, index);
	spin_unlock(&pool->lock);
	if (stays)
		pool_withdraw_bad(pool, index);
	else
		pool_release_page(pool, index);
}

/* Called by page_put() when this CPU had the last reference. */
void pool_put_last(struct mm *mm, struct page *page, u64 state)
{
	struct pool *pool = pool_with_order(mm, state_kind(state).order);

	ASSERT(pool, "frame %llx belongs to a pool of order %u, which does not exist",
	       page_to_pfn(page), state_kind(state).order);
	spin_lock(&pool->lock);
	put_last(pool, page, state);
}

/*
 * Returns NULL if `page` heads a page of the pool that is in use, and otherwise a text that says
 * what is wrong. The block record is read first; without one the struct page may not exist.
 */
static inline __attribute__((always_inline)) const char *wrong_page(const struct pool *pool,
								    const struct page *page)
{
	const pfn_t pfn = page_to_pfn(page);
	const struct block_word word = block_look_any(pool->mm, (u32)(pfn >> BLOCK_ORDER));
	u64 state;

	if (!(word.flags & BLOCK_POOL) || (word.flags & BLOCK_TRANSIT))
		return "no page of a pool";
	if (pfn % BLOCK_FRAMES)
		return "no head";
	state = atomic_load_relaxed(&page->state);
	if (word.order != pool->order || state_kind(state).order != pool->order)
		return "a page of another size";
	if ((word.flags & BLOCK_POOL_FREE) || state_references(state) == 0)
		return "free already";
	if (state_references(state) == state_mappings(state))
		return "given back already, and still mapped";
	return state & PAGE_HUGETLB ? NULL : "no page of a pool";
}

/* Out of line, because a chain of calls from here on is among the deepest. */
static __attribute__((noinline)) void report_page(const struct pool *pool, struct page *page,
						  const char *what)
{
	struct page seen;

	if (!mm_page_peek(pool->mm, page_to_pfn(page), &seen))
		page_misused(NULL, NULL, "free of %p, which is no struct page", (const void *)page);
	else
		page_misused(pool->mm, page,
			     "frame %llx given back to the pool of order %u, but it is %s",
			     page_to_pfn(page), pool->order, what);
}

/* May `page` be given back? If not, this is reported. */
static inline __attribute__((always_inline)) bool may_give(const struct pool *pool,
							   struct page *page)
{
	const char *what;

	if (!page_check_place(pool->mm, page))
		return false;
	what = wrong_page(pool, page);
	if (unlikely(what))
		report_page(pool, page, what);
	return !what;
}

void pool_page_give(struct pool *pool, struct page *page)
{
	context_assert(CONTEXT_ORDINARY);
	if (may_give(pool, page))
		page_put_head(pool->mm, page, CALLER);
}

/*
 * The promise and its page come back under one hold of the lock. Otherwise another CPU would see
 * the promise without the page, and would not get a page that is free and promised to nobody. Only
 * while a mover or a mapping has a reference does the page follow its promise later.
 */
void pool_page_give_promised(struct pool *pool, struct page *page)
{
	u64 state = 0;
	bool gives, twice;

	context_assert(CONTEXT_ORDINARY);
	gives = may_give(pool, page);
	spin_lock(&pool->lock);
	pool_count(pool, NULL, (struct pool_delta){.reserved = 1});
	if (gives)
		state = page_drop(page);
	if (state_references(state) == 1 && state_mappings(state) == 0) {
		put_last(pool, page, state);
		return;
	}
	twice = gives && state_references(state) <= 1;
	if (twice)
		page_undrop(page);
	spin_unlock(&pool->lock);
	if (twice)
		report_page(pool, page, "given back by another CPU at the same time");
}

/* ---- memory saved ---- */

/*
 * Frames that describe one block of a pool page: the private ones of its line, or its 8 under a
 * leaf.
 */
static s64 frames_of_block(const struct mm *mm, u32 index)
{
	const pte_t *line = vmemmap_line(mm, index);
	s64 frames = 0;

	if (!line)
		return MEMMAP_FRAMES_PER_BLOCK;
	for (unsigned i = 0; i < PTES_PER_LINE; i++)
		frames += pte_writable(pte_load(&line[i]));
	return frames;
}

static bool is_in_pool(const struct pool *pool, u32 index)
{
	const struct block_word word =
		block_look_any(pool->mm, ALIGN_DOWN(index, order_blocks(pool->order)));

	return (word.flags & BLOCK_POOL) && word.order == pool->order;
}

/*
 * One section. Interrupts are off, so the section cannot be closed and its table freed during the
 * walk.
 */
static s64 section_saved(struct pool *pool, u64 section)
{
	struct mm *mm = pool->mm;
	const irq_flags_t flags = irq_save();
	s64 saved = 0;
	bool used = false;

	for (u32 i = 0; i < SECTION_BLOCKS && section_state(mm, section) == SECTION_OPEN; i++) {
		const u32 index = (u32)(section * SECTION_BLOCKS) + i;

		if (!is_in_pool(pool, index))
			continue;
		saved += MEMMAP_FRAMES_PER_BLOCK - frames_of_block(mm, index);
		used = true;
	}
	if (used && !vmemmap_is_leaf(mm, section))
		saved--; /* the section's page table */
	irq_restore(flags);
	return saved;
}

s64 pool_frames_saved(struct pool *pool)
{
	s64 saved = 0;

	context_assert(CONTEXT_ORDINARY);
	for (u64 section = section_first(pool->mm); section < section_end(pool->mm); section++)
		saved += section_saved(pool, section);
	return saved;
}
