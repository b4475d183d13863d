/*
 * The machine's work once it is up: tests, benchmarks, or something broken on purpose.
 *
 *   (nothing)        print the machine page, then run the benchmark of the HVO series (Kravetz
 *                    2023)
 *   test=PATTERNS    KTAP cases
 *   bench=NAMES      benchmarks, separated by commas
 *   payload=NAME     panic, panics, overflow, smash, write-tail, use-program, no-page, hang,
 *                    patient, asked: check that they are reported; leak-*: leaks.c;
 *                    alloc-in-interrupt and others, calls from contexts in which they are not
 *                    allowed: misuse.c
 *
 * run=COMMANDS and monitor come before any of these: kernel/run/monitor.h.
 */

#ifndef ASHLAR_HOSTED
#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/cpu/trap_frame.h"
#include "arch/x86_64/traps/traps.h"
#endif
#include "kernel/core/verdict.h"
#include "kernel/run/bench.h"
#include "mm/hugetlb/pool.h"
#include "tests/bench/hang.h"
#include "tests/kernel/cpus.h"
#include "tests/bench/leaks.h"
#include "tests/bench/machine.h"
#include "tests/bench/misuse.h"
#include "tests/kernel/test.h"

static const char *test_patterns, *bench_names, *payload_name;
OPTION_TEXT(test, test_patterns, "run the test cases that match, e.g. test=mm.buddy.*,kernel.*");
OPTION_TEXT(bench, bench_names, "run these benchmarks, e.g. bench=hvo");
OPTION_TEXT(payload, payload_name,
	    "do something broken on purpose: panic, panics, overflow, smash, write-tail, "
	    "use-program, no-page, hang, patient, asked, leak-page, leak-huge, leak-map, "
	    "leak-pool, leak-work, leak-none, alloc-in-interrupt, round-with-lock ...");

/* ---- broken on purpose ---- */

static void panic_here(void *arg)
{
	panic("asked for on each CPU");
}

static __attribute__((noinline)) u64 overflow(u64 depth)
{
	volatile u64 frame[64];

	frame[depth % 64] = depth;
	return depth == 0 ? 0 : overflow(depth - 1) + frame[depth % 64];
}

/* Write past the end of an array of its own, as far as the return address. */
static __attribute__((noinline)) u64 smash(unsigned count)
{
	u8 room[16];
	volatile u8 *volatile at = room; /* volatile: the compiler must not know the target */

	for (unsigned i = 0; i < count; i++)
		at[i] = (u8)i;
	return room[0];
}

static void write_tail(void)
{
	struct page *page = page_alloc(BLOCK_ORDER, USE_MOVABLE, 0, NODE_NONE);

	if (!page)
		return;
	*(volatile u32 *)&page[100].refcount = 1;
}

/* No operator can be asked, so the run ends in an orderly way, as failed. */
static void no_page(void)
{
	void *addr = huge_map(MIB(2), MIB(2), HUGE_POOL);

	if (addr)
		*(volatile u64 *)addr = 1;
}

static void run_broken(const char *name)
{
	if (payload_leaks(name))
		return;
	payload_hang(name);
	payload_sanitizers(name);
	payload_misuse(name);
	if (strcmp(name, "panic") == 0)
		panic("asked for on the command line");
	if (strcmp(name, "panics") == 0)
		cpus_run_together(panic_here, NULL);
	if (strcmp(name, "overflow") == 0)
		overflow(1ULL << 40);
	if (strcmp(name, "smash") == 0)
		smash(48);
	if (strcmp(name, "write-tail") == 0)
		write_tail();
#ifndef ASHLAR_HOSTED
	if (strcmp(name, "use-program") == 0) { /* a fault as SMAP raises it */
		write_cr2(MIB(4));
		trap_dispatch(&(struct trap_frame){.vector = TRAP_PAGE_FAULT, .error = PF_PRESENT});
	}
#endif
	if (strcmp(name, "no-page") == 0)
		no_page();
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
		tests_run(test_patterns); /* updates the verdict itself */
	else
		bench_run(bench_names ? bench_names : "hvo");
}
