/*
 * Traps: exceptions and interrupts.
 *
 * All 256 vectors have a gate; all gates turn interrupts off. NMI, double fault and machine check
 * run on stacks of their own (IST). Interrupts (vector 32 and up) leave the idle state before
 * anything else (kernel/core/shootdown.h).
 *
 * Exceptions of a program in ring 3, and its calls, belong to a room above (arch/x86_64/user). Its
 * interrupts are handled as the kernel's are.
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

/*
 * Ring 3. The functions run with interrupts off and return so; they may switch them on meanwhile.
 * They may also leave ring 3 for good and not return.
 */
struct trap_ring3 {
	/* an exception other than NMI, double fault and machine check; CR2 is still its own */
	void (*exception)(struct trap_frame *frame);
	void (*call)(struct trap_frame *frame); /* SYSCALL */
	/*
	 * The last act before each return to ring 3, except from an NMI or a machine check. The
	 * frame must be one that IRETQ accepts.
	 */
	void (*before_return)(struct trap_frame *frame);
};

/* Set the functions, before any CPU enters ring 3. They stay in place. */
void trap_set_ring3(const struct trap_ring3 *ring3);

/*
 * For traps.S: serve the call. True if SYSRET may return to ring 3 with these registers, instead of
 * IRETQ.
 */
bool trap_call(struct trap_frame *frame);

/* traps.S: where SYSCALL jumps, and the way to ring 3 (assembly only: RSP is the frame). */
extern const char trap_syscall[], trap_return_to_ring3[];

/*
 * Does `rip` lie in the entry code, or in the code that returns? Registers may then be those of a
 * program in ring 3 although the CPU is in ring 0.
 */
bool trap_is_entry(u64 rip);

/* Fill the IDT (boot CPU, once) and load it (every CPU). */
void traps_init(void);
void traps_load(void);
