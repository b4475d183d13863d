/* The rule that chooses a clearing instruction, as a function of what a CPU has: for tests with other CPUs' features. */
#pragma once

#include <arch/clear.h>

struct cpu_features;

/* The variant for a class of sizes on such a CPU. Pure. */
const struct clear_insn *clear_insn_rule(const struct cpu_features *cpu, enum clear_class class);
