/* The parts of page_map() mappings (mm.h, map.c) that other files need. */
#pragma once

#include "kernel/lib/types.h"

/* Before memblock is frozen. */
void map_init(void);

/*
 * The address of a mapping of the page at `pfn`; 0 if there is none. Looks at every mapping, so it
 * is only for messages.
 */
virt_t map_find(pfn_t pfn);

/*
 * Addresses that page_map() takes if they are free, else the highest ones. Tests set them to have
 * some again soon. Atomic.
 */
extern virt_t map_next;
