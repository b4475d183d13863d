/* The page and the page tables that APs begin on; see smp_page.c. */
#pragma once

#include "kernel/lib/types.h"

/*
 * Find the page (below `ebda` if that is not 0), fill it, and make the start-up page tables. Call
 * once every stack is mapped. Returns 0, or -ENOMEM if there is no such page or no frame for the
 * tables.
 */
int smp_page_make(phys_t ebda);

/* Number of the page, which a start-up message carries. */
u8 smp_page_vector(void);
