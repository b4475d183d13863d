/*
 * Traps: exceptions and interrupts.
 *
 * All 256 vectors have a gate; all gates turn interrupts off. NMI, double fault and machine check
 * run on stacks of their own (IST). Interrupts (vector 32 and up) leave the idle state before
 * anything else (kernel/core/shootdown.h).
 */
#pragma once

#include "arch/x86_64/cpu/trap_frame.h"
#include "kernel/lib/types.h"

typedef void trap_handler_fn(struct trap_frame *frame);

/*
 * Set fn as the handler of `vector`. It runs in trap context, with interrupts off. Interrupt
 * handlers acknowledge the APIC themselves. When an NMI handler returns, the interrupted code
 * resumes. NULL restores the default: a panic for exceptions, a warning for interrupts. Call once,
 * at start-up, before the vector can occur.
 */
void trap_set_handler(unsigned vector, trap_handler_fn *fn);

/*
 * Handle the trap whose registers traps.S saved. True if the return must leave NMIs blocked,
 * because the frame lies inside an NMI (or inside a machine check, where that does no harm). If an
 * NMI or a machine check saved a frame at halt_insn (the HLT of cpu_halt_until_interrupt()), the
 * frame's RIP is moved behind it.
 */
bool trap_dispatch(struct trap_frame *frame);
extern const char halt_insn[];

/* Fill the IDT (boot CPU, once) and load it (every CPU). */
void traps_init(void);
void traps_load(void);
