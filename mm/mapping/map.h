/* The parts of page_map() mappings (mm.h, map.c) that other files need. */
#pragma once

#include "kernel/lib/types.h"
#include "mm/map/vmap.h"

/*
 * The address of a mapping of the page at `pfn`; 0 if there is none. Looks at every mapping, so it
 * is only for messages.
 */
virt_t map_find(pfn_t pfn);

/*
 * page_map() takes the first free slot of MAP_SLOTS from this one on. Written under its lock, and
 * by tests of the reuse of addresses.
 */
#define MAP_SLOT_BYTES GIB(2)
#define MAP_SLOTS      ((u32)(VMAP_PAGES_SIZE / MAP_SLOT_BYTES))
extern u32 map_slots_next;
