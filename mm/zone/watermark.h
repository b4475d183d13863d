/*
 * Watermarks: how much of a zone is kept back, and for which requests.
 *
 *   0 ......... reserve ............................................ all that is free
 *   | NOFLUSH    | every request                                    | see below
 *
 * A request that may not wait (PAGE_NOFLUSH: its caller holds a lock) can neither open a section
 * nor start a round, so it depends on free memory that has struct pages now. Two promises are kept
 * for such requests:
 *
 *   reserve   other requests leave that many frames. They are counted net: unopened and bare
 *             memory counts less the cost of opening it (struct pages, tables, records: those
 *             frames become metadata memory's).
 *   ready     of the reserve, up to 256 frames have struct pages already. An allocation that may
 *             wait and finds fewer splits a block, for the sake of those that may not.
 *
 * In addition, memory below 4 GiB is kept from requests that could be served above it (`lowmem`).
 *
 * The default reserve grows with the square root of the zone, as Linux's min_free_kbytes does,
 * because short bursts of such requests do not grow with memory (Linux documentation, "vm sysctl",
 * min_free_kbytes; lowmem_reserve_ratio).
 *
 * Pools take whole blocks and are not bound by this: people choose their size.
 */
#pragma once

#include "mm/memmap/zone.h"

enum { RESERVE_DEFAULT = -1 };

/*
 * Set every zone's reserve to `frames`, or to the default (RESERVE_DEFAULT). Start-up, and tests.
 */
void zones_set_reserve(struct mm *mm, s64 frames);

/* The reserve that reserve= asks for. */
s64 reserve_at_boot(void);

/*
 * Frames that any request could have now as small pages, without opening, converting or waiting.
 * CMA's and isolated frames are not counted.
 */
u64 zone_ready(const struct zone *zone);

/*
 * Frames that the zone could give as pages of `order`: all free and unopened memory, less the cost
 * of opening it.
 */
u64 zone_net(const struct zone *zone, unsigned order);

/*
 * May this request take 2^order frames of the zone? No lock; the answer may be stale because of
 * other CPUs' work.
 */
bool zone_admits(const struct zone *zone, unsigned order, unsigned request);

/*
 * Frames that the zone has, net, above what it keeps back. A CPU that fetches more than it was
 * asked for fetches at most these, because it gives them out without asking again.
 */
u64 zone_spare(const struct zone *zone);

/* Print a table of the first `most` zones: free memory by type and net, and the reserve. */
void zones_print(const struct mm *mm, unsigned most);
