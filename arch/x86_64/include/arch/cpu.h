/* Control of CPUs: interrupts, halting, interrupting other CPUs. */
#pragma once

#include "kernel/lib/types.h"

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

/*
 * Called with interrupts off. Enables interrupts and halts until one arrives; no interrupt can slip
 * in between the two. May return early.
 */
void cpu_halt_until_interrupt(void);

/*
 * On the way to an idle halt, with interrupts off: if the watchdog has ticked since, the CPU
 * reads its banks of machine checks and prints what they hold. A macro, because struct percpu is
 * not known here, and four instructions, because a round waits for CPUs that come this way.
 */
#define cpu_idle_look()                                                                            \
	do {                                                                                       \
		if (unlikely(this_cpu()->arch.tick_seen != *(volatile u32 *)&nmi_ticks))           \
			cpu_tick_seen();                                                           \
	} while (0)
/* How often the watchdog has ticked, by RTC or timer. Written by the CPU that watches. */
extern u32 nmi_ticks;
void cpu_tick_seen(void);

/*
 * Call while waiting for another CPU, after some spinning. Under a hypervisor this CPU halts for
 * `length` times about 0.1 ms (at most 1000 times), or until an interrupt, so that the CPU it waits
 * for can run. On hardware, or with interrupts off, it only relaxes.
 */
void cpu_nap(u32 length);

/*
 * Interrupt one CPU, or every CPU of a set except the caller's, so that it serves its mailbox
 * (call_serve()) or leaves its halt. Returns the number of messages sent; a broadcast to n CPUs
 * counts n. Any context. Acknowledgement is left to the mailbox.
 */
u64 ipi_send(cpu_t cpu);
u64 ipi_send_mask(const struct cpumask *targets);

/*
 * Stop all other CPUs for good by NMI, whatever they are doing, for a panic. The wait is bounded.
 */
void cpus_stop_others(void);

/*
 * Place where another CPU is executing now, found by NMI whatever that CPU is doing: up to `max`
 * return addresses into `out`, innermost first. Returns their number; 0 if the CPU does not answer
 * within `limit_ns`, or if a third CPU is asking at the same time. While it waits the caller serves
 * its mailbox, except in an NMI.
 *
 * For the calling CPU itself: the code that the exception or NMI being handled has interrupted; 0
 * outside of one.
 */
size_t cpu_where(cpu_t cpu, virt_t *out, size_t max, u64 limit_ns);

/* Stop this CPU for good. */
__noreturn void cpu_halt_forever(void);

/* True if the CPU supports mappings of 1 GiB. */
bool cpu_has_1g_mappings(void);

/*
 * Store the number and the node of this CPU where a program reads them with RDTSCP: the number in
 * bits 0 to 11, the node above. Returns false if the CPU has no RDTSCP or its number is too large.
 * Context: handler.
 */
bool cpu_number_publish(void);

/*
 * Factor for deadlines: greater than 1 where something makes CPUs slow to answer (a hypervisor, or
 * more so an emulator such as TCG), else 1.
 */
unsigned cpu_deadline_scale(void);
