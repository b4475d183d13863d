/* Bringing a page into a huge mapping, by a fault or because the mapping is populated. */
#pragma once

#include "mm/mapping/huge_map.h"

/*
 * Bring the page of `addr`, which lies in the pinned mapping, unless it is there. `is_hint` says
 * that `addr` is the part wanted first. Returns false if there is no page, or no memory for a
 * table.
 */
bool huge_touch(struct huge_map *map, virt_t addr, bool is_hint);

/* Read an entry, after waiting until no CPU has it claimed. */
pte_t huge_unclaimed(const pte_t *entry);
