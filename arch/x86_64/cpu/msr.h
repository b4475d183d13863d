/*
 * Model-specific and control registers (Intel SDM vol. 3A, 2.5 "Control registers"; vol. 4 for MSR
 * numbers).
 */
#pragma once

#include "kernel/lib/types.h"

#define MSR_APIC_BASE    0x1b
#define MSR_TSC_ADJUST   0x3b
#define MSR_SYSENTER_CS  0x174
#define MSR_MISC_ENABLE  0x1a0
#define MSR_PAT          0x277
#define MSR_EFER         0xc0000080
#define MSR_STAR         0xc0000081
#define MSR_LSTAR        0xc0000082
#define MSR_CSTAR        0xc0000083
#define MSR_SFMASK       0xc0000084
#define MSR_FS_BASE      0xc0000100
#define MSR_GS_BASE      0xc0000101
#define MSR_GS_BASE_USER 0xc0000102 /* what SWAPGS exchanges with the GS base */
#define MSR_TSC_AUX      0xc0000103

#define EFER_SCE (1ULL << 0)

#define MISC_ENABLE_FAST_STRINGS (1ULL << 0)

#define CR0_CD (1ULL << 30)

#define CR4_PAE        (1ULL << 5)
#define CR4_MCE        (1ULL << 6)
#define CR4_PGE        (1ULL << 7)
#define CR4_OSFXSR     (1ULL << 9)
#define CR4_OSXMMEXCPT (1ULL << 10)
#define CR4_UMIP       (1ULL << 11)
#define CR4_OSXSAVE    (1ULL << 18)
#define CR4_SMEP       (1ULL << 20)
#define CR4_SMAP       (1ULL << 21)

static inline u64 rdmsr(u32 msr)
{
	u32 low, high;

	__asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr) : "memory");
	return (u64)high << 32 | low;
}

static inline void wrmsr(u32 msr, u64 value)
{
	__asm__ volatile("wrmsr" ::"c"(msr), "a"((u32)value), "d"((u32)(value >> 32)) : "memory");
}

/* read_cr0(), write_cr0() and so on. The register is part of the instruction. */
#define CONTROL_REGISTER(name)                                                                     \
	static inline u64 read_##name(void)                                                        \
	{                                                                                          \
		u64 value;                                                                         \
                                                                                                   \
		__asm__ volatile("mov %%" #name ", %0" : "=r"(value)::"memory");                   \
		return value;                                                                      \
	}                                                                                          \
	static inline void write_##name(u64 value)                                                 \
	{                                                                                          \
		__asm__ volatile("mov %0, %%" #name ::"r"(value) : "memory");                      \
	}

CONTROL_REGISTER(cr0)
CONTROL_REGISTER(cr2)
CONTROL_REGISTER(cr3)
CONTROL_REGISTER(cr4)

static inline void wbinvd(void)
{
	__asm__ volatile("wbinvd" ::: "memory");
}

static inline u64 rdtsc(void)
{
	u32 low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (u64)high << 32 | low;
}
