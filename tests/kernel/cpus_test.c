/* CPUs as a program sees them: numbers, calls, and a CPU that waits for another one. */
#include "tests/kernel/test.h"

static void count(void *arg)
{
	atomic_fetch_add((u32 *)arg, 1);
}

TEST(kernel_cpus, calls_reach_all_others_or_one)
{
	u32 calls = 0;

	EXPECT_EQ(cpus_started(), cpumask_weight(&cpus_online));
	EXPECT(cpu_is_started(cpu_this()) && !cpu_is_started(cpus_known()));
	call_others(count, &calls);
	EXPECT_EQ(calls, cpus_started() - 1);
	call_cpu(cpu_this(), count, &calls);
	call_cpu(cpus_known(), count, &calls);
	EXPECT_EQ(calls, cpus_started() - 1);
}

struct waiter {
	u32 flag, ready, woken;
	u64 until_ns;
	bool came;
};

static void wait_once(void *arg)
{
	struct waiter *waiter = arg;

	atomic_store_release(&waiter->ready, 1);
	waiter->came = cpu_wait(&waiter->flag, waiter->until_ns);
	atomic_store_release(&waiter->woken, 1);
}

/* Rounds skip an idle CPU, and its work goes on when it is woken. */
TEST(kernel_cpus, one_that_waits_is_idle_until_it_is_woken)
{
	const cpu_t cpu = cpus_find_other();
	const u64 limit = clock_ns() + 10 * NS_PER_S;
	struct waiter waiter = {.flag = 0};

	SKIP_ON_ONE_CPU();
	REQUIRE(work_start(cpu, wait_once, &waiter) == 0);
	while ((!atomic_load_acquire(&waiter.ready) ||
		!atomic_load_acquire(&cpu_data(cpu)->idle)) &&
	       clock_ns() < limit)
		cpu_relax();
	EXPECT(atomic_load_acquire(&cpu_data(cpu)->idle));
	cpu_wake(cpu); /* without the flag: it waits on */
	EXPECT(!work_done(cpu) && !atomic_load_acquire(&waiter.woken));
	atomic_store_release(&waiter.flag, 1);
	cpu_wake(cpu);
	work_wait(cpu, 10 * NS_PER_S);
	EXPECT(waiter.woken && waiter.came);
}

TEST(kernel_cpus, a_wait_ends_at_its_time)
{
	const u64 start = clock_ns();
	u32 flag = 0;

	EXPECT(!cpu_wait(&flag, start + 2 * NS_PER_MS));
	EXPECT(clock_ns() - start >= 2 * NS_PER_MS);
	EXPECT(!cpu_wait(&flag, start)); /* over already */
	flag = 1;
	EXPECT(cpu_wait(&flag, 0));
}

enum { ROUNDS = 2000 };

struct turns {
	u32 turn[2]; /* whose turn it is: one of them is 1 */
	cpu_t cpu[2];
	u32 taken;
};

static void take_turns(struct turns *turns, unsigned self)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		cpu_wait(&turns->turn[self], 0);
		atomic_store_relaxed(&turns->turn[self], 0);
		turns->taken++;
		atomic_store_release(&turns->turn[!self], 1);
		cpu_wake(turns->cpu[!self]);
	}
}

static void other_side(void *arg)
{
	take_turns(arg, 1);
}

/* A wake that comes between the look at the flag and the halt would be missed for ever. */
TEST(kernel_cpus, no_wake_is_lost)
{
	struct turns turns = {.turn = {1, 0}, .cpu = {cpu_this(), cpus_find_other()}};

	SKIP_ON_ONE_CPU();
	REQUIRE(work_start(turns.cpu[1], other_side, &turns) == 0);
	take_turns(&turns, 0);
	work_wait(turns.cpu[1], 60 * NS_PER_S);
	EXPECT_EQ(turns.taken, 2 * ROUNDS);
}
