/*
 * Mappings for programs: the calls of mm.h over vmap.h.
 *
 * A page gets a GiB of addresses to itself, so that all tables below one PUD entry are its own and can be freed with it: the entry is
 * cleared, every CPU flushes (idle ones too: table pages are about to be somebody else's), then the tables go back.
 */
#include <arch/cpu.h>

#include "kernel/context.h"
#include "kernel/shootdown.h"
#include "mm/mm.h"
#include "mm/page.h"
#include "mm/vmap.h"

static u64 page_bytes(const struct page *page)
{
	return PAGE_SIZE << page_order(page);
}

static void free_table(pte_t entry)
{
	page_free(pfn_to_page(pte_pfn(entry)));
	vmap_table_freed();
}

/* The tables below a PUD entry that no CPU uses any more. */
static void free_tables(pte_t pud)
{
	const pte_t *table = phys_to_virt(pte_pfn(pud) << PAGE_SHIFT);

	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		const pte_t entry = pte_load(&table[i]);

		if (pte_present(entry) && !pte_is_leaf(entry, PT_PMD))
			free_table(entry);
	}
	free_table(pud);
}

static void unmap(virt_t virt)
{
	pte_t *entry = pgtable_entry(pgtable_root(), virt, PT_PUD, NULL, NULL, NULL), pud;

	if (!entry)
		return;
	pud = pte_load(entry);
	pte_store(entry, virt, PT_PUD, 0);
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	if (pte_present(pud) && !pte_is_leaf(pud, PT_PUD))
		free_tables(pud);
}

void *page_map(struct page *page, u64 leaf)
{
	enum pt_level level = PT_PAGE;
	virt_t virt;

	context_assert(CONTEXT_ORDINARY);
	while (level < PT_PUD && pt_level_size(level) < leaf)
		level++;
	if (pt_level_size(level) != leaf || leaf > page_bytes(page) || (level == PT_PUD && !cpu_has_1g_mappings()))
		return NULL;
	virt = vmap_reserve(GIB(1), GIB(1));
	if (!virt)
		return NULL;
	if (vmap_map(virt, page_pfn(page) << PAGE_SHIFT, page_bytes(page), PT_RW, level) < 0) {
		unmap(virt);
		return NULL;
	}
	return (void *)virt;
}

void page_unmap(void *address)
{
	context_assert(CONTEXT_ORDINARY);
	unmap((virt_t)address);
}

volatile void __iomem *mmio_map(phys_t phys, u64 size)
{
	context_assert(CONTEXT_ORDINARY);
	return (volatile void __iomem *)vmap_phys(phys, size, PT_UNCACHED);
}

void mmio_unmap(volatile void __iomem *address, u64 size)
{
	context_assert(CONTEXT_ORDINARY);
	vmap_unmap((void __force *)address, size);
}
