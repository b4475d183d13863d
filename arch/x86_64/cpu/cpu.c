/*
 * CPU features, control registers, vector registers, halting for good, and how late a CPU may
 * answer.
 *
 * CR4 is written whole, with the same value on every CPU, so that no setting of firmware's survives
 * and no CPU differs (boot/entry.S has done the first half). PAT entry 1 becomes write-combining;
 * the other entries keep their reset meaning (Intel SDM vol. 3A, 12.12 "Page attribute table").
 */
#include "arch/x86_64/cpu/cpu.h"

#include <arch/cpu.h>
#include <arch/memory.h>
#include <arch/random.h>
#include <arch/tlb.h>

#include "arch/x86_64/cpu/extable.h"
#include "arch/x86_64/cpu/msr.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

/* Entries 7..0; 6 = WB, 4 = WT, 7 = UC-, 0 = UC, 1 = WC. Reset value is 0x0007040600070406. */
#define PAT_VALUE 0x0007040600070106ULL

enum { CPU_NUMBER_BITS = 12 };
enum { RANDOM_TRIES = 10 }; /* after so many refusals in a row RDRAND counts as broken */
/*
 * A virtual CPU runs only when its host lets it; under an emulator with many CPUs on few real ones,
 * after all the others had their turn (measurements: kernel/core/wait.c).
 */
enum { SCALE_VIRTUAL = 8 };
enum { XCR0_X87 = 1 << 0, XCR0_SSE = 1 << 1, XCR0_AVX = 1 << 2, XCR0_AVX512 = 7 << 5 };
enum { MXCSR_RESET = 0x1f80 }; /* every exception masked, round to nearest */

struct cpu_features cpu_features;

static bool bit(u32 reg, unsigned n)
{
	return reg >> n & 1;
}

static void detect_names(struct cpu_features *f)
{
	const struct cpuid id = cpuid_raw(0, 0);
	const u32 vendor[] = {id.ebx, id.edx, id.ecx};

	memcpy(f->vendor, vendor, sizeof(vendor));
	f->intel = strcmp(f->vendor, "GenuineIntel") == 0;
	f->amd = strcmp(f->vendor, "AuthenticAMD") == 0 || strcmp(f->vendor, "HygonGenuine") == 0;
	for (u32 i = 0; i < 3; i++) {
		const struct cpuid part = cpuid(0x80000002 + i, 0);

		memcpy(f->brand + i * sizeof(part), &part, sizeof(part));
	}
}

/*
 * Firmware can switch fast REP MOVS and STOS off, ERMS included (Intel SDM vol. 1, 7.3.9.3). AMD
 * has no such switch.
 */
static bool strings_are_slow(const struct cpu_features *f)
{
	u64 misc;

	return !f->amd && rdmsr_safe(MSR_MISC_ENABLE, &misc) && !(misc & MISC_ENABLE_FAST_STRINGS);
}

unsigned cpu_deadline_scale(void)
{
	return cpu_features.hypervisor ? SCALE_VIRTUAL : 1;
}

void cpu_features_detect(void)
{
	const struct cpuid basic = cpuid(1, 0), leaf7 = cpuid(7, 0),
			   extended = cpuid(0x80000001, 0);
	struct cpu_features *f = &cpu_features;

	detect_names(f);
	f->hypervisor = bit(basic.ecx, 31);
	f->rdrand = bit(basic.ecx, 30);
	f->xsave = bit(basic.ecx, 26);
	f->x2apic = bit(basic.ecx, 21);
	f->smep = bit(leaf7.ebx, 7);
	f->smap = bit(leaf7.ebx, 20);
	f->umip = bit(leaf7.ecx, 2);
	f->slow_strings = strings_are_slow(f);
	f->erms = bit(leaf7.ebx, 9) && !f->slow_strings;
	f->pages_1g = bit(extended.edx, 26);
	f->invariant_tsc = bit(cpuid(0x80000007, 0).edx, 8);
	f->clzero = bit(cpuid(0x80000008, 0).ebx, 0);
	f->phys_bits = cpuid(0x80000008, 0).eax & 0xff;
	if (f->phys_bits == 0)
		f->phys_bits = 36;
}

/*
 * Vector registers are for programs linked to the kernel: SSE always, AVX and AVX-512 where the CPU
 * has them.
 *
 * The kernel itself, including its interrupt handlers, is compiled without them, and there is no
 * scheduler. The program that runs on a CPU therefore has its vector registers to itself, and they
 * are never saved. A program must not use them in functions that run in interrupt context on its
 * behalf (call_cpus(), timer_once()).
 *
 * Source: Intel SDM vol. 1, 13.2 "Enumeration of CPU support for XSAVE", 13.3 "Enabling the XSAVE
 * feature set"; vol. 3A, 2.6.
 *
 * Returns the components that this CPU enumerates, with either all three of AVX-512 or none.
 */
static u64 vector_components(void)
{
	const u64 supported = cpuid(0xd, 0).eax;
	u64 wanted = XCR0_X87 | XCR0_SSE;

	if (bit(cpuid(1, 0).ecx, 28))
		wanted |= XCR0_AVX;
	if ((wanted & XCR0_AVX) && bit(cpuid(7, 0).ebx, 16) &&
	    (supported & XCR0_AVX512) == XCR0_AVX512)
		wanted |= XCR0_AVX512;
	return wanted & supported;
}

/* Once CR4 allows XSETBV. */
static void enable_vectors(void)
{
	const u32 mxcsr = MXCSR_RESET;

	if (cpu_features.xsave) {
		const u64 value = vector_components();

		__asm__ volatile("xsetbv" ::"c"(0), "a"((u32)value), "d"((u32)(value >> 32)));
	}
	__asm__ volatile("fninit; ldmxcsr %0" ::"m"(mxcsr));
}

void cpu_features_init(void)
{
	const struct cpu_features *f = &cpu_features;
	u64 cr4 = CR4_PAE | CR4_MCE | CR4_PGE | CR4_OSFXSR | CR4_OSXMMEXCPT;

	cr4 |= f->smep ? CR4_SMEP : 0;
	cr4 |= f->smap ? CR4_SMAP : 0;
	cr4 |= f->umip ? CR4_UMIP : 0;
	cr4 |= f->xsave ? CR4_OSXSAVE : 0;
	write_cr4(cr4);
	enable_vectors();
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

void cpu_features_text(char *buf, size_t size)
{
	const struct cpu_features *f = &cpu_features;

	format(buf, size, "nx%s%s%s%s%s%s%s%s%s%s", f->smep ? " smep" : "", f->smap ? " smap" : "",
	       f->umip ? " umip" : "", f->pages_1g ? " 1g-pages" : "", f->erms ? " erms" : "",
	       f->slow_strings ? " slow-strings" : "", f->clzero ? " clzero" : "",
	       f->x2apic ? " x2apic" : "", f->invariant_tsc ? " invariant-tsc" : "",
	       f->hypervisor ? " hypervisor" : "");
}

void cpu_halt_forever(void)
{
	for (;;)
		__asm__ volatile("cli; hlt" ::: "memory");
}

/* Intel SDM vol. 2B, "RDTSCP". The value is laid out as Linux lays it out for its own vDSO. */
bool cpu_number_publish(void)
{
	const struct percpu *self = this_cpu();
	const bool rdtscp = cpuid(0x80000001, 0).edx >> 27 & 1;

	if (!rdtscp || self->id >= 1u << CPU_NUMBER_BITS)
		return false;
	wrmsr(MSR_TSC_AUX, (u64)self->node << CPU_NUMBER_BITS | self->id);
	return true;
}

/* RDRAND: Intel SDM vol. 1, 7.3.17 "Random Number Generator Instructions". */
bool random_hardware(u64 *value)
{
	bool taken = false;

	for (int i = 0; cpu_features.rdrand && i < RANDOM_TRIES && !taken; i++)
		__asm__ volatile("rdrand %0" : "=r"(*value), "=@ccc"(taken)::"cc");
	return taken;
}
