/* Bringing a page into a huge mapping, by a fault or because the mapping is populated. */
#pragma once

#include "mm/mapping/huge_map.h"

/*
 * Bring the page of `addr`, which lies in the pinned mapping, unless it is there, for a read, a
 * write, or huge_populate(), which leaves out pages that may not be accessed. Reads and writes want
 * the part at `addr` in the cache. HUGE_NO_PAGE: there is no page, or no memory for a table.
 */
enum huge_want { HUGE_TO_READ, HUGE_TO_WRITE, HUGE_TO_POPULATE };
enum huge_touched { HUGE_THERE, HUGE_NO_PAGE, HUGE_REFUSED_WRITE, HUGE_REFUSED };
enum huge_touched huge_touch(struct huge_map *map, virt_t addr, enum huge_want want);

/* Write `value` to all entries of a table that nobody else can reach yet. */
void huge_fill_table(pte_t *table, pte_t value);

/* Read an entry, after waiting until no CPU has it claimed. */
pte_t huge_unclaimed(const pte_t *entry);
