/* mm start-up: after it pages can be allocated, and memblock is frozen. Boot CPU, all CPUs online, no lock held. */
#pragma once

#include "mm/block.h"
#include "mm/memblock.h"

struct mm;

/* Build the machine's own struct mm from the boot ranges; memmap= says in which style, and how much of it at once. */
void mm_init(void);

/*
 * Build any struct mm: the ranges and the node count are set by the caller, as are root and vmemmap window. `first_meta` gives each
 * node's first META block (2 MiB aligned, zeroed, in `reserved`; 0 if the node has none). Descriptors come from `zalloc`.
 * 0 or -ENOMEM.
 */
typedef unsigned node_distance_fn(node_t from, node_t to);

struct mm_plan {
	struct memblock_list *memory, *reserved;
	node_t nodes;
	pfn_t root;
	virt_t vmemmap;
	const phys_t *first_meta;
	enum section_style style; /* of sections opened at once and by the allocator */
	u32 watch;                /* enum mm_watch */
	s64 reserve;              /* frames of each zone, or RESERVE_DEFAULT (watermark.h) */
	node_distance_fn *distance; /* NULL: all nodes are equally far */
	void *(*zalloc)(u64 bytes, node_t node, void *ctx); /* zeroed, page-aligned; on `node` if it can be */
	void *ctx;
};
int mm_build(struct mm *mm, const struct mm_plan *plan);
