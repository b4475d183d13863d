/* Page tables: mapping a range, and the cursor of a space. Tables have 8 entries (seeds.txt). */
#include "tests/prove/prove.h"

#define phys_to_virt hosted_phys_to_virt
#include <arch/memory.h>
#undef phys_to_virt
void *phys_to_virt(phys_t phys);

#include "mm/map/pgtable.c"
#include "mm/vm/pages.c"

enum { TABLES = 7, PAGES = PTRS_PER_TABLE * PTRS_PER_TABLE };

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

PROVE(map_range, "10", "628-a-run-of-leaves-has-a-gap",
      "up to 10 pages anywhere in 16 MiB, any frames, up to 6 tables")
{
	const virt_t virt = PAGE_SIZE * ANY_BELOW(u64, PAGES),
		     at = ANY_BELOW(u64, PAGES * PAGE_SIZE);
	const u64 size = PAGE_SIZE * ANY_BELOW(u64, 11);
	const phys_t phys = PAGE_SIZE * ANY_BELOW(u64, 1ULL << 36);
	const enum pt_level largest = ANY_BELOW(u32, PT_PUD);
	enum pt_level level;
	phys_t found;
	pte_t entry;
	bool there;

	if (pgtable_map_range(0, virt, phys, size, PT_RW, largest, next_table, NULL) < 0)
		return;
	there = pgtable_translate(0, at, &found, &entry, &level);
	prove(there == (at >= virt && at - virt < size));
	prove(!there || (found == phys + (at - virt) && pte_writable(entry) && level <= largest));
}

/* ---- the cursor ---- */

static struct space space;
static u64 pages_taken, tables_taken;

void taken_add_page(struct taken *taken, pte_t pte)
{
	pages_taken++;
}

void taken_add_table(struct taken *taken, struct page *page)
{
	tables_taken++;
}

void shootdown_batch_add(struct shootdown_batch *batch, virt_t virt, u64 pages)
{
}

/* Two tables of any pages of 4 KiB below a table of each upper level. */
static void any_pages(void)
{
	table[0][0] = entry_make_table(&space, 1);
	table[1][0] = entry_make_table(&space, 2);
	table[2][0] = entry_make_table(&space, 3);
	table[2][1] = entry_make_table(&space, 4);
	for (unsigned t = 3; t < 5; t++)
		for (unsigned i = 0; i < PTRS_PER_TABLE; i++)
			if (ANY_BOOL)
				table[t][i] = entry_make(&space, 8 + ANY_BELOW(u64, 1 << 20),
							 PT_PAGE, ANY_BELOW(u32, 8));
	space.root = table[0];
	space.user = ANY_BOOL;
	space.range.end = pt_level_size(PT_PGD);
}

PROVE(cursor, "10", "an-entry-beyond-the-range",
      "16 pages in two tables, any present, any range, any rights")
{
	const u64 start = PAGE_SIZE * ANY_BELOW(u64, 16),
		  end = PAGE_SIZE * (1 + ANY_BELOW(u64, 16)), at = ANY_BELOW(u64, 16);
	const unsigned rights = ANY_BELOW(unsigned, 8);
	struct taken taken = {.space = &space};
	u64 present = 0;
	enum pt_level level;
	pte_t was, pte;
	bool inside;

	any_pages();
	assume(start < end);
	inside = at * PAGE_SIZE >= start && at * PAGE_SIZE < end;
	was = table[3 + at / 8][at % 8];
	for (u64 i = start / PAGE_SIZE; i < end / PAGE_SIZE; i++)
		present += table[3 + i / 8][i % 8] != 0;
	prove(pages_find(&space, at * PAGE_SIZE, &pte, &level) == entry_is_leaf(was, PT_PAGE) ||
	      !pte_present(was));
	prove(level == PT_PAGE && pte == was);
	if (ANY_BOOL) {
		pages_protect(start, end, (u8)rights, &taken);
		pte = table[3 + at / 8][at % 8];
		prove(inside && was
			      ? pte_pfn(pte) == pte_pfn(was) &&
					pte == entry_make(&space, pte_pfn(was), PT_PAGE, rights)
			      : pte == was);
	} else {
		pages_take(start, end, NULL, &taken);
		prove(table[3 + at / 8][at % 8] == (inside ? 0 : was));
		prove(pages_taken == present && tables_taken == 0);
	}
}
