/* Collapsing small pages: see collapse.h. */
#include "mm/vm/collapse.h"

#include <arch/barrier.h>
#include <arch/clear.h>
#include <arch/pgtable.h>

#include "kernel/core/shootdown.h"
#include "kernel/lib/string.h"
#include "mm/vm/entry.h"
#include "mm/vm/space.h"
#include "mm/vm/movable.h"
#include "mm/vm/pages.h"
#include "mm/vm/touch.h"
#include "mm/memmap/page.h"
#include "mm/mm.h"

enum { AT_ONCE = 8 };

/* One range of 2 MiB on its way. */
struct gathered {
	u64 at;
	struct page *huge;
	struct area area; /* busy, and exactly the range; not if `entry` is NULL */
	pte_t *entry;     /* of level PT_PMD */
	pte_t table;      /* what it was */
};

static bool suits(const struct area *area, u64 at)
{
	return area->start <= at && at + MIB(2) <= area->end && !area->object &&
	       area_page_bytes(area) == PAGE_SIZE && !(area->flags & AREA_SMALL);
}

/* Returns 1 and the area if the range is to be collapsed, 0 if it is huge, or -EINVAL. */
static s64 look_at(struct space *space, u64 at, struct area *area)
{
	struct pages_count count = {.leaves = {0}};

	if (!space_pin(space, at, PT_PMD, area))
		return -EINVAL;
	if (suits(area, at))
		pages_count_range(space, at, at + MIB(2), &count);
	space_unpin(space);
	if (count.leaves[PT_PMD] > 0)
		return 0;
	return count.leaves[PT_PAGE] > 0 ? 1 : -EINVAL;
}

/* A huge page for the range: as a touch would get it, or by making room. */
static struct page *huge_for(struct space *space, const struct area *area, u64 at, bool *announced)
{
	struct page *page = touch_alloc_huge(space, area, at);

	if (page || space_policy(space, area).how == POLICY_BIND)
		return page;
	if (!*announced)
		movable_announce(space);
	*announced = true;
	return contig_alloc(BLOCK_ORDER, NODE_NONE);
}

/* Find what is to be done in [at, end) and a page for each. Returns how many. */
static unsigned gather(struct space *space, u64 at, u64 end, struct gathered g[AT_ONCE],
		       bool *announced, s64 *err)
{
	unsigned count = 0;

	for (; at < end; at += MIB(2)) {
		struct area area;
		const s64 wanted = look_at(space, at, &area);

		if (wanted <= 0) {
			*err = wanted < 0 ? wanted : *err;
			continue;
		}
		g[count] =
			(struct gathered){.at = at, .huge = huge_for(space, &area, at, announced)};
		if (g[count].huge)
			count++;
		else
			*err = -ENOMEM;
	}
	return count;
}

static bool has_guard(const pte_t *table)
{
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++)
		if (pte_load(&table[i]) == ENTRY_GUARD)
			return true;
	return false;
}

/* Make the range busy and take its table away. It may have changed since somebody looked. */
static s64 unlink_table(struct space *space, struct gathered *g)
{
	u64 at = g->at;
	const s64 err = space_take(space, &at, g->at + MIB(2), &g->area);
	pte_t *entry;

	if (err <= 0)
		return err < 0 ? err : -EINVAL;
	entry = suits(&g->area, g->at) ? pages_entry(space, g->at, PT_PMD) : NULL;
	g->table = entry ? pte_load(entry) : 0;
	if (!pte_present(g->table) || pte_is_leaf(g->table, PT_PMD) ||
	    has_guard(pte_table(g->table))) {
		space_put_back(space, &g->area);
		return -EINVAL;
	}
	g->entry = entry;
	pte_store(entry, g->at, PT_PMD, 0);
	return 0;
}

/* After the round: copy, and put the leaf in place. */
static void link_huge(struct gathered *g, struct taken *taken)
{
	const pte_t *table = pte_table(g->table);
	char *to = page_address(g->huge);

	for (unsigned i = 0; i < PTRS_PER_TABLE; i++, to += PAGE_SIZE) {
		const pte_t pte = pte_load(&table[i]);

		if (!pte_present(pte)) {
			clear_pages(to, 1);
			continue;
		}
		memcpy(to, phys_to_virt(pte_pfn(pte) << PAGE_SHIFT), PAGE_SIZE);
		taken_add_page(taken, pte);
		taken->leaves[PT_PAGE]++;
	}
	g->huge->private[PAGE_TABLE] = (virt_t)pfn_to_page(pte_pfn(g->table));
	fence_store();
	pte_store(g->entry, g->at, PT_PMD,
		  pte_make_user(page_pfn(g->huge), PT_PMD, g->area.rights));
	pages_count_leaves(taken->space, PT_PMD, 1);
}

static s64 collapse_some(struct space *space, u64 at, u64 end, bool *announced)
{
	struct taken taken = {.space = space};
	struct gathered g[AT_ONCE];
	unsigned unlinked = 0;
	s64 err = 0;
	const unsigned count = gather(space, at, end, g, announced, &err);

	for (unsigned i = 0; i < count; i++) {
		const s64 result = unlink_table(space, &g[i]);

		unlinked += result == 0;
		err = result < 0 ? result : err;
	}
	if (unlinked > 0)
		shootdown_full(SHOOTDOWN_ALL_CPUS);
	for (unsigned i = 0; i < count; i++) {
		if (g[i].entry)
			link_huge(&g[i], &taken);
		else
			page_free(g[i].huge);
	}
	taken_free(&taken);
	for (unsigned i = 0; i < count; i++)
		if (g[i].entry)
			space_put_back(space, &g[i].area);
	return err;
}

s64 collapse_range(struct space *space, u64 start, u64 end)
{
	const u64 last = ALIGN_DOWN(end, MIB(2));
	bool announced = false;
	s64 result = 0;

	for (u64 at = ALIGN_UP(start, MIB(2)); at < last; at += AT_ONCE * MIB(2)) {
		const s64 err =
			collapse_some(space, at, MIN(at + AT_ONCE * MIB(2), last), &announced);

		result = err < 0 ? err : result;
		if (space->ended())
			return -EINTR;
	}
	return result;
}
