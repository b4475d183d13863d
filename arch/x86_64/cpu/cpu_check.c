/*
 * Comparison of the CPUs; see cpu_check.h.
 *
 * Different memory types on two CPUs break coherence silently ("MTRRs of all processors must be the
 * same", Intel SDM vol. 3A, 12.11.8), and a CPU whose MTRRs are off has no caches. Firmware has got
 * both wrong after hot-plug and resume, and QEMU clears the MTRRs of a CPU that is started. So a
 * CPU that differs takes the MTRRs of the boot CPU over, as it starts. CPUs of one core that share
 * the registers write the same values. Under a hypervisor nothing depends on them and nothing is
 * written. On hardware this is untested.
 *
 * Sources: Intel SDM vol. 3A, 12.11 "Memory type range registers", 9.11.7 "Update signature and
 * verification"; AMD APM vol. 2, 7.7 and 7.8, MSR 0000_008Bh "Patch level".
 */
#include "arch/x86_64/cpu/cpu_check.h"

#include <arch/tlb.h>

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/cpuid.h"
#include "arch/x86_64/cpu/extable.h"
#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/cpu/mtrr.h"
#include "arch/x86_64/cpu/topology.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

enum {
	MSR_MICROCODE = 0x8b,
	MSR_MTRR_CAP = 0xfe,
	MSR_MTRR_VARIABLE = 0x200,
	MSR_MTRR_DEFAULT = 0x2ff
};
enum {
	CPUID_1_EDX_MTRR = 1 << 12,
	CAP_VARIABLE = 0xff,
	CAP_FIXED = 1 << 8,
	MTRRS_ON = 1 << 11,
	DIFFERENT_NAMED_MAX = 8
};

static const u32 fixed_mtrrs[] = {0x250, 0x258, 0x259, 0x268, 0x269, 0x26a,
				  0x26b, 0x26c, 0x26d, 0x26e, 0x26f};

struct memory_types {
	u64 fallback; /* MSR_MTRR_DEFAULT, which has the switch */
	u64 variable[2 * MTRR_VARIABLE_MAX];
	u64 fixed[ARRAY_LEN(fixed_mtrrs)];
};

static struct memory_types types_of_first; /* the boot CPU's, before others start */

static void types_read(struct memory_types *types)
{
	u64 caps;

	*types = (struct memory_types){0};
	if (!(cpuid(1, 0).edx & CPUID_1_EDX_MTRR) || !rdmsr_safe(MSR_MTRR_CAP, &caps))
		return;
	rdmsr_safe(MSR_MTRR_DEFAULT, &types->fallback);
	for (u32 i = 0; i < MIN(2 * (u32)(caps & CAP_VARIABLE), 2u * MTRR_VARIABLE_MAX); i++)
		rdmsr_safe(MSR_MTRR_VARIABLE + i, &types->variable[i]);
	for (size_t i = 0; (caps & CAP_FIXED) && i < ARRAY_LEN(fixed_mtrrs); i++)
		rdmsr_safe(fixed_mtrrs[i], &types->fixed[i]);
}

/*
 * SDM vol. 3A, 12.11.7.2 "MemTypeSet() Function": without caches, and with the MTRRs off meanwhile.
 * Only what differs is written, so registers that this CPU lacks are left alone. Interrupts are
 * off.
 */
static void types_write(const struct memory_types *types, const struct memory_types *old)
{
	const u64 cr0 = read_cr0();

	write_cr0(cr0 | CR0_CD);
	wbinvd();
	tlb_flush_local_all();
	wrmsr_safe(MSR_MTRR_DEFAULT, types->fallback & ~(u64)MTRRS_ON);
	for (u32 i = 0; i < ARRAY_LEN(types->variable); i++)
		if (types->variable[i] != old->variable[i])
			wrmsr_safe(MSR_MTRR_VARIABLE + i, types->variable[i]);
	for (size_t i = 0; i < ARRAY_LEN(fixed_mtrrs); i++)
		if (types->fixed[i] != old->fixed[i])
			wrmsr_safe(fixed_mtrrs[i], types->fixed[i]);
	wrmsr_safe(MSR_MTRR_DEFAULT, types->fallback);
	wbinvd();
	write_cr0(cr0);
	tlb_flush_local_all();
}

/* Compare with the boot CPU's, and take those over. */
static enum memory_types_found types_settle(void)
{
	struct memory_types types;
	bool were_on;

	types_read(this_cpu()->id == 0 ? &types_of_first : &types);
	if (this_cpu()->id == 0 || memcmp(&types, &types_of_first, sizeof(types)) == 0)
		return TYPES_SAME;
	were_on = types.fallback & MTRRS_ON;
	if (!cpu_features.hypervisor) {
		types_write(&types_of_first, &types);
		types_read(&types);
		if (memcmp(&types, &types_of_first, sizeof(types)) != 0)
			return TYPES_DIFFER;
	}
	return were_on ? TYPES_DIFFERED : TYPES_WERE_OFF;
}

/*
 * The microcode revision, or 0 if unknown. On Intel the MSR is written with zero and CPUID then
 * fills it in; on AMD it can just be read. Under a hypervisor, which invents the value, it is not
 * read.
 */
static u32 microcode_revision(void)
{
	const bool intel = strcmp(cpu_features.vendor, "GenuineIntel") == 0;
	u64 value = 0;

	if (cpu_features.hypervisor)
		return 0;
	if (intel)
		wrmsr_safe(MSR_MICROCODE, 0);
	cpuid_raw(1, 0);
	if (!rdmsr_safe(MSR_MICROCODE, &value))
		return 0;
	return (u32)(intel ? value >> 32 : value);
}

struct cpu_picture cpu_picture_take(void)
{
	return (struct cpu_picture){.memory_types = types_settle(),
				    .microcode = microcode_revision(),
				    .kind = (u8)topology_core_kind(cpuid_own, NULL),
				    .taken = true};
}

void cpu_pictures_compare(void)
{
	static const char *const words[] = {
		[TYPES_DIFFER] = "keeps other memory types (MTRRs), results may be wrong",
		[TYPES_DIFFERED] = "had other memory types (MTRRs) and got those of CPU 0",
	};
	const struct cpu_picture *first = &cpu_data(0)->arch.picture;
	cpu_t cpu, types = 0, code = 0, off = 0;

	cpumask_foreach(cpu, &cpus_online) {
		const struct cpu_picture *picture = &cpu_data(cpu)->arch.picture;

		if (!picture->taken)
			continue;
		off += picture->memory_types == TYPES_WERE_OFF;
		if (words[picture->memory_types] && types++ < DIFFERENT_NAMED_MAX)
			printk(cpu_features.hypervisor ? LOG_DEBUG : LOG_WARN,
			       "CPU %u %s: firmware's error", cpu, words[picture->memory_types]);
		if (picture->microcode != first->microcode && code++ < DIFFERENT_NAMED_MAX)
			pr_warn("CPU %u has microcode %x, CPU 0 %x", cpu, picture->microcode,
				first->microcode);
	}
	if (off > 0 && !cpu_features.hypervisor)
		pr_info("%u CPUs had no memory types (MTRRs off) and got those of CPU 0", off);
}
