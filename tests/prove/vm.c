/* Page tables of two levels, the root and four tables of four pages (seeds.txt): both walkers. */
#include "tests/prove/prove.h"

#define phys_to_virt hosted_phys_to_virt
#include <arch/memory.h>
#undef phys_to_virt
void *phys_to_virt(phys_t phys);

#define pt_level_size unbounded_level_size
#include <arch/pgtable.h>
#undef pt_level_size
static u64 pt_level_size(enum pt_level level)
{
	prove(level <= PT_PGD); /* nothing is looked for below a page */
	assume(level <= PT_PGD);
	return PAGE_SIZE << (2 * level);
}

#include "mm/map/pgtable.c"
#include "mm/vm/pages.c"

enum { TABLES = 1 + PTRS_PER_TABLE, PAGES = PTRS_PER_TABLE * PTRS_PER_TABLE };

static pte_t table[TABLES][PTRS_PER_TABLE];
static u32 used = 1;

void *phys_to_virt(phys_t phys)
{
	prove(phys >> PAGE_SHIFT < TABLES);
	return table[phys >> PAGE_SHIFT];
}

/* Every store is to the place of its address in some table. */
void host_pte_store(pte_t *entry, virt_t virt, enum pt_level level, pte_t old, pte_t value)
{
	prove(IS_ALIGNED(virt, pt_level_size(level)));
	prove((u64)(entry - table[0]) % PTRS_PER_TABLE == pt_index(virt, level));
	*entry = value;
}

static pfn_t next_table(void *ctx)
{
	return used < TABLES && ANY_BOOL ? used++ : PFN_NONE;
}

PROVE(map_range, "6", "leaves-beyond-the-range", "up to 9 pages anywhere in 16, any frames")
{
	const virt_t virt = PAGE_SIZE * ANY_BELOW(u64, PAGES), at = ANY_BELOW(u64, PAGES * PAGE_SIZE);
	const u64 size = PAGE_SIZE * ANY_BELOW(u64, 10);
	const phys_t phys = PAGE_SIZE * ANY_BELOW(u64, 1ULL << 36);
	enum pt_level level;
	phys_t found;
	pte_t entry;
	bool there;

	assume(virt + size <= PAGES * PAGE_SIZE);
	if (pgtable_map_range(0, virt, phys, size, PT_RW, PT_PAGE, next_table, NULL) < 0)
		return;
	there = pgtable_translate(0, at, &found, &entry, &level);
	prove(there == (at >= virt && at - virt < size));
	prove(!there || (found == phys + (at - virt) && pte_writable(entry) && level == PT_PAGE));
}

/* ---- the cursor ---- */

static struct space space = {.root = table[0], .range.end = PAGES * PAGE_SIZE};
static u64 pages_taken, flushed;

void taken_add_page(struct taken *taken, pte_t pte)
{
	prove(entry_is_leaf(pte, PT_PAGE));
	pages_taken++;
}

void taken_add_table(struct taken *taken, struct page *page)
{
	prove(false); /* none of these tables serves only this range */
}

void shootdown_batch_add(struct shootdown_batch *batch, virt_t virt, u64 pages)
{
	flushed |= 1ULL << (virt >> PAGE_SHIFT);
}

static bool ended(void)
{
	return ANY_BOOL;
}

/* Any pages of 4 KiB, accessible or hidden, and guards. */
static void any_pages(void)
{
	space.user = ANY_BOOL;
	space.ended = ended;
	for (unsigned t = 1; t < TABLES; t++) {
		table[0][t - 1] = entry_make_table(&space, t);
		for (unsigned i = 0; i < PTRS_PER_TABLE; i++)
			table[t][i] = ANY_BOOL ? 0
				      : ANY_BOOL
					      ? ENTRY_GUARD
					      : entry_make(&space, 8 + ANY_BELOW(u64, 1 << 20),
							   PT_PAGE, ANY_BELOW(u32, 8));
	}
}

#define ANY_RANGE                                                                                  \
	const u64 first = ANY_BELOW(u64, PAGES), next = first + 1 + ANY_BELOW(u64, PAGES - first), \
		  start = first * PAGE_SIZE, end = next * PAGE_SIZE, at = ANY_BELOW(u64, PAGES);   \
	const bool inside = at >= first && at < next;                                              \
	pte_t *const entry = &table[1 + at / PTRS_PER_TABLE][at % PTRS_PER_TABLE];                 \
	struct taken taken = {.space = &space};                                                    \
	pte_t was;                                                                                 \
                                                                                                   \
	any_pages();                                                                               \
	was = *entry

PROVE(cursor_protect, "6", "an-entry-beyond-the-range", "any 16 pages, any range, any rights")
{
	const unsigned rights = ANY_BELOW(unsigned, 8);
	enum pt_level level;
	pte_t found;
	ANY_RANGE;

	pages_protect(start, end, (u8)rights, &taken);
	prove(*entry == (inside && was && was != ENTRY_GUARD
				 ? entry_make(&space, pte_pfn(was), PT_PAGE, rights)
				 : was));
	prove(!(inside && entry_is_leaf(was, PT_PAGE)) ||
	      !(entry_rights(&space, was) & ~rights) || (flushed >> at & 1));
	prove(pages_find(&space, at * PAGE_SIZE, &found, &level) ==
	      (pte_present(*entry) && level == PT_PAGE));
	prove(found == *entry && pages_entry(&space, at * PAGE_SIZE, PT_PAGE) == entry);
}

PROVE(cursor_take, "6", "a-page-is-taken-and-stays", "any 16 pages, any range")
{
	struct pages_count count = {{0}};
	ANY_RANGE;

	pages_count_range(&space, start, end, &count);
	pages_take(start, end, NULL, &taken);
	prove(*entry == (inside && was != ENTRY_GUARD ? 0 : was));
	prove(!inside || !pte_present(was) || (flushed >> at & 1));
	prove(count.leaves[PT_PAGE] == pages_taken && count.leaves[PT_PMD] == 0);
	prove(taken.leaves[PT_PAGE] == pages_taken);
}

PROVE(cursor_guards, "18", "a-guard-is-left", "any 16 pages, guards in any range")
{
	ANY_RANGE;

	if (pages_guard(&space, start, end) == 0)
		prove(*entry == (inside ? ENTRY_GUARD : was));
	pages_unguard(&space, start, end);
	prove(inside ? *entry != ENTRY_GUARD : *entry == was);
}
