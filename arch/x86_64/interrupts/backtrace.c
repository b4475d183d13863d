/*
 * Backtraces from frame pointers: of this CPU, of another CPU, and in a panic's report.
 *
 *	rbp -> | caller's rbp | return address |     frames lie at rising addresses
 *
 * A frame chain may be garbage when it is needed most. Every word is therefore read with
 * peek_u64(). Frames must rise, be 8-aligned and lie in the kernel's half, and return addresses
 * must lie in the text. The first frame that breaks a rule ends the walk.
 *
 * A program in ring 3 sets RBP and RSP as it likes. They are not followed where they may be the
 * program's; RIP alone is reported there.
 */
#include "arch/x86_64/interrupts/backtrace.h"

#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/console.h>
#include <arch/cpu.h>
#include <arch/peek.h>
#include <arch/percpu.h>

#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/cpu/trap_frame.h"
#include "arch/x86_64/traps/apic.h"
#include "arch/x86_64/traps/traps.h"
#include "kernel/core/call.h"
#include "kernel/core/context.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"

#define KERNEL_HALF 0xffff800000000000ULL

enum { BACKTRACE_MAX = 24 };

extern const char __image_text_start[], __image_text_end[];

static bool in_text(virt_t addr)
{
	return addr >= (virt_t)__image_text_start && addr < (virt_t)__image_text_end;
}

static size_t walk_frames(virt_t frame, virt_t *out, size_t max)
{
	virt_t last = KERNEL_HALF;
	size_t n = 0;
	u64 next, ret;

	while (n < max && frame > last && IS_ALIGNED(frame, sizeof(u64))) {
		if (!peek_u64((void *)frame, &next) ||
		    !peek_u64((void *)(frame + sizeof(u64)), &ret) || !in_text(ret))
			break;
		out[n++] = ret;
		last = frame;
		frame = next;
	}
	return n;
}

/* May RBP and RSP in the frame be followed? */
static bool is_kernel(const struct trap_frame *frame)
{
	return !trap_from_ring3(frame) && !trap_is_entry(frame->rip);
}

/*
 * The address at which `frame` was taken, then its callers, innermost first; at most `max`. Returns
 * how many were stored.
 */
static size_t backtrace_of(const struct trap_frame *frame, virt_t *out, size_t max)
{
	if (max == 0)
		return 0;
	out[0] = frame->rip;
	if (!is_kernel(frame))
		return 1;
	return 1 + walk_frames(frame->rbp, out + 1, max - 1);
}

size_t backtrace_capture(virt_t *out, size_t max)
{
	return walk_frames((virt_t)__builtin_frame_address(0), out, max);
}

/*
 * ---- another CPU ----
 *
 * Whatever that CPU is doing, it receives an NMI, stores its own return addresses and goes on. This
 * serves waits that take too long (kernel/core/wait.c).
 *
 *   CPU that asks                         the CPU that is late
 *   state = ASKED, target; NMI -------->  NMI: ASKED to TAKING, walks its stack, to TAKEN
 *   copies, or gives up: ASKED to NONE
 *
 * The handler reads nothing but its own stack, so it may run at any moment, even on a CPU that
 * sleeps (kernel/core/shootdown.c). An NMI that arrives after the asking CPU gave up finds the mark
 * in struct percpu and does nothing else.
 */

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

/* ---- a panic ---- */

/*
 * Print `addr` with its symbol. `back` is 1 for a return address, which belongs to the call before
 * it.
 */
static void print_code(const char *prefix, virt_t addr, u64 back)
{
	u64 offset = 0;
	const char *name = symbol_lookup(addr - back, &offset);

	if (name)
		print("%s%016llx  %s+0x%llx\n", prefix, addr, name, offset + back);
	else
		print("%s%016llx\n", prefix, addr);
}

/*
 * A jump to an address outside the text leaves no frame of its own, but the caller's return address
 * is on top of the stack.
 */
static void print_caller(const struct trap_frame *trap)
{
	u64 ret;

	if (!in_text(trap->rip) && peek_u64((void *)trap->rsp, &ret) && in_text(ret))
		print_code("called from ", ret, 1);
}

static void print_backtrace(const virt_t *ret, size_t n)
{
	print("backtrace:\n");
	for (size_t i = 0; i < n; i++)
		print_code("  ", ret[i], 1);
}

void panic_arch(void)
{
	const struct trap_frame *trap = this_cpu()->arch.trap;
	virt_t ret[BACKTRACE_MAX];

	cpus_stop_others();
	if (trap) {
		print_code(trap_from_ring3(trap) ? "ring 3, rip " : "rip ", trap->rip, 0);
		if (is_kernel(trap))
			print_caller(trap);
		user_regs_print(trap);
		print("  rflags %llx cs %llx ss %llx vector %llu error %llx\n", trap->rflags,
		      trap->cs, trap->ss, trap->vector, trap->error);
	}
	print("cr0 %llx cr2 %llx cr3 %llx cr4 %llx\n", read_cr0(), read_cr2(), read_cr3(),
	      read_cr4());
	if (trap)
		print_backtrace(ret,
				is_kernel(trap) ? walk_frames(trap->rbp, ret, BACKTRACE_MAX) : 0);
	else
		print_backtrace(ret, backtrace_capture(ret, BACKTRACE_MAX));
}
