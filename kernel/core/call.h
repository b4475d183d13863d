/*
 * Asking other CPUs to do something.
 *
 *   call_cpus()   now, in their interrupt handler. The caller waits until all are done. Used for
 *                 flushes, drains and register reads. The function must be short, must not call
 *                 another CPU, and must not wait for a lock that is ever held with interrupts on,
 *                 unless locks_none() is true.
 *   work_start()  when they are idle. One function runs to completion in the CPU's idle loop (a
 *                 padata chunk loop, a test's thread, a payload). There is no scheduler; a CPU that
 *                 is busy refuses.
 *
 * The calls for programs, work_start() among them, are in cpus.h.
 *
 * Mailbox: each CPU owns one call slot, so it has at most one outstanding request. Every CPU also
 * has a set of the CPUs whose slots wait for it. Nothing is allocated and nothing can overflow, at
 * any number of CPUs.
 *
 *   CPU 3: slot{fn,arg,pending=2}          CPU 7: call_from = {3}  -> runs slot 3, clears bit,
 *                                          pending--
 *
 * A CPU that waits, or that spins for a lock with interrupts off, serves its own mailbox meanwhile,
 * so two CPUs that call each other do not deadlock.
 */
#pragma once

#include "kernel/core/cpus.h"
#include "kernel/lib/cpumask.h"
#include "kernel/lib/types.h"

struct call_slot {
	call_fn *fn;
	void *arg;
	u32 pending; /* targets that have not finished */
	bool busy;   /* between begin and the last acknowledgement */
};

struct work_slot {
	u32 asked;   /* 1: the CPU was woken for the idle task, and has not run it since */
	u32 claimed; /* 1 from the moment a caller gives work until the work is done */
	call_fn *fn; /* NULL: none */
	void *arg;
};

/*
 * Run fn(arg) on every CPU of `targets` but the caller, with interrupts off (in the interrupt
 * handler or in a wait of that CPU), and wait for all of them. Returns the number of interrupt
 * messages sent. Interrupts may be on or off in the caller. Context: ordinary (mm/mm.h).
 */
u64 call_cpus(const struct cpumask *targets, call_fn *fn, void *arg);

/*
 * Serve this CPU's mailbox: pending calls and a pending TLB flush. Called from the IPI handler and
 * from waits.
 */
void call_serve(void);

/*
 * Work for idle CPUs to do before they halt. The function does a bounded piece and returns true if
 * there may be more. Work given by work_start() waits until the function returns, so a long piece
 * should look at work_waits() in between. There is one idle task.
 *
 * `in_wait`, if there is one, is for CPUs that are about to halt in their work. It does a piece and
 * returns when such a CPU should look again (clock_ns()), or 0: never, because others do.
 */
typedef bool idle_task_fn(void);
typedef u64 idle_wait_fn(void);
void idle_task_set(idle_task_fn *fn, idle_wait_fn *in_wait);
bool work_waits(void);

/*
 * A CPU will halt in its work until `until_ns` (clock_ns(); 0: no limit): do a piece of the idle
 * task if no idle CPU does. Returns until when to halt at the most, in the same way. Context:
 * ordinary.
 */
u64 idle_task_in_wait(u64 until_ns);

/*
 * The idle task has something new to do, which the caller has stored for it: wake up to `cpus` CPUs
 * that have nothing to do. CPUs that are not yet idle, or idle within their work, run the task
 * before they next halt in their idle loop, so nothing new is missed. Context: any, no lock held.
 */
void idle_task_wake(u64 cpus);

/*
 * The loop of a CPU that has nothing to do: runs work and the idle task, and halts. Never returns.
 */
__noreturn void cpu_idle_loop(void);

/*
 * Halt as an idle CPU until an interrupt, whatever it is for: rounds skip this CPU, and it flushes
 * when it wakes. Called and left with interrupts off. The caller has looked, with interrupts off,
 * whether what it waits for has come, and is interrupted (ipi_send()) when it comes.
 */
void cpu_halt_idle(void);

/*
 * This CPU is neither idle nor quiet from here on, and has flushed if it missed a round. This is
 * the first call in every interrupt entry and after every halt, and must precede any access to a
 * struct page. It does nothing on a CPU that does not rest.
 */
void cpu_leave_rest(void);

/*
 * Body of the IPI interrupt. Arch code calls it with interrupts off, once it has acknowledged the
 * interrupt.
 */
void interrupt_ipi(void);
