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

/* The same on every CPU but the caller, at once. Context: ordinary. */
void call_others(call_fn *fn, void *arg);

/*
 * Give an idle CPU a function to run to completion, in the ordinary context. Returns 0, -EBUSY if
 * the CPU has work already, or -EINVAL for the calling CPU or one that takes no part. The boot CPU
 * always has work: the program.
 *
 * work_wait() waits for the end of that work. With a `limit_ns`, the wait is reported late after
 * that time and given up after ten times that time. With 0, it is reported late from time to time
 * and given up after hang= seconds. With WORK_ENDLESS, it lasts as long as the work does.
 */
#define WORK_ENDLESS ((u64)-1)
int work_start(cpu_t cpu, call_fn *fn, void *arg);
bool work_done(cpu_t cpu);
void work_wait(cpu_t cpu, u64 limit_ns);
