/*
 * The MTRRs of the CPUs; see mtrr_cpu.h.
 *
 * Different memory types on two CPUs break coherence silently ("MTRRs of all processors must be the
 * same", Intel SDM vol. 3A, 12.11.8), and a CPU whose MTRRs are off has no caches. Firmware has got
 * both wrong after hot-plug and resume, and QEMU clears the MTRRs of a CPU that is started. So a
 * CPU that differs takes the MTRRs of the boot CPU over, as it starts. CPUs of one core that share
 * the registers write the same values. Under a hypervisor nothing depends on them and nothing is
 * written. On hardware this is untested.
 *
 * Sources: Intel SDM vol. 3A, 12.11 "Memory type range registers"; AMD APM vol. 2, 7.7 and 7.8; AMD
 * SYSCFG, bits 21 (there is a TOP_MEM2) and 22 (memory below it is write-back).
 */
#include "arch/x86_64/cpu/mtrr_cpu.h"

#include <arch/atomic.h>
#include <arch/percpu.h>
#include <arch/tlb.h>

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/extable.h"
#include "arch/x86_64/cpu/msr.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

#define MSR_MTRR_CAP      0xfe
#define MSR_MTRR_VARIABLE 0x200
#define MSR_MTRR_DEFAULT  0x2ff
#define MSR_AMD_SYSCFG    0xc0010010
#define MSR_AMD_TOP_MEM2  0xc001001d

enum {
	CPUID_1_EDX_MTRR = 1 << 12,
	CAP_VARIABLE = 0xff,
	CAP_FIXED = 1 << 8,
	MTRRS_ON = 1 << 11,
	SYSCFG_TOP_MEM2 = 1 << 21 | 1 << 22
};

static const u32 fixed_mtrrs[MTRR_FIXED] = {0x250, 0x258, 0x259, 0x268, 0x269, 0x26a,
					    0x26b, 0x26c, 0x26d, 0x26e, 0x26f};

struct mtrrs mtrrs_boot;
static u32 differed, were_off; /* CPUs whose MTRRs were written; atomic until all have started */

static phys_t read_top_mem2(void)
{
	u64 syscfg, top;

	if (!cpu_features.amd || !rdmsr_safe(MSR_AMD_SYSCFG, &syscfg) ||
	    (syscfg & SYSCFG_TOP_MEM2) != SYSCFG_TOP_MEM2 || !rdmsr_safe(MSR_AMD_TOP_MEM2, &top))
		return 0;
	return top;
}

bool mtrrs_read(struct mtrrs *m)
{
	u64 caps;

	*m = (struct mtrrs){0};
	if (!(cpuid(1, 0).edx & CPUID_1_EDX_MTRR) || !rdmsr_safe(MSR_MTRR_CAP, &caps) ||
	    !rdmsr_safe(MSR_MTRR_DEFAULT, &m->def_type))
		return false;
	m->count = MIN(caps & CAP_VARIABLE, (u64)MTRR_VARIABLE_MAX);
	for (u32 i = 0; i < m->count; i++)
		if (!rdmsr_safe(MSR_MTRR_VARIABLE + 2 * i, &m->variable[i].base) ||
		    !rdmsr_safe(MSR_MTRR_VARIABLE + 2 * i + 1, &m->variable[i].mask))
			return false;
	for (size_t i = 0; (caps & CAP_FIXED) && i < MTRR_FIXED; i++)
		rdmsr_safe(fixed_mtrrs[i], &m->fixed[i]);
	m->top_mem2 = read_top_mem2();
	return true;
}

/*
 * SDM vol. 3A, 12.11.7.2 "MemTypeSet() Function": without caches, and with the MTRRs off meanwhile.
 * Only what differs is written, so registers that this CPU lacks are left alone. Interrupts are
 * off.
 */
static void mtrrs_write(const struct mtrrs *m, const struct mtrrs *old)
{
	const u64 cr0 = read_cr0();

	write_cr0(cr0 | CR0_CD);
	wbinvd();
	tlb_flush_local_all();
	wrmsr_safe(MSR_MTRR_DEFAULT, m->def_type & ~(u64)MTRRS_ON);
	for (u32 i = 0; i < MTRR_VARIABLE_MAX; i++) {
		if (m->variable[i].base != old->variable[i].base)
			wrmsr_safe(MSR_MTRR_VARIABLE + 2 * i, m->variable[i].base);
		if (m->variable[i].mask != old->variable[i].mask)
			wrmsr_safe(MSR_MTRR_VARIABLE + 2 * i + 1, m->variable[i].mask);
	}
	for (size_t i = 0; i < MTRR_FIXED; i++)
		if (m->fixed[i] != old->fixed[i])
			wrmsr_safe(fixed_mtrrs[i], m->fixed[i]);
	wrmsr_safe(MSR_MTRR_DEFAULT, m->def_type);
	wbinvd();
	write_cr0(cr0);
	tlb_flush_local_all();
}

void mtrrs_settle(void)
{
	if (!cpu_features.hypervisor)
		mtrrs_take_over();
}

void mtrrs_take_over(void)
{
	struct mtrrs own;
	bool were_on;

	mtrrs_read(&own);
	if (memcmp(&own, &mtrrs_boot, sizeof(own)) == 0)
		return;
	were_on = own.def_type & MTRRS_ON;
	mtrrs_write(&mtrrs_boot, &own);
	mtrrs_read(&own);
	this_cpu()->arch.mtrrs_differ = memcmp(&own, &mtrrs_boot, sizeof(own)) != 0;
	atomic_fetch_add(were_on ? &differed : &were_off, 1);
}

void mtrrs_report(void)
{
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online)
		if (cpu_data(cpu)->arch.mtrrs_differ)
			pr_warn("CPU %u keeps other memory types (MTRRs), results may be wrong: "
				"firmware's error",
				cpu);
	if (differed > 0)
		pr_warn("%u CPUs had other memory types (MTRRs) than CPU 0: firmware's error",
			differed);
	if (were_off > 0)
		pr_info("%u CPUs had no memory types (MTRRs off) and got those of CPU 0", were_off);
}
