/*
 * Mappings for programs: page_map() and mmio_map() of mm.h.
 *
 * A mapping of a page is an area of a space of its own. It shows `frames`, an object without
 * contents of its own whose bytes are physical addresses, and has a GiB to itself, so that all
 * tables below one PUD entry are freed with it. Its frames are mapped when it is made; a touch
 * brings none. Addresses are used again as late as possible, and only after the round.
 *
 * A mapping holds a reference to its page, and the page's head counts its mappings (PAGE_MAPPINGS)
 * in the word that says how the page is freed. page_free() of a mapped page therefore leaves its
 * fast path by a comparison that it makes anyway.
 *
 * Registers are mapped by vmap.h, as at boot, when there is no page for a tree.
 */
#include "mm/mapping/map.h"

#include <arch/cpu.h>

#include "kernel/core/context.h"
#include "kernel/core/printk.h"
#include "kernel/core/reason_set.h"
#include "mm/map/memblock.h"
#include "mm/map/vmap.h"
#include "mm/page/page_check.h"
#include "mm/page/page_fast.h"
#include "mm/vm/pages.h"

static u64 page_bytes(const struct page *page)
{
	return PAGE_SIZE << page_order(page);
}

static const struct vm_object_ops ops = {.release = NULL}; /* it is never dropped */
static struct vm_object frames = {.ops = &ops, .refs = 1};

struct space map_space = {
	.range = {.start = VMAP_PAGES_BASE, .end = VMAP_PAGES_BASE + VMAP_PAGES_SIZE}};

void map_init(void)
{
	space_init(&map_space, memblock_alloc_or_die(space_boot_bytes(), NODE_NONE,
						     "the first mappings of pages"));
}

/* Its area, with the guard behind it: no call cuts it. */
static struct area area_for(const struct page *page)
{
	return (struct area){.end = page_bytes(page) + PAGE_SIZE,
			     .object = &frames,
			     .offset = page_to_pfn(page) << PAGE_SHIFT,
			     .flags = AREA_WHOLE | AREA_NO_RESERVE,
			     .rights = USER_RIGHT_READ | USER_RIGHT_WRITE,
			     .level = PT_PUD};
}

static pfn_t pfn_of(const struct area *area)
{
	return area->offset >> PAGE_SHIFT;
}

virt_t map_find(pfn_t pfn)
{
	struct area area = {.end = 0};

	while (space_next(&map_space, area.end, &area))
		if (pfn_of(&area) == pfn)
			return area.start;
	return 0;
}

/*
 * Unmap what begins at `virt`, on every CPU. Returns its page, or NULL if nothing begins there; of
 * several CPUs that unmap one mapping, one does.
 */
static struct page *unmap(virt_t virt)
{
	struct taken taken = {.space = &map_space};
	struct area seen, area;
	u64 at = virt;

	if (!space_has(&map_space, virt, virt + 1) || !space_look(&map_space, virt, &seen) ||
	    seen.start != virt || space_take(&map_space, &at, seen.end, &area) <= 0)
		return NULL;
	pages_unmap(virt, ALIGN_UP(area.end, GIB(1)), &taken);
	taken_finish(&taken);
	space_remove_taken(&map_space, &area);
	return pfn_to_page(pfn_of(&area));
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
		page_misused(NULL, NULL, "mapping of %p, which is no struct page",
			     (const void *)page);
		return false;
	}
	if (seen.refcount > 0 &&
	    !(seen.flags & (PAGE_BUDDY | PAGE_PCP | PAGE_TAIL | PAGE_RESERVED)))
		return true;
	page_misused(&mm_kernel, page, "mapping of frame %llx, which heads no page in use",
		     page_to_pfn(page));
	return false;
}

/* Count one more mapping and its reference. False if there is no room to count it. */
static bool hold(struct page *page)
{
	u64 state;

	do {
		state = atomic_load_relaxed(&page->state);
		if (state_mappings(state) == PAGE_MAPPINGS / PAGE_MAPPING)
			return false;
	} while (!atomic_cas(&page->state, state, state + PAGE_REFERENCE + PAGE_MAPPING));
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

/* Returns the address, or 0 if addresses or memory are lacking; the reason is set. */
static virt_t map(const struct page *page, enum pt_level level)
{
	struct area area = area_for(page);
	const s64 start = space_place(&map_space, &area, GIB(1));
	const virt_t virt = (virt_t)start;

	if (space_failed(start))
		return 0;
	if (pages_map(&map_space, virt, virt + page_bytes(page), page_to_pfn(page), level) == 0)
		return virt;
	unmap(virt);
	reason_set(REASON_NO_MEMORY);
	return 0;
}

void *page_map(struct page *page, u64 leaf)
{
	enum pt_level level = PT_PAGE;
	virt_t virt;

	context_assert(CONTEXT_ORDINARY);
	if (!can_be_mapped(page))
		return reason_null(REASON_BAD_PAGE);
	while (level < PT_PUD && pt_level_size(level) < leaf)
		level++;
	if (pt_level_size(level) != leaf || leaf > page_bytes(page))
		return reason_null(REASON_BAD_PAGE_SIZE);
	if (level == PT_PUD && !cpu_has_1g_mappings())
		return reason_null(REASON_CPU_LACKS);
	if (!hold(page))
		return reason_null(REASON_NO_MAPPINGS);
	virt = map(page, level);
	if (!virt)
		release(page, CALLER);
	return (void *)virt;
}

void page_unmap(void *address)
{
	struct page *page;

	context_assert(CONTEXT_ORDINARY);
	page = unmap((virt_t)address);
	if (page)
		release(page, CALLER);
	else
		page_misused(NULL, NULL, "page_unmap() of %p, where no page is mapped", address);
}

/* ---- device registers ---- */

/*
 * Is the range RAM of the kernel's? RAM has no registers, and the owner's cached lines would mix
 * with the writes that bypass the cache.
 */
static bool is_ram(phys_t phys, u64 size)
{
	const pfn_t own =
		memblock_find_own(&memblock_memory, &memblock_reserved, ALIGN_DOWN(phys, PAGE_SIZE),
				  ALIGN_UP(phys + size, PAGE_SIZE));

	if (own == PFN_NONE)
		return false;
	pr_err("mmio_map() of %llu bytes at %llx is refused: frame %llx is RAM", size, phys, own);
	return true;
}

volatile void __iomem *mmio_map(phys_t phys, u64 size)
{
	context_assert(CONTEXT_ORDINARY);
	if (size > 0 && phys_is_possible(phys, size) && is_ram(phys, size))
		return (volatile void __iomem *)reason_null(REASON_IS_RAM);
	return (volatile void __iomem *)vmap_phys(phys, size, PT_UNCACHED);
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
	pte_t entry;

	if (first < VMAP_DEVICES_BASE || first >= end ||
	    end > atomic_load_relaxed(&vmap_devices_next) || is_mapped(first - PAGE_SIZE, &entry) ||
	    is_mapped(end, &entry))
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
		page_misused(NULL, NULL,
			     "mmio_unmap() of %llu bytes at %p, which is no mapping of mmio_map()",
			     size, (void __force *)address);
}
