/*
 * This CPU's TLB, and a flush of all CPUs' TLBs where the CPU has the instruction.
 *
 * Kernel mappings are global, so a CR3 write is not enough. Clearing CR4.PGE drops every
 * translation of every kind, including paging-structure caches (Intel SDM vol. 3A, 4.10.4.1).
 */
#include <arch/cpu.h>
#include <arch/tlb.h>

#include "arch/x86_64/cpu/cpuid.h"
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

/* AMD APM vol. 3, appendix E.4.7: Fn8000_0008 EBX bit 3. */
bool tlb_can_broadcast(void)
{
	return cpuid(0x80000008, 0).ebx >> 3 & 1;
}

/*
 * rAX[5:0] selects what must match: address (bit 0), PCID (1), ASID (2). None is set, so every
 * translation is dropped, including global ones (3) and, without bit 4 "final translation only",
 * the paging-structure caches. ECX: one range; EDX: no PCID or ASID. TLBSYNC waits until every CPU
 * has done what this one broadcast. Both are encoded by hand, because current assemblers do not
 * know them.
 */
void tlb_broadcast_flush_all(void)
{
	enum { INCLUDE_GLOBAL = 1 << 3 };

	__asm__ volatile(".byte 0x0f, 0x01, 0xfe\n\t" /* invlpgb */
			 ".byte 0x0f, 0x01, 0xff"     /* tlbsync */
			 ::"a"((u64)INCLUDE_GLOBAL),
			 "c"(0), "d"(0)
			 : "memory");
}
