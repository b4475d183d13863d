/*
 * The cost of each operation of the memory subsystem, in counts that every run repeats to the
 * digit.
 *
 *   begin -> [first step] -> [second step] -> end      1 + turns= times; [ ]: counted
 *
 * With one CPU and -icount shift=0 a nanosecond is an instruction. With more CPUs it is an
 * instruction of any of them, because QEMU runs one at a time. The first turn opens sections and
 * splits blocks and is not counted, except in rows whose turns are all alike. Of the others the
 * turn with the fewest instructions counts, because a timer interrupt only adds to them.
 *
 *	BENCH counts op=ROW.STEP times=N ns=T stores=S rounds=R ipis=I
 *
 * for N operations. `stores` is the number of stores that rep instructions made to clear pages.
 * Each of them counts as an instruction in QEMU and in valgrind, and as none in a CPU.
 *
 * Hosted, valgrind collects from each counts_step_begins() to the counts_step_ends() after it.
 * tests/report/counts.py runs all this and compares it with the file tests/bench/counts.
 */
#include "tests/bench/counts.h"

#include "tests/bench/measure.h"

enum { TURNS_MAX = 16 };

static u64 counts_turns = 3;
OPTION_U64(bench.counts.turns, counts_turns, 1, TURNS_MAX,
	   "turns, of which the one with the fewest instructions counts");

struct page *counts_held[COUNTS_HELD];

bool counts_hold(const struct counts_op *op)
{
	counts_held[0] = page_alloc(op->order, USE_MOVABLE, 0, NODE_NONE);
	return counts_held[0] != NULL;
}

void counts_free(const struct counts_op *op)
{
	if (counts_held[0])
		page_free(counts_held[0]);
}

/* Result of one step. */
struct count {
	u64 times, ns, rounds, ipis;
};

static u64 ipis_besides; /* that neither rounds nor drains have counted */

void counts_add_ipis(u64 ipis)
{
	ipis_besides += ipis;
}

/* Marks for valgrind, which knows functions by name. They must exist and be called. */
void counts_step_begins(void);
void counts_step_ends(void);

__attribute__((noinline)) void counts_step_begins(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void counts_step_ends(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Rounds and messages so far. */
static struct count count_now(void)
{
	struct shootdown_stats stats;

	shootdown_stats_read(&stats);
	return (struct count){.rounds = stats.flushes,
			      .ipis = stats.ipis + mm_kernel.drain_messages + ipis_besides};
}

/* Run one step, counted. Its `times` is 0 if it did not do what it should. */
static struct count run_step(const struct counts_op *op, unsigned step)
{
	const struct count before = count_now();
	struct count after;
	u64 ns, times;

	counts_step_begins();
	ns = clock_ns();
	times = op->run[step](op);
	ns = clock_ns() - ns;
	counts_step_ends();
	after = count_now();
	return (struct count){.times = times,
			      .ns = ns,
			      .rounds = after.rounds - before.rounds,
			      .ipis = after.ipis - before.ipis};
}

/* The first turn: the same steps, not counted. False if one failed. */
static bool warm_up(const struct counts_op *op)
{
	bool ok = !op->begin || op->begin(op);

	for (unsigned step = 0; step < COUNTS_STEPS && op->run[step] && ok; step++)
		ok = op->run[step](op) > 0;
	if (op->end)
		op->end(op);
	return ok;
}

/* One turn: keeps in `least` the count of each step if it is the smallest so far. */
static bool run_turn(const struct counts_op *op, struct count least[COUNTS_STEPS])
{
	bool ok = !op->begin || op->begin(op);

	for (unsigned step = 0; step < COUNTS_STEPS && op->run[step] && ok; step++) {
		const struct count count = run_step(op, step);

		ok = count.times > 0;
		if (least[step].times == 0 || count.ns < least[step].ns)
			least[step] = count;
	}
	if (op->end)
		op->end(op);
	return ok;
}

static void print_step(const struct counts_op *op, unsigned step, const struct count *count)
{
	const u64 stores = step == 0 ? op->stores * count->times : 0;

	print("BENCH counts op=%s%s%s times=%llu ns=%llu stores=%llu rounds=%llu ipis=%llu\n",
	      op->name, op->step[step] ? "." : "", op->step[step] ? op->step[step] : "",
	      count->times, count->ns, stores, count->rounds, count->ipis);
}

static bool run_row(const struct counts_op *op)
{
	struct count least[COUNTS_STEPS] = {{.times = 0}};
	bool ok = op->alike || warm_up(op);

	for (u64 turn = 0; turn < counts_turns && ok; turn++)
		ok = run_turn(op, least);
	for (unsigned step = 0; step < COUNTS_STEPS && op->run[step] && ok; step++)
		print_step(op, step, &least[step]);
	if (!ok)
		pr_err("counts: %s could not be done; the machine needs 4 GiB", op->name);
	return ok;
}

static bool run_table(const struct counts_op *op)
{
	const unsigned cpus = cpumask_weight(&cpus_online);
	bool ok = true;

	for (; op->name; op++)
		if (op->cpus <= cpus)
			ok &= run_row(op);
	return ok;
}

static bool bench_counts(void)
{
	bool ok = true;

	print("Instructions, rounds and messages of each operation; clear.insn=rep is "
	      "expected\n\n");
	ok &= run_table(counts_pages);
	ok &= run_table(counts_blocks);
	ok &= run_table(counts_maps);
	ok &= run_table(counts_calls);
	return account_machine() && ok;
}

BENCH(counts,
      "instructions, rounds and messages of each operation, to compare with tests/bench/counts",
      bench_counts);
