/*
 * Accounting, pools: see account.h. A pool's counts must equal the sums over its
 * nodes, and a node's free pages must lie on its list, each as the list says. Promises (`reserved`)
 * to huge mappings are checked in account_refs.c.
 */
#include "mm/debug/account_pools.h"

#include "kernel/core/printk.h"
#include "mm/hugetlb/pool.h"
#include "mm/memmap/zone.h"
#include "mm/page/pcp.h"
#include "mm/zone/section.h"

bool account_said(const char *what, u64 counted, u64 walked)
{
	if (counted == walked)
		return true;
	pr_err("accounting: %s: counted %llu, walked %llu", what, counted, walked);
	return false;
}

/* ---- pools ---- */

struct sums {
	u64 pages, free, surplus;
};

static bool walk_free(struct mm *mm, const struct pool *pool, node_t n, struct sums *sums)
{
	const struct block_list *list = &pool->node[n].free;
	u32 prev = BLOCK_NONE;
	u64 count = 0;
	bool ok;

	for (u32 index = list->head; index != BLOCK_NONE;
	     prev = index, index = block_at(mm, index)->next) {
		const struct block *block = block_at(mm, index);
		const struct block_word word = block_look(block);

		if (!(word.flags & BLOCK_POOL_FREE) || word.order != pool->order ||
		    block->prev != prev || block_zone(mm, index)->node != n ||
		    ++count > list->count) {
			pr_err("accounting: block %u in the pool of order %u does not match its "
			       "list",
			       index, pool->order);
			return false;
		}
	}
	sums->free += count;
	ok = account_said("the last page of a pool's list", list->tail, prev);
	return account_said("free pages of a pool's node", list->count, count) && ok;
}

static bool account_pool(struct mm *mm, const struct pool *pool)
{
	struct sums sums = {0};
	bool ok = true;

	for (node_t n = 0; n < mm->nodes; n++) {
		const struct pool_node *node = &pool->node[n];

		ok &= walk_free(mm, pool, n, &sums);
		sums.pages += node->pages;
		sums.surplus += node->surplus;
		if (node->surplus > node->pages || node->free.count > node->pages)
			ok &= account_said(
				"pages of a pool's node, too few for those free or surplus",
				node->pages, MAX(node->surplus, node->free.count));
	}
	ok &= account_said("pages of a pool, and of its nodes", pool->pages, sums.pages);
	ok &= account_said("pages of a pool, and those free and in use", pool->pages,
			   pool->free + pool->in_use);
	ok &= account_said("free pages of a pool", pool->free, sums.free);
	ok &= account_said("surplus pages of a pool", pool->surplus, sums.surplus);
	ok &= account_said("surplus pages being made", pool->making, 0);
	return ok;
}

bool account_pools(struct mm *mm, const struct pool *const pools[])
{
	bool ok = true;

	for (; pools && *pools; pools++)
		ok &= account_pool(mm, *pools);
	return ok;
}

/* ---- at rest ---- */

bool account_idle(const struct mm *mm)
{
	bool ok = account_said("PMD splits that still need a flush round", mm->splits_unflushed, 0);

	ok &= account_said("sections being opened or closed", sections_moving(mm), 0);
	ok &= account_said("frames that CPUs keep in transit", mm->transit_kept, 0);
	for (unsigned z = 0; z < mm->zones; z++)
		ok &= account_said("pcp_disable() calls that are still in effect",
				   mm->zone[z].pcp_disabled, 0);
	return ok;
}
