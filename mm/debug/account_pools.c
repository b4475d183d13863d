/*
 * Accounting, pools and page tables: see account.h. A pool's counts must equal the sums over its
 * nodes, and a node's free pages must lie on its list, each as the list says. Promises (`reserved`)
 * to huge mappings are checked in account_refs.c.
 */
#include "mm/debug/account_pools.h"

#include "kernel/core/printk.h"
#include "mm/hugetlb/pool_defer.h"
#include "mm/map/pgtable.h"
#include "mm/memmap/vmemmap.h"
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
		sums.free += node->deferred;
		if (node->surplus > node->pages || node->free.count + node->deferred > node->pages)
			ok &= account_said(
				"pages of a pool's node, too few for those free or surplus",
				node->pages, MAX(node->surplus, node->free.count + node->deferred));
		ok &= account_said("nodes whose deferred pages are being made", node->opening, 0);
	}
	ok &= account_said("pages of a pool, and of its nodes", pool->pages, sums.pages);
	ok &= account_said("pages of a pool, and those free and in use", pool->pages,
			   pool->free + pool->in_use);
	ok &= account_said("free pages of a pool", pool->free, sums.free);
	ok &= account_said("surplus pages of a pool", pool->surplus, sums.surplus);
	ok &= account_said("surplus pages being made", pool->making, 0);
	ok &= account_said("deferred pages of a pool being made", pool->opening, 0);
	return ok;
}

/* GiB that pools have deferred on a node. */
static u64 deferred_gibs(const struct pool *const pools[], node_t n)
{
	u64 gibs = 0;

	for (; pools && *pools; pools++)
		gibs += (*pools)->node[n].deferred / pool_gib_pages(*pools);
	return gibs;
}

bool account_pools(struct mm *mm, const struct pool *const pools[])
{
	bool ok = true;

	for (node_t n = 0; n < mm->nodes; n++) {
		u64 frames = 0;

		for (int kind = 0; kind < ZONE_KINDS; kind++)
			if (node_zone(&mm->node[n], kind))
				frames += node_zone(&mm->node[n], kind)->deferred;
		ok &= account_said("frames deferred on a node, and those of pools", frames,
				   deferred_gibs(pools, n) * order_pages(GIGA_ORDER));
	}
	for (; pools && *pools; pools++)
		ok &= account_pool(mm, *pools);
	return ok;
}

/* ---- tables ---- */

/*
 * Tables above those of the sections come from metadata memory or from other code that made the
 * window; the latter are not counted here.
 */
static u64 upper_table(const struct mm *mm, u64 section, enum pt_level level, pfn_t *last)
{
	const pte_t *entry =
		pgtable_entry(mm->root, vmemmap_of_block(mm, (u32)(section * SECTION_BLOCKS)),
			      level, NULL, NULL, NULL);
	const struct block *block;

	if (!entry || !pte_present(pte_load(entry)) || pte_pfn(pte_load(entry)) == *last)
		return 0;
	*last = pte_pfn(pte_load(entry));
	block = block_of(mm, *last);
	return block && block_look(block).state == BLOCK_META;
}

bool account_tables(const struct mm *mm)
{
	pfn_t pmd = PFN_NONE, pud = PFN_NONE;
	u64 tables = 0;
	bool ok;

	for (u64 section = section_first(mm); section < section_end(mm); section++) {
		tables += vmemmap_line(mm, (u32)(section * SECTION_BLOCKS)) != NULL;
		tables += upper_table(mm, section, PT_PUD, &pmd) +
			  upper_table(mm, section, PT_PGD, &pud);
	}
	ok = account_said("page tables of the vmemmap", mm_counted(mm, COUNT_TABLES), tables);
	ok &= account_said("PMD splits that still need a flush round", mm->splits_unflushed, 0);
	ok &= account_said("sections being opened or closed", sections_moving(mm), 0);
	ok &= account_said("frames that CPUs keep in transit", mm->transit_kept, 0);
	for (unsigned z = 0; z < mm->zones; z++)
		ok &= account_said("pcp_disable() calls that are still in effect",
				   mm->zone[z].pcp_disabled, 0);
	return ok;
}
