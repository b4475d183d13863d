/*
 * Quiet CPUs: rounds for struct pages leave them alone, they flush on every entry into the kernel,
 * and frames wait for them. On the hosted machine the watcher checks every frame that is reused.
 */
#include "kernel/core/quiet.h"
#include "mm/mapping/fault.h"
#include "tests/kernel/fixture.h"
#include "tests/kernel/mm_test.h"

/* FRAMES_EACH: that a full block gives up when it becomes huge */
enum { FULL_BLOCKS = 24, MANY_BLOCKS = 160, FRAMES_EACH = 7 };
enum { ENTRIES = 4, ROUNDS = 16 };
#define LONG (1000000 * NS_PER_MS)

/* A program on another CPU that is quiet until it is told to stop. */
static struct program {
	cpu_t cpu; /* CPU_NONE: there is none */
	u32 running, stop;
} p;

static void be_quiet(void *unused)
{
	cpu_quiet_begin();
	atomic_store_release(&p.running, 1);
	while (!atomic_load_acquire(&p.stop))
		cpu_relax();
	cpu_quiet_end();
}

/* A handler may have run: wait until the CPU is quiet again. */
static void wait_quiet(void)
{
	CPUS_WAIT_FOR(atomic_load_acquire(&cpu_data(p.cpu)->quiet), p.cpu, "a CPU to be quiet");
}

static void program_start_as(call_fn *program)
{
	p = (struct program){.cpu = cpus_find_other()};
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	cpus_wait_idle();
	EXPECT_EQ(work_start(p.cpu, program, NULL), 0);
	while (!atomic_load_acquire(&p.running))
		cpu_relax();
}

static void program_start(void)
{
	program_start_as(be_quiet);
}

static void program_stop(void)
{
	if (p.cpu == CPU_NONE)
		return;
	atomic_store_release(&p.stop, 1);
	work_wait(p.cpu, 0);
	p.cpu = CPU_NONE;
	quiet_ask_ns = NS_PER_S;
}

/* Now is not the time to ask. */
static void ask_never(void)
{
	quiet_ask_ns = ~0ULL;
}

/* Its first missed round was long enough ago. From now on, it is not asked again for long. */
static void ask_is_due(cpu_t cpu)
{
	quiet_ask_ns = LONG;
	atomic_store_relaxed(&cpu_data(cpu)->quiet_missed_ns, clock_ns() - LONG);
}

static bool choose_quiet(void)
{
	p.cpu = CPU_NONE;
	test_option("tlb.quiet", "on");
	return true;
}

FIXTURE(kernel_quiet, choose_quiet, program_stop);

static u64 flushes_of(cpu_t cpu)
{
	return atomic_load_acquire(&cpu_data(cpu)->flushes_full);
}

static u64 messages_of(cpu_t cpu)
{
	return atomic_load_acquire(&cpu_data(cpu)->messages);
}

TEST(kernel_quiet, rounds_for_struct_pages_leave_a_quiet_cpu_alone)
{
	struct shootdown_stats before;
	u64 flushes, messages;
	cpu_t quiet;

	test_option("tlb.skip_idle", "on"); /* all interrupts are counted */
	SKIP_ON_ONE_CPU();
	program_start();
	before = stats_now();
	flushes = flushes_of(p.cpu);
	messages = messages_of(p.cpu);
	shootdown_full(SHOOTDOWN_SKIP_BOTH);
	shootdown_wait(shootdown_tag());
	EXPECT_EQ(messages_of(p.cpu), messages);
	EXPECT_EQ(flushes_of(p.cpu), flushes);
	EXPECT_EQ(stats_now().skipped_quiet - before.skipped_quiet, 2);
	EXPECT_EQ(stats_now().ipis, before.ipis);
	quiet = p.cpu;
	program_stop();
	EXPECT_EQ(flushes_of(quiet), flushes + 1); /* one flush for both */
	EXPECT(cpu_data(quiet)->tlb_published >= shootdown_done());
}

/* In the kernel, a CPU has flushed for every round that is said to be done. */
static void enter_again_and_again(void *missed)
{
	for (unsigned i = 0; i < ENTRIES; i++) {
		u64 done;

		cpu_quiet_begin();
		cpu_quiet_end();
		done = shootdown_done();
		if (atomic_load_acquire(&this_cpu()->tlb_published) < done)
			atomic_store_relaxed((u32 *)missed, 1);
	}
}

TEST(kernel_quiet, a_cpu_that_enters_during_a_round_misses_none)
{
	const cpu_t other = cpus_find_other();
	u32 missed = 0;

	SKIP_ON_ONE_CPU();
	REQUIRE(work_start(other, enter_again_and_again, &missed) == 0);
	for (unsigned i = 0; i < ENTRIES; i++)
		shootdown_full(SHOOTDOWN_SKIP_QUIET);
	work_wait(other, 0);
	EXPECT_EQ(missed, 0);
}

#ifdef ASHLAR_HOSTED /* in QEMU by instructions, a CPU that never rests leaves no turn to others */

/* It is never idle, so a round either waits for it or finds it quiet: its frames wait. */
static void enter_until_told(void *unused)
{
	atomic_store_release(&p.running, 1);
	while (!atomic_load_acquire(&p.stop)) {
		cpu_quiet_begin();
		cpu_quiet_end();
	}
}

TEST(kernel_quiet, frames_wait_until_a_cpu_that_leaves_has_flushed)
{
	SKIP_ON_ONE_CPU();
	program_start_as(enter_until_told);
	for (unsigned i = 0; i < ROUNDS; i++) {
		u64 reusable;

		shootdown_full(SHOOTDOWN_SKIP_QUIET);
		reusable = shootdown_reusable();
		EXPECT(atomic_load_acquire(&cpu_data(p.cpu)->tlb_published) >= reusable);
	}
}

#endif

TEST(kernel_quiet, other_rounds_interrupt_it_and_leave_it_quiet)
{
	struct shootdown_batch batch = {0};
	u64 flushes;

	SKIP_ON_ONE_CPU();
	program_start();
	flushes = flushes_of(p.cpu);
	shootdown_full(SHOOTDOWN_SKIP_IDLE);
	EXPECT(flushes_of(p.cpu) > flushes);
	EXPECT(cpu_data(p.cpu)->tlb_published >= shootdown_done());
	flushes = flushes_of(p.cpu);
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	EXPECT(flushes_of(p.cpu) > flushes);
	flushes = cpu_data(p.cpu)->flushes_page;
	shootdown_batch_add(&batch, some_address(), 1);
	shootdown_batch_flush(&batch, SHOOTDOWN_SKIP_BOTH); /* a ranged one skips none */
	EXPECT_EQ(atomic_load_acquire(&cpu_data(p.cpu)->flushes_page), flushes + 1);
	wait_quiet(); /* as before */
}

TEST(kernel_quiet, with_quiet_off_every_round_interrupts_it)
{
	u64 flushes;

	test_option("tlb.quiet", "off");
	SKIP_ON_ONE_CPU();
	program_start();
	flushes = flushes_of(p.cpu);
	shootdown_full(SHOOTDOWN_SKIP_BOTH);
	EXPECT_EQ(flushes_of(p.cpu), flushes + 1);
	EXPECT_EQ(shootdown_reusable(), shootdown_done());
}

TEST(kernel_quiet, an_entry_that_missed_no_round_flushes_nothing)
{
	const struct percpu *self = this_cpu();
	struct shootdown_batch batch = {0};
	u64 flushes;

	shootdown_full(SHOOTDOWN_ALL_CPUS);
	shootdown_batch_add(&batch, some_address(), 1);
	shootdown_batch_flush(&batch, SHOOTDOWN_SKIP_BOTH);
	cpu_quiet_begin();
	flushes = self->flushes_full;
	cpu_quiet_end();
	EXPECT_EQ(self->flushes_full, flushes);
}

static struct {
	u32 quiet;
	u64 published, generation;
} seen;

/* Called on the quiet CPU, in its interrupt handler. */
static void look(void *arg)
{
	seen.quiet = this_cpu()->quiet || context_in(CONTEXT_QUIET);
	seen.published = this_cpu()->tlb_published;
	seen.generation = shootdown_tag() - 1;
}

TEST(kernel_quiet, a_handler_runs_after_the_flush_and_the_cpu_is_quiet_again_after_it)
{
	cpu_t quiet;

	SKIP_ON_ONE_CPU();
	program_start();
	for (unsigned i = 0; i < 10; i++) {
		shootdown_full(SHOOTDOWN_SKIP_BOTH);
		call_cpu(p.cpu, look, NULL);
		EXPECT(!seen.quiet);
		EXPECT_EQ(seen.published, seen.generation);
		wait_quiet();
	}
	quiet = p.cpu;
	program_stop();
	EXPECT(!cpu_data(quiet)->quiet);
}

TEST(kernel_quiet, a_tag_is_done_without_it_but_its_frames_wait)
{
	struct shootdown_stats before;
	u64 tag;

	SKIP_ON_ONE_CPU();
	program_start();
	tag = shootdown_tag();
	shootdown_wait(tag);
	EXPECT(shootdown_done() >= tag);
	EXPECT(shootdown_reusable() < tag);
	before = stats_now();
	shootdown_settle(tag);
	EXPECT(shootdown_reusable() >= tag);
	EXPECT_EQ(stats_now().asked - before.asked, 1);
	shootdown_settle(tag); /* a CPU that has flushed is not asked */
	EXPECT_EQ(stats_now().asked - before.asked, 1);
	program_stop();
	EXPECT_EQ(shootdown_reusable(), shootdown_done());
}

static void ask(void *unused)
{
	shootdown_ask_quiet();
}

TEST(kernel_quiet, it_is_asked_after_a_time_and_once_in_that_time)
{
	struct shootdown_stats before;
	cpu_t third;

	SKIP_ON_ONE_CPU();
	program_start();
	ask_never();
	before = stats_now();
	shootdown_ask_quiet(); /* it missed nothing yet */
	shootdown_full(SHOOTDOWN_SKIP_BOTH);
	shootdown_ask_quiet();
	EXPECT_EQ(stats_now().asked, before.asked);
	/* the time is over: of two CPUs that see this, if there are two, one asks */
	ask_is_due(p.cpu);
	third = cpus_find_other();
	if (third != CPU_NONE)
		EXPECT_EQ(work_start(third, ask, NULL), 0);
	ask(NULL);
	if (third != CPU_NONE)
		work_wait(third, 0);
	EXPECT_EQ(stats_now().asked, before.asked + 1);
	wait_quiet();
}

TEST(kernel_quiet, calls_that_may_read_struct_pages_are_refused)
{
	char reason[CONTEXT_REASON_MAX];
	bool ordinary, locked;

	test_option("tlb.quiet", "off"); /* the promise is the same */
	cpu_quiet_begin();
	ordinary = context_may(CONTEXT_ORDINARY);
	locked = context_may(CONTEXT_LOCKED);
	context_reason(reason, sizeof(reason));
	cpu_quiet_end();
	EXPECT(!ordinary);
	EXPECT(!locked);
	EXPECT(strcmp(reason, "between cpu_quiet_begin() and cpu_quiet_end()") == 0);
	EXPECT(context_may(CONTEXT_ORDINARY));
}

static void make_round(void *unused)
{
	CPUS_AWAIT(atomic_load_acquire(&p.running));
	shootdown_full(SHOOTDOWN_SKIP_QUIET);
	atomic_store_release(&p.stop, 1);
}

TEST(kernel_quiet, a_page_fault_is_an_entry)
{
	struct percpu *self = this_cpu();
	enum fault_result result;
	struct page *page;
	bool quiet;
	u64 flushes;

	SKIP_ON_ONE_CPU();
	page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	REQUIRE(page);
	p = (struct program){.cpu = cpus_find_other()};
	REQUIRE(work_start(p.cpu, make_round, NULL) == 0);
	cpu_quiet_begin();
	flushes = self->flushes_full;
	atomic_store_release(&p.running, 1);
	CPUS_AWAIT(atomic_load_acquire(&p.stop));
	result = fault_resolve((virt_t)page_address(page), false, false, true);
	quiet = self->quiet;
	flushes = self->flushes_full - flushes;
	cpu_quiet_end();
	EXPECT_EQ(result, FAULT_RETRY);
	EXPECT(flushes >= 1);
	EXPECT(quiet);
	page_free(page);
}

/* ---- frames ---- */

/* `blocks` full blocks become huge while a program is quiet, which gates FRAMES_EACH of each. */
static void optimise(struct arena *a, u64 blocks, struct block_list *list)
{
	struct block_list left;

	test_option("tlb.quiet", "on");
	test_option("hvo.defer", "off");
	REQUIRE(full_blocks_make(a, blocks));
	EXPECT_EQ(
		block_take(arena_phantom_zone(a), FREE_FULL, BLOCK_ORDER, blocks, BLOCK_HUGE, list),
		blocks);
	program_start();
	EXPECT_EQ(hvo_optimise(&a->mm, hvo_mode_find("on"), list, &left), 0);
}

static void optimised_end(struct arena *a, struct block_list *list)
{
	program_stop();
	block_list_publish_free(&a->mm, list);
}

TEST_ARENA(mm_gate, frames_wait_for_quiet_cpus_until_they_are_short, arena_for_cpus(2))
{
	struct block_list list = BLOCK_LIST_INIT;
	u64 messages;

	optimise(a, FULL_BLOCKS, &list);
	messages = messages_of(p.cpu);
	meta_end_batch(&a->mm.node[0]);
	EXPECT(huge_tails_right(&a->mm, list.head, BLOCK_ORDER, 1)); /* in use already */
	EXPECT_EQ(arena_usage(a).gated, FULL_BLOCKS * FRAMES_EACH);
	EXPECT_EQ(messages_of(p.cpu), messages);
	meta_flush_gated(&a->mm.node[0]); /* frames are short */
	EXPECT_EQ(arena_usage(a).gated, 0);
	wait_quiet();
	EXPECT_EQ(messages_of(p.cpu), messages + 1);
	optimised_end(a, &list);
}

TEST_ARENA(mm_gate, a_batch_above_its_bound_asks_a_quiet_cpu_but_only_after_its_time,
	   arena_for_cpus(2))
{
	struct node *node = &a->mm.node[0];
	struct block_list list = BLOCK_LIST_INIT;
	u64 gated, asked;

	ask_never();
	optimise(a, MANY_BLOCKS, &list);
	gated = arena_usage(a).gated;
	asked = stats_now().asked;
	EXPECT(gated > MAX(512, node_ram(node) / 256));
	meta_end_batch(node);
	EXPECT_EQ(stats_now().asked, asked);
	EXPECT_EQ(arena_usage(a).gated, gated);
	ask_is_due(p.cpu);
	meta_end_batch(node);
	EXPECT_EQ(stats_now().asked, asked + 1);
	CPUS_WAIT_FOR(shootdown_reusable() == shootdown_done(), p.cpu, "a quiet CPU to flush");
	meta_end_batch(node);
	EXPECT_EQ(arena_usage(a).gated, 0);
	optimised_end(a, &list);
}
