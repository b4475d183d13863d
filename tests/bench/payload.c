/*
 * What the machine does once it is up: tests, benchmarks, or something broken on purpose.
 *
 *   (nothing)        the machine, then the S0 table
 *   test=PATTERNS    KTAP cases
 *   bench=NAMES      benchmarks, separated by commas
 *   payload=NAME     panic, overflow, write-tail: see that they are reported
 */
#include <arch/boot.h>

#include "boot/boot_info.h"
#include "kernel/bench.h"
#include "kernel/cmdline.h"
#include "kernel/main.h"
#include "kernel/panic.h"
#include "kernel/printk.h"
#include "kernel/string.h"
#include "kernel/test.h"
#include "kernel/verdict.h"
#include "mm/page_check.h"
#include "mm/page_owner.h"
#include "mm/pool.h"
#include "tests/bench/machine.h"

enum { OWNER_LINES = 24 };

static const char *test_patterns, *bench_names, *payload_name;
OPTION_TEXT(test, test_patterns, "run the test cases that match, e.g. test=mm.buddy.*,kernel.*");
OPTION_TEXT(bench, bench_names, "run these benchmarks, e.g. bench=hvo");
OPTION_TEXT(payload, payload_name, "do something broken on purpose: panic, overflow, write-tail");

static bool run_one_bench(const char *name, size_t len)
{
	const struct bench *bench;

	TABLE_FOREACH(bench, bench_table) {
		if (strlen(bench->name) != len || strncmp(bench->name, name, len) != 0)
			continue;
		if (bench->run()) {
			verdict_count(1, 0, 0);
			return true;
		}
		pr_err("bench %s failed", bench->name);
		verdict_count(0, 1, 0);
		return false;
	}
	pr_err("there is no bench %.*s", (int)len, name);
	verdict_count(0, 1, 0);
	return false;
}

static void run_benches(const char *names)
{
	while (*names) {
		const char *comma = strchr(names, ',');
		const size_t len = comma ? (size_t)(comma - names) : strlen(names);

		run_one_bench(names, len);
		names += len + (comma != NULL);
	}
}

/* ---- broken on purpose ---- */

static __attribute__((noinline)) u64 overflow(u64 depth)
{
	volatile u64 frame[64];

	frame[depth % 64] = depth;
	return depth == 0 ? 0 : overflow(depth - 1) + frame[depth % 64];
}

static void write_tail(void)
{
	struct page *page = page_alloc(BLOCK_ORDER, USE_MOVABLE, 0, NODE_NONE);

	if (!page)
		return;
	*(volatile u32 *)&page[100].refcount = 1;
}

static void run_broken(const char *name)
{
	if (strcmp(name, "panic") == 0)
		panic("asked for on the command line");
	if (strcmp(name, "overflow") == 0)
		overflow(1ULL << 40);
	if (strcmp(name, "write-tail") == 0)
		write_tail();
	pr_err("there is no payload %s, or it was not caught", name);
	verdict_count(0, 1, 0);
}

void payload_run(void)
{
	if (payload_name) {
		run_broken(payload_name);
		return;
	}
	machine_print();
	if (test_patterns)
		tests_run(test_patterns); /* counts for the verdict itself */
	else
		run_benches(bench_names ? bench_names : "hvo");
	if (page_watch_at_boot() & WATCH_OWNERS)
		page_owner_summary(&mm_kernel, 0, OWNER_LINES);
}
