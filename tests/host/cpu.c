/*
 * Simulated CPUs: threads that run at the same time, interrupt each other, halt and wake.
 *
 *   sender                               target
 *   pending = 1 (exchange)               interrupts on:  the signal handler finds pending and
 *                                        delivers
 *   halted?  wake its futex              interrupts off: the handler does nothing; pending is found
 *                                        when they are
 *   running? send it SIGUSR1                             switched on, or by the halt, which waits
 *                                                        for nothing else
 *
 * Delivery is: interrupts off, interrupt_ipi(), interrupts on. It may happen wherever a signal may,
 * so interrupt_ipi() must not take locks, as the design demands of interrupt handlers anyway.
 * cpu_relax() polls for pending interrupts, because the thread sanitizer may hold signals back.
 *
 * Every function here that a running CPU calls first tells the watcher that this CPU is awake
 * (check.c).
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/boot.h>
#include <arch/clock.h>
#include <arch/console.h>
#include <arch/cpu.h>
#include <arch/random.h>
#include <arch/tlb.h>

#include "kernel/core/context.h"
#include "kernel/core/fail.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/quiet.h"
#include "kernel/core/shootdown.h"
#include "kernel/core/wait.h"
#include "tests/host/host.h"

struct host_cpu host_cpus[HOST_CPUS_MAX];
_Thread_local struct host_cpu *host_me;
_Thread_local struct percpu *host_this_cpu;
#ifdef __SANITIZE_THREAD__
_Thread_local unsigned host_fence_dummy;
#endif

/*
 * Set for good by a panic. Halted and waiting CPUs read it, because the thread sanitizer may hold
 * their signals back.
 */
static u32 stopping;

/* The interrupt flag. Also read by this thread's signal handler, hence volatile. */
static _Thread_local volatile bool irq_on;

enum { IPI_SIGNAL = SIGUSR1, STOP_SIGNAL = SIGUSR2, WHERE_SIGNAL = SIGURG };

/* State of cpu_where(): one CPU asks one other, whose signal handler answers. */
enum { WHERE_MAX = 16 };
enum { WHERE_NONE, WHERE_ASKED, WHERE_TAKING, WHERE_TAKEN };
static struct {
	u32 asker, state;
	virt_t frame[WHERE_MAX];
	size_t count;
} where;

/*
 * Deliver pending interrupts. Called with interrupts on; returns with interrupts on and nothing
 * pending.
 */
static void deliver(void)
{
	while (atomic_load_relaxed(&host_me->pending)) {
		irq_on = false;
		fence_compiler();
		if (atomic_exchange(&host_me->pending, 0)) {
			const bool quiet = quiet_suspend();

			context_enter(CONTEXT_INTERRUPT);
			interrupt_ipi();
			context_leave(CONTEXT_INTERRUPT);
			quiet_resume(quiet);
		}
		fence_compiler();
		irq_on = true;
		fence_compiler();
	}
}

static void on_ipi_signal(int signal)
{
	(void)signal;
	if (host_me && irq_on)
		deliver();
}

static void on_stop_signal(int signal)
{
	(void)signal;
	cpu_halt_forever();
}

static void on_where_signal(int signal)
{
	(void)signal;
	if (!atomic_cas(&where.state, WHERE_ASKED, WHERE_TAKING))
		return;
	where.count = backtrace_capture(where.frame, WHERE_MAX);
	atomic_store_release(&where.state, WHERE_TAKEN);
}

size_t cpu_where(cpu_t cpu, virt_t *out, size_t max, u64 limit_ns)
{
	const u64 until = clock_ns() + limit_ns;
	size_t count = 0;
	bool answered;

	if (cpu == cpu_id() || !cpu_online(cpu) || !atomic_cas(&where.asker, 0, cpu_id() + 1))
		return 0;
	atomic_store_release(&where.state, WHERE_ASKED);
	pthread_kill(host_cpus[cpu].thread, WHERE_SIGNAL);
	while (!(answered = atomic_load_acquire(&where.state) == WHERE_TAKEN)) {
		if (clock_ns() > until && atomic_cas(&where.state, WHERE_ASKED, WHERE_NONE))
			break; /* the thread sanitizer may hold signals back */
		cpu_relax();
	}
	for (; answered && count < MIN(max, where.count); count++)
		out[count] = where.frame[count];
	atomic_store_release(&where.asker, 0);
	return count;
}

u64 host_irq_save_quiet(void)
{
	bool was = irq_on;

	irq_on = false;
	fence_compiler();
	return was;
}

void host_irq_restore_quiet(u64 flags)
{
	fence_compiler();
	irq_on = flags;
	fence_compiler();
	if (flags)
		deliver();
}

irq_flags_t irq_save(void)
{
	watch_awake();
	return host_irq_save_quiet();
}

void irq_restore(irq_flags_t flags)
{
	watch_awake();
	host_irq_restore_quiet(flags);
}

bool irq_enabled(void)
{
	return irq_on;
}

void irq_enable(void)
{
	irq_restore(true);
}

void irq_disable(void)
{
	irq_save();
}

static void stop_if_told(void)
{
	if (atomic_load_relaxed(&stopping) && !panic_is_ours())
		cpu_halt_forever();
}

static long futex(u32 *word, int op, u32 value)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

void cpu_halt_until_interrupt(void)
{
	watch_halt();
	atomic_exchange(&host_me->halted, 1);
	while (!atomic_load_acquire(&host_me->pending))
		futex(&host_me->pending, FUTEX_WAIT, 0);
	stop_if_told();
	atomic_exchange(&host_me->halted, 0);
	irq_on = true;
	fence_compiler();
	deliver();
	host_irq_save_quiet();
}

/* There are fewer real CPUs than simulated ones, so a CPU that waits lets others run. */
void cpu_relax(void)
{
	watch_awake();
	if (irq_on && atomic_load_relaxed(&host_me->pending))
		deliver();
	stop_if_told();
	sched_yield();
}

/* cpu_relax() yields already. */
void cpu_nap(u32 length)
{
	(void)length;
	cpu_relax();
}

u64 ipi_send(cpu_t cpu)
{
	struct host_cpu *target = &host_cpus[cpu];

	watch_awake();
	if (!atomic_load_acquire(&target->started))
		return 0;
	if (!atomic_exchange(&target->pending, 1)) {
		futex(&target->pending, FUTEX_WAKE, 1);
		if (!atomic_load_acquire(&target->halted))
			pthread_kill(target->thread, IPI_SIGNAL);
	}
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

void cpu_halt_forever(void)
{
	atomic_store_release(&host_me->stopped, 1);
	for (;;)
		pause();
}

void cpus_stop_others(void)
{
	const u64 limit = clock_ns() + NS_PER_S;

	atomic_store_release(&stopping, 1);
	for (cpu_t i = 0; i < cpu_count; i++) {
		struct host_cpu *other = &host_cpus[i];

		if (other == host_me || !atomic_load_acquire(&other->started))
			continue;
		pthread_kill(other->thread, STOP_SIGNAL);
		atomic_exchange(&other->pending, 1);
		futex(&other->pending, FUTEX_WAKE, 1);
		while (!atomic_load_acquire(&other->stopped) && clock_ns() < limit)
			sched_yield();
		if (!atomic_load_acquire(&other->stopped))
			print("CPU %u did not stop within a second\n", i);
	}
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
	(void)value;
	return false;
}

/* Simulated CPUs share a few real ones, possibly with sanitizers, and with other processes. */
unsigned cpu_deadline_scale(void)
{
	return 20;
}

void host_signals_init(void)
{
	struct sigaction action = {.sa_handler = on_ipi_signal, .sa_flags = SA_RESTART};

	sigaction(IPI_SIGNAL, &action, NULL);
	action.sa_handler = on_stop_signal;
	sigaction(STOP_SIGNAL, &action, NULL);
	action.sa_handler = on_where_signal;
	sigaction(WHERE_SIGNAL, &action, NULL);
}

void host_cpu_enter(cpu_t id)
{
	host_me = &host_cpus[id];
	host_me->id = id;
	host_me->thread = pthread_self();
	host_this_cpu = cpu_data(id);
	irq_on = false;
	host_fault_stack();
	atomic_store_release(&host_me->started, true);
}

static void *cpu_thread(void *arg)
{
	host_cpu_enter((cpu_t)(virt_t)arg);
	shootdown_join(tlb_flush_local_all);
	cpu_idle_loop();
}

void arch_cpus_start(void)
{
	struct wait wait = wait_begin(WAIT_ANSWER, "a simulated CPU to start");
	u64 start = clock_ns();

	atomic_store_release(&host_me->started, true);
	for (cpu_t i = 1; i < cpu_count; i++) {
		pthread_t thread;

		if (fail_ap(i)) {
			pr_warn("CPU %u did not start: it was not asked to", i);
			continue;
		}
		if (pthread_create(&thread, NULL, cpu_thread, (void *)(virt_t)i) != 0)
			host_die("no thread for CPU %u", i);
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
	(void)virt;
}

bool tlb_can_broadcast(void)
{
	return true;
}

void tlb_broadcast_flush_all(void)
{
}

void watch_halt(void)
{
}

void watch_awake(void)
{
}
#endif
