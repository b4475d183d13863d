/*
 * Check that all CPUs are alike where they must be: memory types (MTRRs, PAT) and microcode. Each
 * CPU takes its own picture as it starts; the boot CPU compares them.
 */
#pragma once

#include <arch/percpu.h>

#include "kernel/lib/types.h"

/* Take this CPU's picture. On the CPU itself, once its traps are set up. */
struct cpu_picture cpu_picture_take(void);

/*
 * Warn about CPUs that differ from the boot CPU. Returns how many differ in their memory types.
 * Boot CPU, when all CPUs are started.
 */
cpu_t cpu_pictures_compare(void);
