/*
 * Per-CPU lists: rings of frame numbers for orders 0..3, one set per migratetype, in front of a zone's buddy.
 *
 *   ring of (zone, type, order)   [pfn][pfn][pfn]....      last in, first out: the hottest frame goes out first
 *
 * No type is cached with a page. Freeing reads the block's type once to choose the ring; draining reads it again under
 * zone->lock, so a block that was retyped meanwhile gets its pages on the right list (Weiner, "mm: page_alloc: remove
 * pcppage migratetype caching", 2023-09). Pages of isolated blocks never enter a ring.
 *
 * A ring belongs to its CPU. Nothing is locked and no interrupt is masked: handlers neither allocate nor free. Another
 * CPU that wants the pages asks (pcp_drain_all): the owner drains at once in its interrupt, unless it is just inside the
 * allocator; then it drains on leaving.
 */
#pragma once

#include "mm/zone.h"

enum { PCP_ORDERS = 4, PCP_SIZE = 128, PCP_BATCH = 32 };

struct pcp_ring {
	u32 count;
	u32 pfn[PCP_SIZE]; /* relative to the zone's first frame: zones of up to 16 TiB */
};

/* One CPU's rings for one zone, and its share of the counts. */
struct pcp_zone {
	struct pcp_ring ring[MIGRATE_TYPES][PCP_ORDERS];
	s64 in_use; /* frames handed out less frames taken back by this CPU; the sum over CPUs is what is in use */
	u64 lookups; /* pageblock types read on freeing */
};

struct pcp {
	u8 drain_wanted; /* written by others: drain on leaving the allocator */
	struct pcp_zone zone[];
};

/* Enter and leave the allocator on this CPU: drains asked for meanwhile are done on leaving. Nest. */
void pcp_enter(void);
void pcp_leave(struct mm *mm);

/* From this CPU's ring, refilling it from the buddy. NULL if the zone's small lists have no such page. Entered. */
struct page *pcp_alloc(struct zone *zone, unsigned order, enum migratetype type);

/* To this CPU's ring, draining part of it when full. Entered. */
void pcp_free(struct zone *zone, struct page *page, unsigned order);

/* Every CPU's rings back to the buddy. No lock held; waits for all owners. */
void pcp_drain_all(struct mm *mm);

/* Frames on all rings of a zone; exact when all CPUs are parked. */
u64 pcp_count(const struct mm *mm, const struct zone *zone);
s64 pcp_in_use(const struct mm *mm, const struct zone *zone);
void pcp_add_in_use(struct zone *zone, s64 frames);
