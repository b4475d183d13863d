/*
 * Litmus tests: short programs of two to four CPUs, whose outcomes under x86-TSO are known (Owens,
 * Sarkar and Sewell, "A Better x86 Memory Model: x86-TSO", TPHOLs 2009, from which the names are).
 * Each case runs its program many times. An outcome that is not allowed fails the case, and the
 * explorer prints those that were seen. tests/qemu/test_explore.py derives the sets from the
 * abstract machine of that paper, and compares.
 *
 * An outcome is a number whose digits are what the loads have read, the first load first, and then
 * the value that is named as final.
 */
#include <arch/atomic.h>
#include <arch/barrier.h>

#include "kernel/core/percpu.h"
#include "kernel/lib/string.h"
#include "kernel/run/test.h"
#include "tests/host/explore/explore.h"
#include "tests/kernel/cpus.h"

enum { TURNS = 100, READS_MAX = 4 };

static struct litmus {
	__cacheline_aligned u32 x;
	__cacheline_aligned u32 y;
	__cacheline_aligned u32 read[READS_MAX];
} turns[TURNS], *it;

static void (*program)(unsigned cpu);
static u32 arrived, left;

#define SET(variable, value)  atomic_store_relaxed(&it->variable, value)
#define GET(number, variable) (it->read[number] = atomic_load_relaxed(&it->variable))

/* On the stack of CPU 0, where others see it. */
static u32 *on_stack;

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
		program(cpu_id());
		atomic_fetch_add(&left, 1);
		CPUS_AWAIT(atomic_load_acquire(&left) >= (turn + 1) * cpus);
	}
}

/* Run a program. `allowed` has a bit for each outcome of `reads` digits below `radix`. */
static void run(void (*fn)(unsigned cpu), unsigned radix, unsigned reads, const u32 *final,
		u64 allowed)
{
	const size_t at_final = final ? (size_t)((const u8 *) final - (const u8 *)turns) : 0;

	memset(turns, 0, sizeof(turns));
	program = fn;
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

static void sb(unsigned cpu)
{
	if (cpu == 0) {
		SET(x, 1);
		GET(0, y);
	} else if (cpu == 1) {
		SET(y, 1);
		GET(1, x);
	}
}

TEST(host_litmus, sb)
{
	run(sb, 2, 2, NULL, 0xf);
}

static void sb_fence(unsigned cpu)
{
	if (cpu == 0) {
		SET(x, 1);
		fence_full();
		GET(0, y);
	} else if (cpu == 1) {
		SET(y, 1);
		fence_full();
		GET(1, x);
	}
}

TEST(host_litmus, sb_fence)
{
	run(sb_fence, 2, 2, NULL, 0xf & ~OUTCOME(0));
}

static void sb_locked(unsigned cpu)
{
	if (cpu == 0) {
		atomic_exchange(&it->x, 1);
		GET(0, y);
	} else if (cpu == 1) {
		atomic_fetch_or(&it->y, 1);
		GET(1, x);
	}
}

TEST(host_litmus, sb_locked)
{
	run(sb_locked, 2, 2, NULL, 0xf & ~OUTCOME(0));
}

/* One fence of the two is not enough. */
static void sb_one_fence(unsigned cpu)
{
	if (cpu == 0) {
		SET(x, 1);
		fence_full();
		GET(0, y);
	} else if (cpu == 1) {
		SET(y, 1);
		fence_store();
		GET(1, x);
	}
}

TEST(host_litmus, sb_one_fence)
{
	run(sb_one_fence, 2, 2, NULL, 0xf);
}

static void r(unsigned cpu)
{
	if (cpu == 0) {
		SET(x, 1);
		SET(y, 1);
	} else if (cpu == 1) {
		SET(y, 2);
		GET(0, x);
	}
}

TEST(host_litmus, r)
{
	run(r, 3, 1, &turns->y, OUTCOME(1) | OUTCOME(2) | OUTCOME(4) | OUTCOME(5));
}

/* A CPU reads its own store before others do. */
static void n6(unsigned cpu)
{
	if (cpu == 0) {
		SET(x, 1);
		GET(0, x);
		GET(1, y);
	} else if (cpu == 1) {
		SET(y, 1);
		SET(x, 2);
	}
}

TEST(host_litmus, n6)
{
	run(n6, 3, 2, &turns->x,
	    OUTCOME(9 + 1) | OUTCOME(9 + 2) | OUTCOME(9 + 3 + 1) | OUTCOME(9 + 3 + 2) |
		    OUTCOME(18 + 3 + 2));
}

/* ---- everything else stays in its order ---- */

static void mp(unsigned cpu)
{
	if (cpu == 0) {
		SET(x, 1);
		SET(y, 1);
	} else if (cpu == 1) {
		GET(0, y);
		GET(1, x);
	}
}

TEST(host_litmus, mp)
{
	run(mp, 2, 2, NULL, 0xf & ~OUTCOME(2));
}

/* The order holds for a store to the CPU's own stack, too. */
static void mp_stack(unsigned cpu)
{
	if (cpu == 0) {
		SET(x, 1);
		atomic_store_relaxed(on_stack, 1);
	} else if (cpu == 1) {
		it->read[0] = atomic_load_relaxed(on_stack);
		GET(1, x);
	}
}

TEST(host_litmus, mp_stack)
{
	run(mp_stack, 2, 2, NULL, 0xf & ~OUTCOME(2));
}

static void lb(unsigned cpu)
{
	if (cpu == 0) {
		GET(0, y);
		SET(x, 1);
	} else if (cpu == 1) {
		GET(1, x);
		SET(y, 1);
	}
}

TEST(host_litmus, lb)
{
	run(lb, 2, 2, NULL, 0xf & ~OUTCOME(3));
}

static void iriw(unsigned cpu)
{
	if (cpu == 0) {
		SET(x, 1);
	} else if (cpu == 1) {
		SET(y, 1);
	} else if (cpu == 2) {
		GET(0, x);
		GET(1, y);
	} else if (cpu == 3) {
		GET(2, y);
		GET(3, x);
	}
}

TEST(host_litmus, iriw)
{
	if (cpumask_weight(&cpus_online) < 4)
		SKIP("needs four CPUs");
	run(iriw, 2, 4, NULL, 0xffff & ~OUTCOME(10));
}
