/*
 * Interrupting other CPUs; see <arch/cpu.h>.
 *
 * One vector serves every purpose. The request itself is in the receiver's mailbox
 * (kernel/core/call.c), so a message that merges with an earlier one loses nothing. The handler
 * acknowledges the interrupt to the APIC first, because serving it may take long (a flush); a
 * message that arrives meanwhile is then kept for afterwards.
 *
 * A set that contains all other CPUs goes out as one broadcast, but only if every CPU of the
 * machine is online. A CPU that was given up has no interrupt table.
 */
#include "arch/x86_64/interrupts/ipi.h"

#include <arch/barrier.h>
#include <arch/cpu.h>

#include "arch/x86_64/time/timer.h"
#include "arch/x86_64/traps/apic.h"
#include "arch/x86_64/traps/traps.h"
#include "kernel/core/call.h"
#include "kernel/core/percpu.h"

static void handle_ipi(struct trap_frame *frame)
{
	apic_eoi();
	interrupt_ipi();
}

static void handle_timer(struct trap_frame *frame)
{
	apic_eoi();
	timer_interrupt();
}

/* Spurious interrupts are not acknowledged (SDM vol. 3A, 11.9). */
static void handle_spurious(struct trap_frame *frame)
{
}

void ipi_init(void)
{
	trap_set_handler(VECTOR_IPI, handle_ipi);
	trap_set_handler(VECTOR_TIMER, handle_timer);
	trap_set_handler(VECTOR_SPURIOUS, handle_spurious);
}

/*
 * A virtual CPU that spins keeps the CPU it waits for from running when there are fewer real CPUs.
 * An APIC tick is 1 ns under QEMU and KVM and a few ns elsewhere. The exact length of the nap
 * matters little, as long as it ends.
 */
void cpu_nap(u32 length)
{
	enum { NAP_TICKS = 100000, LENGTH_MAX = 1000 };

	if (cpu_deadline_scale() == 1 || !irq_enabled() || !cpu_online(cpu_id()) ||
	    cpu_count == 1) {
		cpu_relax();
		return;
	}
	irq_disable();
	timer_interrupt_within(NAP_TICKS * MIN(length, (u32)LENGTH_MAX));
	cpu_halt_until_interrupt();
	irq_enable();
}

u64 ipi_send(cpu_t cpu)
{
	if (cpu == cpu_id() || !cpu_online(cpu))
		return 0;
	return apic_send(cpu_data(cpu)->arch.apic_id, ICR_FIXED | ICR_ASSERT | VECTOR_IPI) ? 1 : 0;
}

u64 ipi_send_mask(const struct cpumask *targets)
{
	const cpu_t n = cpus_online_among(targets, cpu_id());
	u64 sent = 0;
	cpu_t cpu;

	if (n == 0)
		return 0;
	if (n > 1 && n == cpu_count - 1)
		return apic_send(0, ICR_ALL_BUT_SELF | ICR_FIXED | ICR_ASSERT | VECTOR_IPI) ? n : 0;
	cpumask_foreach(cpu, targets)
		sent += ipi_send(cpu);
	return sent;
}
