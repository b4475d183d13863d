/*
 * Walking and building page tables: see pgtable.h. One walker serves the direct map, stacks, MMIO,
 * vmemmap and dumps.
 */
#include "mm/map/pgtable.h"

#include <arch/barrier.h>

#include "kernel/core/panic.h"
#include "kernel/core/wait.h"
#include "mm/map/memblock.h"

pfn_t pgtable_alloc_boot(void *ctx)
{
	phys_t phys = memblock_alloc(PAGE_SIZE, PAGE_SIZE, 0, NODE_NONE);

	return phys ? phys >> PAGE_SHIFT : PFN_NONE;
}

/* The entry, once no other CPU makes a table under it. */
static pte_t unclaimed(const pte_t *entry)
{
	pte_t pte = pte_load(entry);
	struct wait wait;

	if (!pte_claimed(pte) || pte_present(pte))
		return pte;
	wait = wait_begin(WAIT_TOUCH, "a page table that another CPU makes");
	for (; pte_claimed(pte) && !pte_present(pte); pte = pte_load(entry))
		wait_spin(&wait, CPU_NONE);
	return pte;
}

/*
 * Make the table under `entry`, which was absent when the caller looked. Any number of CPUs may try
 * at once: one claims the entry, and the others wait for its table. Returns false if the CPU that
 * claimed it found no memory.
 */
static bool table_add(pte_t *entry, virt_t virt, enum pt_level level, pgtable_alloc_fn *alloc,
		      void *ctx)
{
	const pte_t old = unclaimed(entry);
	pfn_t pfn;

	if (pte_present(old))
		return true;
	if (!alloc)
		return false;
	if (!pte_claim(entry, old))
		return table_add(entry, virt, level, alloc, ctx);
	pfn = alloc(ctx);
	fence_store(); /* the table must be zero before any entry points to it */
	pte_store(entry, ALIGN_DOWN(virt, pt_level_size(level)), level,
		  pfn == PFN_NONE ? 0 : pte_make_table(pfn));
	return pfn != PFN_NONE;
}

pte_t *pgtable_entry(pfn_t root, virt_t virt, enum pt_level level, pgtable_alloc_fn *alloc,
		     void *ctx)
{
	pte_t *table = phys_to_virt(root << PAGE_SHIFT);

	for (enum pt_level at = PT_PGD; at > level; at--) {
		pte_t *entry = &table[pt_index(virt, at)];

		if (!pte_present(pte_load(entry)) && !table_add(entry, virt, at, alloc, ctx))
			return NULL;
		if (at != PT_PGD && pte_is_leaf(pte_load(entry), at))
			return NULL;
		table = pte_table(pte_load(entry));
	}
	return &table[pt_index(virt, level)];
}

bool pgtable_translate(pfn_t root, virt_t virt, phys_t *phys, pte_t *entry, enum pt_level *level)
{
	pte_t *table = phys_to_virt(root << PAGE_SHIFT);

	for (enum pt_level at = PT_PGD;; at--) {
		pte_t pte = pte_load(&table[pt_index(virt, at)]);

		if (!pte_present(pte))
			return false;
		if (at != PT_PGD && pte_is_leaf(pte, at)) {
			*phys = (pte_pfn(pte) << PAGE_SHIFT) + virt % pt_level_size(at);
			*entry = pte;
			*level = at;
			return true;
		}
		if (at == PT_PAGE)
			return false;
		table = pte_table(pte);
	}
}

/* Largest leaf that the alignment of `virt` and `phys` and the remaining size allow. */
static enum pt_level leaf_fitting(virt_t virt, phys_t phys, u64 size, enum pt_level largest)
{
	enum pt_level level = largest;

	while (level > PT_PAGE &&
	       (!IS_ALIGNED(virt | phys, pt_level_size(level)) || size < pt_level_size(level)))
		level--;
	return level;
}

/*
 * Write `count` neighbouring leaves of one table. Each instruction of this loop runs 4096 times
 * before a machine with 4 TiB is ready.
 */
static void store_leaves(pte_t *entry, virt_t virt, enum pt_level level, u64 count, pte_t first)
{
	const u64 step = pt_level_size(level);

	for (u64 i = 0; i < count; i++)
		pte_store(&entry[i], virt + i * step, level, first + i * step);
}

int pgtable_map_range(pfn_t root, virt_t virt, phys_t phys, u64 size, enum pt_prot prot,
		      enum pt_level largest, pgtable_alloc_fn *alloc, void *ctx)
{
	ASSERT(IS_ALIGNED(virt | phys | size, PAGE_SIZE),
	       "mapping of %llx at %llx is not of whole pages", phys, virt);
	while (size > 0) {
		enum pt_level level = leaf_fitting(virt, phys, size, largest);
		/*
		 * to the end of the table, but no more than `size` fills: a larger leaf than the
		 * first one's can fit only where another table begins
		 */
		const u64 count = MIN(size / pt_level_size(level),
				      (u64)PTRS_PER_TABLE - pt_index(virt, level));
		const u64 bytes = count * pt_level_size(level);
		pte_t *entry = pgtable_entry(root, virt, level, alloc, ctx);

		if (!entry)
			return -ENOMEM;
		store_leaves(entry, virt, level, count, pte_make(phys >> PAGE_SHIFT, level, prot));
		virt += bytes;
		phys += bytes;
		size -= bytes;
	}
	return 0;
}
