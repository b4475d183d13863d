/*
 * Pools of huge pages, as a program sees them: memory set aside as pages of 2 MiB or 1 GiB. A pool
 * grows and shrinks while the machine runs. A page taken from it is a page of mm.h.
 *
 *	pool_grow(&pool_2m, NULL, 64);
 *	page = pool_page_take(&pool_2m, NODE_NONE, POOL_ANY);
 *	...
 *	pool_page_give(&pool_2m, page);
 *	pool_shrink(&pool_2m, NULL, 64);
 *
 * Context: ordinary (mm.h), for each call that does not name another. Any CPU; rounds may be
 * started. What is inside of a pool, and what its counts mean: mm/hugetlb/pool.h.
 */
#pragma once

#include "kernel/lib/types.h"

struct page;
struct pool;

/* A way of making and restoring the struct pages of huge pages. NULL: the way that hvo= names. */
struct hvo_mode;

/* The machine's pools. */
extern struct pool pool_2m, pool_1g;

/*
 * Add up to `count` pages made huge as `mode` says, either from one node or, with NODE_NONE, in
 * equal shares from all nodes; what some nodes cannot give is taken from the others. Returns how
 * many were added, as many as fit. Nothing is lost.
 */
u64 pool_grow(struct pool *pool, const struct hvo_mode *mode, u64 count);
u64 pool_grow_on(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count);

/*
 * Give back up to `count` free pages that are not reserved. Returns how many were given back. The
 * number is smaller than `count` if the rest are in use or reserved, or could not be restored for
 * lack of frames; these stay in the pool, usable, as surplus.
 */
u64 pool_shrink(struct pool *pool, const struct hvo_mode *mode, u64 count);
u64 pool_shrink_on(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count);

/*
 * Set the number of persistent pages. Pages in use beyond `target` become surplus and go back to
 * the buddy when their holders give them back. Returns the persistent number reached.
 */
u64 pool_resize(struct pool *pool, const struct hvo_mode *mode, u64 target);

/*
 * Set how many surplus pages there may be from now on. Existing ones stay until they are given
 * back. Context: handler.
 */
void pool_set_overcommit(struct pool *pool, u64 count);

/*
 * Split up to `count` free 1 GiB pages into 2 MiB pages of `to`, in one batch. Returns how many
 * were split.
 */
u64 pool_demote(struct pool *from, struct pool *to, const struct hvo_mode *mode, u64 count);

/*
 * Promise `count` free pages to the caller. Missing pages are made as surplus, as far as overcommit
 * allows. Returns 0, or -ENOMEM with nothing promised and no surplus page of before gone.
 * pool_unreserve() gives a promise back and sheds at most as many free surplus pages, because they
 * were there to keep the promise.
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

/* A pool's counts, in pages, of one moment. */
struct pool_usage {
	u64 page_bytes;
	u64 pages; /* free + in use */
	u64 free, in_use, reserved, surplus, overcommit;
};
void pool_usage(struct pool *pool, struct pool_usage *usage);
