/* Pools in use: taking and giving back pages, promises, surplus, and what HVO saves. See pool.h. */
#include "mm/hugetlb/pool_use.h"

#include <arch/cpu.h>

#include "kernel/core/context.h"
#include "kernel/core/panic.h"
#include "kernel/core/reason_set.h"
#include "kernel/core/wait.h"
#include "mm/contig/bad_report.h"
#include "mm/hugetlb/pool_defer.h"
#include "mm/hvo/hvo_take.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/vmemmap.h"
#include "mm/page/migrate.h"
#include "mm/page/page_alloc.h"
#include "mm/page/page_check.h"
#include "mm/page/page_fast.h"
#include "mm/page/page_owner.h"
#include "mm/zone/section.h"
#include "mm/zone/section_defer.h"
#include "mm/zone/transit.h"

/* A page that another CPU is making comes back in a moment; no request fails because of it. */
static struct wait wait_for_page(void)
{
	struct wait wait = wait_begin(WAIT_TRANSIT, "a pool page that another CPU makes");

	wait.soft = true;
	return wait;
}

/*
 * Look once at the free pages, the pages that will come back and the surplus that is allowed.
 * -EAGAIN means that there will be enough when the pages being made are back. -ENOMEM
 * with *missing not 0 means that the other pages are promised and room for *missing surplus pages
 * is claimed; the caller is to make them.
 */
static int reserve(struct pool *pool, u64 count, u64 *missing)
{
	int err = -ENOMEM;
	u64 there, room;

	*missing = 0;
	spin_lock(&pool->lock);
	there = pool->free + pool->opening;
	there -= MIN(there, pool->reserved);
	room = pool->overcommit - MIN(pool->overcommit, pool->surplus + pool->making);
	if (pool->free >= pool->reserved && pool->free - pool->reserved >= count) {
		pool->reserved += count;
		err = 0;
	} else if (there >= count) {
		err = -EAGAIN;
	} else if (count - there <= room) {
		*missing = count - there;
		pool->reserved += there;
		pool->making += *missing;
	}
	spin_unlock(&pool->lock);
	return err;
}

int pool_reserve(struct pool *pool, u64 count)
{
	struct wait wait;
	u64 missing, made;
	int err;

	context_assert(CONTEXT_ORDINARY);
	err = reserve(pool, count, &missing);
	if (err == -EAGAIN) {
		wait = wait_for_page();
		do {
			wait_spin(&wait, CPU_NONE);
			err = reserve(pool, count, &missing);
		} while (err == -EAGAIN);
	}
	if (missing == 0) {
		if (err)
			reason_set(REASON_NO_POOL_PAGE);
		return err;
	}
	made = pool_add_promised(pool, missing);
	if (made == missing)
		return 0;
	pool_unreserve(pool, count - missing + made);
	reason_set(REASON_NO_MEMORY);
	return -ENOMEM;
}

void pool_unreserve(struct pool *pool, u64 count)
{
	u64 surplus;

	context_assert(CONTEXT_ORDINARY);
	spin_lock(&pool->lock);
	ASSERT(pool->reserved >= count, "%llu pages are unreserved, but only %llu are reserved",
	       count, pool->reserved);
	pool->reserved -= count;
	surplus = pool->surplus;
	spin_unlock(&pool->lock);
	if (surplus > 0)
		pool_shed_surplus(pool, hvo_mode_selected(), count);
}

/*
 * Pool lock held. The nearest node that has free pages, made or deferred; NODE_NONE if none has.
 */
static node_t nearest_free(const struct pool *pool, node_t node)
{
	const struct node *from = &pool->mm->node[node < pool->mm->nodes ? node : 0];

	for (node_t i = 0; i < pool->mm->nodes; i++) {
		const node_t n = node_near(from, i)->id;

		if (pool->node[n].free.count > 0 || pool->node[n].deferred > 0)
			return n;
	}
	return NODE_NONE;
}

/*
 * Pool lock held. Take the first page of the nearest node that has any. If the pages of that node
 * must be made first, return NULL and the node in *deferred.
 */
static struct page *take_free(struct pool *pool, node_t node, node_t *deferred)
{
	const node_t near = nearest_free(pool, node);
	struct page *page;
	u32 index;

	if (near == NODE_NONE)
		return NULL;
	index = block_list_pop(pool->mm, &pool->node[near].free);
	if (index == BLOCK_NONE) {
		*deferred = near;
		return NULL;
	}
	block_clear_pool_free(pool->mm, index);
	counter_sub(&pool->free, 1);
	counter_add(&pool->in_use, 1);
	page = block_page(pool->mm, index);
	atomic_store_release(&page->refcount, 1);
	return page;
}

/* Pool lock held. Take a promised page, or one that is promised to nobody, as `how` says. */
static struct page *take_if_allowed(struct pool *pool, node_t node, enum pool_take how,
				    node_t *deferred)
{
	struct page *page;

	*deferred = NODE_NONE;
	if (how != POOL_RESERVED)
		return pool->free > pool->reserved ? take_free(pool, node, deferred) : NULL;
	ASSERT(pool->reserved > 0, "a reserved page is taken, but the pool has none reserved");
	page = take_free(pool, node, deferred);
	pool->reserved -= page != NULL;
	return page;
}

/* Pool lock held. Will pages come back that the caller may have? */
static bool comes_back(const struct pool *pool, enum pool_take how)
{
	return pool->opening > 0 &&
	       (how == POOL_RESERVED || pool->free + pool->opening > pool->reserved);
}

enum pool_look { LOOK_TAKEN, LOOK_DEFERRED, LOOK_COMING, LOOK_SURPLUS, LOOK_NOTHING };

/*
 * Look under one hold of the lock at free pages, pages that come back and allowed surplus; between
 * two separate looks a page could come back and be missed. LOOK_TAKEN means that *page belongs to
 * the caller. LOOK_DEFERRED means that the caller is to make deferred pages of node *deferred.
 * LOOK_COMING means that a page will come back. LOOK_SURPLUS means that room for one more surplus
 * page is claimed (`making`) and the caller is to make it.
 */
static enum pool_look look_for_page(struct pool *pool, node_t node, enum pool_take how,
				    struct page **page, node_t *deferred)
{
	enum pool_look look = LOOK_NOTHING;

	spin_lock(&pool->lock);
	*page = take_if_allowed(pool, node, how, deferred);
	if (*page) {
		look = LOOK_TAKEN;
	} else if (*deferred != NODE_NONE) {
		look = pool->node[*deferred].opening ? LOOK_COMING : LOOK_DEFERRED;
	} else if (comes_back(pool, how)) {
		look = LOOK_COMING;
	} else if (how != POOL_RESERVED && pool->surplus + pool->making < pool->overcommit) {
		pool->making++;
		look = LOOK_SURPLUS;
	}
	spin_unlock(&pool->lock);
	return look;
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
static struct page *take_surplus(struct pool *pool, node_t near)
{
	const u32 index = pool_make_near(pool, near);
	struct page *page = NULL;

	spin_lock(&pool->lock);
	pool->making--;
	if (index != BLOCK_NONE) {
		struct pool_node *node = &pool->node[block_zone(pool->mm, index)->node];

		node->pages++;
		node->surplus++;
		pool->pages++;
		pool->surplus++;
		counter_add(&pool->in_use, 1);
		page = block_page(pool->mm, index);
		atomic_store_release(&page->refcount, 1);
	}
	spin_unlock(&pool->lock);
	meta_end_batch_all(pool->mm);
	return page;
}

static enum pool_look look_and_wait(struct pool *pool, node_t node, enum pool_take how,
				    struct page **page)
{
	node_t deferred;
	enum pool_look look = look_for_page(pool, node, how, page, &deferred);
	struct wait wait;

	while (look == LOOK_DEFERRED && pool_make_deferred(pool, deferred, GIB_ANY))
		look = look_for_page(pool, node, how, page, &deferred);
	if (look != LOOK_DEFERRED && look != LOOK_COMING)
		return look;
	wait = wait_for_page();
	do { /* another CPU makes pages; if that is not enough, this one makes some */
		if (look == LOOK_COMING || !pool_make_deferred(pool, deferred, GIB_ANY))
			wait_spin(&wait, CPU_NONE);
		look = look_for_page(pool, node, how, page, &deferred);
	} while (look == LOOK_DEFERRED || look == LOOK_COMING);
	return look;
}

struct page *pool_page_take(struct pool *pool, node_t node, enum pool_take how)
{
	enum pool_look look;
	struct page *page;

	context_assert(CONTEXT_ORDINARY);
	/* withdraw reported bad frames before they can be given out */
	if (unlikely(atomic_load_relaxed(&pool->mm->watch) & WATCH_REPORTED))
		bad_frames_take_reported(pool->mm);
	look = look_and_wait(pool, node, how, &page);
	if (look == LOOK_SURPLUS)
		page = take_surplus(pool, node);
	if (unlikely(!page))
		reason_set(look == LOOK_SURPLUS ? REASON_NO_MEMORY : REASON_NO_POOL_PAGE);
	/* the page is already this caller's, so nobody changes it during the wait for a round */
	if (page)
		hvo_complete_round(pool->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER));
	if (page && unlikely(atomic_load_relaxed(&pool->mm->watch) & WATCH_OWNERS))
		page_owner_allocated(page, CALLER);
	return page;
}

/*
 * The page has no user now. It goes back into the pool, or leaves the pool under the same hold of
 * the lock if its node has one too many. Returns true if it went into the pool.
 */
static bool put_back(struct pool *pool, u32 index)
{
	struct pool_node *node = &pool->node[block_zone(pool->mm, index)->node];
	bool surplus;

	spin_lock(&pool->lock);
	surplus = node->surplus > 0;
	counter_sub(&pool->in_use, 1);
	if (surplus) {
		node->pages--;
		node->surplus--;
		pool->pages--;
		pool->surplus--;
	} else {
		block_set_pool_free(pool->mm, index);
		block_list_push(pool->mm, &node->free, index);
		counter_add(&pool->free, 1);
	}
	spin_unlock(&pool->lock);
	return !surplus;
}

/* Called by page_put() when this CPU had the last reference. */
void pool_put_last(struct mm *mm, struct page *page, u64 state)
{
	const u32 index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	struct pool *pool = pool_with_order(mm, state_kind(state).order);
	struct block_list list = BLOCK_LIST_INIT;

	ASSERT(pool, "frame %llx belongs to a pool of order %u, which does not exist",
	       page_to_pfn(page), state_kind(state).order);
	if (state & PAGE_MOVABLE)
		page_forget_mover(mm, page);
	if (put_back(pool, index)) {
		pool_withdraw_bad(pool, index);
		return;
	}
	block_list_push(mm, &list, index);
	pool_release(pool, hvo_mode_selected(), &list);
}

/*
 * Returns NULL if `page` heads a page of the pool that is in use, and otherwise a text that says
 * what is wrong. The block record is read first; without one the struct page may not exist.
 */
static const char *wrong_page(const struct pool *pool, const struct page *page)
{
	const pfn_t pfn = page_to_pfn(page);
	const struct block *block = block_of(pool->mm, pfn);
	const struct block_word word = block ? block_look(block) : BLOCK_WORD(.flags = 0);
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

void pool_page_give(struct pool *pool, struct page *page)
{
	const char *what;
	struct page seen;

	context_assert(CONTEXT_ORDINARY);
	if (!page_check_place(pool->mm, page))
		return;
	what = wrong_page(pool, page);
	if (likely(!what))
		page_put_head(pool->mm, page, CALLER);
	else if (!mm_page_peek(pool->mm, page_to_pfn(page), &seen))
		page_refuse_place(page);
	else
		page_misused(pool->mm, page,
			     "frame %llx given back to the pool of order %u, but it is %s",
			     page_to_pfn(page), pool->order, what);
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
	const struct block *head = block_at(pool->mm, ALIGN_DOWN(index, order_blocks(pool->order)));
	const struct block_word word = head ? block_look(head) : BLOCK_WORD(.state = BLOCK_ABSENT);

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
	/* deferred pages have no struct pages at all yet */
	s64 saved = (s64)(pool_deferred_frames(pool) / BLOCK_FRAMES * MEMMAP_FRAMES_PER_BLOCK);

	context_assert(CONTEXT_ORDINARY);
	for (u64 section = section_first(pool->mm); section < section_end(pool->mm); section++)
		saved += section_saved(pool, section);
	return saved;
}
