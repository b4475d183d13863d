/*
 * Asking other CPUs to do something.
 *
 *   call_cpus()   now, in their interrupt handler, and wait until all have done it: flushes, drains, register reads.
 *                 The function must be short, call nobody, and wait for no lock that is ever held with interrupts on, unless
 *                 locks_none().
 *   work_start()  when they are idle: one function runs to completion in the CPU's idle loop (a padata chunk loop, a
 *                 test's thread, a payload). There is no scheduler; a CPU that is busy refuses.
 *
 * Mailbox: each CPU owns one call slot, so it has one outstanding request at most, and every CPU has a set of the
 * CPUs whose slots wait for it. Nothing is allocated and nothing can overflow, at any number of CPUs.
 *
 *   CPU 3: slot{fn,arg,pending=2}          CPU 7: call_from = {3}  -> runs slot 3, clears bit, pending--
 *
 * A CPU that waits, or spins for a lock with interrupts off, serves its own mailbox meanwhile: two CPUs that call
 * each other do not deadlock.
 */
#pragma once

#include "kernel/cpumask.h"
#include "kernel/types.h"

typedef void call_fn(void *arg);

struct call_slot {
	call_fn *fn;
	void *arg;
	u32 pending; /* targets that have not finished */
	bool busy;   /* between begin and the last acknowledgement */
};

struct work_slot {
	u32 claimed; /* 1 from the moment somebody gives work until it is done */
	call_fn *fn; /* NULL: none */
	void *arg;
};

/*
 * Run fn(arg) on every CPU of `targets` but the caller, in interrupt context, and wait for all of them.
 * Returns the number of interrupt messages sent. Interrupts may be on or off. Context: ordinary (mm/mm.h).
 */
u64 call_cpus(const struct cpumask *targets, call_fn *fn, void *arg);

/* The same on one CPU, if it is online and not the caller. Context: ordinary. */
void call_cpu(cpu_t cpu, call_fn *fn, void *arg);

/* Serve this CPU's mailbox: pending calls and a pending TLB flush. From the IPI handler and from waits. */
void call_serve(void);

/*
 * Give an idle CPU a function to run to completion in its idle loop, interrupts on. 0, or -EBUSY if it has work
 * already, or -EINVAL for the calling CPU or one that is not online. work_wait() waits for its end: late after
 * `limit_ns`, given up after ten times that; 0: hang= seconds at most, saying that it waits; WORK_ENDLESS: as long as a program likes.
 */
#define WORK_ENDLESS ((u64)-1)
int work_start(cpu_t cpu, call_fn *fn, void *arg);
bool work_done(cpu_t cpu);
void work_wait(cpu_t cpu, u64 limit_ns);

/*
 * What idle CPUs do before they halt, when there is no work: a bounded piece of something, true if there may be more. Work that is
 * given meanwhile waits until it returns: it should look at work_waits() in between. Woken again by ipi_send(). One task, set once.
 */
typedef bool idle_task_fn(void);
void idle_task_set(idle_task_fn *fn);
bool work_waits(void);

/* What a CPU does when it has nothing to do: halts, runs work, never returns. */
__noreturn void cpu_idle_loop(void);

/*
 * Leave the idle state: clear the flag, fence, flush if a generation was missed. First thing in every interrupt entry
 * and after every halt; does nothing on a CPU that is not idle. Must precede any struct page access.
 */
void cpu_leave_idle(void);

/* Body of the IPI interrupt: what arch code calls, interrupts off, once it has acknowledged the interrupt. */
void interrupt_ipi(void);
