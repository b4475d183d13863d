/* This CPU's data: the GS base points at struct percpu, whose first field is its own address. */
#pragma once

#include <arch/timer.h>

#include "kernel/lib/types.h"

struct cpu_tables;
struct trap_frame;

struct arch_percpu {
	u32 apic_id;
	void *stack_top; /* of the normal stack */
	struct cpu_tables
		*tables; /* GDT, TSS and interrupt stacks: arch/x86_64/traps/descriptors.c */
	struct timer timer[TIMER_OWNERS];
	bool mtrrs_differ; /* from those of CPU 0, for good: cpu/mtrr_cpu.c */
	u32 tick_seen;     /* of the watchdog, when it last read them on its way to a halt */
	u64 tsc_at_start, tsc_adjust; /* its TSC and register TSC_ADJUST, once: time/clock.c */
	/* innermost exception or NMI being handled, for panics; NULL if none */
	struct trap_frame *trap;
	u32 stopped; /* stopped for good by a panic's NMI */
	u32 sampled; /* set by other CPUs: the next NMI is to report where this CPU is */
	/* ring 3 (<arch/user.h>, arch/x86_64/user) */
	u64 user_stack;   /* where traps and calls begin on the normal stack; 0: none can come */
	u64 user_rsp;     /* the program's RSP, in the first instructions of a call */
	u32 user_attends; /* set by any CPU: attend() is to be called */
	void *tls;        /* FS base for a linked program: arch/x86_64/program_image.c; or NULL */
};

struct percpu;

/*
 * Is any of `bits` set in a u32 of this CPU's struct percpu? One instruction, where this_cpu()
 * needs two. The compiler does not move stores across it.
 */
#define this_cpu_has_any(field, bits)                                                              \
	({                                                                                         \
		bool _any;                                                                         \
		__asm__ volatile(                                                                  \
			"testl %[mask], %%gs:%c[at]"                                               \
			: "=@ccnz"(_any)                                                           \
			: [mask] "ri"((u32)(bits)), [at] "i"(offsetof(struct percpu, field))       \
			: "memory");                                                               \
		_any;                                                                              \
	})

static inline struct percpu *this_cpu(void)
{
	struct percpu *cpu;

	__asm__ volatile("mov %%gs:0, %0" : "=r"(cpu));
	return cpu;
}
