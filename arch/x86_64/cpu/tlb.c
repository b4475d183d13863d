/*
 * This CPU's TLB.
 *
 * Kernel mappings are global, so a CR3 write is not enough. Clearing CR4.PGE drops every
 * translation of every kind, including paging-structure caches (Intel SDM vol. 3A, 4.10.4.1).
 */
#include <arch/cpu.h>
#include <arch/tlb.h>

#include "arch/x86_64/cpu/msr.h"

void tlb_flush_local_all(void)
{
	const irq_flags_t flags = irq_save(); /* an interrupt in between must not write CR4 back */
	const u64 cr4 = read_cr4();

	write_cr4(cr4 & ~CR4_PGE);
	write_cr4(cr4 | CR4_PGE);
	irq_restore(flags);
}

void tlb_flush_local_page(virt_t virt)
{
	__asm__ volatile("invlpg (%0)" ::"r"(virt) : "memory");
}
