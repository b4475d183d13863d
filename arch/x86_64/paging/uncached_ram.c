/*
 * RAM that firmware's MTRRs leave uncached; see uncached_ram.h. The decision is in mtrr.c.
 *
 * Sources: Intel SDM vol. 3A, 12.11.1 "MTRR feature identification"; AMD SYSCFG, bits 21
 * (there is a TOP_MEM2) and 22 (memory below it is write-back).
 */
#include "arch/x86_64/paging/uncached_ram.h"

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/cpuid.h"
#include "arch/x86_64/cpu/extable.h"
#include "arch/x86_64/cpu/mtrr.h"
#include "kernel/lib/string.h"
#include "mm/map/memblock.h"

#define MSR_MTRR_CAP      0xfe
#define MSR_MTRR_VARIABLE 0x200
#define MSR_MTRR_DEFAULT  0x2ff
#define MSR_AMD_SYSCFG    0xc0010010
#define MSR_AMD_TOP_MEM2  0xc001001d

enum { CPUID_1_EDX_MTRR = 1 << 12, CAP_VARIABLE = 0xff, SYSCFG_TOP_MEM2 = 1 << 21 | 1 << 22 };

static phys_t read_top_mem2(void)
{
	const bool amd = strcmp(cpu_features.vendor, "AuthenticAMD") == 0 ||
			 strcmp(cpu_features.vendor, "HygonGenuine") == 0;
	u64 syscfg, top;

	if (!amd || !rdmsr_safe(MSR_AMD_SYSCFG, &syscfg) ||
	    (syscfg & SYSCFG_TOP_MEM2) != SYSCFG_TOP_MEM2 || !rdmsr_safe(MSR_AMD_TOP_MEM2, &top))
		return 0;
	return top;
}

void uncached_ram_drop(void)
{
	struct mtrrs m = {0};
	u64 caps;

	if (!(cpuid(1, 0).edx & CPUID_1_EDX_MTRR) || !rdmsr_safe(MSR_MTRR_CAP, &caps) ||
	    !rdmsr_safe(MSR_MTRR_DEFAULT, &m.def_type))
		return;
	m.count = MIN((u32)(caps & CAP_VARIABLE), (u32)MTRR_VARIABLE_MAX);
	for (u32 i = 0; i < m.count; i++)
		if (!rdmsr_safe(MSR_MTRR_VARIABLE + 2 * i, &m.variable[i].base) ||
		    !rdmsr_safe(MSR_MTRR_VARIABLE + 2 * i + 1, &m.variable[i].mask))
			return;
	m.top_mem2 = read_top_mem2();
	mtrr_drop_uncached(&m, &memblock_memory, &memblock_reserved);
}
