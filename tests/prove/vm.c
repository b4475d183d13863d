/*
 * Page tables of two levels (seeds.txt), of which the root has two tables of two pages: both
 * walkers. Each range of pages in turn, because CBMC is fast where places are known.
 */
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
	return PAGE_SIZE << level;
}

#include "mm/map/pgtable.c"
#include "mm/vm/pages.c"

enum { TABLES = 3, PAGES = (TABLES - 1) * PTRS_PER_TABLE };

static pte_t table[TABLES][PTRS_PER_TABLE];
static u32 used, most;

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
	return used < most ? used++ : PFN_NONE;
}

static void map_range(u64 first, u64 pages)
{
	const phys_t phys = PAGE_SIZE * ANY_BELOW(u64, 1ULL << 36);
	const u64 at = ANY_BELOW(u64, PAGE_SIZE);
	const u64 tables =
		pages ? (first + pages - 1) / PTRS_PER_TABLE - first / PTRS_PER_TABLE + 1 : 0;
	enum pt_level level;
	phys_t found;
	pte_t entry;

	used = 1;
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++)
		table[0][i] = table[1][i] = table[2][i] = 0;
	if (pgtable_map_range(0, first * PAGE_SIZE, phys, pages * PAGE_SIZE, PT_RW, PT_PAGE,
			      next_table, NULL) < 0) {
		prove(most < 1 + tables);
		return;
	}
	prove(used == 1 + tables);
	for (u64 page = 0; page < PAGES; page++) {
		const bool there =
			pgtable_translate(0, page * PAGE_SIZE + at, &found, &entry, &level);

		prove(there == (page >= first && page < first + pages));
		prove(!there || (found == phys + (page - first) * PAGE_SIZE + at &&
				 pte_writable(entry) && level == PT_PAGE));
	}
}

PROVE(map_range, "6", "leaves-beyond-the-range", "each range of 4 pages, any frames, 0 to 2 tables")
{
	for (most = 1; most <= TABLES; most++)
		for (u64 first = 0; first < PAGES; first++)
			for (u64 pages = 0; first + pages <= PAGES; pages++)
				map_range(first, pages);
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

static pte_t was[PAGES];
static struct taken taken = {.space = &space};

static pte_t entry_of(unsigned page)
{
	return table[1 + page / PTRS_PER_TABLE][page % PTRS_PER_TABLE];
}

/* Any pages of 4 KiB, accessible or hidden, and guards. */
static void any_pages(bool user)
{
	space.user = user;
	pages_taken = flushed = taken.leaves[PT_PAGE] = 0;
	for (unsigned i = 0; i < PAGES; i++) {
		const pte_t page =
			entry_make(&space, 8 + ANY_BELOW(u64, 1 << 20), PT_PAGE, ANY_BELOW(u32, 8));

		was[i] = ANY_BOOL ? 0 : ANY_BOOL ? ENTRY_GUARD : page;
		table[1 + i / PTRS_PER_TABLE][i % PTRS_PER_TABLE] = was[i];
	}
	for (unsigned t = 1; t < TABLES; t++)
		table[0][t - 1] = entry_make_table(&space, t);
}

#define EACH_RANGE                                                                                 \
	for (unsigned user = 0; user < 2; user++)                                                  \
		for (u64 first = 0; first < PAGES; first++)                                        \
			for (u64 next = first + 1; next <= PAGES; next++)

static void take(u64 first, u64 next)
{
	struct pages_count count = {{0}};

	pages_count_range(&space, first * PAGE_SIZE, next * PAGE_SIZE, &count);
	pages_take(first * PAGE_SIZE, next * PAGE_SIZE, NULL, &taken);
	for (unsigned i = 0; i < PAGES; i++) {
		const bool goes = i >= first && i < next && was[i] != ENTRY_GUARD;

		prove(entry_of(i) == (goes ? 0 : was[i]));
		prove(!goes || !pte_present(was[i]) || (flushed >> i & 1));
	}
	prove(count.leaves[PT_PAGE] == pages_taken && taken.leaves[PT_PAGE] == pages_taken);
}

PROVE(cursor_take, "6 --unwindset visit_table:1", "a-page-is-taken-and-stays",
      "any 4 pages, each range")
{
	EACH_RANGE
	{
		any_pages(user);
		take(first, next);
	}
}

static void protect(u64 first, u64 next)
{
	const unsigned rights = ANY_BELOW(unsigned, 8);
	enum pt_level level;
	pte_t found;

	pages_protect(first * PAGE_SIZE, next * PAGE_SIZE, (u8)rights, &taken);
	for (unsigned i = 0; i < PAGES; i++) {
		const bool changes = i >= first && i < next && entry_is_leaf(was[i], PT_PAGE);

		prove(entry_of(i) ==
		      (changes ? entry_make(&space, pte_pfn(was[i]), PT_PAGE, rights) : was[i]));
		prove(!changes || !(entry_rights(&space, was[i]) & ~rights) || (flushed >> i & 1));
		prove(pages_find(&space, i * PAGE_SIZE, &found, &level) == pte_present(found));
		prove(found == entry_of(i) && level == PT_PAGE);
	}
}

PROVE(cursor_protect, "6 --unwindset visit_table:1", "an-entry-beyond-the-range",
      "any 4 pages, each range, any rights")
{
	EACH_RANGE
	{
		any_pages(user);
		protect(first, next);
	}
}
