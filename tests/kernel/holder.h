/*
 * A holder of movable pages, as programs are: a table of pages behind a lock, each known by its
 * slot, and a mover that changes the table. For cases of migration and contiguous ranges, and their
 * benchmark.
 */
#pragma once

#include "kernel/core/lock.h"
#include "mm/memmap/zone.h"

struct holder {
	struct mm *mm;
	struct spinlock lock;
	struct page **page;
	u64 slots, room; /* used, from the first on; all there are */
	u64 moved;       /* pages */
	bool phantom;    /* there is no memory behind them: contents are not copied */
	/* one word of a page is written and looked at: for benchmarks; else every byte */
	bool sparse;
	u32 refuse; /* how many times moving is refused from now on */
};

/* `page`: a table of `room` slots, the caller's. */
void holder_init(struct holder *h, struct mm *mm, struct page **page, u64 room);

/* Take one more page, fill it, make it movable. False if there is none, or no slot. */
bool holder_take(struct holder *h, unsigned order, node_t node);

/* Hold a page that was got otherwise. */
bool holder_adopt(struct holder *h, struct page *page);

/* Give one back; all. */
void holder_give(struct holder *h, u64 slot);
void holder_give_all(struct holder *h);

/* Is every page's content what was written to it? Pages with a frame in [first, end). */
bool holder_intact(struct holder *h);
u64 holder_pages_in(struct holder *h, pfn_t first, pfn_t end);
