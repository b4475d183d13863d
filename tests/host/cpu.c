/*
 * Simulated CPUs: they interrupt each other, halt and wake. thread.c makes each CPU a thread that
 * runs when the host likes; explore/schedule.c runs one CPU at a time, in an order that is input.
 *
 * Delivery of an interrupt is: interrupts off, interrupt_ipi(), interrupts on. It may happen at any
 * place where interrupts are on, so interrupt_ipi() must not take locks, as the design demands of
 * interrupt handlers anyway.
 *
 * Every function here that a running CPU calls first tells the watcher that this CPU is awake
 * (check.c).
 */
#include <arch/boot.h>
#include <arch/random.h>
#include <arch/tlb.h>

#include "arch/x86_64/time/timer.h"
#include "kernel/core/fail.h"
#include "kernel/core/quiet.h"
#include "tests/host/host.h"

struct host_cpu host_cpus[HOST_CPUS_MAX];
_Thread_local struct host_cpu *host_me;
_Thread_local struct percpu *host_this_cpu;
#if defined(__SANITIZE_THREAD__) && !defined(HOST_EXPLORE)
_Thread_local unsigned host_fence_dummy;
#endif

void host_deliver(void)
{
	u32 what;

	while (atomic_load_relaxed(&host_me->pending)) {
		host_me->irq_on = false;
		fence_compiler();
		what = atomic_exchange(&host_me->pending, 0);
		if (what) {
			const bool ring3 = this_cpu()->quiet && !context_in(CONTEXT_QUIET);
			bool quiet;

			cpu_leave_rest();
			quiet = quiet_suspend();
			context_enter(CONTEXT_INTERRUPT);
			if (what & HOST_PENDING_IPI)
				interrupt_ipi();
			if (what & HOST_PENDING_TIMER)
				timer_interrupt();
			context_leave(CONTEXT_INTERRUPT);
			quiet_resume(quiet);
			if (ring3)
				quiet_begin();
		}
		fence_compiler();
		host_me->irq_on = true;
		fence_compiler();
	}
}

u64 host_irq_save_quiet(void)
{
	bool was = host_me->irq_on;

	host_me->irq_on = false;
	fence_compiler();
	return was;
}

void host_irq_restore_quiet(u64 flags)
{
	fence_compiler();
	host_me->irq_on = flags;
	fence_compiler();
	if (flags)
		host_interrupts_on();
}

irq_flags_t irq_save(void)
{
	watch_awake();
	host_point(HOST_IRQ, &host_me->pending);
	return host_irq_save_quiet();
}

void irq_restore(irq_flags_t flags)
{
	watch_awake();
	host_irq_restore_quiet(flags);
}

bool irq_enabled(void)
{
	return host_me->irq_on;
}

void irq_enable(void)
{
	irq_restore(true);
}

void irq_disable(void)
{
	irq_save();
}

void cpu_halt_until_interrupt(void)
{
	watch_halt();
	atomic_exchange(&host_me->halted, 1);
	host_cpu_sleep();
	atomic_exchange(&host_me->halted, 0);
	host_me->irq_on = true;
	fence_compiler();
	host_deliver();
	host_irq_save_quiet();
}

void cpu_relax(void)
{
	watch_awake();
	if (host_me->irq_on && atomic_load_relaxed(&host_me->pending))
		host_deliver();
	host_cpu_yield();
}

/* cpu_relax() yields already. */
void cpu_nap(u32 length)
{
	cpu_relax();
}

u64 ipi_send(cpu_t cpu)
{
	struct host_cpu *target = &host_cpus[cpu];

	watch_awake();
	if (!atomic_load_acquire(&target->started))
		return 0;
	host_point(HOST_IPI, &target->pending);
	if (!(atomic_fetch_or(&target->pending, HOST_PENDING_IPI)))
		host_cpu_notify(target);
	return 1;
}

u64 ipi_send_mask(const struct cpumask *targets)
{
	u64 sent = 0;
	cpu_t cpu;

	cpumask_foreach(cpu, targets) {
		if (cpu != cpu_id())
			sent += ipi_send(cpu);
	}
	return sent;
}

bool cpu_has_1g_mappings(void)
{
	return true;
}

bool cpu_number_publish(void)
{
	return false;
}

bool random_hardware(u64 *value)
{
	return false;
}

/* Simulated CPUs share a few real ones, possibly with sanitizers, and with other processes. */
unsigned cpu_deadline_scale(void)
{
	return 20;
}

void host_cpu_enter(cpu_t id)
{
	host_me = &host_cpus[id];
	host_me->id = id;
	host_me->thread = pthread_self();
	host_this_cpu = cpu_data(id);
	host_me->irq_on = false;
	atomic_store_release(&host_me->started, true);
}

static void cpu_main(cpu_t id)
{
	host_cpu_enter(id);
	shootdown_join(tlb_flush_local_all);
	cpu_idle_loop();
}

void arch_cpus_start(void)
{
	struct wait wait = wait_begin(WAIT_ANSWER, "a simulated CPU to start");
	u64 start = clock_ns();

	atomic_store_release(&host_me->started, true);
	for (cpu_t i = 1; i < cpu_count; i++) {
		if (fail_ap(i)) {
			pr_warn("CPU %u did not start: it was not asked to", i);
			continue;
		}
		host_cpu_begin(i, cpu_main);
	}
	for (cpu_t i = 1; i < cpu_count; i++) {
		while (!cpu_online(i) && !fail_ap(i))
			wait_spin(&wait, i);
	}
	pr_info("started %u of %u CPUs in %llu ms", cpumask_weight(&cpus_online), cpu_count,
		(clock_ns() - start) / NS_PER_MS);
	irq_enable();
}

#ifdef HOST_FAST
/* Nothing is cached and there is no watcher; kernel/core/shootdown.c counts the flush itself. */
void tlb_flush_local_all(void)
{
}

void tlb_flush_local_page(virt_t virt)
{
}

void watch_halt(void)
{
}

void watch_awake(void)
{
}
#endif
