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
 *   deferred    free pages that are not made yet: pool_defer.h
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
 * The calls for programs are in mm/pools.h. Context: ordinary (mm.h), for each call that does not
 * name another. Any CPU; rounds may be started.
 */
#pragma once

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
	u64 deferred;           /* (ph) free pages that are not made yet (pool_defer.h) */
	bool opening;           /* (p) a CPU opens a deferred GiB of the node */
};

struct pool {
	struct mm *mm;        /* (c) */
	struct pool *next;    /* (c) next pool of the same mm */
	unsigned order;       /* (c) */
	struct spinlock lock; /* the lock of key (p) */
	/* (ph) */
	u64 pages, free, in_use, surplus, reserved, overcommit;
	u64 making; /* (p) surplus pages being made, claimed against overcommit */
	/* (c) pages made or deferred at boot (pool_boot.h); the latter; the ns it took */
	u64 boot, boot_deferred, boot_ns;
	/* (pa) free pages known to be zero: marked in their records, first in their lists */
	u64 zeroed;
	u64 cleared_ns; /* (pa) time that all idle CPUs spent clearing pages ahead of need */
	/*
	 * (pa) pages in use because a CPU clears them, and (p) because it makes deferred ones; back
	 * in a moment. An idle CPU that makes some to clear counts as clearing one.
	 */
	u64 clearing, opening;
	u64 holds; /* (pa) requests during which no page is cleared (prezero.h) */
	u64 turn;  /* (a) pages asked for so far; shows where equal shares begin */
	/* (p) pages given back in equal shares so far; shows where the next shares begin */
	u64 free_turn;
	struct pool_node *node; /* (c) the array, one entry for each node of the mm */
};

/* Pool lock held. Pages of a node in use, with those that are being cleared or made. */
static inline u64 pool_node_in_use(const struct pool_node *node)
{
	return node->pages - node->free.count - node->deferred;
}

/* Pool lock held. Pages of a node that are surplus and free. */
static inline u64 pool_node_free_surplus(const struct pool_node *node)
{
	return node->surplus - MIN(node->surplus, pool_node_in_use(node));
}

/* Equal shares, rounded up without a sum that could overflow: a user may ask for any count. */
static inline u64 pool_share_of(u64 count, node_t nodes)
{
	return count / nodes + (count % nodes != 0);
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
 * Make the pages of one deferred GiB of the node (number `gib`, or GIB_ANY) and put them onto its
 * free list. False if another CPU is doing that for this node now, the node has no deferred pages,
 * or none in that GiB. Pages for which metadata memory has no frames leave the pool.
 */
bool pool_make_deferred(struct pool *pool, node_t node, u64 gib);

/* Make all deferred pages: for benchmarks, which are not to time that. */
void pool_make_all_deferred(struct pool *pool);

/*
 * Let pools of `mm` make the pages of GiB `gib`, if it is deferred. It may still be deferred, or be
 * under way on another CPU, when this returns.
 */
void pools_open_deferred(struct mm *mm, u64 gib);

/*
 * For pool_use.c and pool_move.c. Pool lock held. Add a page to the free pages of its node, first
 * if it is known to be zero. The caller counts it as one of the pool's pages and as free. Context:
 * handler.
 */
void pool_list_free(struct pool *pool, u32 index);

/*
 * The page is off the list already and leaves the pool as it is. It stays known to be zero, unless
 * it has all its struct pages: it may then become small pages without a change of state, which
 * would drop the note (block.h). Pool lock held.
 */
static inline void pool_unlist_free(struct pool *pool, u32 index)
{
	if (likely(!block_clear_pool_free(pool->mm, index, 0)))
		return;
	counter_sub(&pool->zeroed, 1);
	if (block_look_at(pool->mm, index).state != BLOCK_HUGE)
		block_forget_zero(pool->mm, index);
}

/* A page became free in the pool: has it a bad frame? No lock held. */
static inline void pool_withdraw_bad(const struct pool *pool, u32 index)
{
	if (unlikely(atomic_load_relaxed(&pool->mm->watch) & WATCH_BAD))
		bad_frames_given_back(pool->mm, block_pfn(index), pool->order);
}

/*
 * The pool over `mm` with pages of `order`, or NULL. At most one exists for each order. Context:
 * any.
 */
struct pool *pool_with_order(struct mm *mm, unsigned order);
