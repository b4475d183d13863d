/*
 * Mappings for programs: the calls of mm.h over vmap.h.
 *
 * A page gets a GiB of addresses to itself, so all tables below one PUD entry belong to it and can
 * be freed with it. The entry is cleared, every CPU flushes (idle ones too, because the table pages
 * are about to have another user), and then the tables are freed.
 *
 * A mapping holds a reference to its page, and the page's head counts its mappings (PAGE_MAPPINGS)
 * in the word that says how the page is freed. page_free() of a mapped page therefore leaves its
 * fast path by a comparison that it makes anyway. The address is recorded nowhere: page_unmap()
 * finds the page through the tables, and a second call finds none.
 */
#include "mm/mapping/map.h"

#include <arch/cpu.h>

#include "kernel/core/context.h"
#include "kernel/core/printk.h"
#include "kernel/core/reason_set.h"
#include "kernel/core/shootdown.h"
#include "mm/map/memblock.h"
#include "mm/map/vmap.h"
#include "mm/page/page_check.h"
#include "mm/page/page_fast.h"

static u64 page_bytes(const struct page *page)
{
	return PAGE_SIZE << page_order(page);
}

static void free_table(pte_t entry)
{
	page_free(pfn_to_page(pte_pfn(entry)));
	vmap_table_freed();
}

/* Free the tables below a PUD entry, which no CPU uses any more. */
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

void map_clear(virt_t virt)
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

virt_t map_find(pfn_t pfn)
{
	const struct vmap_span span = vmap_reserved();
	enum pt_level level;
	phys_t phys;
	pte_t entry;

	for (virt_t at = ALIGN_UP(span.start, GIB(1)); at < span.end; at += GIB(1)) {
		/* the round of map_clear() waits for this CPU before it frees a table */
		const irq_flags_t flags = irq_save();
		const bool found = pgtable_translate(pgtable_root(), at, &phys, &entry, &level) &&
				   phys >> PAGE_SHIFT == pfn;

		irq_restore(flags);
		if (found)
			return at;
	}
	return 0;
}

/* ---- pages ---- */

/*
 * Does `page` head a page in use? Mapping anything else is a mistake of the caller's and is
 * reported.
 */
static bool can_be_mapped(struct page *page)
{
	struct page seen;

	if (!page_has_place(&mm_kernel, page) || !page_peek(page_to_pfn(page), &seen)) {
		address_misused("mapping of %p, which is no struct page", (const void *)page);
		return false;
	}
	if (seen.refcount > 0 &&
	    !(seen.flags & (PAGE_BUDDY | PAGE_PCP | PAGE_TAIL | PAGE_RESERVED)))
		return true;
	page_misused(&mm_kernel, page, "mapping of frame %llx, which heads no page in use",
		     page_to_pfn(page));
	return false;
}

/*
 * Count one more mapping and its reference. False if there is no room to count it. Only one CPU at
 * a time maps, so nobody else counts.
 */
static bool hold(struct page *page)
{
	if (state_mappings(atomic_load_relaxed(&page->state)) == PAGE_MAPPINGS / PAGE_MAPPING)
		return false;
	atomic_fetch_add(&page->state, PAGE_REFERENCE + PAGE_MAPPING);
	return true;
}

/*
 * Drop the mapping's count first; once its reference is gone, nothing of the page may be looked at.
 */
static void release(struct page *page, virt_t caller)
{
	atomic_fetch_sub(&page->state, (u64)PAGE_MAPPING);
	page_put_head(&mm_kernel, page, caller);
}

void *page_map(struct page *page, u64 leaf)
{
	enum pt_level level = PT_PAGE;
	virt_t virt;

	context_assert(CONTEXT_ORDINARY);
	if (!can_be_mapped(page)) {
		reason_set(REASON_BAD_PAGE);
		return NULL;
	}
	while (level < PT_PUD && pt_level_size(level) < leaf)
		level++;
	if (pt_level_size(level) != leaf || leaf > page_bytes(page)) {
		reason_set(REASON_BAD_PAGE_SIZE);
		return NULL;
	}
	if (level == PT_PUD && !cpu_has_1g_mappings()) {
		reason_set(REASON_CPU_LACKS);
		return NULL;
	}
	if (!hold(page)) {
		reason_set(REASON_NO_MAPPINGS);
		return NULL;
	}
	virt = vmap_reserve(GIB(1), GIB(1));
	if (virt &&
	    vmap_map(virt, page_to_pfn(page) << PAGE_SHIFT, page_bytes(page), PT_RW, level) == 0)
		return (void *)virt;
	if (virt)
		map_clear(virt);
	release(page, CALLER);
	reason_set(virt ? REASON_NO_MEMORY : REASON_NO_ADDRESSES);
	return NULL;
}

/* The page that page_map() has mapped at `virt`, or NULL if it has mapped none there. */
static struct page *page_mapped_at(virt_t virt)
{
	const struct vmap_span span = vmap_reserved();
	enum pt_level level;
	struct page *page, seen;
	phys_t phys;
	pte_t entry;

	if (virt < span.start || virt >= span.end || !IS_ALIGNED(virt, GIB(1)) ||
	    !pgtable_translate(pgtable_root(), virt, &phys, &entry, &level))
		return NULL;
	page = pfn_to_page(phys >> PAGE_SHIFT);
	/* a device has no struct page */
	if (!page_has_place(&mm_kernel, page) || !page_peek(phys >> PAGE_SHIFT, &seen))
		return NULL;
	return state_mappings(seen.state) > 0 ? page : NULL;
}

void page_unmap(void *address)
{
	struct page *page;

	context_assert(CONTEXT_ORDINARY);
	page = page_mapped_at((virt_t)address);
	if (!page) {
		address_misused("page_unmap() of %p, where no page is mapped", address);
		return;
	}
	map_clear((virt_t)address);
	release(page, CALLER);
}

/* ---- device registers ---- */

/*
 * Is the range RAM of the kernel's? RAM has no registers, and the owner's cached lines would mix
 * with the writes that bypass the cache.
 */
static bool is_ram(phys_t phys, u64 size)
{
	const pfn_t own =
		memblock_first_own(ALIGN_DOWN(phys, PAGE_SIZE), ALIGN_UP(phys + size, PAGE_SIZE));

	if (own == PFN_NONE)
		return false;
	pr_err("mmio_map() of %llu bytes at %llx is refused: frame %llx is RAM", size, phys, own);
	return true;
}

volatile void __iomem *mmio_map(phys_t phys, u64 size)
{
	volatile void __iomem *regs;

	context_assert(CONTEXT_ORDINARY);
	if (size == 0 || !phys_is_possible(phys, size)) {
		reason_set(size == 0 ? REASON_BAD_SIZE : REASON_BAD_PHYS);
		return NULL;
	}
	if (is_ram(phys, size)) {
		reason_set(REASON_IS_RAM);
		return NULL;
	}
	regs = (volatile void __iomem *)vmap_phys(phys, size, PT_UNCACHED);
	if (!regs)
		reason_set(size > VMALLOC_SIZE ? REASON_NO_ADDRESSES : REASON_NO_MEMORY);
	return regs;
}

static bool is_mapped(virt_t virt, pte_t *entry)
{
	enum pt_level level;
	phys_t phys;

	return pgtable_translate(pgtable_root(), virt, &phys, entry, &level) && level == PT_PAGE;
}

/*
 * Are the pages [first, end) mapped registers, and all of one mapping? Nothing is mapped directly
 * before and behind a whole mapping.
 */
static bool is_mapping_of_registers(virt_t first, virt_t end)
{
	const struct vmap_span span = vmap_reserved();
	pte_t entry;

	if (first < span.start || first >= end || end > span.end ||
	    is_mapped(first - PAGE_SIZE, &entry) || is_mapped(end, &entry))
		return false;
	for (virt_t at = first; at < end; at += PAGE_SIZE)
		if (!is_mapped(at, &entry) || !pte_uncached(entry))
			return false;
	return true;
}

void mmio_unmap(volatile void __iomem *address, u64 size)
{
	const virt_t virt = (virt_t)(void __force *)address;

	context_assert(CONTEXT_ORDINARY);
	if (is_mapping_of_registers(ALIGN_DOWN(virt, PAGE_SIZE), ALIGN_UP(virt + size, PAGE_SIZE)))
		vmap_unmap((void __force *)address, size);
	else
		address_misused(
			"mmio_unmap() of %llu bytes at %p, which is no mapping of mmio_map()", size,
			(void __force *)address);
}
