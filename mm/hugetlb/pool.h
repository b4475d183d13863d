/*
 * Pools of huge pages (hstates): memory set aside as 2 MiB or 1 GiB pages, grown and shrunk while
 * the machine runs.
 *
 *   grow    buddy --take--> in transit --optimise--> [a turn at the lock for each slice] --> free
 *           list of the node
 *   shrink  free list --[a turn at the lock for each slice]--> restore if need be --> buddy
 *
 * Counts, in pages, per node and in all, as Linux has them:
 *
 *   pages       free + in use
 *   surplus     pages beyond the number asked for: a surplus page goes to the buddy instead of
 *               the pool when its user gives it back
 *   reserved    free pages promised to somebody; nobody else gets them
 *   persistent  pages - surplus: the number that resizing sets
 *   overcommit  how many surplus pages may be made when a page is wanted and none is free
 *
 * A node's surplus never exceeds its pages. A free page is surplus only where restoring failed or a
 * promise held the page.
 *
 * The flag BLOCK_POOL_FREE says that a page is on its node's list; it changes under the pool's
 * lock. A page may be replaced by another (migrate.h): a free page by the pool alone, a used page
 * through its holder's mover. The counts stay the same.
 *
 * Free pool pages live in the block table, linked through their records. They are frozen (refcount
 * 0) and marked PAGE_HUGETLB before anybody can find them. Making a run a huge page, and the
 * reverse, is the business of hvo.h and happens outside the pool's lock.
 *
 * A free page may be BARE: it has no struct pages yet, and a frame in metadata memory is reserved
 * for its head. It is counted, listed and promised like any other, and it gets its struct pages
 * when it is taken, which cannot fail. Only hugepages= (pool_boot.h) adds bare pages. Other pages
 * are taken before them.
 *
 * The calls for programs are in mm/pools.h. Context: ordinary (mm.h), for each call that does not
 * name another. Any CPU; rounds may be started.
 */
#pragma once

#include "kernel/core/panic.h"
#include "mm/contig/bad_frames.h"
#include "mm/hvo/hvo.h"
#include "mm/memmap/zone.h"
#include "mm/pools.h"

struct migrate_stats;

/*
 * Lock keys of the fields of struct pool_node and struct pool:
 *
 *   (c)   constant after start-up, or after pool_init() for a private pool
 *   (p)   pool->lock, to read and to write
 *   (a)   atomic, read and written by anybody without a lock
 *   (pa)  written under pool->lock by an atomic store, read by anybody without it
 *   (ph)  written under pool->lock; a reader without the lock gets a hint that may be stale
 *
 * Accounting reads all of them without the lock, while the other CPUs are parked.
 */
struct pool_node {
	struct block_list free; /* (ph) free pages of the node; hint: the count only */
	u64 pages, surplus;     /* (ph, p) pages: free and in use */
};

struct pool {
	struct mm *mm;        /* (c) */
	struct pool *next;    /* (c) next pool of the same mm */
	unsigned order;       /* (c) */
	struct spinlock lock; /* the lock of key (p) */
	/* (ph) */
	u64 pages, free, in_use, surplus, reserved, overcommit;
	u64 making; /* (p) surplus pages being made, claimed against overcommit */
	/* (c) pages that boot added (pool_boot.h); those of them that were bare; the ns it took */
	u64 boot, boot_bare, boot_ns;
	bool has_bare;  /* (a) set before the first bare page is listed, and stays */
	u64 grow_share; /* (a) pages asked for so far; shows where equal shares begin */
	/* (p) pages given back in equal shares so far; shows where the next shares begin */
	u64 free_share;
	struct pool_node *node; /* (c) the array, one entry for each node of the mm */
};

/* Pool lock held. Pages of a node in use. */
static inline u64 pool_node_in_use(const struct pool_node *node)
{
	return node->pages - node->free.count;
}

/* Pool lock held. Pages of a node that are surplus and free. */
static inline u64 pool_node_free_surplus(const struct pool_node *node)
{
	return node->surplus - MIN(node->surplus, pool_node_in_use(node));
}

/* The node in which a page of the pool lies. */
static inline struct pool_node *pool_node_of(struct pool *pool, u32 index)
{
	return &pool->node[block_zone(pool->mm, index)->node];
}

/* What an event adds to the counts of a pool, and to those of the node in which its pages lie. */
struct pool_delta {
	s64 pages, free, surplus, reserved, in_use;
};

/*
 * Pool lock held. All changes of a pool's counts come through here, each with all that it changes.
 * `node` may be NULL if only `reserved` changes. The caller puts free pages onto the node's list,
 * or takes them off it, under the same hold of the lock.
 */
static inline __attribute__((always_inline)) void
pool_count(struct pool *pool, struct pool_node *node, struct pool_delta by)
{
	pool->reserved += (u64)by.reserved;
	if (!node)
		return;
	node->pages += (u64)by.pages;
	node->surplus += (u64)by.surplus;
	pool->pages += (u64)by.pages;
	pool->surplus += (u64)by.surplus;
	if (by.free != 0)
		counter_add(&pool->free, (u64)by.free);
	if (by.in_use != 0)
		counter_add(&pool->in_use, (u64)by.in_use);
	ASSERT(pool->pages == pool->free + pool->in_use && node->surplus <= node->pages,
	       "a pool of order %u has %llu pages, %llu free and %llu in use; a node %llu, %llu "
	       "surplus",
	       pool->order, pool->pages, pool->free, pool->in_use, node->pages, node->surplus);
}

/*
 * Pool lock held. Put a page on its node's list, or take it off. `by` is what this adds to the
 * counts beside `free`. (pool.c moves many pages at a time.)
 */
static inline __attribute__((always_inline)) void
pool_put_in(struct pool *pool, struct pool_node *node, u32 index, struct pool_delta by)
{
	block_set_pool_free(pool->mm, index);
	block_list_push(pool->mm, &node->free, index);
	by.free = 1;
	pool_count(pool, node, by);
}

static inline __attribute__((always_inline)) void
pool_take_out(struct pool *pool, struct pool_node *node, u32 index, struct pool_delta by)
{
	block_list_remove(pool->mm, &node->free, index);
	block_clear_pool_free(pool->mm, index);
	by.free = -1;
	pool_count(pool, node, by);
}

/*
 * Initialise an empty pool of pages of `order` (9 or 18) over `mm`. `nodes` has room for mm->nodes
 * entries. Context: handler.
 */
void pool_init(struct pool *pool, struct mm *mm, unsigned order, struct pool_node *nodes);

/*
 * For pool_use.c. pool_make() makes up to `count` pages, huge and in transit, from `node`, or from
 * any node that can give them if `node` is NODE_NONE.
 *
 * pool_release() returns pages that have left the pool to the buddy. Pages that cannot be restored
 * stay in the pool as surplus. Returns how many went.
 */
u64 pool_make(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count,
	      struct block_list *list);
u64 pool_release(struct pool *pool, const struct hvo_mode *mode, struct block_list *list);

/*
 * For pool_use.c. pool_add_promised() makes and promises up to `count` surplus pages, which the
 * caller has claimed in pool->making, and drops the claim. Returns how many were made.
 *
 * pool_shed_surplus() returns up to `count` free, unpromised surplus pages to the buddy. Returns
 * how many went.
 */
u64 pool_add_promised(struct pool *pool, u64 count);
u64 pool_shed_surplus(struct pool *pool, const struct hvo_mode *mode, u64 count);

/*
 * Give a page that is off the pool's lists its struct pages, if it is bare. The caller owns it. No
 * lock held.
 */
void pool_page_make(struct pool *pool, u32 index);

/* Do frames that were found bad wait for the pages that they are in? */
static inline bool pool_watches_bad(const struct pool *pool)
{
	return unlikely(atomic_load_relaxed(&pool->mm->watch) & WATCH_BAD);
}

/*
 * A page became free in the pool. If it has a bad frame it leaves at once; else the frames that
 * wait for a free page are looked at, at their pace. No lock held.
 */
static inline void pool_withdraw_bad(const struct pool *pool, u32 index)
{
	if (!pool_watches_bad(pool))
		return;
	if (bad_frames_pending(pool->mm, block_pfn(index), order_pages(pool->order)))
		bad_frames_withdraw(pool->mm);
	else
		bad_frames_freed(pool->mm, block_pfn(index), pool->order);
}

/*
 * The pool over `mm` with pages of `order`, or NULL. At most one exists for each order. Context:
 * any.
 */
struct pool *pool_with_order(struct mm *mm, unsigned order);
