/* This CPU's TLB. How CPUs are told to flush: kernel/shootdown.h. */
#pragma once

#include "kernel/types.h"

/* Drop every translation, global ones and paging-structure caches included (SDM vol. 3A, 4.10.4.1: toggling CR4.PGE). */
void tlb_flush_local_all(void);

/*
 * The same on every CPU of the machine, sleeping ones too, without interrupting any: complete when it returns (AMD APM vol. 3,
 * INVLPGB and TLBSYNC). Only where tlb_can_broadcast(). UNTESTED: written from the manual, no machine at hand has it.
 */
bool tlb_can_broadcast(void);
void tlb_broadcast_flush_all(void);

/* Drop the translations of one page, and this CPU's paging-structure caches (INVLPG). */
void tlb_flush_local_page(virt_t virt);
