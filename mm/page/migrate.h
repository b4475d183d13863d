/*
 * Moving pages: the contents of a page and everything that refers to it go to another page, so that
 * a range becomes free.
 *
 *   the mover                                      the holder (struct page_mover in mm.h)
 *   holds the page by a reference of its own
 *   takes another page of the same order,
 *   gives it the same mover
 *                            move(from, to) --->   under its own lock: still mine? copies contents
 *                                                  and private words, refers to `to` instead
 *                                            <---  0: `to` is the holder's, `from` the mover's;
 *                                                  anything else: nothing changed
 *   drops `from`, or `to`
 *
 * A pool moves its free pages by taking another page for each; its used pages move through their
 * holders. 1 GiB pages of a pool move only if the caller says so, because they make no room for
 * another one.
 *
 * Source: Linux documentation, "Page migration" and "movable_operations".
 */
#pragma once

#include "mm/memmap/zone.h"

/* The calls of mm.h for any struct mm. */
void mm_page_set_movable(struct mm *mm, struct page *page, const struct page_mover *mover);

/*
 * Take a reference to a page in use that has a mover and is not mapped by page_map(). Returns false
 * for any other page.
 */
bool page_get_movable(struct page *page);

/*
 * Ask the holder of `from` to take `to`, a page of the same order that belongs to the caller.
 * Returns what the holder's move() returned.
 */
int page_move(struct mm *mm, struct page *from, struct page *to);

/* The page is about to be free, so it loses its mover. For code that frees it. */
void page_forget_mover(struct mm *mm, struct page *page);

/* Results of moving. */
struct migrate_stats {
	u64 pages;  /* frames of 4 KiB moved, copied by their holders */
	u64 pooled; /* frames of free pool pages, replaced without a copy */
	u64 failed; /* attempts that a holder refused */
};

enum migrate_giga { MIGRATE_KEEP_GIGA, MIGRATE_MOVE_GIGA };

/* How to empty a range. */
struct migrate_how {
	enum migrate_giga giga;
	/* where single pages go first (refuge.h); NULL: wherever the allocator has room */
	struct refuge *refuge;
};

/*
 * Move each page in use of `count` frames of an isolated full block, or an isolated huge page. What
 * they leave is free at the end. -ENOMEM ends it; a page that merely refuses to move now does not,
 * and is -EBUSY. No lock held.
 */
int migrate_pages(struct mm *mm, struct page *pages, u64 count, const struct migrate_how *how,
		  struct migrate_stats *stats);

/*
 * Empty an isolated range. Returns 0 when every frame of it is in the buddy; -ENOMEM if there was
 * no page to move to; -EBUSY if something could not be moved in five passes, or was in transit for
 * longer than a deadline. Pages already moved stay moved. No lock held; may start rounds, open
 * sections and wait.
 */
int migrate_range(struct zone *zone, u32 first, u32 count, const struct migrate_how *how,
		  struct migrate_stats *stats);
