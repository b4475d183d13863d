/*
 * Check that all CPUs are alike where they must be: memory types (MTRRs) and microcode. Each CPU
 * takes its own picture as it starts; the boot CPU, whose picture is the first, compares them.
 */
#pragma once

#include <arch/percpu.h>

#include "kernel/lib/types.h"

/*
 * Take this CPU's picture, and the memory types of the boot CPU. On the CPU itself with interrupts
 * off, once its traps are set up.
 */
struct cpu_picture cpu_picture_take(void);

/*
 * Warn about CPUs that differ from the boot CPU, or did so. Boot CPU, when all CPUs are started.
 */
void cpu_pictures_compare(void);
