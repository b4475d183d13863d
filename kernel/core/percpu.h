/*
 * Per-CPU data. There is one struct per CPU, allocated at run time once the number of CPUs is
 * known; the boot CPU's exists from the start. A field is written by its own CPU unless its comment
 * says otherwise.
 */
#pragma once

#include <arch/percpu.h>

#include "kernel/core/call.h"
#include "kernel/core/lock.h"
#include "kernel/core/reason.h"
#include "kernel/core/wait.h"
#include "kernel/lib/cpumask.h"
#include "kernel/lib/types.h"

enum { LOCKS_HELD_MAX = 8 };

struct percpu {
	struct percpu *self; /* must be the first field, because this_cpu() loads it */
	cpu_t id;
	node_t node;
	u32 context; /* the kind of code that this CPU runs now: kernel/core/context.h */
	/* > 0: output of this CPU is not progress (kernel/core/printk.h) */
	unsigned complaining;
	enum reason reason; /* why the last call that failed did so: kernel/core/reason.h */

	/* TLB (kernel/core/shootdown.c). Read by initiators. */
	/* every translation changed before this generation is gone from this CPU */
	__cacheline_aligned u64 tlb_published;
	union {
		struct {
			/* 1: halted; the CPU flushes before it next accesses a struct page */
			u8 idle;
			/*
			 * 1: in ring 3, or runs a program that reads no struct page; the CPU
			 * flushes when it next enters the kernel
			 */
			u8 quiet;
		};
		u16 rests; /* both at once: bits of enum shootdown_skip */
	};
	/*
	 * clock_ns() of the first round that this CPU missed since it last flushed; written by
	 * initiators
	 */
	u64 quiet_missed_ns;
	u64 messages; /* interrupts by other CPUs that this CPU has taken */

	/* Cross-CPU calls (kernel/core/call.c). Written by other CPUs. */
	__cacheline_aligned struct cpumask call_from; /* CPUs whose call_slot waits for this CPU */
	/*
	 * Bit i % 64: word i of call_from may have a bit. A poll looks at this word only
	 * (kernel/core/call.c).
	 */
	u64 call_words;
	struct call_slot call_slot; /* this CPU's own outstanding request */
	struct work_slot work;

	/* Waits (kernel/core/wait.c). Read by CPUs whose waits are late. */
	__cacheline_aligned struct wait_counts waits;

	/* Counters of kernel/core/shootdown.c and other files, summed by readers. */
	__cacheline_aligned u64 flushes_full, flushes_page; /* flushes done by this CPU */
	struct cpumask round_targets; /* targets of the round or drain that this CPU has started */

	/* Lock order check (debug builds). */
	unsigned locks_held;
	const void *lock_stack[LOCKS_HELD_MAX];

	struct arch_percpu arch;
};

/*
 * Every CPU's data by index. An entry is valid once cpu_online() is true for its CPU; the boot
 * CPU's is always valid.
 */
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

/* CPUs that take part. Each CPU sets its bit as it joins; no bit is ever cleared. */
extern struct cpumask cpus_online;

static inline bool cpu_online(cpu_t cpu)
{
	return cpumask_test(&cpus_online, cpu);
}

/* How many of `targets` a call or a message is for: those that take part, except the caller. */
static inline cpu_t cpus_online_among(const struct cpumask *targets, cpu_t self)
{
	cpu_t count = 0;

	for (size_t i = 0; i < cpumask_words; i++)
		count += (cpu_t)__builtin_popcountll(atomic_load_relaxed(&targets->words[i]) &
						     atomic_load_relaxed(&cpus_online.words[i]));
	return count - cpumask_test(targets, self);
}

/* The first CPU of the node that takes part, or CPU_NONE. Any context. */
cpu_t cpu_first_of_node(node_t node);

/* Number of nodes of the machine, at least 1. Set by arch_firmware_init(). */
extern node_t node_count;

/* The boot CPU's data, valid from the first instruction of C. */
extern struct percpu boot_percpu;

/* Allocate every CPU's data. cpu_count and nodes are known. The boot CPU keeps boot_percpu. */
void percpu_init(void);
