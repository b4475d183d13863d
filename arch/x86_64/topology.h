/*
 * How CPUs are packed: threads in cores, cores in packages, by what CPUID says an APIC ID is made of.
 *
 *   | package | core in package | thread in core |       core_shift: where the core's bits begin, package_shift likewise
 *
 * Sources: Intel SDM vol. 3A, 9.9.3 "Hierarchical ID of logical processors in an MP system"; AMD APM vol. 3, E.4.7 "Function
 * 8000_0008h", E.4.17 "Function 8000_001Eh".
 */
#pragma once

#include "arch/x86_64/cpuid.h"
#include "kernel/types.h"

struct topology {
	unsigned core_shift, package_shift; /* equal: one core, or none told apart */
	const char *source;                 /* which leaf said so */
};

/* Answers CPUID; of this CPU, or of one a test makes up. Leaves that do not exist answer zeros. */
typedef struct cpuid cpuid_fn(u32 leaf, u32 subleaf, const void *ctx);

struct topology topology_read(cpuid_fn *leaf, const void *ctx);

/* Kinds of core in hybrid processors (CPUID 1Ah). */
enum core_kind { CORE_PLAIN, CORE_PERFORMANCE, CORE_EFFICIENT };
enum core_kind topology_core_kind(cpuid_fn *leaf, const void *ctx);
