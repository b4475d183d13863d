/*
 * One round of bench=alloc: the calls of a row, by one or two threads, from an arena's phantom RAM
 * or from the probe that was set up (probe.h). alloc_bench.c chooses rows, repeats rounds and
 * prints.
 */
#pragma once

#include "tests/kernel/arena.h"

enum { ALLOC_THREADS = 2, ALLOC_BULK_MAX = 10000 };

enum alloc_kind { PAIR, IN_ORDER, RANDOM, CROSS, BULK_API };

struct alloc_row {
	const char *name;
	enum alloc_kind kind;
	unsigned order, count; /* count: at most ALLOC_BULK_MAX, except for PAIR */
	bool aged, two_only, ours_only;
};

/* Make all the following functions allocate from an arena, or with NULL from the probe. */
void alloc_from(struct arena *from);

/* Allocate one page as `cpu`, or return PROBE_NONE; and free it. Not while a round runs. */
u64 alloc_take(cpu_t cpu, unsigned order);
void alloc_give(cpu_t cpu, u64 what, unsigned order);

/*
 * Run a round, started on CPU 0. Sets ps[] to the picoseconds per call of allocating (or of a pair)
 * and of freeing. False if a thread was switched away from.
 */
bool alloc_round(const struct alloc_row *row, unsigned threads, u64 ps[2]);

/* Shuffle values, in the same order in every run. */
void alloc_shuffle(u64 *values, u64 count);
