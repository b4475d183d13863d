/*
 * The direct map: see directmap.h.
 *
 *   RAM      |4K|4K|  2M  |  2M  |      1G      |  2M  |4K|....hole....|  2M  |
 *             edges, and the 4K pages around the read-only image
 */
#include "mm/map/directmap.h"

#include <arch/boot.h>
#include <arch/cpu.h>

#include "mm/map/memblock.h"

static void map_part(phys_t start, phys_t end, enum pt_prot prot)
{
	const enum pt_level largest = cpu_has_1g_mappings() ? PT_PUD : PT_PMD;

	if (start >= end)
		return;
	if (pgtable_map_range(pgtable_root(), DIRECT_MAP_BASE + start, start, end - start, prot,
			      largest, pgtable_alloc_boot, NULL) < 0)
		memblock_too_little("the page tables of the direct map");
}

void direct_map_init(void)
{
	phys_t ro_start = 0, ro_end = 0;

	if (!arch_image_range(&ro_start, &ro_end))
		ro_start = ro_end = 0;
	/*
	 * By index: the page tables come from memblock too, but that changes only the reserved
	 * list.
	 */
	for (size_t i = 0; i < memblock_memory.count; i++) {
		const phys_t start = memblock_memory.range[i].start,
			     end = memblock_memory.range[i].end;

		map_part(start, MIN(end, MAX(start, ro_start)), PT_RW);
		map_part(MAX(start, ro_start), MIN(end, ro_end), PT_RO);
		map_part(MAX(start, ro_end), end, PT_RW);
	}
	memblock_direct_map_ready();
}
