/* What a CPU can be told: interrupts, halting, interrupting others. */
#pragma once

#include "kernel/types.h"

struct cpumask;

typedef u64 irq_flags_t;

static inline irq_flags_t irq_save(void) __acquires(irq)
{
	irq_flags_t flags;

	__asm__ volatile("pushfq; popq %0; cli" : "=r"(flags)::"memory");
	__counts_as(irq, 1);
	return flags;
}

static inline void irq_restore(irq_flags_t flags) __releases(irq)
{
	__asm__ volatile("pushq %0; popfq" ::"r"(flags) : "memory", "cc");
	__counts_as(irq, -1);
}

static inline bool irq_enabled(void)
{
	irq_flags_t flags;

	__asm__ volatile("pushfq; popq %0" : "=r"(flags)::"memory");
	return flags & 0x200;
}

static inline void irq_enable(void)
{
	__asm__ volatile("sti" ::: "memory");
}

static inline void irq_disable(void)
{
	__asm__ volatile("cli" ::: "memory");
}

/* With interrupts off: enable them and halt until one arrives, in one step that no interrupt can slip between. May return early. */
void cpu_halt_until_interrupt(void);

/*
 * While waiting for another CPU, after some spinning: under a hypervisor halt for `length` times about 0.1 ms (at most
 * 1000), or until an interrupt, so that the CPU waited for can run; on hardware, or with interrupts off, just relax.
 */
void cpu_nap(u32 length);

/*
 * Interrupt one CPU, or every CPU of a set but the caller, so that it serves its mailbox (call_serve()) or leaves its halt.
 * Returns messages sent; a broadcast to n CPUs counts n. Any context; acknowledgement is the mailbox's business.
 */
u64 ipi_send(cpu_t cpu);
u64 ipi_send_mask(const struct cpumask *targets);

/* Stop all other CPUs for good, whatever they do (NMI): panic. Bounded. */
void cpus_stop_others(void);

/*
 * Where another CPU is just now, innermost return address first, whatever it does (NMI): up to `max` of them into `out`. 0 if
 * it does not answer within `limit_ns`, or another CPU is asking just now. Serves the mailbox meanwhile, but in an NMI.
 * Of the calling CPU itself: what the exception or NMI being handled has interrupted; 0 outside of one.
 */
size_t cpu_where(cpu_t cpu, virt_t *out, size_t max, u64 limit_ns);

/* Stop this CPU for good. */
__noreturn void cpu_halt_forever(void);

/* Largest mapping the CPU supports for memory: true if 1 GiB pages exist. */
bool cpu_has_1g_mappings(void);

/* A reason in a few words if something makes CPUs slow to answer ("TCG", "252 vCPUs"), to scale deadlines; else 1. */
unsigned cpu_deadline_scale(void);
