/*
 * TLB shootdown: rounds, tags, the CPUs that are interrupted, and the CPUs that flush when they
 * wake. hvo_defer_test.c and the hosted machine's watcher check the effect of a flush on the TLBs
 * of other CPUs.
 */
#include "tests/kernel/rounds.h"
#include "tests/kernel/test.h"

/*
 * A CPU that dropped a few pages has not flushed everything. Its round raises G, but neither `done`
 * nor the generations that CPUs publish.
 */
TEST(kernel_shootdown, a_ranged_round_completes_no_tag)
{
	struct shootdown_batch batch = {0};
	const u64 tag = shootdown_tag(), done = shootdown_done();
	const struct shootdown_stats before = stats_now();
	u64 published;
	cpu_t cpu;

	shootdown_full(SHOOTDOWN_ALL_CPUS);
	published = this_cpu()->tlb_published;
	shootdown_batch_add(&batch, some_address(), SHOOTDOWN_PAGES_MAX);
	shootdown_batch_flush(&batch, SHOOTDOWN_ALL_CPUS);
	EXPECT_EQ(stats_now().ranged, before.ranged + 1);
	EXPECT_EQ(stats_now().full, before.full + 1);
	EXPECT_EQ(shootdown_done(), tag);
	EXPECT(tag > done);
	EXPECT_EQ(shootdown_tag(), tag + 2);
	cpumask_foreach(cpu, &cpus_online)
		/* A CPU that woke meanwhile may have seen the new G. */
		EXPECT(cpu_data(cpu)->tlb_published <= published + 1);
	EXPECT_EQ(this_cpu()->tlb_published, published);
}

TEST(kernel_shootdown, more_than_33_pages_or_8_ranges_are_a_full_flush)
{
	static const struct {
		unsigned ranges, pages_each;
		bool full;
	} rows[] = {{1, 33, false}, {1, 34, true}, {3, 11, false}, {3, 12, true},
		    {8, 1, false},  {9, 1, true},  {1, 1, false}};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		const struct shootdown_stats before = stats_now();
		struct shootdown_batch batch = {0};

		for (unsigned r = 0; r < rows[i].ranges; r++)
			shootdown_batch_add(&batch, some_address() + r * MIB(2),
					    rows[i].pages_each);
		shootdown_batch_flush(&batch, SHOOTDOWN_SKIP_IDLE);
		EXPECT_EQ(batch.pages, 0);
		EXPECT_EQ(stats_now().ops, before.ops + 1);
		EXPECT_EQ(stats_now().flushes, before.flushes + 1);
		EXPECT_EQ(stats_now().full, before.full + rows[i].full);
		EXPECT_EQ(stats_now().ranged, before.ranged + !rows[i].full);
	}
}

/* ---- idle CPUs ---- */

/* Wake a CPU without giving it work and count its flushes. Gives up after a while. */
static u64 flushes_on_waking(cpu_t cpu)
{
	const u64 before = atomic_load_relaxed(&cpu_data(cpu)->flushes_full);
	struct wait wait = wait_begin(WAIT_ANSWER, "a woken CPU to flush");

	ipi_send(cpu);
	while (atomic_load_acquire(&cpu_data(cpu)->flushes_full) == before && wait.late < 2)
		wait_spin(&wait, cpu);
	cpus_wait_idle();
	return atomic_load_relaxed(&cpu_data(cpu)->flushes_full) - before;
}

TEST(kernel_shootdown, idle_cpus_are_skipped_and_flush_when_they_wake)
{
	const cpu_t others = cpumask_weight(&cpus_online) - 1, one = cpus_find_other();
	struct shootdown_stats before, after;
	u64 flushed;

	SKIP_ON_ONE_CPU();
	test_option("tlb.skip_idle", "on");
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	REQUIRE(cpus_wait_idle());
	before = stats_now();
	flushed = cpu_data(one)->flushes_full;
	shootdown_full(SHOOTDOWN_SKIP_IDLE);
	shootdown_full(SHOOTDOWN_SKIP_IDLE);
	after = stats_now();
	EXPECT_EQ(after.skipped - before.skipped, 2 * others);
	EXPECT_EQ(after.ipis, before.ipis);
	EXPECT_EQ(cpu_data(one)->flushes_full, flushed); /* the CPU is still asleep */
	EXPECT_EQ(flushes_on_waking(one), 1);            /* one flush for both rounds */
	EXPECT(cpu_data(one)->tlb_published >= shootdown_done());
}

/*
 * An idle CPU is not told which pages a ranged round flushes, so it drops everything when it wakes.
 */
TEST(kernel_shootdown, an_idle_cpu_that_missed_a_ranged_round_flushes_all)
{
	const cpu_t one = cpus_find_other();
	struct shootdown_batch batch = {0};
	u64 pages;

	SKIP_ON_ONE_CPU();
	test_option("tlb.skip_idle", "on");
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	REQUIRE(cpus_wait_idle());
	pages = cpu_data(one)->flushes_page;
	shootdown_batch_add(&batch, some_address(), 1);
	shootdown_batch_flush(&batch, SHOOTDOWN_SKIP_IDLE);
	EXPECT_EQ(cpu_data(one)->flushes_page, pages);
	EXPECT_EQ(flushes_on_waking(one), 1);
}

static void answer(void *unused)
{
}

TEST(kernel_shootdown, idle_cpus_are_interrupted_where_they_must)
{
	const cpu_t others = cpumask_weight(&cpus_online) - 1;
	struct shootdown_stats before, after;
	const bool skip = tlb_skip_idle;

	SKIP_ON_ONE_CPU();
	REQUIRE(cpus_wait_idle());
	shootdown_stats_reset_interrupted();
	call_cpus(&cpus_online, answer, NULL); /* this is no round */
	before = stats_now();
	EXPECT_EQ(before.interrupted, 0);
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	after = stats_now();
	EXPECT_EQ(after.ipis - before.ipis, others);
	EXPECT_EQ(after.skipped, before.skipped);
	EXPECT_EQ(after.interrupted, others);

	REQUIRE(cpus_wait_idle());
	tlb_skip_idle = false;
	before = stats_now();
	shootdown_full(SHOOTDOWN_SKIP_IDLE);
	after = stats_now();
	tlb_skip_idle = skip;
	EXPECT_EQ(after.ipis - before.ipis, others);
	EXPECT_EQ(after.skipped, before.skipped);
}

/* ---- all CPUs at once ---- */

enum { ROUNDS_EACH = 12 };

struct salvo {
	u32 early; /* rounds that returned before their tag was done */
	u32 masked;
};

static void fire(void *arg)
{
	struct salvo *s = arg;

	for (unsigned i = 0; i < ROUNDS_EACH; i++) {
		const bool masked = atomic_load_relaxed(&s->masked) && (cpu_id() + i) % 2;
		const irq_flags_t flags = masked ? irq_save() : 0;
		struct shootdown_batch batch = {0};
		const u64 tag = shootdown_tag();

		shootdown_full(i % 3 ? SHOOTDOWN_SKIP_IDLE : SHOOTDOWN_ALL_CPUS);
		if (shootdown_done() < tag)
			atomic_fetch_add(&s->early, 1);
		shootdown_batch_add(&batch, some_address() + cpu_id() * MIB(2), 1 + i % 4);
		shootdown_batch_flush(&batch, SHOOTDOWN_SKIP_IDLE);
		if (masked)
			irq_restore(flags);
	}
}

static void check_salvo(bool masked)
{
	const struct shootdown_stats before = stats_now();
	const u64 tag = shootdown_tag();
	struct salvo s = {.masked = masked};
	cpu_t cpus, cpu;

	cpus = cpus_run_together(fire, &s);
	EXPECT_EQ(s.early, 0);
	EXPECT_EQ(stats_now().flushes - before.flushes, 2ULL * ROUNDS_EACH * cpus);
	EXPECT_EQ(shootdown_tag() - tag, 2ULL * ROUNDS_EACH * cpus); /* each has its generation */
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	cpumask_foreach(cpu, &cpus_online)
		EXPECT(atomic_load_relaxed(&cpu_data(cpu)->tlb_published) >= shootdown_done());
}

TEST(kernel_shootdown, concurrent_initiators_all_return)
{
	check_salvo(false);
}

TEST(kernel_shootdown, concurrent_initiators_with_interrupts_off_all_return)
{
	check_salvo(true);
}

static void wait_for(void *tag)
{
	shootdown_wait(*(const u64 *)tag);
}

TEST(kernel_shootdown, cpus_that_wait_for_one_tag_share_one_round)
{
	const struct shootdown_stats before = stats_now();
	u64 tag = shootdown_tag();

	cpus_run_together(wait_for, &tag);
	EXPECT_EQ(stats_now().full - before.full, 1);
}

enum { WAKES = 4, LOOKS = 3 };

/* A CPU that is awake has flushed for every round that is said to be done. */
static void look_for_a_missed_round(void *missed)
{
	for (unsigned i = 0; i < LOOKS; i++) {
		const u64 done = shootdown_done();

		if (atomic_load_acquire(&this_cpu()->tlb_published) < done)
			atomic_store_relaxed((u32 *)missed, 1);
	}
}

TEST(kernel_shootdown, a_cpu_that_wakes_during_a_round_misses_none)
{
	const cpu_t other = cpus_find_other();
	u32 missed = 0;

	SKIP_ON_ONE_CPU();
	for (unsigned i = 0; i < WAKES; i++) {
		REQUIRE(work_start(other, look_for_a_missed_round, &missed) == 0);
		shootdown_full(SHOOTDOWN_SKIP_IDLE);
		work_wait(other, 0);
	}
	EXPECT_EQ(missed, 0);
}
