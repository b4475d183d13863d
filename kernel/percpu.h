/*
 * Per-CPU data. One struct per CPU, allocated at run time once the number of CPUs is known; the boot CPU's exists
 * from the start. Fields are written by their own CPU unless their comment says otherwise.
 */
#pragma once

#include <arch/percpu.h>

#include "kernel/call.h"
#include "kernel/cpumask.h"
#include "kernel/lock.h"
#include "kernel/types.h"
#include "kernel/wait.h"

enum { LOCKS_HELD_MAX = 8 };

struct percpu {
	struct percpu *self; /* first: what this_cpu() loads */
	cpu_t id;
	node_t node;
	u32 context;              /* what runs here, and so may do: kernel/context.h */
	unsigned complaining;     /* > 0: what this CPU prints is no progress (kernel/printk.h) */

	/* TLB (kernel/shootdown.c). Read by initiators. */
	__cacheline_aligned u64 tlb_published; /* every translation changed before this generation is gone here */
	u8 idle;                               /* 1: halted, will flush before its next memory access of interest */

	/* Cross-CPU calls (kernel/call.c). Written by others. */
	__cacheline_aligned struct cpumask call_from; /* CPUs whose call_slot waits for this CPU */
	u64 call_words; /* bit i % 64: word i of call_from may have a bit; all that a poll looks at (kernel/call.c) */
	struct call_slot call_slot;                   /* this CPU's own outstanding request */
	struct work_slot work;

	const void *pinned; /* the huge mapping this CPU works in (mm/huge_map.c); looked at by who would unmap it */

	/* Waits (kernel/wait.c). Read by CPUs whose waits are late. */
	__cacheline_aligned struct wait_counts waits;

	/* Counters of kernel/shootdown.c and others, summed by readers. */
	__cacheline_aligned u64 flushes_full, flushes_page; /* done by this CPU */
	struct cpumask round_targets;   /* of the round, or the drain, that this CPU has started */

	/* Lock order check (debug builds). */
	unsigned locks_held;
	const void *lock_stack[LOCKS_HELD_MAX];

	/* lock_holds=on: kernel/lock.h. Read by others. */
	u32 lock_holds_forgotten; /* as often, when these were begun */
	u64 lock_work; /* records handled so far */
	struct lock_holds lock_holds[LOCK_RANKS];

	struct arch_percpu arch;
};

/* Every CPU's data by index; entries are valid once cpu_online() of it, and for the boot CPU always. */
extern struct percpu **cpu_table;

static inline struct percpu *cpu_data(cpu_t cpu)
{
	return cpu_table[cpu];
}

/* this_cpu() comes from <arch/percpu.h>. */
static inline cpu_t cpu_id(void)
{
	return this_cpu()->id;
}

/* CPUs that take part: set by each CPU as it joins, never cleared. */
extern struct cpumask cpus_online;

static inline bool cpu_online(cpu_t cpu)
{
	return cpumask_test(&cpus_online, cpu);
}

/* The first CPU of a node that takes part, or CPU_NONE. Any context. */
cpu_t cpu_first_of_node(node_t node);

/* Nodes of the machine, at least 1. Set by arch_firmware_init(). */
extern node_t node_count;

/* The boot CPU's, there from the first instruction of C. */
extern struct percpu boot_percpu;

/* Allocate every CPU's data (cpu_count and nodes are known); the boot CPU keeps boot_percpu. */
void percpu_init(void);
