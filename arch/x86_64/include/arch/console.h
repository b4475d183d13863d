/*
 * The machine's side of talking to people: names for addresses, panics, and the end of a run. The
 * consoles themselves are in kernel/console/console.h.
 */
#pragma once

#include "kernel/console/console.h"
#include "kernel/lib/types.h"

/*
 * Name of the symbol that contains a code address, or NULL; *offset is the distance from its start.
 */
const char *symbol_lookup(virt_t addr, u64 *offset);

/*
 * Return addresses of the callers, innermost first. The walk stops at the first thing that does not
 * look like a frame. Returns how many were stored.
 */
size_t backtrace_capture(virt_t *out, size_t max);

/*
 * The architecture's part of a panic, after the reason was printed: stop the other CPUs, print
 * registers and a symbolised backtrace. Interrupts are off. This function returns.
 */
void panic_arch(void);

/*
 * End the run as end= says: report `code` to the host if there is one (isa-debug-exit), then
 * power off, halt for good, or reset.
 */
__noreturn void machine_end(unsigned code);

/* True if machine_end() lets people page through the log with keys. */
bool machine_end_pages(void);

/*
 * Reset the machine as its reset button would, or halt if no method of reset works. No verdict is
 * reported. Any context.
 */
__noreturn void machine_reset(void);
