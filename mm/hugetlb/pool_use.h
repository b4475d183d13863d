/*
 * Using a pool: taking its pages, giving them back and promising them. The calls for programs are
 * in mm/pools.h. Context: ordinary (mm.h). Any CPU; rounds may be started.
 */
#pragma once

#include "mm/hugetlb/pool.h"

/*
 * Make one page, from the nearest node that has memory. It is used by nobody, on no list and in no
 * count yet. Returns BLOCK_NONE if there is none.
 */
u32 pool_make_near(struct pool *pool, node_t near);

/*
 * pool_release() of one page, which is in no count. -EBUSY if it could not be restored and stays in
 * the pool.
 */
int pool_release_page(struct pool *pool, u32 index);

/* Give a page back that was taken as promised, and promise it again in the same step. */
void pool_page_give_promised(struct pool *pool, struct page *page);

/*
 * The last reference to the head of a pool's page was dropped; `state` is its state before that. No
 * lock held.
 */
void pool_put_last(struct mm *mm, struct page *page, u64 state);

/*
 * Frames that a full memmap of the pool's pages would use, less the frames that describe them now,
 * less the page tables of their sections. Counted PTE by PTE. The result is 447 for 64 pages of 2
 * MiB and 4087 for one page of 1 GiB.
 */
s64 pool_frames_saved(struct pool *pool);
