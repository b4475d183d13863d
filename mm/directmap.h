/*
 * The direct map: all RAM, and nothing but RAM, at DIRECT_MAP_BASE + physical address, never executable, with the
 * largest pages that fit. The kernel's text and constants appear in it read-only, so that nothing executable is
 * writable under another address.
 */
#pragma once

#include "mm/pgtable.h"

/* Build it in the kernel's root table. Boot CPU, once, on the boot tables. Panics if page tables do not fit. */
void direct_map_init(void);

/* Leaves used, for the machine page. */
extern struct pgtable_counts direct_map_counts;
