/*
 * Litmus tests: short programs of two to four CPUs, whose outcomes under x86-TSO are known (Owens,
 * Sarkar and Sewell, "A Better x86 Memory Model: x86-TSO", TPHOLs 2009, from which the names are).
 * Each case runs its program many times. An outcome that is not allowed fails the case, and the
 * explorer prints those that were seen. tests/qemu/test_explore.py derives the sets from the
 * abstract machine of that paper, and compares.
 *
 * A program has a text for each CPU: x1 stores 1 to x, x? reads x, x! exchanges x for 1, x| sets
 * its bit 0, sf is a store fence, mf a full one. An outcome is a number whose digits are what the
 * loads have read, CPU by CPU, and then the value that is named as final.
 */
#include "tests/host/explore/explore.h"
#include "tests/kernel/test.h"

enum { TURNS = 100, READS_MAX = 4, PROGRAM_CPUS = 4 };

static struct litmus {
	__cacheline_aligned u32 x;
	__cacheline_aligned u32 y;
	__cacheline_aligned u32 read[READS_MAX];
} turns[TURNS], *it;

static const char *const *program;
static u32 arrived, left;

/* On the stack of CPU 0, where others see it: "s" in a text. */
static u32 *on_stack;

static void run_text(unsigned cpu)
{
	unsigned reads = 0;

	for (unsigned i = 0; i < cpu; i++)
		for (const char *at = program[i]; at && *at; at++)
			reads += *at == '?';
	for (const char *at = program[cpu]; at && *at; at += at[2] ? 3 : 2) {
		u32 *variable = *at == 'x' ? &it->x : *at == 'y' ? &it->y : on_stack;

		if (at[1] == 'f' && *at == 'm')
			fence_full();
		else if (at[1] == 'f')
			fence_store();
		else if (at[1] == '?')
			it->read[reads++] = atomic_load_relaxed(variable);
		else if (at[1] == '!')
			atomic_exchange(variable, 1);
		else if (at[1] == '|')
			atomic_fetch_or(variable, 1);
		else
			atomic_store_relaxed(variable, (u32)(at[1] - '0'));
	}
}

/* All CPUs begin each turn together. Drawing a number is a fence, so no store outlives its turn. */
static void take_turns(void *unused)
{
	const u32 cpus = MIN(cpumask_weight(&cpus_online), (u32)CPUS_TOGETHER);

	for (u32 turn = 0; turn < TURNS; turn++) {
		u32 mine = 0;

		if (cpu_id() == 0)
			on_stack = &mine;
		it = &turns[turn];
		if (atomic_fetch_add(&arrived, 1) < turn * cpus)
			test_fail(__FILE__, __LINE__, "a CPU began turn %u too early", turn);
		CPUS_AWAIT(atomic_load_acquire(&arrived) >= (turn + 1) * cpus);
		run_text(cpu_id());
		atomic_fetch_add(&left, 1);
		CPUS_AWAIT(atomic_load_acquire(&left) >= (turn + 1) * cpus);
	}
}

/* Run a program. `allowed` has a bit for each outcome of `reads` digits below `radix`. */
static void run(const char *const texts[PROGRAM_CPUS], unsigned radix, unsigned reads,
		const u32 *final, u64 allowed)
{
	const size_t at_final = final ? (size_t)((const u8 *) final - (const u8 *)turns) : 0;

	memset(turns, 0, sizeof(turns));
	program = texts;
	arrived = left = 0;
	cpus_run_together(take_turns, NULL);
	for (unsigned turn = 0; turn < TURNS && !test_failed(); turn++) {
		const u8 *base = (const u8 *)&turns[turn];
		unsigned outcome = 0;

		for (unsigned i = 0; i < reads; i++)
			outcome = outcome * radix + turns[turn].read[i];
		if (final)
			outcome = outcome * radix + *(const u32 *)(const void *)(base + at_final);
		explore_outcome(outcome);
		EXPECT(allowed >> outcome & 1);
	}
}

#define OUTCOME(n) (1ULL << (n))

/* ---- a store and a later load ---- */

TEST(host_litmus, sb)
{
	run((const char *const[PROGRAM_CPUS]){"x1 y?", "y1 x?"}, 2, 2, NULL, 0xf);
}

TEST(host_litmus, sb_fence)
{
	run((const char *const[PROGRAM_CPUS]){"x1 mf y?", "y1 mf x?"}, 2, 2, NULL,
	    0xf & ~OUTCOME(0));
}

TEST(host_litmus, sb_locked)
{
	run((const char *const[PROGRAM_CPUS]){"x! y?", "y| x?"}, 2, 2, NULL, 0xf & ~OUTCOME(0));
}

/* One fence of the two is not enough. */
TEST(host_litmus, sb_one_fence)
{
	run((const char *const[PROGRAM_CPUS]){"x1 mf y?", "y1 sf x?"}, 2, 2, NULL, 0xf);
}

TEST(host_litmus, r)
{
	run((const char *const[PROGRAM_CPUS]){"x1 y1", "y2 x?"}, 3, 1, &turns->y,
	    OUTCOME(1) | OUTCOME(2) | OUTCOME(4) | OUTCOME(5));
}

/* A CPU reads its own store before others do. */
TEST(host_litmus, n6)
{
	run((const char *const[PROGRAM_CPUS]){"x1 x? y?", "y1 x2"}, 3, 2, &turns->x,
	    OUTCOME(9 + 1) | OUTCOME(9 + 2) | OUTCOME(9 + 3 + 1) | OUTCOME(9 + 3 + 2) |
		    OUTCOME(18 + 3 + 2));
}

/* ---- everything else stays in its order ---- */

TEST(host_litmus, mp)
{
	run((const char *const[PROGRAM_CPUS]){"x1 y1", "y? x?"}, 2, 2, NULL, 0xf & ~OUTCOME(2));
}

/* The order holds for a store to the CPU's own stack, too. */
TEST(host_litmus, mp_stack)
{
	run((const char *const[PROGRAM_CPUS]){"x1 s1", "s? x?"}, 2, 2, NULL, 0xf & ~OUTCOME(2));
}

TEST(host_litmus, lb)
{
	run((const char *const[PROGRAM_CPUS]){"y? x1", "x? y1"}, 2, 2, NULL, 0xf & ~OUTCOME(3));
}

TEST(host_litmus, iriw)
{
	if (cpumask_weight(&cpus_online) < 4)
		SKIP("needs four CPUs");
	run((const char *const[PROGRAM_CPUS]){"x1", "y1", "x? y?", "y? x?"}, 2, 4, NULL,
	    0xffff & ~OUTCOME(10));
}
