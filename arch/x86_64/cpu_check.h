/*
 * Whether all CPUs are alike where they must be: memory types (MTRRs, PAT) and microcode. Each CPU takes its own picture as it
 * starts; the boot CPU compares.
 */
#pragma once

#include <arch/percpu.h>

#include "kernel/types.h"

/* On the CPU itself, once traps are caught. */
struct cpu_picture cpu_picture_take(void);

/* Boot CPU, when all are started: name those that differ from the boot CPU. Returns how many do in their memory types. */
cpu_t cpu_pictures_compare(void);
