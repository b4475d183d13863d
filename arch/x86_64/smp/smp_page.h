/* The pages and the page tables that APs begin on; see smp_page.c. */
#pragma once

#include "kernel/lib/types.h"

/*
 * Find the pages (below `ebda` if that is not 0), fill them, and make the start-up page tables.
 * Call once every stack is mapped. Returns 0, or -ENOMEM if there are no such pages or no frame for
 * the tables.
 */
int smp_page_make(phys_t ebda);

/* Number of the code page, which a start-up message carries. */
u8 smp_page_vector(void);

/* Number of CPUs that have reached 16-bit and 32-bit code there. */
void smp_page_seen(u32 *seen16, u32 *seen32);
