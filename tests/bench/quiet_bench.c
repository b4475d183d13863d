/*
 * How often, and for how long, threads of a program are interrupted while a pool is resized.
 *
 *	make run CPUS=8 MEM=10G CMDLINE='bench=quiet'
 *	make host-native && build/host/native/ashlar-host -x -c 4 -m 10G -k 'bench=quiet'
 *
 * CPU 0 makes pages= huge pages and returns them. Every other CPU runs a thread that reads the
 * clock in a loop, in ring 3. Each mode is measured with tlb.quiet=off and with tlb.quiet=on, from
 * fresh and recycled memory, and from memory that was in the pool before (hvo_bench.c). Leaves of
 * the memory map are split when memory is in a pool for the first time; that round stops quiet
 * CPUs, too, because the size of a mapping changes. The bench fails if anything else stops one.
 *
 *	stops    interrupts that these CPUs took from other CPUs: while the pool grew, and shrank
 *	asked    of these, to get frames back: only if frames are short, as no time is too long here
 *	gaps     times between two looks at the clock that were longer than 1 us: how many, by
 *	         length, of all these CPUs together; and the longest
 *
 * Stops are exact everywhere. Gaps have other causes, too: the host of a virtual machine, SMIs, or,
 * hosted, other threads. They are the same in both rows, so only the difference says something.
 */

#ifndef ASHLAR_HOSTED
#include "arch/x86_64/cpu/msr.h"
#endif
#include "kernel/console/input.h"
#include "kernel/core/verdict.h"
#include "kernel/run/bench.h"
#include "mm/hvo/hvo_make.h"
#include "mm/zone/section_close.h"
#include "tests/bench/hvo_bench.h"
#include "tests/bench/quiet_gaps.h"
#include "tests/kernel/modes.h"
#include "tests/kernel/program_memory.h"
#include "tests/kernel/scratch.h"

enum { UNBATCHED_SHARE = 16, PROGRAMS_MAX = 1024, CALL_EXIT = 60 };

static struct program *programs;
static cpu_t program_count;

struct turn {
	struct leg leg;
	bool quiet;
	u64 stops_grow, stops_shrink;
	struct shootdown_stats stats;
	u64 longest, gaps[GAP_CLASSES]; /* of all programs */
};

#ifdef ASHLAR_HOSTED

/* The stand-in for ring 3 calls a function, and its memory is the kernel's. */
static u32 stop;

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

static void watch_clock(struct trap_frame *regs)
{
	struct program *p = (struct program *)regs->rdi;
	u64 last, now;

	atomic_store_release(&p->running, 1);
	for (last = clock_ns(); !atomic_load_acquire(&stop); last = now) {
		now = clock_ns();
		note_gap(p, now - last);
	}
	regs->rax = CALL_EXIT;
	host_user_call(regs);
}

static bool programs_load(void)
{
	atomic_store_release(&stop, 0);
	host_user_program = watch_clock;
	host_user_is_quiet = true;
	return true;
}

static struct trap_frame registers_of(cpu_t i)
{
	return (struct trap_frame){.rdi = (u64)&programs[i]};
}

static void programs_read(void)
{
}

static void programs_end(void)
{
	atomic_store_release(&stop, 1);
	threads_wait();
	host_user_program = NULL;
	host_user_is_quiet = false;
}

#else

#define CODE_AT    0x400000ULL
#define RECORDS_AT (CODE_AT + PAGE_SIZE)

extern const u8 user_programs[], user_programs_end[], user_program_gaps[];

static bool programs_load(void)
{
	enum { READ_WRITE_EXEC = 7 };
	const u64 code = (u64)(user_programs_end - user_programs);

	return map_at(CODE_AT, PAGE_SIZE + PROGRAMS_MAX * sizeof(*programs), READ_WRITE_EXEC,
		      FIXED) >= 0 &&
	       user_write(CODE_AT, user_programs, code) == 0;
}

static u64 ticks_of(u64 ns)
{
	static u64 ticks_per_ms;

	if (ticks_per_ms == 0) {
		const u64 start = rdtsc(), start_ns = clock_ns();

		clock_delay_ns(10 * NS_PER_MS);
		ticks_per_ms = (rdtsc() - start) * NS_PER_MS / (clock_ns() - start_ns);
	}
	return ns * ticks_per_ms / NS_PER_MS;
}

static struct trap_frame registers_of(cpu_t i)
{
	return (struct trap_frame){.rip = CODE_AT + (u64)(user_program_gaps - user_programs),
				   .rdi = RECORDS_AT + i * sizeof(struct program),
				   .r8 = ticks_of(gap_ns[0]),
				   .r9 = ticks_of(gap_ns[1]),
				   .r10 = ticks_of(gap_ns[2]),
				   .r11 = ticks_of(gap_ns[3])};
}

static void programs_read(void)
{
	user_read(programs, RECORDS_AT, program_count * sizeof(struct program));
}

static void programs_end(void)
{
	threads_end_all();
	threads_wait();
	programs_read();
	for (cpu_t i = 0; i < program_count; i++)
		programs[i].longest = programs[i].longest * NS_PER_MS / ticks_of(NS_PER_MS);
}

#endif

static bool all_run(void)
{
	bool run = true;

	programs_read();
	for (cpu_t i = 0; i < program_count; i++)
		run &= atomic_load_acquire(&programs[i].running) != 0;
	return run;
}

/* A thread on each other CPU. False without the memory for them. */
static bool programs_start(void)
{
	struct wait wait = wait_begin(WAIT_WORK, "the threads of a program to begin");

	programs = SCRATCH(struct program, PROGRAMS_MAX);
	program_count = 0;
	if (!program_box_begin() || !programs_load())
		return false;
	while (program_count + 1 < MIN(cpumask_weight(&cpus_online), (cpu_t)PROGRAMS_MAX)) {
		const struct trap_frame regs = registers_of(program_count);

		if (thread_start(&(struct thread_request){.regs = &regs}) < 0)
			return false;
		program_count++;
	}
	while (!all_run())
		wait_spin(&wait, CPU_NONE);
	return true;
}

static void programs_stop(struct turn *turn)
{
	programs_end();
	for (cpu_t i = 0; i < program_count; i++) {
		turn->longest = MAX(turn->longest, programs[i].longest);
		for (unsigned class = 0; class < GAP_CLASSES; class ++)
			turn->gaps[class] += programs[i].gaps[class];
	}
	program_box_end();
}

/* Messages that the CPUs with a thread have taken since boot. */
static u64 messages_taken(void)
{
	u64 taken = 0;
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online)
		if (cpu != cpu_id())
			taken += atomic_load_relaxed(&cpu_data(cpu)->messages);
	return taken;
}

/*
 * Grow and shrink once. False if pages were lost, or, with tlb.quiet=on, if a thread was stopped,
 * other than once for the leaves that were split. A mode with a round for each page stops them all.
 */
static bool resize(struct turn *turn)
{
	struct leg *leg = &turn->leg;
	struct shootdown_stats now;
	u64 before, may_stop = 0;
	bool ran;

	ran = programs_start();
	shootdown_stats_read(&turn->stats);
	leg_work_begin(&leg->work);
	before = messages_taken();
	leg->ns = clock_ns();
	leg->done = pool_grow(hvo_pool(), leg->mode, leg->pages);
	turn->stops_grow = messages_taken() - before;
	before = messages_taken();
	leg->saved = (s64)pool_shrink(hvo_pool(), leg->mode, leg->done);
	leg->ns = clock_ns() - leg->ns;
	turn->stops_shrink = messages_taken() - before;
	shootdown_stats_read(&now);
	leg_work_end(&leg->work);
	turn->stats.skipped_quiet = now.skipped_quiet - turn->stats.skipped_quiet;
	turn->stats.asked = now.asked - turn->stats.asked;
	programs_stop(turn);
	if (!turn->quiet || leg->mode->page_rounds)
		may_stop = ~0ULL;
	else if (leg->work.inside.splits > 0)
		may_stop = program_count;
	return ran && leg->done > 0 && (u64)leg->saved == leg->done &&
	       turn->stops_grow + turn->stops_shrink <= may_stop;
}

static void print_turn(const struct turn *turn)
{
	const struct leg *leg = &turn->leg;

	print("  %-10s %-9s %-4s %6llu %9llu %9llu %9llu %7llu %6llu %9llu.%03llu", leg->mode->name,
	      leg->source, turn->quiet ? "on" : "off", leg->done, turn->stops_grow,
	      turn->stops_shrink, turn->stats.skipped_quiet, turn->stats.asked,
	      leg->work.inside.splits, turn->longest / NS_PER_US, turn->longest % NS_PER_US);
	for (unsigned i = 0; i < GAP_CLASSES; i++)
		print(" %8llu", turn->gaps[i]);
	print("\nBENCH quiet mode=%s source=%s quiet=%s cpus=%u pages=%llu ns=%llu "
	      "stops_grow=%llu stops_shrink=%llu skipped=%llu asked=%llu longest_ns=%llu "
	      "gaps_1us=%llu "
	      "gaps_10us=%llu gaps_100us=%llu gaps_1ms=%llu",
	      leg->mode->name, leg->source, turn->quiet ? "on" : "off",
	      cpumask_weight(&cpus_online), leg->done, leg->ns, turn->stops_grow,
	      turn->stops_shrink, turn->stats.skipped_quiet, turn->stats.asked, turn->longest,
	      turn->gaps[0], turn->gaps[1], turn->gaps[2], turn->gaps[3]);
	leg_work_print(&leg->work);
	print("\n");
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
	const u64 ask_ns = quiet_ask_ns;
	struct turn turn = turn_of(mode, quiet);
	bool ok;

	if (!hvo_leg_begin(&turn.leg, source))
		return true;
	quiet_on = quiet;
	quiet_ask_ns = ~0ULL; /* a slow machine is not asked more often */
	ok = resize(&turn);
	quiet_on = was;
	quiet_ask_ns = ask_ns;
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
	print("\n  %u CPUs run threads of a program in ring 3; a pool of %llu pages grows and "
	      "shrinks, each mode "
	      "first once that does not count\n\n"
	      "  %-10s %-9s %-5s %5s %9s %9s %9s %7s %6s %13s %8s %8s %8s %8s\n",
	      cpumask_weight(&cpus_online) - 1, hvo_pages, "mode", "memory", "quiet", "pages",
	      "stop/grow", "stop/shr", "skipped", "asked", "splits", "longest us", ">=1us",
	      ">=10us", ">=100us", ">=1ms");
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
