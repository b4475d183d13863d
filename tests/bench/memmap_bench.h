/* The S1 benchmark, in parts: the rows (memmap_bench.c), what lazy puts off (memmap_lazy.c), the bound (memmap_bound.c). */
#pragma once

#include "mm/memmap_open.h"
#include "tests/bench/spread.h"

enum { MEMMAP_RUNS = 7 };

/* Close what can be closed and open it in one way; what the slowest node took. */
struct memmap_opened memmap_bench_open(const struct memmap_way *way, struct memmap_threads threads);

/* Pages that were described by it. */
u64 memmap_bench_pages(const struct memmap_opened *opened);

/* "12.345": thousandths. */
void memmap_bench_print_fixed(u64 thousandths);

/* "  123.456 (  1.234)": milliseconds and their standard deviation. */
void memmap_bench_print_ms(struct spread ns);

/* What opening on demand is, and what making all struct pages after all costs; prints and records it. */
void memmap_bench_lazy(void);

/* Making struct pages and clearing as many bytes, in turn. */
void memmap_bench_bound(void);
