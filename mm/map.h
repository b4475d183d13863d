/*
 * What other files need of the mappings of page_map() (mm.h): map.c.
 */
#pragma once

#include "kernel/types.h"

/* Address of a mapping of the page at `pfn`; 0: there is none. Looks at every mapping, so it is for messages. */
virt_t map_find(pfn_t pfn);

/*
 * Take away whatever is mapped in the GiB of addresses at `virt`, and its tables, on every CPU. No page is given back: that is
 * page_unmap(). No lock held.
 */
void map_clear(virt_t virt);
