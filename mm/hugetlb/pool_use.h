/*
 * Using a pool: taking its pages and giving them back, promising and clearing them. Context:
 * ordinary (mm.h). Any CPU; rounds may be started.
 */
#pragma once

#include "mm/hugetlb/pool.h"

/*
 * Make one page, from the nearest node that has memory. It is used by nobody, on no list and in no
 * count yet. Returns BLOCK_NONE if there is none.
 */
u32 pool_make_near(struct pool *pool, node_t near);

/*
 * Promise `count` free pages to the caller. Missing pages are made as surplus, as far as overcommit
 * allows. Returns 0, or -ENOMEM with nothing promised. pool_unreserve() gives a promise back and
 * sheds at most as many free surplus pages, because they were there to keep the promise.
 */
int pool_reserve(struct pool *pool, u64 count);
void pool_unreserve(struct pool *pool, u64 count);

/*
 * Take a page for use, refcount 1, nearest to `node`. `how` selects a promised page or any other.
 * Returns NULL if none is free and overcommit allows no surplus page.
 *
 * pool_page_give() drops the caller's reference, as page_put() does; with the last one the page
 * returns to the pool. `page` is the head of a page of this pool, in use. Any other page is
 * refused, the message names it (page_check.h), and nothing changes.
 */
enum pool_take { POOL_ANY, POOL_RESERVED };
struct page *pool_page_take(struct pool *pool, node_t node, enum pool_take how);

void pool_page_give(struct pool *pool, struct page *page);

/* The same for a caller that wants a zero page. *zeroed tells whether the page is one already. */
struct page *pool_page_take_zero(struct pool *pool, node_t node, enum pool_take how, bool *zeroed);

/*
 * The last reference to the head of a pool's page was dropped; `state` is its state before that. No
 * lock held.
 */
void pool_put_last(struct mm *mm, struct page *page, u64 state);

/*
 * For prezero.c. Take a free page, nearest to `node`, that is promised to nobody and not known to
 * be zero, if fewer than `limit` are zero or being cleared. It counts as in use until it is given
 * back, cleared or not. Returns BLOCK_NONE if there is none to clear.
 */
u32 pool_take_to_clear(struct pool *pool, node_t node, u64 limit);

/*
 * For prezero.c, where pool_take_to_clear() found none: make deferred pages of the nearest node
 * that has free ones, if those are not made yet and the limit leaves room. Returns true if pages
 * were made.
 */
bool pool_make_to_clear(struct pool *pool, node_t node, u64 limit);
void pool_give_cleared(struct pool *pool, u32 index, bool zeroed);

/*
 * Frames that a full memmap of the pool's pages would use, less the frames that describe them now,
 * less the page tables of their sections. Counted PTE by PTE. The result is 447 for 64 pages of 2
 * MiB and 4087 for one page of 1 GiB.
 */
s64 pool_frames_saved(struct pool *pool);
