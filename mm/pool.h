/*
 * Pools of huge pages (hstates): memory set aside as 2 MiB or 1 GiB pages, grown and shrunk while the machine runs.
 *
 *   grow    buddy --take--> in transit --optimise--> [a turn at the lock for each slice] --> free list of the node
 *   shrink  free list --[a turn at the lock for each slice]--> restore if need be --> buddy
 *
 * Counts, in pages, per node and in all, as Linux has them:
 *
 *   pages       free + in use
 *   surplus     pages beyond what was asked for: a page goes back to the buddy instead of the pool when it is given back
 *   reserved    free pages promised to somebody; nobody else gets them
 *   persistent  pages - surplus: what resizing sets
 *   overcommit  how many surplus pages may be made when a page is wanted and none is free
 *
 * A node's surplus never exceeds its pages. Free pages are surplus only where restoring failed or a promise held them.
 *
 * BLOCK_POOL_FREE says that a page is on its node's list; it changes under the pool's lock. A page may be replaced by another
 * (migrate.h): a free one by the pool alone, a used one through its holder's mover; the counts stay.
 *
 * Free pool pages live in the block table (links in the records), are frozen (refcount 0) and marked PAGE_HUGETLB before
 * anybody can find them. What makes a run a huge page and back is hvo.h's business and happens outside the pool's lock.
 *
 * Context: ordinary (mm.h), for each call that does not name another. Any CPU; rounds may be started.
 */
#pragma once

#include "mm/hvo.h"

struct pool_node {
	struct block_list free;
	u64 pages, surplus; /* pages: free and in use */
};

struct pool {
	struct mm *mm;
	struct pool *next; /* of this mm's */
	unsigned order;
	struct spinlock lock;
	u64 pages, free, in_use, surplus, reserved, overcommit;
	u64 making; /* surplus pages on their way, claimed against overcommit */
	u64 boot, boot_ns; /* pages made at boot (pool_boot.h), and what making them took */
	u64 zeroed;   /* free pages known to be zero: their records say so, and they stand first */
	u64 clearing; /* pages in use because an idle CPU clears them, back in a moment */
	u64 turn;   /* pages asked for so far: where equal shares begin; atomic */
	u64 free_turn; /* pages given back in equal shares so far: where the next shares begin; under the lock */
	struct pool_node *node;
};

/* The machine's pools. */
extern struct pool pool_2m, pool_1g;

/* An empty pool of pages of `order` (9 or 18) over `mm`; `nodes` has room for mm->nodes. Context: handler. */
void pool_init(struct pool *pool, struct mm *mm, unsigned order, struct pool_node *nodes);

/*
 * Add up to `count` pages made huge as `mode` says: from one node, or with NODE_NONE in equal shares from all, and what some cannot
 * give from the others. Returns how many were added: as many as fit, nothing is lost.
 */
u64 pool_grow(struct pool *pool, const struct hvo_mode *mode, u64 count);
u64 pool_grow_on(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count);

/*
 * Give back up to `count` free pages that are not reserved. Returns how many; fewer if the rest are in use or reserved, or could not
 * be restored for lack of frames: those stay, usable, as surplus.
 */
u64 pool_shrink(struct pool *pool, const struct hvo_mode *mode, u64 count);
u64 pool_shrink_on(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count);

/*
 * Set the number of persistent pages. Pages in use beyond `target` become surplus and go back when their holder gives them
 * back. Returns the persistent number reached.
 */
u64 pool_resize(struct pool *pool, const struct hvo_mode *mode, u64 target);

/* How many surplus pages there may be from now on; those there are stay until they are given back. Context: handler. */
void pool_set_overcommit(struct pool *pool, u64 count);

/* Split up to `count` free 1 GiB pages into 2 MiB pages of `to`, one batch. Returns how many were split. */
u64 pool_demote(struct pool *from, struct pool *to, const struct hvo_mode *mode, u64 count);

/*
 * For pool_use.c: up to `count` pages of `node`, or of any that can if it is NODE_NONE, huge and in transit. And: pages
 * that left the pool go back to the buddy; those that cannot be restored stay, as surplus. Returns how many went.
 */
u64 pool_make(struct pool *pool, const struct hvo_mode *mode, node_t node, u64 count, struct block_list *list);
u64 pool_release(struct pool *pool, const struct hvo_mode *mode, struct block_list *list);

/* One page, used by nobody and on no list, from the nearest node that has one; in no count yet. BLOCK_NONE if there is none. (pool_use.c) */
u32 pool_make_near(struct pool *pool, node_t near);

/*
 * Promise `count` free pages to the caller; what is missing is made as surplus, as far as overcommit allows. 0, or -ENOMEM with nothing
 * promised. Giving a promise back sheds free surplus pages, as many at most: they were there for it.
 */
int pool_reserve(struct pool *pool, u64 count);
void pool_unreserve(struct pool *pool, u64 count);

/*
 * For pool_use.c. Up to `count` surplus pages, which the caller has claimed in pool->making, are made and promised; the claim is dropped.
 * Returns how many. And: up to `count` free, unpromised pages go back to the buddy as surplus. Returns how many went.
 */
u64 pool_add_promised(struct pool *pool, u64 count);
u64 pool_shed_surplus(struct pool *pool, const struct hvo_mode *mode, u64 count);

/*
 * A page for use, refcount 1, nearest to `node`; `how`: one of those promised, or any other. NULL if none is free and overcommit
 * allows no surplus page.
 *
 * pool_page_give() drops the caller's reference, as page_put() does; with the last one the page is the pool's again. `page`: the head
 * of a page of this pool, in use. Any other is refused by name (page_check.h), and nothing changes.
 */
enum pool_take { POOL_ANY, POOL_RESERVED };
struct page *pool_page_take(struct pool *pool, node_t node, enum pool_take how);

void pool_page_give(struct pool *pool, struct page *page);

/* The same for a caller that wants a zero page: *zeroed says whether it is one already. */
struct page *pool_page_take_zero(struct pool *pool, node_t node, enum pool_take how, bool *zeroed);

/* The pool over `mm` with pages of `order`, or NULL. There is one of each at most. Context: any. */
struct pool *pool_with_order(struct mm *mm, unsigned order);

/* What an mm with pools knows of them (pool_use.c). */
extern const struct page_pool_ops pool_page_ops;

/*
 * For prezero.c: a free page that nobody was promised and that is not known to be zero, nearest to `node`, if fewer than `limit` are;
 * counted in use until it is given back, cleared or not. BLOCK_NONE if there is none to clear.
 */
u32 pool_take_to_clear(struct pool *pool, node_t node, u64 limit);
void pool_give_cleared(struct pool *pool, u32 index, bool zeroed);

/*
 * Frames that a full memmap of the pool's pages would use, less those that describe them now, less page tables of their sections.
 * Counted PTE by PTE. 447 for 64 pages of 2 MiB, 4087 for one of 1 GiB.
 */
s64 pool_frames_saved(struct pool *pool);
