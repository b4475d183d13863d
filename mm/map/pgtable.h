/*
 * Page tables of the kernel's address space: walking, and mapping ranges with the largest pages
 * that fit.
 *
 * Tables are reached through the direct map. New tables come from memblock before the buddy exists
 * and from the given allocator afterwards; they are never freed here.
 */
#pragma once

#include <arch/pgtable.h>

#include "kernel/lib/types.h"

/* A zeroed frame for a table, or PFN_NONE. */
typedef pfn_t pgtable_alloc_fn(void *ctx);
pfn_t pgtable_alloc_boot(void *ctx); /* allocates from memblock; ctx unused */

/*
 * Map [virt, virt + size) to physical memory from `phys`, all page-aligned, with leaves up to
 * `largest`. Entries on the way that exist already must not be leaves. Returns 0, or -ENOMEM with a
 * prefix mapped (mapping it again is fine).
 */
int pgtable_map_range(pfn_t root, virt_t virt, phys_t phys, u64 size, enum pt_prot prot,
		      enum pt_level largest, pgtable_alloc_fn *alloc, void *ctx);

/*
 * The entry of `level` that translates `virt`, or NULL if a table above is missing or a larger leaf
 * maps `virt`. With `alloc`, missing tables are made.
 */
pte_t *pgtable_entry(pfn_t root, virt_t virt, enum pt_level level, pgtable_alloc_fn *alloc,
		     void *ctx);

/* Translate; false if unmapped. For dumps, decoding faults and tests. */
bool pgtable_translate(pfn_t root, virt_t virt, phys_t *phys, pte_t *entry, enum pt_level *level);
