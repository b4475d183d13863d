/*
 * mm start-up. After it pages can be allocated, and memblock is frozen. Boot CPU, all CPUs online,
 * no lock held.
 */
#pragma once

#include "mm/map/memblock.h"
#include "mm/memmap/block.h"

struct mm;

/*
 * Build the machine's own struct mm from the boot ranges. memmap= says in which style the memmap is
 * made, and how much of it at once.
 */
void mm_init(void);

/*
 * Build any struct mm. The caller sets the ranges, the number of nodes, the root and the vmemmap
 * window. `first_meta` gives each node's first metadata blocks (2 MiB aligned, in `reserved`; 0 if
 * the node has none), and `lasting` the frames that they are for (meta_grow.h; NULL: one block for
 * each). Descriptors come from `zalloc`. Returns 0 or -ENOMEM.
 */
typedef unsigned node_distance_fn(node_t from, node_t to);

struct mm_plan {
	struct memblock_list *memory, *reserved;
	node_t nodes;
	pfn_t root;
	virt_t vmemmap;
	const phys_t *first_meta;
	const u64 *lasting;
	enum section_style style; /* of sections opened at start-up and by the allocator */
	u32 watch;                /* enum mm_watch */
	/* frames to keep back in each zone, or RESERVE_DEFAULT (watermark.h) */
	s64 reserve;
	bool gigablock;             /* place memory by GiB from the start (zone/gigablock.h) */
	node_distance_fn *distance; /* NULL: all nodes are equally distant */
	/* allocates zeroed, page-aligned memory, on `node` if possible */
	void *(*zalloc)(u64 bytes, node_t node, void *ctx);
	void *ctx;
};
int mm_build(struct mm *mm, const struct mm_plan *plan);
