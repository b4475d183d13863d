/*
 * Watermarks: how much of a zone is kept back, and for whom.
 *
 *   0 ......... reserve ............................................ all that is free
 *   | NOFLUSH    | every request                                    | as seen below
 *
 * A request that may not wait (PAGE_NOFLUSH: its caller holds a lock) can neither open a section nor start a round: it lives on
 * what is there. So two promises are kept for it:
 *
 *   reserve   other requests leave that many frames, counted net: unopened and bare memory less what it costs to open it
 *             (struct pages, tables, records: those frames become META's)
 *   ready     of these, up to 256 have struct pages already: who allocates and finds fewer splits a block for those who cannot
 *
 * Besides, memory below 4 GiB is kept from requests that could be served above it (`lowmem`).
 *
 * The default reserve grows with the square root of the zone, as Linux's min_free_kbytes does: short bursts of such requests
 * do not grow with memory (Linux documentation, "vm sysctl", min_free_kbytes; lowmem_reserve_ratio).
 *
 * Pools take whole blocks and are not bound by this: they are sized by people.
 */
#pragma once

#include "mm/zone.h"

enum { RESERVE_DEFAULT = -1 };

/* Set every zone's reserve: so many frames, or RESERVE_DEFAULT. Start-up, and tests. */
void zones_set_reserve(struct mm *mm, s64 frames);

/* What reserve= asks for. */
s64 reserve_at_boot(void);

/* Frames that anybody could have as small pages now, without opening, converting or waiting (CMA's are not for anybody). */
u64 zone_ready(const struct zone *zone);

/* Frames of `order` pages that the zone could give, all free and unopened memory less what opening it costs. */
u64 zone_net(const struct zone *zone, unsigned order);

/* May this request take 2^order frames of the zone? No lock; the answer may be stale by what others do meanwhile. */
bool zone_admits(const struct zone *zone, unsigned order, unsigned request);

/* "DMA32", "NORMAL". */
const char *zone_name(const struct zone *zone);

/* A table of the first `most` zones: what is free, by type and net, and what is kept back. */
void zones_print(const struct mm *mm, unsigned most);
