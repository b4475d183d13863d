/*
 * Accounting, references and promises: see account.h. Only the holder of a page knows who refers to
 * it, except for huge mappings, whose entries are the references. The struct page of each held page
 * is therefore checked by itself, and each entry of the mappings is checked against the page that
 * it maps: one reference, one entry.
 */
#include "mm/debug/account_refs.h"

#include <arch/console.h>

#include "kernel/core/printk.h"
#include "mm/debug/account_pools.h"
#include "mm/hugetlb/pool.h"
#include "mm/mapping/huge_entry.h"
#include "mm/memmap/zone.h"
#include "mm/page/migrate.h"
#include "mm/page/page_check.h"
#include "mm/page/page_owner.h"

/* ---- held pages, each by itself ---- */

static void check_mover(const struct page *page, pfn_t pfn, unsigned order, void *ok)
{
	if (!(page->flags & PAGE_MOVABLE) || (page->mover && page->mover->move))
		return;
	pr_err("accounting: frame %llx, order %u, is movable but has no mover", pfn, order);
	*(bool *)ok = false;
}

static void check_caller(const struct page *page, pfn_t pfn, unsigned order, void *ok)
{
	u64 offset = 0;

	if (page->owner && symbol_lookup(page_owner_code(page->owner) - 1, &offset))
		return;
	pr_err("accounting: frame %llx, order %u, is in use, but its owner is not known", pfn,
	       order);
	*(bool *)ok = false;
}

static void check_single(const struct page *page, pfn_t pfn, unsigned order, void *ok)
{
	if (page->refcount == 1)
		return;
	pr_err("accounting: frame %llx, order %u, has %u references, expected 1", pfn, order,
	       page->refcount);
	*(bool *)ok = false;
}

bool account_callers(struct mm *mm)
{
	bool ok = true;

	page_owner_visit(mm, check_caller, &ok);
	return ok;
}

bool account_unshared(struct mm *mm)
{
	bool ok = true;

	page_owner_visit(mm, check_single, &ok);
	return ok;
}

/* ---- huge mappings ---- */

/* The result of the walk over all huge mappings, by page size. */
struct mapped {
	u64 leaves[3], of_pool[3];
	bool ok;
};

/*
 * The private words of a page belong to its holder, here the mapping; private[1] counts the entries
 * that map the page. Entries that map anything else are not counted, and nothing is written there.
 */
static struct page *mapped_page(const pte_t *entry, enum pt_level level)
{
	static const u8 orders[] = {[PT_PAGE] = 0, [PT_PMD] = BLOCK_ORDER, [PT_PUD] = GIGA_ORDER};
	const u16 free = PAGE_BUDDY | PAGE_PCP | PAGE_TAIL | PAGE_RESERVED | PAGE_BOOT | PAGE_BAD;
	const pfn_t pfn = pte_pfn(pte_load(entry));
	struct page copy;

	if (!page_peek(pfn, &copy) || (copy.flags & free) || copy.refcount != 1 ||
	    ((copy.flags & PAGE_COMPOUND) ? copy.order : 0) != orders[level])
		return NULL;
	return pfn_to_page(pfn);
}

static void forget_entries(void *arg, pte_t *entry, virt_t virt, enum pt_level level)
{
	struct mapped *mapped = arg;
	struct page *page;
	const struct huge_map *map = huge_map_at(virt);

	entry = entry_first_piece(entry, level);
	if (pte_pfn(pte_load(entry)) == 0)
		return; /* rights of a page that is not there */
	page = mapped_page(entry, level);
	if (page)
		page->private[1] = 0;
	if (page && map && huge_map_has(map, virt, pt_level_size(level)))
		return;
	pr_err("accounting: the entry of %llx maps frame %llx, %s", virt, pte_pfn(pte_load(entry)),
	       page ? "where there is no huge mapping"
		    : "which is not a page of that size in use with one reference");
	mapped->ok = false;
}

static void count_entry(void *arg, pte_t *entry, virt_t virt, enum pt_level level)
{
	struct mapped *mapped = arg;
	struct page *page;

	entry = entry_first_piece(entry, level);
	if (pte_pfn(pte_load(entry)) == 0)
		return;
	page = mapped_page(entry, level);
	mapped->leaves[level]++;
	if (!page)
		return;
	mapped->of_pool[level] += (page->flags & PAGE_HUGETLB) != 0;
	if (page->private[1]++ == 0)
		return;
	pr_err("accounting: frame %llx is mapped a second time, at %llx", page_to_pfn(page), virt);
	mapped->ok = false;
}

/* Pages promised to mappings whose pages have this size. */
static u64 promised(enum pt_level level)
{
	u64 pages = 0;

	for (const struct huge_map *map = huge_map_next(NULL); map; map = huge_map_next(map))
		pages += map->level == level ? atomic_load_relaxed(&map->promised) : 0;
	return pages;
}

static bool account_mappings(void)
{
	struct mapped mapped = {.ok = true};
	struct huge_usage usage;

	huge_visit(forget_entries, &mapped);
	huge_visit(count_entry, &mapped);
	huge_usage(&usage);
	for (enum pt_level level = PT_PAGE; level <= PT_PUD; level++) {
		const struct pool *pool = level == PT_PAGE ? NULL : huge_pool(level);

		mapped.ok &= account_said("pages of huge mappings", usage.mapped[level],
					  mapped.leaves[level]);
		if (!pool ||
		    (pool->in_use >= mapped.of_pool[level] && pool->reserved >= promised(level)))
			continue;
		pr_err("accounting: a pool has %llu pages in use and %llu promised, but mappings "
		       "hold %llu and were promised %llu",
		       pool->in_use, pool->reserved, mapped.of_pool[level], promised(level));
		mapped.ok = false;
	}
	return mapped.ok;
}

bool account_refs(struct mm *mm)
{
	bool ok = true;

	page_owner_visit(mm, check_mover, &ok);
	if (mm != &mm_kernel)
		return ok;
	if (page_watch_at_boot() & WATCH_OWNERS)
		ok &= account_callers(mm);
	return account_mappings() && ok;
}
