/*
 * The address space, as Linux lays it out on x86-64 with four levels:
 *
 *   0xffff888000000000  direct map: all RAM at its physical address, never executable
 *   0xffffc90000000000  stacks and MMIO, each between guard pages
 *   0xffffda0000000000  huge mappings of programs (mm/mapping/huge_map.h)
 *   0xffffea0000000000  vmemmap windows of 1 TiB each: window 0 is the machine's, the others are
 *                       for private allocators of tests. The struct page of frame n of window w
 *                       is at BASE + w * 1 TiB + n * 64.
 *   0xffffffff80000000  kernel image (physical address + base)
 */
#pragma once

#include "kernel/lib/types.h"

#define DIRECT_MAP_BASE     0xffff888000000000ULL
#define DIRECT_MAP_SIZE     TIB(64)
#define VMALLOC_BASE        0xffffc90000000000ULL
#define VMALLOC_SIZE        TIB(16)
#define HUGE_MAP_BASE       0xffffda0000000000ULL
#define HUGE_MAP_SIZE       TIB(16)
#define VMEMMAP_BASE        0xffffea0000000000ULL
#define VMEMMAP_WINDOW_SIZE TIB(1)
#define VMEMMAP_WINDOWS     4
#define IMAGE_BASE          0xffffffff80000000ULL

/* RAM is used only below this limit, which the direct map and a vmemmap window cover (46 bits). */
#define PHYS_LIMIT TIB(64)

/*
 * Can a page-table entry hold these addresses? Physical addresses given by firmware or by people
 * are checked here before they are mapped.
 */
bool phys_is_possible(phys_t phys, u64 size);

/*
 * RAM below this is reachable through phys_to_virt() on the boot page tables, before the direct map
 * exists.
 */
#define EARLY_PHYS_LIMIT GIB(4)

static inline void *phys_to_virt(phys_t phys)
{
	return (void *)(DIRECT_MAP_BASE + phys);
}

/* Physical address of an address in the direct map (not of the image, stacks or vmemmap). */
static inline phys_t virt_to_phys(const void *virt)
{
	return (phys_t)(virt_t)virt - DIRECT_MAP_BASE;
}
