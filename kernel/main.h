/* Entry from boot/, and what the machine does once it is up. */
#pragma once

#include "kernel/types.h"

struct boot_info;

/* Called once on the boot CPU, on the boot page tables, interrupts off. Does not return. */
__attribute__((noreturn)) void kernel_main(const struct boot_info *info);

/* When the machine was up, in ns after entry: before any payload began. */
u64 kernel_ready_ns(void);

/* Tests, benchmarks, monitor or the user's program, as the command line asks. Ends the run or returns. */
void payload_run(void);
