/*
 * Pools of huge pages: memory set aside as 2 MiB pages, grown and shrunk while the machine runs.
 *
 *   grow    buddy --take--> in transit --optimise--> [one lock cycle] --> free list of the node
 *   shrink  free list --[one lock cycle]--> restore if need be --> buddy
 *
 * Free pool pages live in the block table (links in the records), are frozen (refcount 0) and marked PAGE_HUGETLB. What makes
 * a block a huge page and back is hvo.h's business and happens outside the pool's lock.
 */
#pragma once

#include "mm/hvo.h"

struct pool_node {
	struct block_list free;
	u64 pages; /* free and in use */
};

struct pool {
	struct mm *mm;
	struct spinlock lock;
	u64 pages, free, in_use;
	struct pool_node *node;
};

/* The machine's pool of 2 MiB pages. */
extern struct pool pool_2m;

/* An empty pool over `mm`; `nodes` has room for mm->nodes. */
void pool_init(struct pool *pool, struct mm *mm, struct pool_node *nodes);

/*
 * Add up to `count` pages, taken round-robin... from the nodes in fallback order, made huge as `mode` says. Returns how many were added:
 * as many as fit. No lock held; rounds may be started.
 */
u64 pool_grow(struct pool *pool, const struct hvo_mode *mode, u64 count);

/* Give back up to `count` free pages. Returns how many; fewer if the rest are in use or could not be restored. */
u64 pool_shrink(struct pool *pool, const struct hvo_mode *mode, u64 count);

/* Bring the pool to `target` pages, either way. Returns the size it has afterwards. */
u64 pool_resize(struct pool *pool, const struct hvo_mode *mode, u64 target);

/* A page of the pool for use, refcount 1, or NULL if none is free; and back. */
struct page *pool_page_take(struct pool *pool, node_t node);
void pool_page_give(struct pool *pool, struct page *page);

/*
 * Frames that a full memmap of the pool's pages would use, less those that describe them now, less page tables of their sections.
 * Counted PTE by PTE. 447 for 64 pages of 2 MiB.
 */
s64 pool_frames_saved(struct pool *pool);
