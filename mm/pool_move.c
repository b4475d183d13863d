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
#include "mm/page_alloc.h"
#include "mm/pool.h"

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
	return pool_release(pool, hvo_mode_selected(), &list) ? 0 : -EBUSY;
}

/* Pool lock held, and `old` is free in the pool. */
static void replace_free(struct pool *pool, u32 old, u32 new)
{
	counter_sub(&pool->zeroed, block_forget_zero(pool->mm, old));
	block_set_pool_free(pool->mm, old, false);
	block_list_remove(pool->mm, &pool_node_of(pool, old)->free, old);
	count_in(pool, new);
	count_out(pool, old, new);
	block_list_push(pool->mm, &pool_node_of(pool, new)->free, new);
	block_set_pool_free(pool->mm, new, true);
}

enum page_now { IN_USE, FREE_NOW };

/*
 * What `index` heads just now. It may be another pool's, in parts: a 1 GiB page can be demoted at any time; it is this pool's if its record
 * says so under the lock. IN_USE: by one who can move it. -EBUSY: by another; -EAGAIN: it is changing hands. Pool lock held.
 */
static int look(struct pool *pool, u32 index)
{
	const struct block_word word = block_look_at(pool->mm, index);
	struct page head;

	if (!(word.flags & BLOCK_POOL) || (word.flags & BLOCK_TRANSIT) || word.order != pool->order)
		return -EAGAIN;
	if (word.flags & BLOCK_POOL_FREE)
		return FREE_NOW;
	if (!mm_page_peek(pool->mm, block_pfn(index), &head) || head.refcount == 0)
		return -EAGAIN;
	return (head.flags & (PAGE_MOVABLE | PAGE_MAPPINGS)) == PAGE_MOVABLE ? IN_USE : -EBUSY;
}

static int look_first(struct pool *pool, u32 index)
{
	int what;

	spin_lock(&pool->lock);
	what = look(pool, index);
	spin_unlock(&pool->lock);
	return what;
}

/* FREE_NOW: it was, and `new` has taken its place; IN_USE: we have a reference; else an error. */
static int replace_or_hold(struct pool *pool, u32 old, u32 new)
{
	int what;

	spin_lock(&pool->lock);
	what = look(pool, old);
	if (what == FREE_NOW)
		replace_free(pool, old, new);
	/* Given back, it needs the pool's lock to go anywhere: the head that look() saw stays for as long as that is held. */
	else if (what == IN_USE && !page_get_movable(pfn_page(pool->mm, block_pfn(old))))
		what = -EAGAIN;
	spin_unlock(&pool->lock);
	return what;
}

/*
 * One of the two has served, and a reference to it is ours. If another CPU holds it as well, looking whether it can move, the page goes
 * with that one's put: the pool has a page too many until then, which counts as surplus. Dropped under the pool's lock, because that
 * put needs it: it finds the surplus counted.
 */
static int leave(struct pool *pool, struct page *page, u32 index, u32 stays)
{
	bool last;

	spin_lock(&pool->lock);
	last = state_references(page_drop(page)) == 1;
	if (last) {
		pool->in_use--;
		count_out(pool, index, stays);
	} else {
		pool_node_of(pool, index)->surplus++;
		pool->surplus++;
	}
	spin_unlock(&pool->lock);
	if (!last)
		return -EBUSY;
	page_forget_mover(pool->mm, page);
	return release(pool, index);
}

/* `old` is held. */
static int move_used(struct pool *pool, u32 old, u32 new, struct migrate_stats *stats)
{
	struct page *from = pfn_page(pool->mm, block_pfn(old)), *to = pfn_page(pool->mm, block_pfn(new));
	int err;

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
	page_drop(from); /* its holder's, handed over: ours is left */
	return leave(pool, from, old, new);
}

int pool_move_to(struct pool *pool, u32 old, u32 new, struct migrate_stats *stats)
{
	const int what = replace_or_hold(pool, old, new);

	if (what == IN_USE)
		return move_used(pool, old, new, stats);
	if (what == FREE_NOW) {
		stats->pooled += order_pages(pool->order);
		return release(pool, old);
	}
	release(pool, new);
	return what;
}

int pool_move_page(struct mm *mm, u32 index, unsigned order, struct migrate_stats *stats)
{
	struct pool *pool = pool_with_order(mm, order);
	const int what = pool ? look_first(pool, index) : -EBUSY;
	u32 new = BLOCK_NONE;

	if (what < 0)
		return what; /* before a page is made for nothing */
	if (!fail_here(&mm->fail, FAIL_MOVE))
		new = pool_make_near(pool, block_zone(mm, index)->node);
	return new == BLOCK_NONE ? -ENOMEM : pool_move_to(pool, index, new, stats);
}
