/*
 * Pools in use: taking and giving pages, promises, surplus, and what HVO saves. See pool.h.
 */
#include <arch/cpu.h>

#include "kernel/panic.h"
#include "kernel/wait.h"
#include "mm/meta.h"
#include "mm/migrate.h"
#include "mm/pool.h"
#include "mm/prezero.h"
#include "mm/section.h"
#include "mm/transit.h"
#include "mm/vmemmap.h"

static int reserve(struct pool *pool, u64 count)
{
	int err = -ENOMEM;

	spin_lock(&pool->lock);
	if (pool->free >= pool->reserved && pool->free - pool->reserved >= count) {
		pool->reserved += count;
		err = 0;
	}
	spin_unlock(&pool->lock);
	return err;
}

int pool_reserve(struct pool *pool, u64 count)
{
	struct wait wait = wait_begin(wait_deadline_cpus(), "pages that idle CPUs clear");
	int err;

	wait.soft = true;
	while ((err = reserve(pool, count)) < 0 && atomic_load_acquire(&pool->clearing) > 0)
		wait_spin(&wait, CPU_NONE);
	return err;
}

void pool_unreserve(struct pool *pool, u64 count)
{
	spin_lock(&pool->lock);
	ASSERT(pool->reserved >= count, "%llu pages unreserved, %llu are", (unsigned long long)count,
	       (unsigned long long)pool->reserved);
	pool->reserved -= count;
	spin_unlock(&pool->lock);
}

/* Pool lock held. The nearest node's first page: zero ones stand first. */
static struct page *take_free(struct pool *pool, node_t node, bool *zeroed)
{
	const struct node *from = &pool->mm->node[node < pool->mm->nodes ? node : 0];
	u32 index = BLOCK_NONE;
	struct page *page;

	for (node_t i = 0; i < pool->mm->nodes && index == BLOCK_NONE; i++)
		index = block_list_pop(pool->mm, &pool->node[from->fallback[i]].free);
	if (index == BLOCK_NONE)
		return NULL;
	*zeroed = block_forget_zero(pool->mm, index);
	counter_sub(&pool->zeroed, *zeroed);
	block_set_pool_free(pool->mm, index, false);
	pool->free--;
	pool->in_use++;
	page = pfn_page(pool->mm, block_pfn(index));
	atomic_store_release(&page->refcount, 1);
	return page;
}

static struct page *take_if_allowed(struct pool *pool, node_t node, enum pool_take how, bool *zeroed)
{
	struct page *page = NULL;

	spin_lock(&pool->lock);
	if (how == POOL_RESERVED) {
		ASSERT(pool->reserved > 0, "a reserved page taken, but none is");
		page = take_free(pool, node, zeroed);
		pool->reserved -= page != NULL;
	} else if (pool->free > pool->reserved) {
		page = take_free(pool, node, zeroed);
	}
	spin_unlock(&pool->lock);
	return page;
}

/* ---- surplus ---- */

/* Room for one more surplus page is claimed before it is made. */
static bool claim_surplus(struct pool *pool)
{
	bool claimed;

	spin_lock(&pool->lock);
	claimed = pool->surplus + pool->making < pool->overcommit;
	pool->making += claimed;
	spin_unlock(&pool->lock);
	return claimed;
}

/* One page, in transit, from the nearest node that has one. */
u32 pool_make_near(struct pool *pool, node_t near)
{
	const struct node *from = &pool->mm->node[near < pool->mm->nodes ? near : 0];
	struct block_list list = BLOCK_LIST_INIT;

	for (node_t i = 0; i < pool->mm->nodes; i++)
		if (pool_make(pool, hvo_mode_selected(), from->fallback[i], 1, &list) > 0)
			break;
	block_list_publish_used(pool->mm, &list, BLOCK_POOL);
	return block_list_pop(pool->mm, &list);
}

/* A page that is claimed: it never lies in the pool free, so nobody else can take it. */
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
		pool->in_use++;
		page = pfn_page(pool->mm, block_pfn(index));
		atomic_store_release(&page->refcount, 1);
	}
	spin_unlock(&pool->lock);
	for (node_t n = 0; n < pool->mm->nodes; n++)
		meta_settle(&pool->mm->node[n]);
	return page;
}

/* A page that an idle CPU clears is back in a moment: nobody goes without because of it. */
static struct page *take_or_wait(struct pool *pool, node_t node, enum pool_take how, bool *zeroed)
{
	struct page *page = take_if_allowed(pool, node, how, zeroed);
	struct wait wait;

	if (page || atomic_load_acquire(&pool->clearing) == 0)
		return page;
	wait = wait_begin(wait_deadline_cpus(), "a page that an idle CPU clears");
	wait.soft = true;
	while (!(page = take_if_allowed(pool, node, how, zeroed)) && atomic_load_acquire(&pool->clearing) > 0)
		wait_spin(&wait, CPU_NONE);
	return page ? page : take_if_allowed(pool, node, how, zeroed);
}

struct page *pool_page_take_zero(struct pool *pool, node_t node, enum pool_take how, bool *zeroed)
{
	struct page *page = take_or_wait(pool, node, how, zeroed);

	if (!page && how != POOL_RESERVED && claim_surplus(pool)) {
		*zeroed = false;
		page = take_surplus(pool, node);
	}
	if (page) /* ours already, so nobody can change it while a round is waited for */
		hvo_settle(pool->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER));
	return page;
}

struct page *pool_page_take(struct pool *pool, node_t node, enum pool_take how)
{
	bool zeroed;

	return pool_page_take_zero(pool, node, how, &zeroed);
}

u32 pool_take_to_clear(struct pool *pool, node_t node, u64 limit)
{
	const struct node *from = &pool->mm->node[node < pool->mm->nodes ? node : 0];
	u32 index = BLOCK_NONE;

	spin_lock(&pool->lock);
	for (node_t i = 0; i < pool->mm->nodes && index == BLOCK_NONE; i++) {
		struct block_list *free = &pool->node[from->fallback[i]].free;

		if (pool->free <= pool->reserved || pool->zeroed + pool->clearing >= limit)
			break;
		index = free->tail;
		if (index != BLOCK_NONE && block_at(pool->mm, index)->zero)
			index = BLOCK_NONE;
		if (index == BLOCK_NONE)
			continue;
		block_list_remove(pool->mm, free, index);
		block_set_pool_free(pool->mm, index, false);
		pool->free--;
		pool->in_use++;
		atomic_fetch_add(&pool->clearing, 1);
	}
	spin_unlock(&pool->lock);
	return index;
}

void pool_give_cleared(struct pool *pool, u32 index, bool zeroed)
{
	struct block_list *free = &pool->node[block_zone(pool->mm, index)->node].free;

	spin_lock(&pool->lock);
	block_set_pool_free(pool->mm, index, true);
	block_at(pool->mm, index)->zero = zeroed;
	if (zeroed)
		block_list_push_front(pool->mm, free, index);
	else
		block_list_push(pool->mm, free, index);
	counter_add(&pool->zeroed, zeroed);
	pool->in_use--;
	pool->free++;
	atomic_fetch_sub(&pool->clearing, 1);
	spin_unlock(&pool->lock);
}

/* The page is nobody's now: back into the pool, or out of it, in the same breath, if its node has one too many. */
static bool put_back(struct pool *pool, u32 index)
{
	struct pool_node *node = &pool->node[block_zone(pool->mm, index)->node];
	bool surplus;

	spin_lock(&pool->lock);
	surplus = node->surplus > 0;
	pool->in_use--;
	if (surplus) {
		node->pages--;
		node->surplus--;
		pool->pages--;
		pool->surplus--;
	} else {
		block_set_pool_free(pool->mm, index, true);
		block_list_push(pool->mm, &node->free, index);
		pool->free++;
	}
	spin_unlock(&pool->lock);
	if (!surplus)
		prezero_wake(pool);
	return !surplus;
}

void pool_page_give(struct pool *pool, struct page *page)
{
	const u32 index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	const u32 was = atomic_fetch_sub(&page->refcount, 1);
	struct block_list list = BLOCK_LIST_INIT;

	ASSERT((page->flags & PAGE_HUGETLB) && (was == 1 || (was > 1 && (page->flags & PAGE_MOVABLE))),
	       "pool page at frame %llx given back with %u references", (unsigned long long)page_to_pfn(page), was);
	if (was > 1)
		return; /* somebody looks whether it can move, and gives it back */
	if (page->flags & PAGE_MOVABLE)
		page_forget_mover(pool->mm, page);
	if (put_back(pool, index))
		return;
	block_list_push(pool->mm, &list, index);
	pool_release(pool, hvo_mode_selected(), &list, POOL_KEPT_AS_SURPLUS);
}

/* ---- what is saved ---- */

/* Frames that describe one block of a pool page: private ones of its line, or its 8 under a leaf. */
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

	return head && (head->flags & BLOCK_POOL) && head->order == pool->order;
}

/* One section, interrupts off, so that it cannot be closed and its table freed under the walk. */
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
		saved--; /* its page table */
	irq_restore(flags);
	return saved;
}

s64 pool_frames_saved(struct pool *pool)
{
	s64 saved = 0;

	for (u64 section = section_first(pool->mm); section < section_end(pool->mm); section++)
		saved += section_saved(pool, section);
	return saved;
}
