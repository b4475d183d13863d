/*
 * Lists of an arena's free memory, for cases of migratetypes and isolation.
 */
#pragma once

#include "mm/page/page_alloc.h"
#include "mm/zone/buddy.h"
#include "mm/zone/isolate.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/free_runs.h"

enum { RANGE = 96, AT = 40 }; /* in blocks; the range reaches over a section's border */

/* Borrow a gigabyte of phantom memory, open and free. */
static inline struct arena *borrow_gigabyte(void)
{
	struct arena *a = arena_usual();

	if (a)
		arena_open_all(a);
	return a;
}

static inline struct page *alloc_on_phantom(struct arena *a, unsigned order, enum page_use use)
{
	return mm_page_alloc(&a->mm, order, use, PAGE_NODE, a->options.nodes);
}

/* Take a movable page of the phantom. */
static inline struct page *take_phantom(struct arena *a, unsigned order)
{
	return alloc_on_phantom(a, order, USE_MOVABLE);
}

/* Change only a block's type; its free pages stay on their lists. */
static inline void retype(struct zone *zone, u32 index, u8 type)
{
	spin_lock(&zone->lock);
	block_change(block_at(zone->mm, index), BLOCK_WORD(.type = 0xff), BLOCK_WORD(.type = type));
	spin_unlock(&zone->lock);
}

/* Isolate one block at once, whatever its state. */
static inline int isolate_block(struct zone *zone, u32 index, struct isolation *token)
{
	int err;

	spin_lock(&zone->lock);
	err = isolate_now(zone, index, 1, token);
	spin_unlock(&zone->lock);
	return err;
}

/* Frames on the free lists of one kind, below 2 MiB. */
static inline u64 listed_small(const struct zone *zone, enum migratetype list)
{
	u64 frames = 0;

	for (unsigned order = 0; order < PAGE_ORDERS; order++)
		for (const struct page *page = zone->page_list[list][order]; page;
		     page = page->next)
			frames += order_pages(order);
	return frames;
}

/* Frames on the free lists of one kind, whole blocks included. */
static inline u64 listed(const struct zone *zone, enum migratetype list)
{
	u64 frames = listed_small(zone, list);

	for (unsigned class = 0; class < FREE_CLASSES; class ++)
		for (unsigned order = BLOCK_ORDER; order <= GIGA_ORDER; order++)
			frames += buddy_count_runs(zone, class, list, order) * order_pages(order);
	return frames;
}

static inline bool one_free_gigabyte(const struct zone *zone)
{
	return zone->block_list[FREE_BARE][MIGRATE_MOVABLE][GIGA_ORDER - BLOCK_ORDER] != BLOCK_NONE;
}
