/*
 * Benchmarks: payloads that print a table for people and BENCH records for programs. Selected with
 * bench=NAME, or by `bench NAME` in the monitor.
 */
#pragma once

#include "kernel/lib/types.h"

struct bench {
	const char *name, *help;
	bool (*run)(void); /* false: it did not do what it claims to measure, and the run fails */
};

TABLE_DECLARE(const struct bench, bench_table);

#define BENCH(ident, what, fn)                                                                     \
	static const struct bench bench_entry_##ident TABLE_ENTRY(bench_table) = {                 \
		.name = #ident, .help = what, .run = fn}

/*
 * Run benchmarks, in order: "hvo,contig" or "hvo pages=4096 runs=7; contig". The words of a
 * benchmark hold for its run only. Each benchmark counts as a pass or a failure of the run, and so
 * does a wrong word. False if one failed.
 */
bool bench_run(const char *text);
