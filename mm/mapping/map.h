/* The parts of page_map() mappings (mm.h, map.c) that other files need. */
#pragma once

#include "kernel/lib/types.h"
#include "mm/vm/space.h"

/* Before memblock is frozen. */
void map_init(void);

/*
 * The address of a mapping of the page at `pfn`; 0 if there is none. Looks at every mapping, so it
 * is only for messages.
 */
virt_t map_find(pfn_t pfn);

/* The space of all mappings. */
extern struct space map_space;
