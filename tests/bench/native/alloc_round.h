/*
 * What bench=alloc measures, once: the calls of a row, by one or two threads, from an arena's phantom or from the probe
 * that was set up (probe.h). alloc_bench.c chooses rows, repeats rounds and prints.
 */
#pragma once

#include "tests/kernel/arena.h"

enum { ALLOC_THREADS = 2, ALLOC_BULK_MAX = 10000 };

enum alloc_kind { PAIR, IN_ORDER, RANDOM, CROSS, BULK_API };

struct alloc_row {
	const char *name;
	enum alloc_kind kind;
	unsigned order, count; /* at most ALLOC_BULK_MAX, but for PAIR */
	bool aged, two_only, ours_only;
};

/* From whom all of the following take: an arena, or with NULL the probe. */
void alloc_from(struct arena *from);

/* One page as `cpu`, or PROBE_NONE; and back. Not while a round runs. */
u64 alloc_take(cpu_t cpu, unsigned order);
void alloc_give(cpu_t cpu, u64 what, unsigned order);

/* A round, started on CPU 0: picoseconds a call, of allocating (or a pair) and freeing. False: a thread was switched away from. */
bool alloc_round(const struct alloc_row *row, unsigned threads, u64 ps[2]);

/* In an order that is alike in every run. */
void alloc_shuffle(u64 *values, u64 count);
