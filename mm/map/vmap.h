/*
 * Mappings outside the direct map: stacks, device registers, firmware tables. Addresses come from
 * one region and are separated by unmapped guard pages, so running off either end faults.
 *
 *   VMALLOC_BASE     |guard|stack CPU 0 (16K)|guard|stack CPU 1|guard|LAPIC|guard| ...
 */
#pragma once

#include <arch/pgtable.h>

#include "mm/map/pgtable.h"

#include "kernel/lib/types.h"

/*
 * Map `size` bytes of physical memory at `phys` (any alignment) with `prot`. The result has phys's
 * offset within its page. NULL if page tables or addresses run out, or if the CPU has no such
 * physical address; last_reason() says which. The mapping is kept until vmap_unmap(), and its
 * addresses are not used again. Called on the boot CPU during start-up, and later on any CPU by a
 * caller that holds no lock.
 */
void *vmap_phys(phys_t phys, u64 size, enum pt_prot prot);
void vmap_unmap(void *virt, u64 size);

/* vmap_phys() has used the addresses from VMAP_DEVICES_BASE to this one; atomic. */
#define VMAP_DEVICES_BASE (VMALLOC_BASE + VMALLOC_SIZE / 16)
extern virt_t vmap_devices_next;

/* Addresses of page_map() (mm/mapping/map.c). */
#define VMAP_PAGES_BASE (VMALLOC_BASE + VMALLOC_SIZE / 8)
#define VMAP_PAGES_SIZE (VMALLOC_SIZE - VMALLOC_SIZE / 8)

/*
 * A stack of `size` bytes (whole pages) with a guard page below; returns its *top*, 16-aligned, or
 * NULL. Boot only.
 */
void *vmap_stack(u64 size, node_t node);

/*
 * For the page-fault message: true if `virt` lies in a stack's guard page; *stack_index then
 * receives the stack's index.
 */
bool vmap_guard_hit(virt_t virt, unsigned *stack_index);

/* Set the allocator for page tables once memblock is frozen. */
void vmap_tables_from(pgtable_alloc_fn *alloc);

/* Page tables that were made for all this since boot; none is freed. */
u64 vmap_tables(void);
