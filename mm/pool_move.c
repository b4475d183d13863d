/*
 * Pool pages that stand in the way: another one takes their place. See migrate.h.
 *
 *   free   [old] on its node's list  ->  [new] on its node's list, old to the buddy      one cycle of the pool's lock
 *   used   the holder is asked to take [new]; one of the two leaves the pool then
 *
 * The new page is made before anything changes, outside the range, because nothing isolated is given out. Counts of the
 * pool are the same before and after; between them a used page is counted twice.
 */
#include "mm/migrate.h"
#include "mm/pool.h"

/* The pool with pages of this order. There is one of each at most. */
static struct pool *pool_with_order(struct mm *mm, unsigned order)
{
	struct pool *pool = mm->pools;

	while (pool && pool->order != order)
		pool = pool->next;
	return pool;
}

static struct pool_node *pool_node_of(struct pool *pool, u32 index)
{
	return &pool->node[block_zone(pool->mm, index)->node];
}

/* Pool lock held. A page joins, and a page leaves: what was surplus on its node and is so no more is on the other's. */
static void count_in(struct pool *pool, u32 index)
{
	pool_node_of(pool, index)->pages++;
	pool->pages++;
}

static void count_out(struct pool *pool, u32 index, u32 stays)
{
	struct pool_node *node = pool_node_of(pool, index);

	node->pages--;
	pool->pages--;
	if (node->surplus > node->pages) {
		node->surplus--;
		pool_node_of(pool, stays)->surplus++;
	}
}

/* Out of the pool, in no count: to the buddy. -EBUSY if it could not be restored and stays. */
static int release(struct pool *pool, u32 index)
{
	struct block_list list = BLOCK_LIST_INIT;

	block_list_push(pool->mm, &list, index);
	return pool_release(pool, hvo_mode_selected(), &list, POOL_KEPT_AS_SURPLUS) ? 0 : -EBUSY;
}

/* False if `old` is not free now. */
static bool replace_free(struct pool *pool, u32 old, u32 new)
{
	bool is_free;

	spin_lock(&pool->lock);
	is_free = block_at(pool->mm, old)->flags & BLOCK_POOL_FREE;
	if (is_free) {
		counter_sub(&pool->zeroed, block_forget_zero(pool->mm, old));
		block_set_pool_free(pool->mm, old, false);
		block_list_remove(pool->mm, &pool_node_of(pool, old)->free, old);
		count_in(pool, new);
		count_out(pool, old, new);
		block_list_push(pool->mm, &pool_node_of(pool, new)->free, new);
		block_set_pool_free(pool->mm, new, true);
	}
	spin_unlock(&pool->lock);
	return is_free;
}

/* One of the two has served: its last reference is ours. */
static int leave(struct pool *pool, struct page *page, u32 index, u32 stays)
{
	const u32 was = atomic_fetch_sub(&page->refcount, 1);

	if (was > 1)
		return -EBUSY; /* somebody else looks at it, and gives it back to the pool */
	page_forget_mover(pool->mm, page);
	spin_lock(&pool->lock);
	pool->in_use--;
	count_out(pool, index, stays);
	spin_unlock(&pool->lock);
	return release(pool, index);
}

static int move_used(struct pool *pool, u32 old, u32 new, struct migrate_stats *stats)
{
	struct page *from = pfn_page(pool->mm, block_pfn(old)), *to = pfn_page(pool->mm, block_pfn(new));
	int err;

	if (!page_get_movable(from)) {
		release(pool, new);
		return -EBUSY;
	}
	spin_lock(&pool->lock);
	count_in(pool, new);
	pool->in_use++;
	spin_unlock(&pool->lock);
	hvo_settle(pool->mm, new);
	atomic_store_release(&to->refcount, 1);
	err = page_move(pool->mm, from, to);
	if (err) {
		stats->failed++;
		leave(pool, to, new, old);
		pool_page_give(pool, from); /* only the reference that looking took, unless its holder has gone */
		return -EBUSY;
	}
	stats->pages += order_pages(pool->order);
	atomic_fetch_sub(&from->refcount, 1); /* its holder's, handed over */
	return leave(pool, from, old, new);
}

int pool_move_page(struct mm *mm, u32 index, struct migrate_stats *stats)
{
	struct pool *pool = pool_with_order(mm, atomic_load_relaxed(&block_at(mm, index)->order));
	u32 new = BLOCK_NONE;

	if (!pool)
		return -EBUSY;
	if (!mm_fails_on_purpose(mm))
		new = pool_make_near(pool, block_zone(mm, index)->node);
	if (new == BLOCK_NONE)
		return -ENOMEM;
	if (!replace_free(pool, index, new))
		return move_used(pool, index, new, stats);
	stats->pooled += order_pages(pool->order);
	return release(pool, index);
}
