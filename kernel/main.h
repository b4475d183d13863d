/* The entry from boot/, and what the machine does once it is up. */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/payload_run.h"

struct boot_info;

/* Called once on the boot CPU, on the boot page tables, interrupts off. Does not return. */
__attribute__((noreturn)) void kernel_main(const struct boot_info *info);

/*
 * The room of programs, if it is linked, defines this one: run the program that was given to the
 * machine instead of payload_run(), in the same context, and return true. False if there is none.
 */
__attribute__((weak)) bool payload_of_room(void);
