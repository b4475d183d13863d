/*
 * Mappings outside the direct map: stacks, device registers, firmware tables. Addresses come from one region and are
 * separated by unmapped guard pages, so running off either end faults.
 *
 *   VMALLOC_BASE  |guard|stack CPU 0 (16K)|guard|stack CPU 1|guard|LAPIC|guard| ...
 */
#pragma once

#include <arch/pgtable.h>

#include "mm/pgtable.h"

#include "kernel/types.h"

/*
 * Map `size` bytes of physical memory at `phys` (any alignment) with `prot`; the result has phys's offset within its
 * page. NULL if page tables or addresses run out, or if no CPU has such an address. Kept until vmap_unmap(). Boot CPU during start-up, later anyone
 * who holds no lock.
 */
void *vmap_phys(phys_t phys, u64 size, enum pt_prot prot);
void vmap_unmap(void *virt, u64 size);

/*
 * Its two halves: addresses of a region of `size` bytes, `align`-aligned (a power of two), with an unmapped page behind, 0 if there are no
 * more; and mapping physical memory there with leaves up to `largest`: 0, or -ENOMEM with a prefix mapped.
 */
virt_t vmap_reserve(u64 size, u64 align);

/* Addresses that vmap_reserve() has given out so far: all lie in [start, end). */
struct vmap_span {
	virt_t start, end;
};
struct vmap_span vmap_reserved(void);
int vmap_map(virt_t virt, phys_t phys, u64 size, enum pt_prot prot, enum pt_level largest);

/* A stack of `size` bytes (whole pages) with a guard page below; returns its *top*, 16-aligned, or NULL. Boot only. */
void *vmap_stack(u64 size, node_t node);

/* What a guard page guards, for the page-fault message: true if `virt` lies in a guard page; fills the stack's index. */
bool vmap_guard_hit(virt_t virt, unsigned *stack_index);

/* Where page tables come from once memblock is frozen. */
void vmap_tables_from(pgtable_alloc_fn *alloc, void *ctx);

/* Page tables made by vmap_map() since boot, less those that their holder freed and said so. The rest is kept for good. */
u64 vmap_tables(void);
void vmap_table_freed(void);
