/* The page and the page tables that APs begin on: see smp_page.c. */
#pragma once

#include "kernel/types.h"

/*
 * Find the page (below `ebda` if that is not 0) and fill it; make the start-up page tables. Once every stack is mapped.
 * 0, or -ENOMEM if there is no such page or no frame for the tables.
 */
int smp_page_make(phys_t ebda);

/* Its number: what a start-up message carries. */
u8 smp_page_vector(void);

/* How many CPUs have reached 16-bit and 32-bit code there. */
void smp_page_seen(u32 *seen16, u32 *seen32);
