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
	SYSCFG_TOP_MEM2 = 1 << 21 | 1 << 22,
	DIFFERENT_NAMED_MAX = 8
};

static const u32 fixed_mtrrs[MTRR_FIXED] = {0x250, 0x258, 0x259, 0x268, 0x269, 0x26a,
					    0x26b, 0x26c, 0x26d, 0x26e, 0x26f};

static struct mtrrs first; /* the boot CPU's, before others start */

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

static enum mtrrs_found settle(void)
{
	struct mtrrs own;
	bool were_on;

	mtrrs_read(&own);
	if (memcmp(&own, &first, sizeof(own)) == 0)
		return MTRRS_SAME;
	were_on = own.def_type & MTRRS_ON;
	if (!cpu_features.hypervisor) {
		mtrrs_write(&first, &own);
		mtrrs_read(&own);
		if (memcmp(&own, &first, sizeof(own)) != 0)
			return MTRRS_DIFFER;
	}
	return were_on ? MTRRS_DIFFERED : MTRRS_WERE_OFF;
}

void mtrrs_settle(void)
{
	if (this_cpu()->id == 0)
		mtrrs_read(&first);
	else
		this_cpu()->arch.mtrrs = (u8)settle();
}

void mtrrs_report(void)
{
	static const char *const words[] = {
		[MTRRS_DIFFER] = "keeps other memory types (MTRRs), results may be wrong",
		[MTRRS_DIFFERED] = "had other memory types (MTRRs) and got those of CPU 0",
	};
	cpu_t cpu, named = 0, off = 0;

	cpumask_foreach(cpu, &cpus_online) {
		const u8 found = cpu_data(cpu)->arch.mtrrs;

		off += found == MTRRS_WERE_OFF;
		if (words[found] && named++ < DIFFERENT_NAMED_MAX)
			printk(cpu_features.hypervisor ? LOG_DEBUG : LOG_WARN,
			       "CPU %u %s: firmware's error", cpu, words[found]);
	}
	if (off > 0 && !cpu_features.hypervisor)
		pr_info("%u CPUs had no memory types (MTRRs off) and got those of CPU 0", off);
}
