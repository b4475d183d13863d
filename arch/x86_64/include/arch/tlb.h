/* This CPU's TLB. kernel/core/shootdown.h describes how other CPUs are asked to flush. */
#pragma once

#include "kernel/lib/types.h"

/*
 * Drop every translation, including global ones, and the paging-structure caches (SDM vol. 3A,
 * 4.10.4.1, by toggling CR4.PGE).
 */
void tlb_flush_local_all(void);

/* Drop the translations of one page, and this CPU's paging-structure caches (INVLPG). */
void tlb_flush_local_page(virt_t virt);
