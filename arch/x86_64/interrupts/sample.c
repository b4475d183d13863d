/*
 * Finding where another CPU is, whatever it is doing. That CPU receives an NMI, stores its own
 * return addresses and goes on. This serves waits that take too long (kernel/core/wait.c).
 *
 *   CPU that asks                         the CPU that is late
 *   state = ASKED, target; NMI -------->  NMI: ASKED to TAKING, walks its stack, to TAKEN
 *   copies, or gives up: ASKED to NONE
 *
 * The handler reads nothing but its own stack, so it may run at any moment, even on a CPU that
 * sleeps (kernel/core/shootdown.c). An NMI that arrives after the asking CPU gave up finds the mark
 * in struct percpu and does nothing else.
 */
#include "arch/x86_64/interrupts/sample.h"

#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/cpu.h>

#include "arch/x86_64/interrupts/backtrace.h"
#include "arch/x86_64/traps/apic.h"
#include "kernel/core/call.h"
#include "kernel/core/context.h"
#include "kernel/core/percpu.h"

enum { SAMPLE_MAX = 16 };
enum { SAMPLE_NONE, SAMPLE_ASKED, SAMPLE_TAKING, SAMPLE_TAKEN };

static struct {
	u32 asker; /* number + 1 of the CPU that asks; one at a time */
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
	if (atomic_load_acquire(&sample.target) != self->id ||
	    !atomic_cas(&sample.state, SAMPLE_ASKED, SAMPLE_TAKING))
		return true;
	sample.count = backtrace_of(frame, sample.where, SAMPLE_MAX);
	atomic_store_release(&sample.state, SAMPLE_TAKEN);
	return true;
}

/*
 * Wait until the target has answered or the time is over; false if it did not answer. A target that
 * has begun to answer is waited for.
 */
static bool wait_for_answer(u64 limit_ns)
{
	const u64 start = clock_ns();

	while (atomic_load_acquire(&sample.state) != SAMPLE_TAKEN) {
		if (clock_ns() - start > limit_ns &&
		    atomic_cas(&sample.state, SAMPLE_ASKED, SAMPLE_NONE))
			return false;
		cpu_relax();
		/* an NMI may have interrupted call_serve() itself */
		if (!context_in(CONTEXT_NMIS))
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
		/*
		 * another NMI may answer all the same; until one does, the question can be taken
		 * back
		 */
		limit_ns = 0;
	if (wait_for_answer(limit_ns))
		for (; count < MIN(max, sample.count); count++)
			out[count] = sample.where[count];
	atomic_store_release(&sample.asker, 0);
	return count;
}
