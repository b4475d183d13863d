/*
 * Comparison of the CPUs; see cpu_check.h.
 *
 * Different memory types on two CPUs break coherence silently ("MTRRs of all processors must be the
 * same", Intel SDM vol. 3A, 12.11.8). Firmware has got this wrong after hot-plug and resume. The
 * kernel cannot repair it, but it can report it.
 *
 * Sources: Intel SDM vol. 3A, 12.11 "Memory type range registers", 9.11.7 "Update signature and
 * verification"; AMD APM vol. 2, 7.7 and 7.8, MSR 0000_008Bh "Patch level".
 */
#include "arch/x86_64/cpu/cpu_check.h"

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/cpuid.h"
#include "arch/x86_64/cpu/extable.h"
#include "arch/x86_64/cpu/msr.h"
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
	DIFFERENT_NAMED_MAX = 8
};

static const u32 fixed_mtrrs[] = {0x250, 0x258, 0x259, 0x268, 0x269, 0x26a,
				  0x26b, 0x26c, 0x26d, 0x26e, 0x26f};

/* FNV-1a, by words. */
static void add(u64 *sum, u32 msr)
{
	u64 value;

	if (!rdmsr_safe(msr, &value))
		value = ~0ULL;
	*sum = (*sum ^ value) * 0x100000001b3ULL;
}

static u64 sum_memory_types(void)
{
	u64 sum = 0xcbf29ce484222325ULL, caps;

	add(&sum, MSR_PAT);
	if (!(cpuid(1, 0).edx & CPUID_1_EDX_MTRR) || !rdmsr_safe(MSR_MTRR_CAP, &caps))
		return sum;
	add(&sum, MSR_MTRR_DEFAULT);
	for (u32 i = 0; i < 2 * (caps & CAP_VARIABLE); i++)
		add(&sum, MSR_MTRR_VARIABLE + i);
	for (size_t i = 0; (caps & CAP_FIXED) && i < ARRAY_LEN(fixed_mtrrs); i++)
		add(&sum, fixed_mtrrs[i]);
	return sum;
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
	return (struct cpu_picture){.memory_types = sum_memory_types(),
				    .microcode = microcode_revision(),
				    .kind = (u8)topology_core_kind(cpuid_own, NULL),
				    .taken = true};
}

/*
 * QEMU's INIT clears the MTRRs, and nothing depends on MTRRs there. Its emulator has this signature
 * even where the hypervisor bit is off; a real CPU answers with other words.
 */
static bool init_clears_mtrrs(void)
{
	return cpu_features.hypervisor || cpuid_raw(0x40000000, 0).ebx == 0x54474354; /* "TCGT" */
}

cpu_t cpu_pictures_compare(void)
{
	const struct cpu_picture *first = &cpu_data(0)->arch.picture;
	const enum log_level level = init_clears_mtrrs() ? LOG_DEBUG : LOG_WARN;
	cpu_t cpu, types = 0, code = 0;

	cpumask_foreach(cpu, &cpus_online) {
		const struct cpu_picture *picture = &cpu_data(cpu)->arch.picture;

		if (!picture->taken)
			continue;
		if (picture->memory_types != first->memory_types && types++ < DIFFERENT_NAMED_MAX)
			printk(level,
			       "CPU %u has other memory types (MTRR, PAT) than CPU 0: firmware's "
			       "error, results may be wrong",
			       cpu);
		if (picture->microcode != first->microcode && code++ < DIFFERENT_NAMED_MAX)
			pr_warn("CPU %u has microcode %x, CPU 0 %x", cpu, picture->microcode,
				first->microcode);
	}
	return types;
}
