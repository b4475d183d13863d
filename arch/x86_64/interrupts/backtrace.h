/*
 * Backtraces, arch-internal part; backtrace_capture() is in <arch/console.h>, cpu_where() in
 * <arch/cpu.h>.
 */
#pragma once

#include "kernel/lib/types.h"

struct trap_frame;

/* Called in an NMI. True if the NMI was sent to sample this CPU; the sample is then done. */
bool sample_answer(const struct trap_frame *frame);
