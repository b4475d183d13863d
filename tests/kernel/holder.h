/*
 * A holder of movable pages, like a program: a table of pages behind a lock, where each page is
 * known by its slot, and a mover that changes the table. For cases of migration and contiguous
 * ranges, and for their benchmark.
 */
#pragma once

#include "kernel/core/lock.h"
#include "mm/memmap/zone.h"

struct holder {
	struct mm *mm;
	struct spinlock lock;
	struct page **page;
	u64 slots, room; /* slots used, from the first one on; slots in the table */
	u64 moved;       /* pages moved */
	bool phantom;    /* the pages have no memory, so contents are not copied */
	/* write and check one word of a page, for benchmarks; otherwise every byte */
	bool sparse;
	u32 refuse; /* how many of the next moves are refused */
};

/* `page` is a table of `room` slots that belongs to the caller. */
void holder_init(struct holder *h, struct mm *mm, struct page **page, u64 room);

/*
 * Allocate one more page, fill it and make it movable. Returns false if there is no page or no
 * slot.
 */
bool holder_take(struct holder *h, unsigned order, node_t node);

/* Hold a page that the caller has allocated. Returns false if there is no slot. */
bool holder_adopt(struct holder *h, struct page *page);

/* Free the page in one slot; free all pages. */
void holder_give(struct holder *h, u64 slot);
void holder_give_all(struct holder *h);

/*
 * holder_intact(): does every page still have the contents written to it? holder_pages_in(): the
 * number of pages whose first frame is in [first, end).
 */
bool holder_intact(struct holder *h);
u64 holder_pages_in(struct holder *h, pfn_t first, pfn_t end);

/* A mover that refuses each move. */
extern const struct page_mover mover_refuses;
