/* The rate of the clock changes under a reader, which finds the old rate or the new one. */
#include "arch/x86_64/time/clock_rate.h"

#include "tests/kernel/test.h"

/* The clock ticks at 1 GHz and at 500 MHz in turn, for STEP ticks each: 1 or 2 ns a tick. */
enum { STEP = 1000, PAIR_NS = STEP + 2 * STEP, CHANGES = 2000 };

struct reading {
	struct clock_rates rates;
	u64 reads, torn;
	u32 stop;
};

static u64 hz_of(u64 n)
{
	return n % 2 == 0 ? NS_PER_S : NS_PER_S / 2;
}

/* The time in the middle of step n. */
static u64 ns_in_step(u64 n)
{
	return n / 2 * PAIR_NS + (n % 2 == 0 ? STEP / 2 : STEP + STEP);
}

static void read_on(void *arg)
{
	struct reading *r = arg;

	while (!atomic_load_acquire(&r->stop)) {
		const struct clock_rate *rate = clock_rate_now(&r->rates);
		const u64 tsc = rate->base_tsc, n = tsc / STEP;

		if (clock_rate_ns(rate, tsc + STEP / 2) != ns_in_step(n) || rate->hz != hz_of(n))
			r->torn++;
		atomic_store_release(&r->reads, r->reads + 1);
		fence_full(); /* the next read begins when this one is seen to have ended */
		cpu_relax();
	}
}

/*
 * The reader is another CPU in the place of an NMI. No change begins before two reads have ended
 * since the change before, so a reader meets one change at most, as an NMI does.
 */
TEST(arch_clock, a_rate_that_changes_is_never_read_half)
{
	struct reading r = {.rates.now = &r.rates.slot[0]};
	const cpu_t cpu = cpus_find_other();

	SKIP_ON_ONE_CPU();
	clock_rate_change(&r.rates, 0, hz_of(0));
	REQUIRE(work_start(cpu, read_on, &r) == 0);
	for (u64 n = 1; n <= CHANGES; n++) {
		u64 reads;

		fence_full(); /* the change before is visible to every read after these */
		reads = atomic_load_acquire(&r.reads);
		CPUS_WAIT_FOR(atomic_load_acquire(&r.reads) >= reads + 2, CPU_NONE,
			      "another CPU that reads a clock");
		clock_rate_change(&r.rates, n * STEP, hz_of(n));
	}
	atomic_store_release(&r.stop, 1);
	work_wait(cpu, 0);
	EXPECT_EQ(r.torn, 0);
	EXPECT_EQ(clock_rate_ns(r.rates.now, CHANGES * STEP + STEP / 2), ns_in_step(CHANGES));
}
