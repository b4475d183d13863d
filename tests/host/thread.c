/*
 * CPUs as threads, which run at the same time whenever the host likes, and by its clock.
 *
 *   sender                               target
 *   pending = 1 (exchange)               interrupts on:  the signal handler finds pending and
 *                                        delivers
 *   halted?  wake its futex              interrupts off: the handler does nothing; pending is found
 *                                        when they are
 *   running? send it SIGUSR1                             switched on, or by the halt, which waits
 *                                                        for nothing else
 *
 * cpu_relax() polls for pending interrupts, because the thread sanitizer may hold signals back.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/host/host.h"

/*
 * Set for good by a panic. Halted and waiting CPUs read it, because the thread sanitizer may hold
 * their signals back.
 */
static u32 stopping;

enum { IPI_SIGNAL = SIGUSR1, STOP_SIGNAL = SIGUSR2, WHERE_SIGNAL = SIGURG };

/* State of cpu_where(): one CPU asks one other, whose signal handler answers. */
enum { WHERE_MAX = 16 };
enum { WHERE_NONE, WHERE_ASKED, WHERE_TAKING, WHERE_TAKEN };
static struct {
	u32 asker, state;
	virt_t frame[WHERE_MAX];
	size_t count;
} where;

static void on_ipi_signal(int signal)
{
	if (host_me && host_me->irq_on)
		host_deliver();
}

static void on_stop_signal(int signal)
{
	cpu_halt_forever();
}

static void on_where_signal(int signal)
{
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

void host_interrupts_on(void)
{
	host_deliver();
}

void host_point(enum host_point kind, const void *object)
{
	(void)kind, (void)object;
}

void host_pte_buffer(const struct host_pte *pte, u64 value)
{
	(void)pte, (void)value; /* the host's processors buffer it */
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

void host_cpu_sleep(void)
{
	while (!atomic_load_acquire(&host_me->pending))
		futex(&host_me->pending, FUTEX_WAIT, 0);
	stop_if_told();
}

/* There are fewer real CPUs than simulated ones, so a CPU that waits lets others run. */
void host_cpu_yield(void)
{
	stop_if_told();
	sched_yield();
}

void host_cpu_notify(struct host_cpu *target)
{
	futex(&target->pending, FUTEX_WAKE, 1);
	if (!atomic_load_acquire(&target->halted))
		pthread_kill(target->thread, IPI_SIGNAL);
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

void host_signals_init(void)
{
	struct sigaction action = {.sa_handler = on_ipi_signal, .sa_flags = SA_RESTART};

	sigaction(IPI_SIGNAL, &action, NULL);
	action.sa_handler = on_stop_signal;
	sigaction(STOP_SIGNAL, &action, NULL);
	action.sa_handler = on_where_signal;
	sigaction(WHERE_SIGNAL, &action, NULL);
	host_fault_stack();
}

static struct start {
	cpu_t id;
	host_cpu_fn *fn;
} starts[HOST_CPUS_MAX];

static void *thread_main(void *arg)
{
	const struct start *start = arg;

	host_fault_stack();
	start->fn(start->id);
	return NULL;
}

void host_cpu_begin(cpu_t id, host_cpu_fn *fn)
{
	pthread_t thread;

	starts[id] = (struct start){.id = id, .fn = fn};
	if (pthread_create(&thread, NULL, thread_main, &starts[id]) != 0)
		host_die("no thread for CPU %u", id);
}

/* ---- time: the host's ---- */

static u64 monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * NS_PER_S + (u64)ts.tv_nsec;
}

static u64 clock_start;

void host_clock_start(void)
{
	clock_start = monotonic_ns() - 1;
}

u64 clock_ns(void)
{
	return monotonic_ns() - clock_start;
}

u64 clock_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (u64)ts.tv_sec * NS_PER_S + (u64)ts.tv_nsec;
}
