/*
 * Cross-CPU calls, work for idle CPUs, and the idle loop: see call.h.
 *
 * The mailbox is safe because of its order. The caller fills its slot, then sets its bit in the
 * target's call_from (a locked instruction), then sets the bit of that word in call_words (another
 * locked instruction), then sends the interrupt. The target takes bits with an exchange, so each
 * call is run once, whether the interrupt or a polling wait sees it first.
 *
 * A poll looks at call_words alone: one word, however many CPUs there are. The target clears
 * call_words before it looks at the words of call_from. A caller whose bit came too late for that
 * look therefore sets call_words after the clearing, and the next poll or the interrupt sees it.
 */
#include "kernel/core/call.h"

#include <arch/barrier.h>
#include <arch/check.h>
#include <arch/cpu.h>

#include "kernel/core/context.h"
#include "kernel/core/fail.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/quiet.h"
#include "kernel/core/shootdown.h"
#include "kernel/core/wait.h"

enum { PERIODS_LIMITED = 10 }; /* of a wait with a limit, which the caller knows */

/* Fill this CPU's slot before `targets` CPUs are pointed at it. */
static void call_begin(struct percpu *self, call_fn *fn, void *arg, cpu_t targets)
{
	struct call_slot *slot = &self->call_slot;

	ASSERT(!slot->busy, "CPU %u makes a call from within a call", self->id);
	slot->busy = true;
	slot->fn = fn;
	slot->arg = arg;
	atomic_store_release(&slot->pending, targets);
}

static void call_post_to(struct percpu *target, const struct percpu *self)
{
	cpumask_set_atomic(&target->call_from, self->id);
	atomic_fetch_or(&target->call_words, 1ULL << self->id / 64 % 64);
}

static void call_post(const struct cpumask *targets, const struct percpu *self)
{
	cpu_t cpu;

	cpumask_foreach(cpu, targets) {
		if (cpu != self->id && cpu_online(cpu))
			call_post_to(cpu_data(cpu), self);
	}
}

/*
 * For the message, the first CPU that has not taken this call: it still has the caller's bit set.
 */
static cpu_t call_culprit(const struct cpumask *targets, const struct percpu *self)
{
	cpu_t cpu;

	cpumask_foreach(cpu, targets) {
		if (cpu != self->id && cpu_online(cpu) &&
		    cpumask_test(&cpu_data(cpu)->call_from, self->id))
			return cpu;
	}
	return CPU_NONE;
}

/* Wait for all CPUs of `targets`, or for the single CPU `cpu` if `targets` is NULL. */
static void call_end(struct percpu *self, const struct cpumask *targets, cpu_t cpu)
{
	struct call_slot *slot = &self->call_slot;

	if (atomic_load_acquire(&slot->pending) != 0) {
		struct wait wait = wait_begin(WAIT_ANSWER, "a cross-CPU call");

		while (atomic_load_acquire(&slot->pending) != 0)
			wait_spin(&wait, targets ? call_culprit(targets, self) : cpu);
	}
	slot->busy = false;
}

u64 call_cpus(const struct cpumask *targets, call_fn *fn, void *arg)
{
	struct percpu *self = this_cpu();
	const cpu_t count = cpus_online_among(targets, self->id);
	u64 messages = 0;

	context_assert(CONTEXT_ORDINARY);
	call_begin(self, fn, arg, count);
	if (count > 0) {
		call_post(targets, self);
		messages = ipi_send_mask(targets);
	}
	call_end(self, targets, CPU_NONE);
	return messages;
}

void call_cpu(cpu_t cpu, call_fn *fn, void *arg)
{
	struct percpu *self = this_cpu();

	context_assert(CONTEXT_ORDINARY);
	if (cpu == self->id || !cpu_online(cpu))
		return;
	call_begin(self, fn, arg, 1);
	call_post_to(cpu_data(cpu), self);
	ipi_send(cpu);
	call_end(self, NULL, cpu);
}

static void call_serve_word(u64 bits, cpu_t base)
{
	for (; bits; bits &= bits - 1) {
		struct call_slot *slot = &cpu_data(base + (cpu_t)__builtin_ctzll(bits))->call_slot;

		slot->fn(slot->arg);
		atomic_fetch_sub(&slot->pending, 1);
	}
}

/*
 * Interrupts are off, so that a call taken from the mailbox is run before this CPU does anything
 * else.
 */
static void call_serve_words(struct percpu *self)
{
	const irq_flags_t flags = irq_save();
	const u64 some = atomic_exchange(&self->call_words, 0);

	context_enter(CONTEXT_CALL);
	for (size_t i = 0; i < cpumask_words; i++)
		if (some >> i % 64 & 1)
			call_serve_word(atomic_exchange(&self->call_from.words[i], 0),
					(cpu_t)i * 64);
	context_leave(CONTEXT_CALL);
	irq_restore(flags);
}

void call_serve(void)
{
	struct percpu *self = this_cpu();

	if (atomic_load_relaxed(&self->call_words))
		call_serve_words(self);
	shootdown_serve();
}

void interrupt_ipi(void)
{
	struct percpu *self = this_cpu();

	cpu_leave_rest();
	atomic_store_relaxed(&self->messages, self->messages + 1);
	fail_delay_ipi();
	call_serve();
}

int work_start(cpu_t cpu, call_fn *fn, void *arg)
{
	struct work_slot *work;

	if (cpu >= cpu_count || cpu == cpu_id() || !cpu_online(cpu))
		return -EINVAL;
	work = &cpu_data(cpu)->work;
	if (!atomic_cas(&work->claimed, 0, 1))
		return -EBUSY;
	work->arg = arg;
	atomic_store_release(&work->fn, fn);
	ipi_send(cpu);
	return 0;
}

bool work_done(cpu_t cpu)
{
	return atomic_load_acquire(&cpu_data(cpu)->work.claimed) == 0;
}

void work_wait(cpu_t cpu, u64 limit_ns)
{
	const bool limited = limit_ns > 0 && limit_ns != WORK_ENDLESS;
	struct wait wait = wait_begin(WAIT_WORK, "work on another CPU");

	if (limited) {
		wait.deadline_ns = limit_ns;
		wait.bound = PERIODS_LIMITED;
	}
	wait.endless = limit_ns == WORK_ENDLESS;
	while (!work_done(cpu))
		wait_spin(&wait, cpu);
}

void cpu_leave_rest(void)
{
	const unsigned rests = atomic_load_relaxed(&this_cpu()->rests);

	if (rests)
		rest_end(rests & SHOOTDOWN_SKIP_IDLE ? &shootdown_generation
						     : &shootdown_generation_full);
}

static bool work_run(struct work_slot *work)
{
	call_fn *fn = atomic_load_acquire(&work->fn);

	if (!fn)
		return false;
	if (atomic_load_relaxed(&work->asked) && atomic_exchange(&work->asked, 0))
		idle_task_wake(1); /* this CPU does not look now */
	fn(work->arg);
	atomic_store_relaxed(&work->fn, NULL);
	atomic_store_release(&work->claimed, 0);
	return true;
}

static idle_task_fn *idle_task;
static idle_wait_fn *idle_wait;
static __cacheline_aligned u64 idle_news; /* calls of idle_task_wake() so far */

void idle_task_set(idle_task_fn *fn, idle_wait_fn *in_wait)
{
	atomic_store_release(&idle_wait, in_wait);
	atomic_store_release(&idle_task, fn);
}

bool work_waits(void)
{
	return atomic_load_acquire(&this_cpu()->work.fn) != NULL;
}

static bool idle_task_run(void)
{
	idle_task_fn *fn = atomic_load_acquire(&idle_task);
	struct work_slot *work = &this_cpu()->work;

	if (atomic_load_relaxed(&work->asked))
		/* with a full fence, so that fn() sees what the waker has stored */
		atomic_exchange(&work->asked, 0);
	return fn && fn();
}

u64 idle_task_in_wait(u64 until_ns)
{
	idle_wait_fn *fn = atomic_load_acquire(&idle_wait);
	const u64 look_ns = fn ? fn() : 0;

	return MIN(until_ns - 1, look_ns - 1) + 1; /* 0 is the latest */
}

void idle_task_wake(u64 cpus)
{
	cpu_t cpu;

	atomic_fetch_add(&idle_news, 1); /* a full fence, too; pairs with halt_unless_news()'s */
	cpumask_foreach(cpu, &cpus_online) {
		if (cpus == 0)
			return;
		/* A CPU that has work may wait in it, idle. It runs the idle task afterwards. */
		if (cpu == cpu_id() || !work_done(cpu) ||
		    !atomic_load_acquire(&cpu_data(cpu)->idle))
			continue;
		/* full fences: a CPU that is given work after the second look sees `asked` */
		atomic_exchange(&cpu_data(cpu)->work.asked, 1);
		ipi_send(cpu);
		cpus -= work_done(cpu);
	}
}

static void idle_begin(void)
{
	cpu_idle_look();
	check_event(CHECK_IDLE, 0, 0);
	atomic_store_release(&this_cpu()->idle, 1);
}

void cpu_halt_idle(void)
{
	idle_begin();
	cpu_halt_until_interrupt();
	cpu_leave_rest();
}

/*
 * Halt as an idle CPU, unless there is news for the idle task since `news` was read. The caller
 * read it before it looked for work and ran the task, which found nothing.
 */
static void halt_unless_news(u64 news)
{
	idle_begin();
	fence_full(); /* pairs with idle_task_wake(), which sees idle = 1, or this CPU its news */
	if (atomic_load_relaxed(&idle_news) == news)
		cpu_halt_until_interrupt();
	cpu_leave_rest();
}

__noreturn void cpu_idle_loop(void)
{
	struct percpu *self = this_cpu();

	for (;;) {
		u64 news;

		irq_enable();
		do
			news = atomic_load_acquire(&idle_news);
		while (work_run(&self->work) || idle_task_run());
		irq_disable();
		if (atomic_load_acquire(&self->work.fn))
			/*
			 * Work arrived between the check in work_run() and irq_disable(). Work that
			 * arrives later ends the halt.
			 */
			continue;
		halt_unless_news(news);
	}
}
