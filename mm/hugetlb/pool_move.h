/* Replace a pool's page by another, so that its place can be used for something else. */
#pragma once

#include "mm/hugetlb/pool.h"

/*
 * Move the pool page that block `index` heads, free or in use. Returns 0; -ENOMEM or -EBUSY with
 * nothing changed; -EAGAIN if the page is changing hands at the moment.
 */
int pool_move_page(struct mm *mm, u32 index, unsigned order, struct migrate_stats *stats);

/*
 * A page with block `index`, if it is free in its pool, goes back to the buddy for a bad frame in
 * it: another takes its place, or the pool becomes smaller, if no page is promised. A page that was
 * taken meanwhile is moved, as pool_move_page() does. Each pool's lock is taken once in any case,
 * see bad_frames.c.
 */
void pool_dissolve_page(struct mm *mm, u32 index);

/*
 * pool_move_page() with a new page that the caller supplies and gives away. The new page is used by
 * nobody and in no count (pool_make_near()). It takes the place of block `old`, or is free when
 * this call returns. -EAGAIN is also returned if `old` is no longer a page of this pool.
 */
int pool_move_to(struct pool *pool, u32 old, u32 new, struct migrate_stats *stats);
