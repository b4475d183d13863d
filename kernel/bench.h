/*
 * Benchmarks: payloads that print a table for people and BENCH records for programs. Selected with bench=NAME.
 */
#pragma once

#include "kernel/types.h"

struct bench {
	const char *name, *help;
	bool (*run)(void); /* false: a leg did not do what it claims to measure; the run fails */
};

TABLE_DECLARE(const struct bench, bench_table);

#define BENCH(ident, what, fn)                                                                                         \
	static const struct bench bench_entry_##ident TABLE_ENTRY(bench_table) = {.name = #ident, .help = what, .run = fn}
