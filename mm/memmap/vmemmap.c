/*
 * vmemmap tables: see vmemmap.h.
 *
 * A leaf is split as the HVO series (Kravetz 2023) does it:
 *
 * 1. Build the new table, still private, with the same frames and rights.
 * 2. Under the section's table lock, check again that the entry is still a leaf.
 * 3. Execute a store barrier and install the table. A CPU that lost the race keeps its table.
 *
 * Translations are equal before and after, so readers need not stop. But the size of the mapping
 * changes, so every CPU flushes before any other change is made.
 *
 * Sources: Kravetz, "Batch hugetlb vmemmap modification operations", 2023-09; Intel SDM vol. 3A,
 * 4.10.2.3 and 4.10.5; AMD APM vol. 2, 5.5 "Translation-lookaside buffer".
 */
#include "mm/memmap/vmemmap.h"

#include <arch/barrier.h>

#include "kernel/core/panic.h"
#include "kernel/lib/string.h"
#include "mm/map/pgtable.h"
#include "mm/memmap/enter.h"
#include "mm/memmap/meta.h"

static virt_t section_virt(const struct mm *mm, u64 section)
{
	return vmemmap_of_block(mm, (u32)(section * SECTION_BLOCKS));
}

static struct spinlock *section_lock(const struct mm *mm, u64 section)
{
	return &mm->table_lock[section % TABLE_LOCKS];
}

static pte_t *section_entry(const struct mm *mm, u64 section)
{
	return pgtable_entry(mm->root, section_virt(mm, section), PT_PMD, NULL, NULL);
}

pte_t *vmemmap_line(const struct mm *mm, u32 index)
{
	const u64 section = index / SECTION_BLOCKS;
	pte_t *entry = section_entry(mm, section), pmd;

	if (!entry)
		return NULL;
	pmd = pte_load(entry);
	if (!pte_present(pmd) || pte_is_leaf(pmd, PT_PMD))
		return NULL;
	return pte_table(pmd) + (index % SECTION_BLOCKS) * PTES_PER_LINE;
}

/*
 * Allocate a table above the section's own. Each is shared by 64 GiB or 32 TiB, so this is rare and
 * any emergency frame will do.
 */
static pfn_t upper_table_alloc(void *ctx)
{
	struct node *node = ctx;
	pfn_t pfn;

	if (meta_reserve_emergency(node, 1) < 0)
		return PFN_NONE;
	pfn = meta_take(node, META_LASTING);
	memset(phys_to_virt(pfn << PAGE_SHIFT), 0, PAGE_SIZE);
	mm_count(node->mm, COUNT_TABLES, 1);
	return pfn;
}

/*
 * Upper tables cover many sections, whose table locks differ, so one lock serves all of them. It
 * ranks outermost, because frames are taken from metadata memory while it is held. A CPU that opens
 * a section holds no other lock.
 */
static pte_t *section_entry_make(struct mm *mm, struct node *node, u64 section)
{
	static struct spinlock upper_lock = SPINLOCK_INIT(LOCK_POOL);
	pte_t *entry = section_entry(mm, section);

	if (entry)
		return entry;
	spin_lock(&upper_lock);
	entry = pgtable_entry(mm->root, section_virt(mm, section), PT_PMD, upper_table_alloc, node);
	spin_unlock(&upper_lock);
	return entry;
}

int vmemmap_install(struct mm *mm, struct node *node, u64 section, pte_t value)
{
	pte_t *entry = section_entry_make(mm, node, section);

	if (!entry)
		return -ENOMEM;
	spin_lock(section_lock(mm, section));
	ASSERT(!pte_present(pte_load(entry)), "section %llu already has struct pages", section);
	fence_store();
	pte_store(entry, section_virt(mm, section), PT_PMD, value);
	spin_unlock(section_lock(mm, section));
	return 0;
}

bool vmemmap_is_leaf(const struct mm *mm, u64 section)
{
	const pte_t *entry = section_entry(mm, section);

	return entry && pte_is_leaf(pte_load(entry), PT_PMD);
}

int vmemmap_split(struct mm *mm, u64 section, pfn_t table)
{
	pte_t *entry = section_entry(mm, section), *ptes = phys_to_virt(table << PAGE_SHIFT),
	      pmd = pte_load(entry);
	int split = 0;

	if (!pte_is_leaf(pmd, PT_PMD))
		return 0;
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++)
		ptes[i] = pte_make(pte_pfn(pmd) + i, PT_PAGE, PT_RW);
	spin_lock(section_lock(mm, section));
	if (pte_is_leaf(pte_load(entry), PT_PMD)) {
		/* before any CPU can see the table: see hvo.c */
		atomic_fetch_add(&mm->splits_unflushed, 1);
		fence_store();
		pte_store(entry, section_virt(mm, section), PT_PMD, pte_make_table(table));
		split = 1;
	}
	spin_unlock(section_lock(mm, section));
	if (split)
		mm_count(mm, COUNT_PMD_SPLITS, 1);
	return split;
}

pte_t vmemmap_clear_section(struct mm *mm, u64 section)
{
	pte_t *entry = section_entry(mm, section), old;

	spin_lock(section_lock(mm, section));
	old = pte_load(entry);
	pte_store(entry, section_virt(mm, section), PT_PMD, 0);
	spin_unlock(section_lock(mm, section));
	return old;
}

pte_t *vmemmap_line_open(const struct mm *mm, u32 index)
{
	pte_t *line = vmemmap_line(mm, index);

	ASSERT(line, "block %u has no line of PTEs", index);
	return line;
}

static inline void line_set(const struct mm *mm, pte_t *line, u32 index, unsigned i, pte_t value)
{
	pte_store(&line[i], vmemmap_of_block(mm, index) + i * PAGE_SIZE, PT_PAGE, value);
}

/* Point entries [from, 8) of a line to one read-only page. */
static inline void line_set_tails(const struct mm *mm, pte_t *line, u32 index, unsigned from,
				  pfn_t tail)
{
#pragma GCC unroll 8
	for (unsigned i = from; i < PTES_PER_LINE; i++)
		line_set(mm, line, index, i, pte_make(tail, PT_PAGE, PT_RO));
}

void vmemmap_set_private(struct mm *mm, u32 index, unsigned from,
			 const pfn_t frames[MEMMAP_FRAMES_PER_BLOCK])
{
	pte_t *line = vmemmap_line_open(mm, index);

	fence_store(); /* order the frames' contents before the entries that show them */
	for (unsigned i = from; i < PTES_PER_LINE; i++)
		line_set(mm, line, index, i, pte_make(frames[i], PT_PAGE, PT_RW));
}

void vmemmap_set_huge(const struct mm *mm, pte_t *line, u32 index, pfn_t head, pfn_t tail)
{
	line_set_tails(mm, line, index, 1, tail);
	fence_store(); /* order the head frame's contents before the entry that shows them */
	line_set(mm, line, index, 0, pte_make(head, PT_PAGE, PT_RW));
}

void vmemmap_set_nohead(const struct mm *mm, pte_t *line, u32 index, pfn_t tail)
{
	line_set_tails(mm, line, index, 0, tail);
}

pfn_t vmemmap_clear(struct mm *mm, u32 index)
{
	pte_t *line = vmemmap_line_open(mm, index);
	const pfn_t first = pte_pfn(pte_load(&line[0]));

	for (unsigned i = 0; i < PTES_PER_LINE; i++)
		line_set(mm, line, index, i, 0);
	return first;
}

/*
 * The frames of entries [from, 8) that belong to the block: those that are mapped writable. Returns
 * how many.
 */
static inline unsigned line_replaced(const pte_t *line, unsigned from, pfn_t *frames)
{
	unsigned count = 0;

#pragma GCC unroll 8
	for (unsigned i = from; i < PTES_PER_LINE; i++) {
		const pte_t pte = pte_load(&line[i]);

		frames[count] = pte_pfn(pte);
		count += pte_writable(pte);
	}
	return count;
}

unsigned vmemmap_share_tails(const struct mm *mm, pte_t *line, u32 index, pfn_t head, pfn_t tail,
			     pfn_t frames[MEMMAP_FRAMES_PER_BLOCK])
{
	unsigned count;

	if (head == PFN_NONE) {
		count = line_replaced(line, 1, frames);
	} else {
		count = line_replaced(line, 0, frames);
		fence_store();
		line_set(mm, line, index, 0, pte_make(head, PT_PAGE, PT_RW));
	}
	line_set_tails(mm, line, index, 1, tail);
	return count;
}

unsigned vmemmap_share_all(const struct mm *mm, pte_t *line, u32 index, pfn_t tail,
			   pfn_t frames[MEMMAP_FRAMES_PER_BLOCK])
{
	const unsigned count = line_replaced(line, 0, frames);

	line_set_tails(mm, line, index, 0, tail);
	return count;
}
