/* The machine's end of people's reach: names for addresses, panics, the end. The consoles themselves: kernel/console.h. */
#pragma once

#include "kernel/console.h"
#include "kernel/types.h"

/* Symbol that contains a code address, or NULL; *offset from its start. */
const char *symbol_lookup(virt_t addr, u64 *offset);

/* Return addresses of the callers, innermost first; stops at anything that does not look like a frame. */
size_t backtrace_capture(virt_t *out, size_t max);

/*
 * The architecture's part of a panic, after the reason was printed: stop the other CPUs, print registers and a
 * symbolised backtrace. Interrupts are off; returns.
 */
void panic_arch(void);

/* End the run as onend= says: tell the host if there is one (isa-debug-exit), then power off, halt for good, or start over. */
__noreturn void machine_end(unsigned code);

/* Start the machine over, as its reset button would; halts if nothing does it. No verdict is given. Any context. */
__noreturn void machine_reset(void);
