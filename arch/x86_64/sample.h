/* Where other CPUs are, arch-internal part: see cpu_where() in <arch/cpu.h>. */
#pragma once

#include "kernel/types.h"

struct trap_frame;

/* In an NMI: true if it came to sample this CPU, which then is done. */
bool sample_answer(const struct trap_frame *frame);
