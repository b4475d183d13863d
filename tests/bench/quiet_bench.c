/*
 * How often, and for how long, a program on another CPU is interrupted while a pool is resized.
 *
 *	make run CPUS=8 MEM=10G CMDLINE='bench=quiet'
 *	make host-native && build/host/native/ashlar-host -x -c 4 -m 10G -k 'bench=quiet'
 *
 * CPU 0 makes pages= huge pages and returns them. Every other CPU runs a program that reads the
 * clock in a loop, between cpu_quiet_begin() and cpu_quiet_end(). Each mode is measured with
 * tlb.quiet=off and with tlb.quiet=on, from fresh and recycled memory, and from memory that was in
 * the pool before (hvo_bench.c). The baselines split leaves of the memory map when memory is in a
 * pool for the first time; that round stops quiet CPUs, too, because the size of a mapping changes.
 *
 *	stops    interrupts that these CPUs took from other CPUs: while the pool grew, and shrank
 *	gaps     times between two looks at the clock that were longer than 1 us: how many, by
 *	         length, of all these CPUs together; and the longest
 *
 * Stops are exact everywhere. Gaps have other causes, too: the host of a virtual machine, SMIs, or,
 * hosted, other threads. They are the same in both rows, so only the difference says something.
 */
#include <arch/clock.h>

#include "kernel/console/input.h"
#include "kernel/core/cpus.h"
#include "kernel/core/verdict.h"
#include "kernel/core/wait.h"
#include "kernel/run/bench.h"
#include "mm/hvo/hvo_make.h"
#include "mm/zone/section_close.h"
#include "tests/bench/hvo_bench.h"
#include "tests/kernel/modes.h"

enum { UNBATCHED_SHARE = 16, GAP_CLASSES = 4, PROGRAMS_MAX = 1024 };

/* Shortest gap of each class. */
static const u64 gap_ns[GAP_CLASSES] = {NS_PER_US, 10 * NS_PER_US, 100 * NS_PER_US, NS_PER_MS};

/* Written by its own CPU, and read when the program has ended. */
struct __cacheline_aligned program {
	u32 running;
	u64 longest, gaps[GAP_CLASSES];
};

static struct program programs[PROGRAMS_MAX];
static u32 stop;

struct turn {
	struct leg leg;
	bool quiet;
	u64 stops_grow, stops_shrink;
	struct shootdown_stats stats;
	u64 longest, gaps[GAP_CLASSES]; /* of all programs */
};

static void note_gap(struct program *p, u64 ns)
{
	unsigned class = 0;

	if (ns < gap_ns[0])
		return;
	while (class + 1 < GAP_CLASSES && ns >= gap_ns[class + 1])
		class ++;
	p->gaps[class]++;
	p->longest = MAX(p->longest, ns);
}

static void watch_clock(void *arg)
{
	struct program *p = arg;
	u64 last, now;

	cpu_quiet_begin();
	atomic_store_release(&p->running, 1);
	for (last = clock_ns(); !atomic_load_acquire(&stop); last = now) {
		now = clock_ns();
		note_gap(p, now - last);
	}
	cpu_quiet_end();
}

static bool has_program(cpu_t cpu)
{
	return cpu != cpu_id() && cpu < PROGRAMS_MAX;
}

static void programs_start(void)
{
	struct wait wait = wait_begin(WAIT_WORK, "a quiet program to begin");
	cpu_t cpu;

	memset(programs, 0, sizeof(programs));
	atomic_store_release(&stop, 0);
	cpumask_foreach(cpu, &cpus_online) {
		if (!has_program(cpu))
			continue;
		work_wait(cpu, 0);
		work_start(cpu, watch_clock, &programs[cpu]);
		while (!atomic_load_acquire(&programs[cpu].running))
			wait_spin(&wait, cpu);
	}
}

static void programs_stop(struct turn *turn)
{
	cpu_t cpu;

	atomic_store_release(&stop, 1);
	cpumask_foreach(cpu, &cpus_online) {
		if (!has_program(cpu))
			continue;
		work_wait(cpu, 0);
		turn->longest = MAX(turn->longest, programs[cpu].longest);
		for (unsigned i = 0; i < GAP_CLASSES; i++)
			turn->gaps[i] += programs[cpu].gaps[i];
	}
}

/* Messages that the CPUs with a program have taken since boot. */
static u64 messages_taken(void)
{
	u64 taken = 0;
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online)
		if (has_program(cpu))
			taken += atomic_load_relaxed(&cpu_data(cpu)->messages);
	return taken;
}

/* Grow and shrink once. False if pages were lost. */
static bool resize(struct turn *turn)
{
	struct leg *leg = &turn->leg;
	struct shootdown_stats now;
	u64 before;

	programs_start();
	shootdown_stats_read(&turn->stats);
	before = messages_taken();
	leg->ns = clock_ns();
	leg->done = pool_grow(hvo_pool(), leg->mode, leg->pages);
	turn->stops_grow = messages_taken() - before;
	before = messages_taken();
	leg->saved = (s64)pool_shrink(hvo_pool(), leg->mode, leg->done);
	leg->ns = clock_ns() - leg->ns;
	turn->stops_shrink = messages_taken() - before;
	shootdown_stats_read(&now);
	turn->stats.skipped_quiet = now.skipped_quiet - turn->stats.skipped_quiet;
	turn->stats.asked = now.asked - turn->stats.asked;
	programs_stop(turn);
	return leg->done > 0 && (u64)leg->saved == leg->done;
}

static void print_turn(const struct turn *turn)
{
	const struct leg *leg = &turn->leg;

	print("  %-10s %-9s %-4s %6llu %9llu %9llu %9llu %7llu %9llu.%03llu", leg->mode->name,
	      leg->source, turn->quiet ? "on" : "off", leg->done, turn->stops_grow,
	      turn->stops_shrink, turn->stats.skipped_quiet, turn->stats.asked,
	      turn->longest / NS_PER_US, turn->longest % NS_PER_US);
	for (unsigned i = 0; i < GAP_CLASSES; i++)
		print(" %8llu", turn->gaps[i]);
	print("\nBENCH quiet mode=%s source=%s quiet=%s cpus=%u pages=%llu ns=%llu stops_grow=%llu "
	      "stops_shrink=%llu skipped=%llu asked=%llu longest_ns=%llu gaps_1us=%llu "
	      "gaps_10us=%llu gaps_100us=%llu gaps_1ms=%llu\n",
	      leg->mode->name, leg->source, turn->quiet ? "on" : "off",
	      cpumask_weight(&cpus_online), leg->done, leg->ns, turn->stops_grow,
	      turn->stops_shrink, turn->stats.skipped_quiet, turn->stats.asked, turn->longest,
	      turn->gaps[0], turn->gaps[1], turn->gaps[2], turn->gaps[3]);
}

static struct turn turn_of(const struct hvo_mode *mode, bool quiet)
{
	const u64 pages = mode->page_rounds ? MAX(hvo_pages / UNBATCHED_SHARE, 1) : hvo_pages;

	return (struct turn){.quiet = quiet, .leg = {.mode = mode, .pages = pages}};
}

/* A turn that does not count: the host backs the memory and translates the code. */
static bool warm_up(const struct hvo_mode *mode, unsigned source)
{
	struct turn turn = turn_of(mode, false);

	if (mode->page_rounds)
		turn.leg.pages = MIN(turn.leg.pages, WARM_ROUNDS);
	return !hvo_leg_begin(&turn.leg, source) || resize(&turn);
}

static bool run_turn(const struct hvo_mode *mode, unsigned source, bool quiet)
{
	const bool was = quiet_on;
	struct turn turn = turn_of(mode, quiet);
	bool ok;

	if (!hvo_leg_begin(&turn.leg, source))
		return true;
	quiet_on = quiet;
	ok = resize(&turn);
	quiet_on = was;
	print_turn(&turn);
	return ok;
}

/* A round for each page is too slow to be measured from every state. */
static bool mode_applies(const struct hvo_mode *mode, unsigned source)
{
	return !mode->born && (mode->make != hvo_form) &&
	       (!mode->page_rounds || source == SOURCE_FRESH);
}

static bool bench_quiet(void)
{
	bool ok = true;

	if (cpumask_weight(&cpus_online) < 2) {
		print("  # quiet: skipped: needs two CPUs\n");
		verdict_count(0, 0, 1);
		return true;
	}
	print("\n  %u CPUs run quiet programs; a pool of %llu pages grows and shrinks, each mode "
	      "first once that does not count\n\n"
	      "  %-10s %-9s %-5s %5s %9s %9s %9s %7s %13s %8s %8s %8s %8s\n",
	      cpumask_weight(&cpus_online) - 1, hvo_pages, "mode", "memory", "quiet", "pages",
	      "stop/grow", "stop/shr", "skipped", "asked", "longest us", ">=1us", ">=10us",
	      ">=100us", ">=1ms");
	for (unsigned source = SOURCE_FRESH; source <= SOURCE_AGAIN; source++)
		for (unsigned i = 0; hvo_modes[i].name && !input_stop_asked(); i++) {
			if (!mode_applies(&hvo_modes[i], source))
				continue;
			ok &= warm_up(&hvo_modes[i], source);
			ok &= run_turn(&hvo_modes[i], source, false);
			ok &= run_turn(&hvo_modes[i], source, true);
		}
	sections_close_all(&mm_kernel);
	return ok;
}

BENCH(quiet, "interruptions of programs on other CPUs while a pool is resized", bench_quiet);
