/* The entry from boot/, and what the machine does once it is up. */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/payload_run.h"

struct boot_info;

/* Called once on the boot CPU, on the boot page tables, interrupts off. Does not return. */
__attribute__((noreturn)) void kernel_main(const struct boot_info *info);
