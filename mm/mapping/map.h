/* The parts of page_map() mappings (mm.h, map.c) that other files need. */
#pragma once

#include "kernel/lib/types.h"

/*
 * The address of a mapping of the page at `pfn`; 0 if there is none. Looks at every mapping, so it
 * is only for messages.
 */
virt_t map_find(pfn_t pfn);

/*
 * Remove whatever is mapped in the GiB of addresses at `virt`, with its tables, on every CPU. No
 * page is freed; page_unmap() does that. No lock held.
 */
void map_clear(virt_t virt);
