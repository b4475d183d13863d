/*
 * Sets of CPUs, sized at run time: cpumask_words words each, with no ceiling on the number of
 * CPUs. All functions are lock-free. The *_atomic ones may race with each other, the others may
 * not.
 */
#pragma once

#include <arch/atomic.h>

#include "kernel/lib/types.h"

struct cpumask {
	u64 *words;
};

/* Number of CPUs known to the machine (started or not); fixed before percpu_init(). */
extern cpu_t cpu_count;

/* Words of every mask: one, for the boot CPU alone, until percpu_init() makes the full masks. */
extern size_t cpumask_words;

static inline bool cpumask_test(const struct cpumask *mask, cpu_t cpu)
{
	return atomic_load_relaxed(&mask->words[cpu / 64]) >> (cpu % 64) & 1;
}

static inline void cpumask_clear(struct cpumask *mask, cpu_t cpu)
{
	mask->words[cpu / 64] &= ~(1ULL << (cpu % 64));
}

static inline void cpumask_set_atomic(struct cpumask *mask, cpu_t cpu)
{
	atomic_fetch_or(&mask->words[cpu / 64], 1ULL << (cpu % 64));
}

static inline void cpumask_zero(struct cpumask *mask)
{
	for (size_t i = 0; i < cpumask_words; i++)
		mask->words[i] = 0;
}

static inline void cpumask_copy(struct cpumask *dst, const struct cpumask *src)
{
	for (size_t i = 0; i < cpumask_words; i++)
		dst->words[i] = atomic_load_relaxed(&src->words[i]);
}

static inline cpu_t cpumask_weight(const struct cpumask *mask)
{
	cpu_t n = 0;

	for (size_t i = 0; i < cpumask_words; i++)
		n += (cpu_t)__builtin_popcountll(atomic_load_relaxed(&mask->words[i]));
	return n;
}

/* First CPU of the set at or after `cpu`, or CPU_NONE. */
static inline cpu_t cpumask_next(const struct cpumask *mask, cpu_t cpu)
{
	for (size_t i = cpu / 64; i < cpumask_words; i++) {
		u64 word = atomic_load_relaxed(&mask->words[i]);

		if (i == cpu / 64)
			word &= ~0ULL << (cpu % 64);
		if (word)
			return (cpu_t)(i * 64 + (unsigned)__builtin_ctzll(word));
	}
	return CPU_NONE;
}

#define cpumask_foreach(cpu, mask)                                                                 \
	for ((cpu) = cpumask_next(mask, 0); (cpu) != CPU_NONE;                                     \
	     (cpu) = cpumask_next(mask, (cpu) + 1))
