/*
 * The direct map: all RAM, and nothing but RAM, at DIRECT_MAP_BASE + physical address, never
 * executable, with the largest pages that fit. The kernel's text and constants appear in it
 * read-only, so that nothing executable is writable under another address.
 */
#pragma once

#include "mm/map/pgtable.h"

/*
 * Build the direct map in the kernel's root table. Boot CPU, once, on the boot page tables. If
 * there is no memory for its page tables, the run ends as failed (memblock_too_little()).
 */
void direct_map_init(void);
