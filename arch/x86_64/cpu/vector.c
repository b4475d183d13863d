/*
 * Vector registers for programs linked to the kernel: SSE always, AVX and AVX-512 where the CPU has
 * them.
 *
 * The kernel itself, including its interrupt handlers, is compiled without them, and there is no
 * scheduler. The program that runs on a CPU therefore has its vector registers to itself, and they
 * are never saved. A program must not use them in functions that run in interrupt context on its
 * behalf (call_cpus(), irq_register(), timer_once()).
 *
 * Source: Intel SDM vol. 1, 13.2 "Enumeration of CPU support for XSAVE", 13.3 "Enabling the XSAVE
 * feature set"; vol. 3A, 2.6.
 */
#include "arch/x86_64/cpu/vector.h"

#include "arch/x86_64/cpu/cpuid.h"

enum { XCR0_X87 = 1 << 0, XCR0_SSE = 1 << 1, XCR0_AVX = 1 << 2, XCR0_AVX512 = 7 << 5 };
enum { CPUID_1_ECX_XSAVE = 1 << 26, CPUID_1_ECX_AVX = 1 << 28, CPUID_7_EBX_AVX512F = 1 << 16 };
enum { MXCSR_RESET = 0x1f80 }; /* every exception masked, round to nearest */

bool vector_has_xsave(void)
{
	return cpuid(1, 0).ecx & CPUID_1_ECX_XSAVE;
}

/*
 * State components to enable on this CPU: those wanted that it enumerates, and either all three of
 * AVX-512 or none.
 */
static u64 components(void)
{
	const u64 supported = cpuid(0xd, 0).eax;
	u64 wanted = XCR0_X87 | XCR0_SSE;

	if (cpuid(1, 0).ecx & CPUID_1_ECX_AVX)
		wanted |= XCR0_AVX;
	if ((wanted & XCR0_AVX) && (cpuid(7, 0).ebx & CPUID_7_EBX_AVX512F) &&
	    (supported & XCR0_AVX512) == XCR0_AVX512)
		wanted |= XCR0_AVX512;
	return wanted & supported;
}

void vector_init_cpu(void)
{
	const u32 mxcsr = MXCSR_RESET;

	if (vector_has_xsave()) {
		const u64 value = components();

		__asm__ volatile("xsetbv" ::"c"(0), "a"((u32)value), "d"((u32)(value >> 32)));
	}
	__asm__ volatile("fninit; ldmxcsr %0" ::"m"(mxcsr));
}
