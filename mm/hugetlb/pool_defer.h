/*
 * Deferred pages: free pages of a pool that are not made before somebody wants one. A pool of
 * nearly all memory is then there at once, because nothing is written for its pages at start-up:
 * neither page tables, nor block records, nor heads.
 *
 *   pool_defer()           whole GiB that were never opened belong to the pool (section_defer.h)
 *   pool_make_deferred()   one of them is opened and all its pages are made: when the pool's list
 *                          is empty and a page is taken, given back to the machine, demoted, or
 *                          wanted for clearing
 *   pool_undefer()         shrinking gives whole GiB back as they are
 *
 * A deferred page is a page of the pool in every count: free, and promised like any other. A GiB
 * has one deferred 1 GiB page, or 510 deferred 2 MiB pages: its other two blocks become metadata
 * memory for the heads, so that making the pages needs no memory from anywhere else. (If the node's
 * metadata memory is on another node, the heads are reserved there when the GiB is deferred.)
 *
 * Pages are made as hvo=on makes them, whatever hvo= says when they are made.
 *
 * Context: ordinary. Any CPU.
 */
#pragma once

#include "mm/hugetlb/pool.h"

/*
 * Add up to `count` deferred pages, from one node or, with NODE_NONE, from all of them in equal
 * shares as far as these are whole GiB. Returns how many pages were added.
 */
u64 pool_defer(struct pool *pool, node_t node, u64 count);

/*
 * Give back up to `count` deferred pages that are not reserved, in whole GiB, surplus ones first.
 * Returns how many pages were given back.
 */
u64 pool_undefer(struct pool *pool, node_t node, u64 count);

/* Give back up to `count` deferred surplus pages. Returns how many were given back. */
u64 pool_undefer_surplus(struct pool *pool, u64 count);

/* Frames of the pages that the pool has deferred. Context: any; a hint without the pool's lock. */
u64 pool_deferred_frames(const struct pool *pool);

/* Deferred pages in one GiB. */
u64 pool_gib_pages(const struct pool *pool);

/*
 * For pool_make_deferred() (pool.c), which has claimed a GiB of the node: open the deferred GiB
 * `gib`, or any, and make its pages. They are appended to `list`, in transit. Fewer than
 * pool_gib_pages() if metadata memory had no frames; their memory is free then. False if that GiB
 * is not deferred.
 */
bool pool_open_gib(struct pool *pool, node_t node, u64 gib, struct block_list *list);
