/*
 * CPU features, control registers and start-up of the boot CPU's own state.
 *
 * CR4 is written whole, with the same value on every CPU, so that no setting of firmware's survives
 * and no CPU differs (boot/entry.S has done the first half). PAT entry 1 becomes write-combining;
 * the other entries keep their reset meaning (Intel SDM vol. 3A, 12.12 "Page attribute table").
 */
#include "arch/x86_64/apic.h"
#include "arch/x86_64/cpu.h"

#include <arch/boot.h>
#include <arch/clear.h>
#include <arch/console.h>
#include <arch/cpu.h>
#include <arch/memory.h>
#include <arch/tlb.h>

#include "arch/x86_64/clock.h"
#include "arch/x86_64/clock_sources.h"
#include "arch/x86_64/cpuid.h"
#include "arch/x86_64/descriptors.h"
#include "arch/x86_64/extable.h"
#include "arch/x86_64/mce.h"
#include "arch/x86_64/msr.h"
#include "arch/x86_64/stack_guard.h"
#include "arch/x86_64/traps.h"
#include "arch/x86_64/vector.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

/* Entries 7..0; 6 = WB, 4 = WT, 7 = UC-, 0 = UC, 1 = WC. Reset value is 0x0007040600070406. */
#define PAT_VALUE 0x0007040600070106ULL

struct cpu_features cpu_features;

static bool bit(u32 reg, unsigned n)
{
	return reg >> n & 1;
}

static void put_u32(char *dst, u32 value)
{
	memcpy(dst, &value, sizeof(value));
}

static void detect_names(struct cpu_features *f)
{
	const struct cpuid id = cpuid_raw(0, 0);

	put_u32(f->vendor, id.ebx);
	put_u32(f->vendor + 4, id.edx);
	put_u32(f->vendor + 8, id.ecx);
	for (u32 i = 0; i < 3; i++) {
		const struct cpuid part = cpuid(0x80000002 + i, 0);

		put_u32(f->brand + 16 * i, part.eax);
		put_u32(f->brand + 16 * i + 4, part.ebx);
		put_u32(f->brand + 16 * i + 8, part.ecx);
		put_u32(f->brand + 16 * i + 12, part.edx);
	}
}

/*
 * Firmware can switch fast REP MOVS and STOS off, ERMS included (Intel SDM vol. 1, 7.3.9.3). AMD
 * has no such switch.
 */
static bool strings_are_slow(const struct cpu_features *f)
{
	u64 misc;

	return strcmp(f->vendor, "AuthenticAMD") != 0 && rdmsr_safe(MSR_MISC_ENABLE, &misc) &&
	       !(misc & MISC_ENABLE_FAST_STRINGS);
}

void cpu_features_detect(void)
{
	const struct cpuid basic = cpuid(1, 0), leaf7 = cpuid(7, 0),
			   extended = cpuid(0x80000001, 0);
	struct cpu_features *f = &cpu_features;

	detect_names(f);
	f->hypervisor = cpuid_hypervisor();
	f->x2apic = bit(basic.ecx, 21);
	f->smep = bit(leaf7.ebx, 7);
	f->smap = bit(leaf7.ebx, 20);
	f->umip = bit(leaf7.ecx, 2);
	f->slow_strings = strings_are_slow(f);
	f->erms = bit(leaf7.ebx, 9) && !f->slow_strings;
	f->fsrm = bit(leaf7.edx, 4) && f->erms;
	f->pages_1g = bit(extended.edx, 26);
	f->invariant_tsc = bit(cpuid(0x80000007, 0).edx, 8);
	f->clzero = bit(cpuid(0x80000008, 0).ebx, 0);
	f->phys_bits = cpuid(0x80000008, 0).eax & 0xff;
	if (f->phys_bits == 0)
		f->phys_bits = 36;
}

void cpu_features_init(void)
{
	const struct cpu_features *f = &cpu_features;
	u64 cr4 = CR4_PAE | CR4_MCE | CR4_PGE | CR4_OSFXSR | CR4_OSXMMEXCPT;

	if (f->smep)
		cr4 |= CR4_SMEP;
	if (f->smap)
		cr4 |= CR4_SMAP;
	if (f->umip)
		cr4 |= CR4_UMIP;
	if (vector_has_xsave())
		cr4 |= CR4_OSXSAVE;
	write_cr4(cr4);
	vector_init_cpu();
	wrmsr(MSR_PAT, PAT_VALUE);
	tlb_flush_local_all();
}

bool phys_is_possible(phys_t phys, u64 size)
{
	const phys_t end = 1ULL << MIN(cpu_features.phys_bits, 52);

	return phys < end && size <= end - phys;
}

bool cpu_has_1g_mappings(void)
{
	return cpu_features.pages_1g;
}

void arch_early_init(void)
{
	stack_guard_choose();
	apic_silence_others(); /* CPUs that firmware left spinning would compete for CPU time */
	traps_init();
	descriptors_init_cpu(&boot_percpu);
	cpu_features_detect();
	cpu_features_init();
	mce_init_cpu();
	clock_init();
}

void cpu_features_text(char *buf, size_t size)
{
	const struct cpu_features *f = &cpu_features;

	format(buf, size, "nx%s%s%s%s%s%s%s%s%s%s%s", f->smep ? " smep" : "",
	       f->smap ? " smap" : "", f->umip ? " umip" : "", f->pages_1g ? " 1g-pages" : "",
	       f->erms ? " erms" : "", f->fsrm ? " fsrm" : "",
	       f->slow_strings ? " slow-strings" : "", f->clzero ? " clzero" : "",
	       f->x2apic ? " x2apic" : "", f->invariant_tsc ? " invariant-tsc" : "",
	       f->hypervisor ? " hypervisor" : "");
}

void arch_machine_print(void)
{
	const struct cpu_features *f = &cpu_features;
	const char *brand = f->brand;
	char text[160];

	while (*brand == ' ')
		brand++;
	print("  cpu      %s%s%s%s, %u physical address bits\n", *brand ? brand : f->vendor,
	      *brand ? " (" : "", *brand ? f->vendor : "", *brand ? ")" : "", f->phys_bits);
	cpu_features_text(text, sizeof(text));
	print("  features %s\n", text);
	print("  clock    TSC at %llu kHz\n", clock_tsc_hz() / 1000);
}
