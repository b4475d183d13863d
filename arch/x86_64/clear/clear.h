/*
 * The rule that chooses a clearing instruction, as a function of a CPU's features, so that tests
 * can pass those of other CPUs.
 */
#pragma once

#include <arch/clear.h>

struct cpu_features;

/* The variant for a class of sizes on a CPU with these features. Pure. */
const struct clear_insn *clear_insn_rule(const struct cpu_features *cpu, enum clear_class class);

/* Choose anew, once the CPU's features are known or clear.insn= has changed. */
void clear_insns_choose(void);
