/* Collapsing small pages: see collapse.h. */
#include "kernel/program/collapse.h"

#include <arch/barrier.h>
#include <arch/clear.h>
#include <arch/pgtable.h>

#include "kernel/core/shootdown.h"
#include "kernel/lib/string.h"
#include "kernel/program/areas.h"
#include "kernel/program/movable.h"
#include "kernel/program/pages.h"
#include "kernel/program/thread.h"
#include "kernel/program/touch.h"
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
	return area->start <= at && at + MIB(2) <= area->end && !area->file &&
	       area_page_bytes(area) == PAGE_SIZE && !(area->flags & AREA_SMALL);
}

static bool is_empty(const pte_t *table)
{
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++)
		if (pte_load(&table[i]) != 0)
			return false;
	return true;
}

/* Returns 1 and the area if the range is to be collapsed, 0 if it is huge, or -EINVAL. */
static s64 look_at(u64 at, struct area *area)
{
	struct thread *self = thread_current();
	const pte_t *entry;
	s64 result = -EINVAL;

	if (!areas_pin(&program_areas, self, at, PT_PMD, area))
		return result;
	entry = pages_entry(at, PT_PMD);
	if (suits(area, at) && entry && pte_present(pte_load(entry))) {
		const pte_t pte = pte_load(entry);

		if (pte_is_leaf(pte, PT_PMD))
			result = 0;
		else if (!is_empty(pte_table(pte)))
			result = 1;
	}
	pin_drop(self);
	return result;
}

/* A huge page for the range: as a touch would get it, or by making room. */
static struct page *huge_for(const struct area *area, u64 at, bool *announced)
{
	struct page *page = pages_alloc_huge(area, at);

	if (page || area->policy.how == POLICY_BIND)
		return page;
	if (!*announced)
		movable_announce();
	*announced = true;
	return contig_alloc(BLOCK_ORDER, NODE_NONE);
}

/* Find what is to be done in [at, end) and a page for each. Returns how many. */
static unsigned gather(u64 at, u64 end, struct gathered g[AT_ONCE], bool *announced, s64 *err)
{
	unsigned count = 0;

	for (; at < end; at += MIB(2)) {
		struct area area;
		const s64 wanted = look_at(at, &area);

		if (wanted <= 0) {
			*err = wanted < 0 ? wanted : *err;
			continue;
		}
		g[count] = (struct gathered){.at = at, .huge = huge_for(&area, at, announced)};
		if (g[count].huge)
			count++;
		else
			*err = -ENOMEM;
	}
	return count;
}

/* Make the range busy and take its table away. It may have changed since somebody looked. */
static s64 unlink_table(struct gathered *g)
{
	u64 at = g->at;
	const s64 err = areas_take(&program_areas, &at, g->at + MIB(2), &g->area);
	pte_t *entry;

	if (err <= 0)
		return err < 0 ? err : -EINVAL;
	entry = suits(&g->area, g->at) ? pages_entry(g->at, PT_PMD) : NULL;
	g->table = entry ? pte_load(entry) : 0;
	if (!pte_present(g->table) || pte_is_leaf(g->table, PT_PMD)) {
		areas_put_back(&program_areas, &g->area);
		return -EINVAL;
	}
	g->entry = entry;
	pte_store(entry, g->at, PT_PMD, 0);
	return 0;
}

/* After the round: copy, and put the leaf in place. */
static void link_huge(struct gathered *g, struct pages_taken *taken)
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
	pages_count_leaves(PT_PMD, 1);
}

static s64 collapse_some(u64 at, u64 end, bool *announced)
{
	struct pages_taken taken = {.tables = NULL};
	struct gathered g[AT_ONCE];
	unsigned unlinked = 0;
	s64 err = 0;
	const unsigned count = gather(at, end, g, announced, &err);

	for (unsigned i = 0; i < count; i++) {
		const s64 result = unlink_table(&g[i]);

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
			areas_put_back(&program_areas, &g[i].area);
	return err;
}

s64 collapse_range(u64 start, u64 end)
{
	const u64 last = ALIGN_DOWN(end, MIB(2));
	bool announced = false;
	s64 result = 0;

	for (u64 at = ALIGN_UP(start, MIB(2)); at < last; at += AT_ONCE * MIB(2)) {
		const s64 err = collapse_some(at, MIN(at + AT_ONCE * MIB(2), last), &announced);

		result = err < 0 ? err : result;
		if (thread_must_end(thread_current()))
			return -EINTR;
	}
	return result;
}
