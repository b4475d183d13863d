/*
 * Moving pool pages that stand in the way: another page takes their place. See migrate.h.
 *
 *   free   [old] on its node's list  ->  [new] on its node's list, old to the buddy,
 *          in one cycle of the pool's lock
 *   used   the holder is asked to take [new]; one of the two leaves the pool then
 *
 * The new page is made before anything changes. It lies outside the range, because nothing isolated
 * is given out. The pool's counts are the same before and after; in between a used page is counted
 * twice.
 */
#include "mm/hugetlb/pool_move.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/page/migrate.h"
#include "mm/page/page_alloc.h"

/*
 * Pool lock held. A page leaves, and takes `by` from the counts. If its node would then have more
 * surplus than pages, the excess moves to the node of the page that stays.
 */
static void count_out(struct pool *pool, u32 index, u32 stays, struct pool_delta by)
{
	struct pool_node *node = pool_node_of(pool, index), *other = pool_node_of(pool, stays);
	const bool excess = node->surplus == node->pages;

	by.surplus = excess ? -1 : 0;
	pool_count(pool, node, by);
	if (excess && other->surplus < other->pages)
		pool_count(pool, other, (struct pool_delta){.surplus = 1});
}

/* Pool lock held. `old` is free in the pool. */
static void replace_free(struct pool *pool, u32 old, u32 new)
{
	pool_put_in(pool, pool_node_of(pool, new), new, (struct pool_delta){.pages = 1});
	block_list_remove(pool->mm, &pool_node_of(pool, old)->free, old);
	block_clear_pool_free(pool->mm, old);
	count_out(pool, old, new, (struct pool_delta){.pages = -1, .free = -1});
}

enum page_now { IN_USE, FREE_NOW };

/*
 * Pool lock held. Determine the present state of the page that `index` heads. It may have become
 * pages of another pool, because a 1 GiB page can be demoted at any time; it belongs to this pool
 * if its record says so under the lock. IN_USE means that its holder can move it, -EBUSY that its
 * holder cannot, and -EAGAIN that it is changing hands.
 */
static int page_standing(struct pool *pool, u32 index)
{
	const struct block_word word = block_look_at(pool->mm, index);
	struct page head;

	if (!(word.flags & BLOCK_POOL) || (word.flags & BLOCK_TRANSIT) || word.order != pool->order)
		return -EAGAIN;
	if (word.flags & BLOCK_POOL_FREE)
		return FREE_NOW;
	if (!mm_page_peek(pool->mm, block_pfn(index), &head) || head.refcount == 0)
		return -EAGAIN;
	return page_flags_can_move(head.flags) ? IN_USE : -EBUSY;
}

static int look_first(struct pool *pool, u32 index)
{
	int what;

	spin_lock(&pool->lock);
	what = page_standing(pool, index);
	spin_unlock(&pool->lock);
	return what;
}

/*
 * Returns FREE_NOW if `old` was free and `new` has taken its place, IN_USE if this CPU now holds a
 * reference to `old`, and an error otherwise.
 */
static int replace_or_hold(struct pool *pool, u32 old, u32 new)
{
	int what;

	spin_lock(&pool->lock);
	what = page_standing(pool, old);
	if (what == FREE_NOW)
		replace_free(pool, old, new);
	/*
	 * A page that is given back needs the pool's lock to go anywhere, so the head that
	 * page_standing() saw stays as long as this CPU holds the lock.
	 */
	else if (what == IN_USE && !page_get_movable(block_page(pool->mm, old)))
		what = -EAGAIN;
	spin_unlock(&pool->lock);
	return what;
}

/*
 * One of the two pages has served its purpose, and this CPU holds a reference to it. If another CPU
 * holds it as well, to see whether it can move, the page leaves with that CPU's put. Until then the
 * pool has one page too many, which counts as surplus. The reference is dropped under the pool's
 * lock, which that put also takes, so the put finds the surplus counted.
 */
static int leave(struct pool *pool, struct page *page, u32 index, u32 stays)
{
	struct pool_node *node = pool_node_of(pool, index);
	bool last;

	spin_lock(&pool->lock);
	last = state_references(page_drop(page)) == 1;
	if (last)
		count_out(pool, index, stays, (struct pool_delta){.pages = -1, .in_use = -1});
	else if (node->surplus < node->pages)
		pool_count(pool, node, (struct pool_delta){.surplus = 1});
	spin_unlock(&pool->lock);
	if (!last)
		return -EBUSY;
	page_forget_mover(pool->mm, page);
	return pool_release_page(pool, index);
}

/* The caller holds a reference to `old`. */
static int move_used(struct pool *pool, u32 old, u32 new, struct migrate_stats *stats)
{
	struct page *from = block_page(pool->mm, old), *to = block_page(pool->mm, new);
	int err;

	spin_lock(&pool->lock);
	pool_count(pool, pool_node_of(pool, new), (struct pool_delta){.pages = 1, .in_use = 1});
	spin_unlock(&pool->lock);
	hvo_complete_round(pool->mm, new);
	atomic_store_release(&to->refcount, 1);
	err = page_move(pool->mm, from, to);
	if (err) {
		stats->failed++;
		leave(pool, to, new, old);
		/* drops only the reference that this function took, unless the holder has gone */
		pool_page_give(pool, from);
		return -EBUSY;
	}
	stats->pages += order_pages(pool->order);
	page_drop(from); /* the reference that the holder handed over; one of ours is left */
	return leave(pool, from, old, new);
}

int pool_move_to(struct pool *pool, u32 old, u32 new, struct migrate_stats *stats)
{
	const int what = replace_or_hold(pool, old, new);

	if (what == IN_USE)
		return move_used(pool, old, new, stats);
	if (what == FREE_NOW) {
		stats->pooled += order_pages(pool->order);
		return pool_release_page(pool, old);
	}
	pool_release_page(pool, new);
	return what;
}

/* The page for another one's place; BLOCK_NONE without memory. */
static u32 make_other(struct pool *pool, u32 index)
{
	return fail_here(&pool->mm->fail, FAIL_MOVE)
		       ? BLOCK_NONE
		       : pool_make_near(pool, block_zone(pool->mm, index)->node);
}

/* The free page that `index` heads leaves, if it can. */
static void dissolve_free(struct pool *pool, u32 index)
{
	struct migrate_stats stats = {0};
	bool gone;
	u32 new;

	new = make_other(pool, index);
	if (new != BLOCK_NONE) {
		pool_move_to(pool, index, new, &stats);
		return;
	}
	spin_lock(&pool->lock);
	gone = page_standing(pool, index) == FREE_NOW && pool->free > pool->reserved;
	if (gone) {
		struct pool_node *node = pool_node_of(pool, index);
		const s64 surplus = pool_node_free_surplus(node) > 0;

		pool_take_out(pool, node, index,
			      (struct pool_delta){.pages = -1, .surplus = -surplus});
	}
	spin_unlock(&pool->lock);
	if (gone)
		pool_release_page(pool, index);
}

void pool_dissolve_page(struct mm *mm, u32 index)
{
	for (struct pool *pool = mm->pools; pool; pool = pool->next) {
		const u32 head = (u32)ALIGN_DOWN(index, order_blocks(pool->order));

		if (look_first(pool, head) == FREE_NOW)
			dissolve_free(pool, head);
	}
}

int pool_move_page(struct mm *mm, u32 index, unsigned order, struct migrate_stats *stats)
{
	struct pool *pool = pool_with_order(mm, order);
	const int what = pool ? look_first(pool, index) : -EBUSY;
	u32 new;

	if (what < 0)
		return what; /* before a page is made for nothing */
	new = make_other(pool, index);
	return new == BLOCK_NONE ? -ENOMEM : pool_move_to(pool, index, new, stats);
}
