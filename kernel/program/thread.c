/* Threads of a program: see thread.h. */
#include "kernel/program/thread.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/boot.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/memory.h>
#include <arch/timer.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/call.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/cpumask.h"
#include "kernel/lib/string.h"
#include "kernel/program/clocks.h"
#include "kernel/program/futex.h"
#include "kernel/program/program_space.h"
#include "kernel/program/signal.h"
#include "kernel/program/signal_queue.h"
#include "mm/mm.h"

/*
 * One record per CPU that ever ran a thread: a page, and behind it those of its texts and vectors.
 * Only threads, their timers and movers of pages look here from other CPUs, and all of these have
 * ended before threads_end().
 */
static struct thread **records; /* NULL: no program; atomic */
static struct page *records_page;
static cpu_t first_cpu; /* of the first thread; it is never idle */
static u32 last_id;
static bool all_end;
static u32 started; /* threads that others have started and that have not ended; atomic */

static u64 told = CPU_NONE;
OPTION_U64(program.cpus, told, 1, CPU_NONE,
	   "the program hears of the CPUs below this one; others are for more threads");

cpu_t thread_cpu_told(cpu_t from)
{
	const cpu_t cpu = cpumask_next(&cpus_online, from);

	return cpu < told ? cpu : CPU_NONE;
}

struct thread *thread_on(cpu_t cpu)
{
	struct thread **all = atomic_load_acquire(&records);

	return all ? atomic_load_acquire(&all[cpu]) : NULL;
}

struct thread *thread_current(void)
{
	return thread_on(cpu_id());
}

/* The record of the thread that makes this call. */
static struct thread *caller(void)
{
	return atomic_load_acquire(&atomic_load_acquire(&records)[cpu_id()]);
}

struct thread *thread_next(const struct thread *after)
{
	for (cpu_t cpu = after ? after->cpu + 1 : 0; cpu < cpu_count; cpu++) {
		struct thread *thread = thread_on(cpu);

		if (thread && atomic_load_acquire(&thread->id) != 0)
			return thread;
	}
	return NULL;
}

struct thread *thread_by_id(u32 id)
{
	for (struct thread *t = thread_next(NULL); t; t = thread_next(t))
		if (atomic_load_acquire(&t->id) == id)
			return t;
	return NULL;
}

bool thread_is_over(struct thread *record)
{
	if (atomic_load_acquire(&record->id) != 0)
		return false;
	signal_pending_forget_thread(record);
	return true;
}

/* ---- records ---- */

static void free_record(struct thread *thread)
{
	page_free(pfn_to_page(virt_to_phys(thread) >> PAGE_SHIFT));
}

struct thread *thread_record(cpu_t cpu)
{
	struct thread *thread = thread_on(cpu);
	struct page *page;

	if (thread)
		return thread;
	page = page_alloc(page_order_for(user_vectors_size() + (1 + THREAD_TEXTS) * PAGE_SIZE),
			  USE_UNMOVABLE, PAGE_ZERO, arch_cpu_node(cpu));
	if (!page)
		return NULL;
	thread = page_address(page);
	thread->cpu = cpu;
	thread->texts = (u8 *)thread + PAGE_SIZE;
	thread->vectors = (u8 *)thread->texts + THREAD_TEXTS * PAGE_SIZE;
	if (!atomic_cas(&records[cpu], NULL, thread)) { /* another thread starts one there, too */
		free_record(thread);
		return thread_on(cpu);
	}
	return thread;
}

struct thread *threads_begin(void)
{
	struct thread *first;

	/* NOLINTNEXTLINE(bugprone-sizeof-expression): a table of pointers */
	records_page = page_alloc(page_order_for(cpu_count * sizeof(*records)), USE_UNMOVABLE,
				  PAGE_ZERO, NODE_NONE);
	if (!records_page)
		return NULL;
	atomic_store_release(&records, page_address(records_page));
	all_end = false;
	last_id = THREAD_FIRST_ID;
	first_cpu = cpu_id();
	first = thread_record(cpu_id());
	if (!first) {
		threads_end();
		return NULL;
	}
	clock_thread_begin(first);
	atomic_store_release(&first->id, THREAD_FIRST_ID);
	return first;
}

void threads_end(void)
{
	struct thread **all = records;

	atomic_store_release(&records, NULL);
	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		if (all[cpu])
			free_record(all[cpu]);
	}
	page_free(records_page);
}

/* ---- the start ---- */

/*
 * A CPU's work while it is a thread. If the program ends at this moment, either this CPU sees
 * it here, or the CPU that ends the program sees the thread, and has it attend.
 */
static void run_thread(void *arg)
{
	struct thread *thread = arg;

	fence_full();
	if (atomic_load_acquire(&all_end))
		atomic_store_release(&thread->id, 0);
	else
		user_enter(&thread->start, thread->fs_base, thread->vectors);
	atomic_fetch_sub(&started, 1);
}

/* Prepare the record of a CPU that has no thread, for one that nobody sees yet. */
static void prepare(struct thread *thread, const struct thread_request *request)
{
	const struct thread *parent = caller();

	thread->start = *request->regs;
	thread->fs_base = request->fs_base;
	thread->clear_child_tid = request->clear_child_tid;
	thread->robust_list = 0;
	atomic_store_relaxed(&thread->ending, false);
	atomic_store_relaxed(&thread->leaving, false);
	thread->woken = 0;
	thread->polls = false;
	atomic_store_relaxed(&thread->blocked, parent->blocked);
	program_space.cpu[thread->cpu].policy = space_here(&program_space)->policy;
	thread->alt_stack = 0;
	thread->alt_stack_size = 0;
	thread->alt_stack_flags = 0;
	clock_thread_begin(thread);
	memcpy(thread->name, parent->name, sizeof(thread->name));
	user_vectors_save(thread->vectors);
}

enum { TRIES_MS = 100 };

static s64 start_on(cpu_t cpu, const struct thread_request *request)
{
	struct thread *thread = thread_record(cpu);
	u32 id;

	if (!thread)
		return -ENOMEM;
	/* one starter at a time per CPU; the id is set last, because it makes the thread visible */
	if (!atomic_cas(&thread->starting, 0, 1))
		return -EBUSY;
	if (!work_done(cpu) || !thread_is_over(thread)) {
		atomic_store_release(&thread->starting, 0);
		return -EBUSY;
	}
	id = atomic_fetch_add(&last_id, 1) + 1;
	prepare(thread, request);
	user_write(request->parent_tid, &id, sizeof(id));
	user_write(request->child_tid, &id, sizeof(id));
	atomic_store_release(&thread->id, id);
	atomic_fetch_add(&started, 1);
	if (work_start(cpu, run_thread, thread) < 0) {
		atomic_fetch_sub(&started, 1);
		atomic_store_release(&thread->id, 0);
		clock_thread_stop(thread);
		atomic_store_release(&thread->starting, 0);
		return -EBUSY;
	}
	atomic_store_release(&thread->starting, 0);
	return id;
}

/*
 * Is there a CPU that will soon be idle? It has no thread and helps somebody, or its thread is
 * about to leave, as a thread that was joined a moment ago.
 */
static bool any_free(void)
{
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
		const struct thread *thread = thread_on(cpu);

		if (cpu != first_cpu && (!thread || atomic_load_acquire(&thread->id) == 0 ||
					 atomic_load_acquire(&thread->leaving)))
			return true;
	}
	return false;
}

/* CPUs of this node first. */
static s64 try_start(const struct thread_request *request)
{
	const node_t near = this_cpu()->node;
	s64 id = -EBUSY;
	cpu_t cpu;

	for (unsigned far = 0; far < 2 && id == -EBUSY; far++) {
		cpumask_foreach(cpu, &cpus_online) {
			if (cpu == cpu_id() || cpu == first_cpu ||
			    (arch_cpu_node(cpu) != near) != far)
				continue;
			id = start_on(cpu, request);
			if (id != -EBUSY)
				break;
		}
	}
	return id;
}

s64 thread_start(const struct thread_request *request)
{
	static u32 said;
	const u64 until = clock_ns() + TRIES_MS * NS_PER_MS * cpu_deadline_scale();
	s64 id;

	for (;;) {
		if (atomic_load_acquire(&all_end))
			return -EAGAIN;
		id = try_start(request);
		if (id != -EBUSY)
			return id;
		if (!any_free() || clock_ns() >= until)
			break;
		call_serve();
		cpu_relax();
	}
	if (atomic_exchange(&said, 1) == 0)
		pr_warn("program: no CPU is idle for another thread: clone() returns EAGAIN "
			"(a thread is a CPU, and there are %u)",
			cpumask_weight(&cpus_online));
	return -EAGAIN;
}

/* ---- sleep ---- */

bool thread_must_end(const struct thread *thread)
{
	return atomic_load_acquire(&thread->ending) || atomic_load_acquire(&all_end);
}

bool thread_is_wanted(const struct thread *thread)
{
	return thread_must_end(thread) || signal_is_deliverable(thread);
}

void thread_sleep_begin(struct thread *thread)
{
	atomic_store_relaxed(&thread->woken, 0);
	fence_full();
}

static bool must_stay(const struct thread *self, u64 until_ns)
{
	return atomic_load_acquire(&self->woken) == 0 && !thread_is_wanted(self) &&
	       (until_ns == 0 || clock_ns() < until_ns);
}

/*
 * A halt and the message that ends it take longer than many waits last, above all in a virtual
 * machine. A thread therefore looks for the wake first, but only after a sleep that was that short:
 * where wakes come late, for example because the CPU that sends them is not running, a CPU that
 * looks would only take time from the others. The idea is that of Linux's "haltpoll" (Tosatti,
 * 2019).
 */
#define POLL_NS (50 * NS_PER_US)

static void poll_for_wake(const struct thread *self, u64 until_ns)
{
	const u64 stop = clock_ns() + POLL_NS;

	while (must_stay(self, until_ns) && clock_ns() < stop)
		cpu_relax();
}

static void halt_for_wake(struct thread *self, u64 until_ns)
{
	bool timed = true;

	if (until_ns != 0 && clock_ns() < until_ns)
		timed = timer_set(TIMER_WAIT, until_ns, timer_ends_halt, NULL) == 0;
	irq_disable();
	atomic_store_relaxed(&self->halts, 1);
	fence_full(); /* pairs with thread_wake(): it sees `halts`, or this CPU `woken` */
	if (timed && must_stay(self, until_ns))
		cpu_halt_idle();
	atomic_store_relaxed(&self->halts, 0);
	irq_enable();
	if (until_ns != 0)
		timer_clear(TIMER_WAIT);
	if (!timed) {
		call_serve();
		cpu_relax();
	}
}

int thread_sleep(struct thread *self, u64 until_ns)
{
	const u64 began = clock_ns();
	int err = 0;

	clock_thread_stop(self);
	if (self->polls)
		poll_for_wake(self, until_ns);
	while (must_stay(self, until_ns))
		halt_for_wake(self, idle_task_in_wait(until_ns));
	if (atomic_load_acquire(&self->woken) == 0)
		err = thread_is_wanted(self) ? -EINTR : -ETIMEDOUT;
	clock_thread_go_on(self);
	self->polls = clock_ns() - began < POLL_NS;
	return err;
}

void thread_wake(struct thread *thread)
{
	atomic_store_release(&thread->woken, 1);
	fence_full(); /* pairs with halt_for_wake() */
	if (atomic_load_relaxed(&thread->halts) && thread->cpu != cpu_id())
		ipi_send(thread->cpu);
}

/* ---- the end ---- */

void thread_exit(void)
{
	struct thread *self = caller();
	const u32 zero = 0;

	atomic_store_release(&self->leaving, true);
	futex_release_robust(self);
	if (self->clear_child_tid && user_write(self->clear_child_tid, &zero, sizeof(zero)) == 0)
		futex_wake(self->clear_child_tid, 1, ~0u);
	signal_thread_ended(self);
	clock_thread_stop(self);
	atomic_store_release(&self->id, 0);
	user_leave();
}

void threads_end_all(void)
{
	atomic_store_release(&all_end, true);
	fence_full(); /* pairs with run_thread() */
	for (struct thread *t = thread_next(NULL); t; t = thread_next(t)) {
		user_attend(t->cpu);
		thread_wake(t);
	}
}

static void wait_for_cpus(void)
{
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
		if (cpu != cpu_id() && thread_on(cpu))
			work_wait(cpu, WORK_ENDLESS);
	}
}

/*
 * A thread may start another one on a CPU that was waited for already, and it counts the other one
 * before it ends. Only threads start threads, so after the last one only CPUs have to return.
 */
void threads_wait(void)
{
	while (atomic_load_acquire(&started) != 0)
		wait_for_cpus();
	wait_for_cpus();
}

void thread_attend(struct trap_frame *regs)
{
	const struct thread *self = thread_current();

	if (thread_must_end(self))
		thread_exit();
	signal_deliver(regs);
}
