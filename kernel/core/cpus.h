/*
 * The CPUs, as a program sees them: how many there are, and how to give them something to do. For
 * one job on many CPUs see padata.h.
 *
 * CPUs are numbered from 0, the boot CPU, on which the program begins. A CPU that failed to start
 * keeps its number.
 */
#pragma once

#include "kernel/lib/types.h"

/* The CPU that asks. Context: any. */
cpu_t cpu_this(void);

/* How many CPUs take part, how many have a number, and does this one take part? Context: any. */
cpu_t cpus_started(void);
cpu_t cpus_known(void);
bool cpu_is_started(cpu_t cpu);

typedef void call_fn(void *arg);

/*
 * Run fn(arg) on another CPU, in its interrupt handler, and wait for the end. The function must be
 * short, must not call another CPU, and must not wait for a lock that is ever held with interrupts
 * on. Does nothing if the CPU takes no part or is the caller. Context: ordinary (mm/mm.h).
 */
void call_cpu(cpu_t cpu, call_fn *fn, void *arg);

/* Run fn(arg) as call_cpu() does on every CPU but the caller, at once. Context: ordinary. */
void call_others(call_fn *fn, void *arg);

/*
 * Halt this CPU as an idle one until *flag is not 0, or until the time `until_ns` (clock_ns(); 0:
 * no limit). Returns true if *flag is not 0. Rounds skip the CPU while it is halted, and interrupts
 * are handled. A CPU that sets the flag calls cpu_wake() afterwards; a wake that comes before the
 * halt is not lost. *flag must not lie in a page of a huge mapping that is not present.
 *
 *	cpu_wait(&queue->filled, 0);                  one CPU
 *	queue->filled = 1; cpu_wake(one);             another CPU, or an interrupt handler
 *
 * A limit does not disturb timer_once(). Without a timer the CPU does not halt: it looks at the
 * clock until the time has come. Context: ordinary.
 */
bool cpu_wait(const u32 *flag, u64 until_ns);

/* End the halt of a CPU, which looks at its flag again. Context: any. */
void cpu_wake(cpu_t cpu);

/*
 * Between these calls the program on this CPU is quiet. It promises to read no struct page and to
 * make no call but those whose context is "any"; other calls refuse. Its own memory, huge mappings
 * included, it uses as before. Changes of struct pages (pools that grow or shrink) then do not
 * interrupt this CPU, unless tlb.quiet=off. The frames that they free are kept until it enters the
 * kernel, or until the kernel asks it to: a second after the first change, or at once if frames are
 * short. Interrupts are handled as always and must be on. Context: ordinary; cpu_quiet_end():
 * quiet.
 *
 *	cpu_quiet_begin();
 *	while (!stop)
 *		poll(ring);
 *	cpu_quiet_end();
 */
void cpu_quiet_begin(void);
void cpu_quiet_end(void);

/*
 * Give an idle CPU a function to run to completion, in the ordinary context. Returns 0, -EBUSY if
 * the CPU has work already, or -EINVAL for the calling CPU or one that takes no part. The boot CPU
 * always has work: the program.
 *
 * work_wait() waits for the end of that work. With a `limit_ns`, the wait is reported late after
 * that time and given up after ten times that time. With 0, it is reported late from time to time
 * and given up after end.hang= seconds. With WORK_ENDLESS, it lasts as long as the work does.
 */
#define WORK_ENDLESS ((u64)-1)
int work_start(cpu_t cpu, call_fn *fn, void *arg);
bool work_done(cpu_t cpu);
void work_wait(cpu_t cpu, u64 limit_ns);
