/*
 * Where another CPU is, whatever it does: it is sent an NMI, writes down its own return addresses and goes on. For waits
 * that are late (kernel/wait.c).
 *
 *   asker                                 the CPU that is late
 *   state = ASKED, target; NMI -------->  NMI: takes ASKED to TAKING, walks its stack, TAKEN
 *   copies, or gives up: ASKED to NONE
 *
 * The handler reads nothing but its own stack, so it may come at any moment, also to a CPU that sleeps
 * (kernel/shootdown.c). One that comes after the asker gave up finds its mark in struct percpu and does nothing else.
 */
#include "arch/x86_64/sample.h"

#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/cpu.h>

#include "arch/x86_64/apic.h"
#include "arch/x86_64/traps.h"
#include "kernel/call.h"
#include "kernel/context.h"
#include "kernel/percpu.h"

enum { SAMPLE_MAX = 16 };
enum { SAMPLE_NONE, SAMPLE_ASKED, SAMPLE_TAKING, SAMPLE_TAKEN };

static struct {
	u32 asker; /* number + 1 of the CPU that asks: one at a time */
	u32 state;
	cpu_t target;
	virt_t where[SAMPLE_MAX];
	size_t count;
} sample;

bool sample_answer(const struct trap_frame *frame)
{
	struct percpu *self = this_cpu();

	if (!atomic_exchange(&self->arch.sampled, 0))
		return false;
	if (atomic_load_acquire(&sample.target) != self->id || !atomic_cas(&sample.state, SAMPLE_ASKED, SAMPLE_TAKING))
		return true;
	sample.count = backtrace_of(frame, sample.where, SAMPLE_MAX);
	atomic_store_release(&sample.state, SAMPLE_TAKEN);
	return true;
}

/* Until it has answered or the time is over. A CPU that began to answer will end. */
static bool wait_for_answer(u64 limit_ns)
{
	const u64 start = clock_ns();

	while (atomic_load_acquire(&sample.state) != SAMPLE_TAKEN) {
		if (clock_ns() - start > limit_ns && atomic_cas(&sample.state, SAMPLE_ASKED, SAMPLE_NONE))
			return false;
		cpu_relax();
		if (!context_in(CONTEXT_NMIS)) /* an NMI may have interrupted a look into the mailbox */
			call_serve();
	}
	return true;
}

size_t cpu_where(cpu_t cpu, virt_t *out, size_t max, u64 limit_ns)
{
	size_t count = 0;

	if (cpu == cpu_id())
		return this_cpu()->arch.trap ? backtrace_of(this_cpu()->arch.trap, out, max) : 0;
	if (!cpu_online(cpu) || !atomic_cas(&sample.asker, 0, cpu_id() + 1))
		return 0;
	atomic_store_relaxed(&sample.target, cpu);
	atomic_store_release(&sample.state, SAMPLE_ASKED);
	atomic_exchange(&cpu_data(cpu)->arch.sampled, 1);
	if (!apic_send(cpu_data(cpu)->arch.apic_id, ICR_NMI | ICR_ASSERT))
		limit_ns = 0; /* another NMI may answer all the same, and until it does the question is taken back */
	if (wait_for_answer(limit_ns))
		for (; count < MIN(max, sample.count); count++)
			out[count] = sample.where[count];
	atomic_store_release(&sample.asker, 0);
	return count;
}
