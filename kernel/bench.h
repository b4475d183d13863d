/*
 * Benchmarks: payloads that print a table for people and BENCH records for programs. Selected with bench=NAME, or by `bench NAME` in
 * the monitor.
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

/* Run the named ones (commas between), in order; each counts as a pass or a failure of the run. False if one failed. */
bool bench_run(const char *names);
