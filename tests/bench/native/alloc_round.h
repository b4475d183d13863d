/*
 * One round of bench=alloc: the calls of a row, by one or two threads, from an arena's phantom RAM
 * or from the probe that was set up (probe.h). alloc_bench.c chooses rows, repeats rounds and
 * prints.
 */
#pragma once

#include "tests/kernel/arena.h"

enum { ALLOC_THREADS = 2, ALLOC_BULK_MAX = 10000, ALLOC_EXIT_CPUS = 4 };

enum alloc_kind { PAIR, IN_ORDER, RANDOM, CROSS, BULK_API, EXIT };

struct alloc_row {
	const char *name;
	enum alloc_kind kind;
	unsigned order, count; /* count: at most ALLOC_BULK_MAX, except for PAIR and EXIT */
	bool aged, two_only, one_only, ours_only;
};

/* Result of a round: [0] of allocating (or of a pair), [1] of freeing. */
struct alloc_result {
	u64 ps[2];    /* picoseconds per call */
	u64 locks[2]; /* takings of the zone's lock per 10^6 calls; not for a probe */
};

/* Make all the following functions allocate from an arena, or with NULL from the probe. */
void alloc_from(struct arena *from);

/* Allocate one page as `cpu`, or return PROBE_NONE; and free it. Not while a round runs. */
u64 alloc_take(cpu_t cpu, unsigned order);
void alloc_give(cpu_t cpu, u64 what, unsigned order);

/*
 * Run a round, started on CPU 0. False if it could not be run, or if a thread was switched away
 * from.
 */
bool alloc_round(const struct alloc_row *row, unsigned threads, struct alloc_result *result);

/*
 * Run a round of EXIT (alloc_exit.c): CPU 0 frees what up to ALLOC_EXIT_CPUS other CPUs allocated.
 * Needs two CPUs. Time is CPU time, because a round is too long to go undisturbed.
 */
bool alloc_exit_round(const struct alloc_row *row, struct alloc_result *result);

/* Takings so far of the lock of the zone allocated from, modulo 2^16; 0 for a probe. */
u16 alloc_locks(void);

/* Shuffle values, in the same order in every run. */
void alloc_shuffle(u64 *values, u64 count);
