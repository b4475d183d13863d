/*
 * Moving pages: their contents and everything that refers to them go to another page, so that a range becomes free.
 *
 *   the mover                                      the holder (struct page_mover in mm.h)
 *   holds the page by a reference of its own
 *   takes another page of the same order,
 *   gives it the same mover and private words
 *                            move(from, to) --->   under its own lock: still mine? copies, refers to `to` instead
 *                                            <---  0: `to` is the holder's, `from` the mover's; else nothing changed
 *   drops `from`, or `to`
 *
 * Free pages of a pool are moved by the pool taking another for them; used ones through their holder. 1 GiB pages of a pool
 * only if the caller says so: they make no room for another one.
 *
 * Source: Linux documentation, "Page migration" and "movable_operations".
 */
#pragma once

#include "mm/zone.h"

/* The calls of mm.h for any machine. */
void mm_page_set_movable(struct mm *mm, struct page *page, const struct page_mover *mover);

/* A reference to a page in use that has a mover and is not mapped by page_map(); false if it is not that. */
bool page_get_movable(struct page *page);

/* Ask the holder of `from` to take `to`, which is alike and the caller's. What its move() says. */
int page_move(struct mm *mm, struct page *from, struct page *to);

/* The page is about to be free: it has no mover any more. For those who free it. */
void page_forget_mover(struct mm *mm, struct page *page);

/* Drop a reference to a page that is given back by its last one. */
void mm_page_put(struct mm *mm, struct page *page);

/* What moving did. */
struct migrate_stats {
	u64 pages;  /* moved, in 4 KiB frames: copied by their holders */
	u64 pooled; /* frames of free pool pages, replaced without a copy */
	u64 failed; /* attempts that a holder refused */
};

enum migrate_giga { MIGRATE_KEEP_GIGA, MIGRATE_MOVE_GIGA };

/* How a range is emptied. */
struct migrate_how {
	enum migrate_giga giga;
	struct refuge *refuge; /* where single pages go first (refuge.h); NULL: wherever the allocator has room */
};

/*
 * Empty an isolated range. 0 when every frame of it is in the buddy; -ENOMEM: no page to move to; -EBUSY: something could not be moved in
 * five passes, or was in transit for longer than a deadline. What was moved stays moved. No lock held; may start rounds, open sections, wait.
 */
int migrate_range(struct zone *zone, u32 first, u32 count, const struct migrate_how *how,
		  struct migrate_stats *stats);

/*
 * Move the pool page that block `index` heads, free or in use. 0; -ENOMEM, -EBUSY with nothing changed; -EAGAIN: it is
 * changing hands just now. (pool_move.c)
 */
int pool_move_page(struct mm *mm, u32 index, unsigned order, struct migrate_stats *stats);

/*
 * The same by a page that the caller has, used by nobody and in no count (pool_make_near()), and gives away: it takes the place of
 * block `old`, or is free when this returns. -EAGAIN also if `old` is no page of this pool by now.
 */
struct pool;
int pool_move_to(struct pool *pool, u32 old, u32 new, struct migrate_stats *stats);
