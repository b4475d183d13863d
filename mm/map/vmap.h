/*
 * Mappings outside the direct map: stacks, device registers, firmware tables. Addresses come from
 * one region and are separated by unmapped guard pages, so running off either end faults.
 *
 *   VMALLOC_BASE  |guard|stack CPU 0 (16K)|guard|stack CPU 1|guard|LAPIC|guard| ...
 */
#pragma once

#include <arch/pgtable.h>

#include "mm/map/pgtable.h"

#include "kernel/lib/types.h"

/*
 * Map `size` bytes of physical memory at `phys` (any alignment) with `prot`. The result has phys's
 * offset within its page. NULL if page tables or addresses run out, or if the CPU has no such
 * physical address. The mapping is kept until vmap_unmap(). Called on the boot CPU during start-up,
 * and later on any CPU by a caller that holds no lock.
 */
void *vmap_phys(phys_t phys, u64 size, enum pt_prot prot);
void vmap_unmap(void *virt, u64 size);

/*
 * The two halves of vmap_phys(). vmap_reserve() returns addresses of a region of `size` bytes,
 * `align`-aligned (a power of two), with an unmapped page after it, or 0 if there are no more.
 * vmap_map() maps physical memory there with leaves up to `largest`. It returns 0, or -ENOMEM with
 * a prefix mapped.
 */
virt_t vmap_reserve(u64 size, u64 align);

/* All addresses that vmap_reserve() has given out so far lie in [start, end). */
struct vmap_span {
	virt_t start, end;
};
struct vmap_span vmap_reserved(void);
int vmap_map(virt_t virt, phys_t phys, u64 size, enum pt_prot prot, enum pt_level largest);

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
void vmap_tables_from(pgtable_alloc_fn *alloc, void *ctx);

/*
 * Number of page tables made by vmap_map() since boot, less those that a caller freed and reported
 * with vmap_table_freed(). The others are never freed.
 */
u64 vmap_tables(void);
void vmap_table_freed(void);
