/*
 * Simulated CPUs. Each is a thread; its interrupt flag is a variable of the thread, and an
 * interrupt is a pending bit and a signal. The contracts are those of the real interface.
 */
#pragma once

#include "kernel/lib/types.h"

struct cpumask;

typedef u64 irq_flags_t;

irq_flags_t irq_save(void) __acquires(irq);
void irq_restore(irq_flags_t flags) __releases(irq);
bool irq_enabled(void);
void irq_enable(void);
void irq_disable(void);
void cpu_halt_until_interrupt(void);
void cpu_nap(u32 length);
static inline void cpu_idle_look(void)
{
}

u64 ipi_send(cpu_t cpu);
u64 ipi_send_mask(const struct cpumask *targets);
void cpus_stop_others(void);
size_t cpu_where(cpu_t cpu, virt_t *out, size_t max, u64 limit_ns);
__noreturn void cpu_halt_forever(void);
bool cpu_has_1g_mappings(void);
bool cpu_number_publish(void);
unsigned cpu_deadline_scale(void);
