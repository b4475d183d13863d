/*
 * GiB of RAM that stay unopened, deferred, until a pool needs their pages (pool_defer.h). Their
 * memory belongs to the pool from the moment they are deferred: nobody else opens them, and when
 * the pool opens one, its blocks never pass through the free lists, where other users could take
 * them.
 *
 *   UNOPENED --section_defer_gibs()--> DEFERRED --section_open_deferred()--> OPEN, and a list of
 *      ^                                  |                                  blocks in transit
 *      +-----section_undefer_gibs()-------+
 *
 * Invariants
 *   1. The eight sections of a GiB are deferred together, and claimed together by a CAS of the
 *      first of them. They are OPENING until the last one is done.
 *   2. zone->deferred is the number of frames in DEFERRED sections of the zone, and such frames are
 *      not in zone->unopened.
 *   3. The frames that opening a deferred GiB takes are kept for it: those of its block records are
 *      taken (gib->kept), and the others reserved in metadata memory (zone->kept_to_open). They
 *      stay reserved until they are used, so that nobody else can have them in between.
 */
#pragma once

#include "mm/memmap/zone.h"

#define GIB_ANY (~0ULL)

/*
 * The use that a pool has for its deferred GiB. All GiB of a zone with one use are alike; a GiB may
 * be opened for another use of the zone than it was deferred for.
 */
struct gib_use {
	unsigned heads; /* frames for heads that its pages need */
	/*
	 * blocks that become metadata memory and hold these frames; 0: they are reserved as long as
	 * the GiB is deferred
	 */
	unsigned meta;
	bool join; /* its blocks become one run of GIGA_ORDER */
};

/*
 * Defer up to `count` GiB of a zone, the lowest first, that were never opened and were free when
 * the machine started. Returns how many: fewer if there are no more, or metadata memory has no
 * frames to keep. No lock held.
 */
u64 section_defer_gibs(struct zone *zone, u64 count, const struct gib_use *use);

/* Make up to `count` deferred GiB of a zone unopened memory again. Returns how many. */
u64 section_undefer_gibs(struct zone *zone, u64 count, const struct gib_use *use);

/*
 * Open the deferred GiB number `gib` (physical address / 1 GiB) or the zone's first one, and append
 * its blocks, or the run that they are joined to, to `list`, bare and in transit to pages. A frame
 * is reserved for the head of each.
 *
 * Returns false if the zone has no such GiB. Blocks without tables or head, for lack of frames, are
 * unopened or free memory then, and missing in the list. No lock held.
 */
bool section_open_deferred(struct zone *zone, u64 gib, const struct gib_use *use,
			   struct block_list *list);
