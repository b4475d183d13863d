/* Bytes to and from people. Arch code registers what the machine has; kernel/printk.c feeds it. */
#pragma once

#include "kernel/types.h"

/* Write to every console that works. Bounded: a device that does not take bytes is dropped. Callers serialise. */
void console_write(const char *text, size_t len);

/* Next byte from a console, or -1 if none waits. */
int console_read(void);

/* Symbol that contains a code address, or NULL; *offset from its start. */
const char *symbol_lookup(virt_t addr, u64 *offset);

/* Return addresses of the callers, innermost first; stops at anything that does not look like a frame. */
size_t backtrace_capture(virt_t *out, size_t max);

/*
 * The architecture's part of a panic, after the reason was printed: stop the other CPUs, print registers and a
 * symbolised backtrace. Interrupts are off; returns.
 */
void panic_arch(void);

/* Start the machine over, as its reset button would; halts if nothing does it. No verdict is given. */
__noreturn void machine_reset(void);

/* End the run: tell the host if there is one (isa-debug-exit), then power off or halt for good. */
__noreturn void machine_end(unsigned code);
