/*
 * How CPUs are packed, as threads in cores and cores in packages, according to CPUID's division of
 * an APIC ID.
 *
 *   | package | core in package | thread in core |       core_shift: where the core's bits begin,
 *                                                        package_shift likewise
 *
 * Sources: Intel SDM vol. 3A, 9.9.3 "Hierarchical ID of logical processors in an MP system"; AMD
 * APM vol. 3, E.4.7 "Function 8000_0008h", E.4.17 "Function 8000_001Eh".
 */
#pragma once

#include "arch/x86_64/cpu/cpu.h"
#include "kernel/lib/types.h"

struct topology {
	/* equal: one core per package, or cores are not distinguished */
	unsigned core_shift, package_shift;
	const char *source; /* the leaf that the values came from */
};

/*
 * Answers CPUID, for this CPU or for one that a test invents. Leaves that do not exist answer
 * zeros.
 */
typedef struct cpuid cpuid_fn(u32 leaf, u32 subleaf, const void *ctx);

struct topology topology_read(cpuid_fn *leaf, const void *ctx);
