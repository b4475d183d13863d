/*
 * Accounting, references and promises: see account.h. Only the holder of a page knows who refers to
 * it, except for huge mappings, whose entries are the references. The struct page of each held page
 * is therefore checked by itself, and each entry of the mappings is checked against the page that
 * it maps: one reference, one entry.
 */
#include "mm/debug/account_refs.h"

#include <arch/clock.h>
#include <arch/console.h>

#include "mm/hugetlb/pool.h"
#include "mm/mapping/huge_map.h"
#include "mm/memmap/zone.h"
#include "mm/page/page_check.h"
#include "mm/page/page_owner.h"
#include "mm/pools.h"
#include "mm/vm/pages.h"

/* ---- held pages, each by itself ---- */

static const char *fault_of(const struct page *page, unsigned checks)
{
	u64 offset;

	if ((page->flags & PAGE_MOVABLE) && !(page->mover && page->mover->move))
		return "is movable but has no mover";
	if ((checks & CHECK_CALLER) &&
	    !(page->owner && symbol_lookup(page_owner_code(page->owner) - 1, &offset)))
		return "is in use, but its owner is not known";
	return (checks & CHECK_UNSHARED) && page->refcount != 1 ? "is shared" : NULL;
}

static void check_page(const struct page *page, pfn_t pfn, unsigned order, void *arg)
{
	const char *fault = fault_of(page, *(const unsigned *)arg);

	if (fault)
		account_wrong("frame %llx, order %u, %u references, %s", pfn, order, page->refcount,
			      fault);
}

bool account_pages(struct mm *mm, unsigned checks)
{
	const u32 before = account_faults;

	page_owner_visit(mm, check_page, &checks);
	return account_faults == before;
}

/* ---- huge mappings ---- */

/* The result of the walk over all huge mappings, by page size. */
struct mapped {
	const struct space *space;
	u64 leaves[3], of_pool[3], promised[3];
	u64 now; /* marks the pages that the walk has met */
};

/*
 * The page that an entry maps, if it is one of that size in use with one reference; else NULL.
 * *mark is its private[1], which may never have been written.
 */
static struct page *mapped_page(pfn_t pfn, enum pt_level level, u64 *mark)
{
	static const u8 orders[] = {[PT_PAGE] = 0, [PT_PMD] = BLOCK_ORDER, [PT_PUD] = GIGA_ORDER};
	const u16 free = PAGE_BUDDY | PAGE_PCP | PAGE_TAIL | PAGE_RESERVED | PAGE_BOOT | PAGE_BAD;
	struct page copy;

	if (!page_peek(pfn, &copy) || (copy.flags & free) || copy.refcount != 1 ||
	    ((copy.flags & PAGE_COMPOUND) ? copy.order : 0) != orders[level])
		return NULL;
	*mark = copy.private[1];
	return pfn_to_page(pfn);
}

/*
 * A leaf, or the first piece of a page in pieces. The private words of a page belong to its holder,
 * here the mapping; private[1] is for this walk. Nothing is written where an entry maps anything
 * else.
 */
static void check_mapped(void *arg, pte_t pte, virt_t virt, enum pt_level level)
{
	const struct huge_map *map = huge_map_at(virt);
	struct mapped *mapped = arg;
	const char *fault = NULL;
	u64 mark = 0;
	struct page *page = mapped_page(pte_pfn(pte), level, &mark);

	mapped->leaves[level]++;
	if (!page)
		fault = "which is not a page of that size in use with one reference";
	else if (!map || virt + pt_level_size(level) > map->start + map->object.bytes)
		fault = "where there is no huge mapping";
	else if (mark == mapped->now)
		fault = "a second time";
	if (page) {
		const bool promised = pte & PTE_PIECE
					      ? (page->private[PAGE_PIECES] & PIECES_PROMISED) != 0
					      : level > PT_PAGE && (pte & PTE_PROMISED);

		mapped->of_pool[level] += (page->flags & PAGE_HUGETLB) != 0;
		mapped->promised[level] -= promised; /* the promise was kept */
		page->private[1] = mapped->now;
	}
	if (fault)
		account_wrong("the entry of %llx maps frame %llx, %s", virt, pte_pfn(pte), fault);
}

static void account_space(const struct space *space, struct mapped *mapped)
{
	struct area area = {.end = 0};

	while (area_tree_from(&space->tree, area.end, &area))
		mapped->promised[area.level] += area_promised(&area);
	pages_visit(space, check_mapped, mapped);
}

static void account_mappings(void)
{
	struct mapped mapped = {.now = clock_ns()};
	struct huge_usage usage;

	account_space(&huge_space, &mapped);
	huge_usage(&usage);
	for (enum pt_level level = PT_PAGE; level <= PT_PUD; level++) {
		const struct pool *pool = pages_pool(level);

		account_agree("pages of huge mappings", NULL, usage.mapped[level],
			      mapped.leaves[level]);
		if (level != PT_PAGE && (pool->in_use < mapped.of_pool[level] ||
					 pool->reserved < mapped.promised[level]))
			account_wrong("a pool has %llu pages in use and %llu promised, but "
				      "mappings hold %llu and were promised %llu",
				      pool->in_use, pool->reserved, mapped.of_pool[level],
				      mapped.promised[level]);
	}
}

void account_refs(struct mm *mm)
{
	const bool callers = mm == &mm_kernel && (page_watch_at_boot() & WATCH_OWNERS);

	account_pages(mm, callers ? CHECK_CALLER : 0);
	if (mm == &mm_kernel)
		account_mappings();
}
