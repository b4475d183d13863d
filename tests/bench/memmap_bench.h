/*
 * The benchmark of the memmap series (Jordan 2020), in parts: the rows (memmap_bench.c),
 * the work that lazy postpones (memmap_lazy.c), the bound (memmap_bound.c).
 */
#pragma once

#include "mm/zone/memmap_open.h"
#include "tests/bench/spread.h"
#include "tests/bench/work.h"

enum { MEMMAP_RUNS = 7 };

/*
 * Close all sections that can be closed and open them in the given way, as a turn of a leg with
 * `work`. Returns the result of the slowest node.
 */
struct memmap_opened memmap_bench_open(const struct memmap_way *way, struct memmap_threads threads,
				       struct leg_work *work);

/* The node that took longest: the machine goes on only when all nodes are done. */
struct memmap_opened memmap_bench_slowest(const struct memmap_opened *opened);

/* Pages that the opened sections' struct pages describe. */
u64 memmap_bench_pages(const struct memmap_opened *opened);

/* Measure opening on demand and then making all struct pages after all; print and record both. */
void memmap_bench_lazy(void);

/* Measure making struct pages and clearing as many bytes, in turn. */
void memmap_bench_bound(void);

/*
 * Is a run of so many threads good? `gain` and `limit` say how many times as fast as one thread
 * they made struct pages and cleared, in thousandths. Pure, for tests.
 */
bool memmap_bench_is_good(unsigned threads, u64 gain, u64 limit);
