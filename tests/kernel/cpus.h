/* Cases that need several CPUs at once. */
#pragma once

#include <arch/barrier.h>

#include "kernel/core/call.h"
#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"

/*
 * Are so many CPUs online (at most four)? If not, the case is skipped.
 *
 *	TEST_ARENA(mm_pcp, a_drain_ends, cpus_needed(2) ? arena_borrow(MIB(16)) : NULL)
 */
bool cpus_needed(cpu_t count);

/* End the case as skipped if it has no other CPU to work with. */
#define SKIP_ON_ONE_CPU()                                                                          \
	do {                                                                                       \
		if (cpumask_weight(&cpus_online) < 2)                                              \
			SKIP("needs two CPUs");                                                    \
	} while (0)

/* An online CPU other than this one that has no work, or CPU_NONE. */
cpu_t cpus_find_other(void);

/*
 * Run fn(arg) on several CPUs, this one included, all at the same time: no CPU begins before all
 * have arrived. Returns the number of CPUs when all are done. CPUs that do not arrive in time fail
 * the case.
 *
 * All online CPUs run it, but at most CPUS_TOGETHER. Where virtual CPUs share few real ones, a
 * contended lock changes hands once per time slice of the host. If 252 CPUs spin for one lock, a
 * case takes hours without testing more.
 */
enum { CPUS_TOGETHER = 4 }; /* unless test.together= says otherwise */
cpu_t cpus_run_together(call_fn *fn, void *arg);

/* Start fn(arg) on up to `most` idle CPUs, but this one. Returns on how many. */
cpu_t cpus_start_idle(call_fn *fn, void *arg, cpu_t most);

/*
 * Say how often the event came that a case is about, where the schedule decides that. No case may
 * expect a number: a host may run each CPU to its end before the next one.
 */
void cpus_note_met(u64 times, const char *event);

/*
 * Spin, and answer nothing, until another CPU has done what it does in every schedule. If it never
 * does, end.hang= ends the run.
 */
#define CPUS_AWAIT(condition)                                                                      \
	do {                                                                                       \
		while (!(condition))                                                               \
			cpu_relax();                                                               \
	} while (0)

/*
 * Wait, and answer, until the condition holds. `cpu` is the CPU that makes it hold, or CPU_NONE if
 * that is not known. A report of a late wait names the CPU and says that `what` is late.
 */
#define CPUS_WAIT_FOR(condition, cpu, what)                                                        \
	for (struct wait wait_ = wait_begin(WAIT_OPENING, what); !(condition);                     \
	     wait_spin(&wait_, cpu))                                                               \
	continue

/* Wait until all other CPUs have done their work. */
void cpus_await_work(void);

/* Wait, bounded, until every other CPU is halted in its idle loop. Returns false if one is not. */
bool cpus_wait_idle(void);

/*
 * Work that answers no interrupt and serves no mailbox until its CPU was reported late
 * (kernel/core/wait.h), or for ever.
 */
struct cpus_deaf {
	u32 running;
	bool for_ever;
};
void cpus_be_deaf(void *deaf);
void cpus_deaf_start(struct cpus_deaf *deaf, cpu_t cpu); /* returns when the CPU is deaf */

/*
 * Work that begins one wait of a level after the other, none of which lasts, until `stop` is set.
 */
struct cpus_moving {
	u32 running, stop;
	enum wait_level level;
};
void cpus_move(void *moving);
void cpus_move_start(struct cpus_moving *moving, cpu_t cpu); /* returns when the work has begun */
