/* This CPU's TLB. How CPUs are told to flush: kernel/shootdown.h. */
#pragma once

#include "kernel/types.h"

/* Drop every translation, global ones and paging-structure caches included (SDM vol. 3A, 4.10.4.1: toggling CR4.PGE). */
void tlb_flush_local_all(void);

/* Drop the translations of one page, and this CPU's paging-structure caches (INVLPG). */
void tlb_flush_local_page(virt_t virt);
