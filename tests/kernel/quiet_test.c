/*
 * Quiet CPUs: rounds for struct pages leave them alone, they flush on every entry into the kernel,
 * and frames wait for them. On the hosted machine the watcher checks every frame that is reused.
 */
#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/cpu.h>

#include "kernel/core/call.h"
#include "kernel/core/context.h"
#include "kernel/core/cpus.h"
#include "kernel/core/percpu.h"
#include "kernel/core/quiet.h"
#include "kernel/core/shootdown.h"
#include "kernel/core/wait.h"
#include "kernel/lib/string.h"
#include "kernel/run/test.h"
#include "mm/mapping/fault.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/zone.h"
#include "mm/mm.h"
#include "mm/page/page_alloc.h"
#include "mm/zone/transit.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/pool_check.h"
#include "tests/kernel/random.h"
#include "tests/kernel/modes.h"

enum { FULL_BLOCKS = 24, FRAMES_EACH = 7 /* that a full block gives up when it becomes huge */ };
enum { ENTRIES = 4 };

/* A program on another CPU that is quiet until it is told to stop. */
struct program {
	cpu_t cpu;
	u32 running, stop;
};

static void be_quiet(void *arg)
{
	struct program *p = arg;

	cpu_quiet_begin();
	atomic_store_release(&p->running, 1);
	while (!atomic_load_acquire(&p->stop))
		cpu_relax();
	cpu_quiet_end();
}

/* False, and the case is to be skipped, if there is no second CPU. */
static bool program_start(struct program *p)
{
	struct wait wait = wait_begin(WAIT_ANSWER, "a CPU to be quiet");

	*p = (struct program){.cpu = cpus_find_other()};
	if (p->cpu == CPU_NONE)
		return false;
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	cpus_wait_idle();
	EXPECT_EQ(work_start(p->cpu, be_quiet, p), 0);
	while (!atomic_load_acquire(&p->running))
		wait_spin(&wait, p->cpu);
	return true;
}

static void program_stop(struct program *p)
{
	atomic_store_release(&p->stop, 1);
	work_wait(p->cpu, 0);
}

/* A handler may have run: wait until the CPU is quiet again. */
static void wait_quiet(const struct program *p)
{
	struct wait wait = wait_begin(WAIT_ANSWER, "a CPU to be quiet again");

	while (!atomic_load_acquire(&cpu_data(p->cpu)->quiet))
		wait_spin(&wait, p->cpu);
}

static u64 flushes_of(const struct program *p)
{
	return atomic_load_acquire(&cpu_data(p->cpu)->flushes_full);
}

static u64 messages_of(const struct program *p)
{
	return atomic_load_acquire(&cpu_data(p->cpu)->messages);
}

static struct shootdown_stats stats_now(void)
{
	struct shootdown_stats stats;

	shootdown_stats_read(&stats);
	return stats;
}

static virt_t some_address(void)
{
	return VMEMMAP_BASE + VMEMMAP_WINDOWS * VMEMMAP_WINDOW_SIZE - GIB(1);
}

TEST(kernel_quiet, rounds_for_struct_pages_leave_a_quiet_cpu_alone)
{
	struct program p;
	struct shootdown_batch batch = {0};
	struct shootdown_stats before;
	u64 flushes, messages;

	test_option("tlb.quiet", "on");
	if (!program_start(&p))
		SKIP("needs two CPUs");
	before = stats_now();
	flushes = flushes_of(&p);
	messages = messages_of(&p);
	shootdown_full(SHOOTDOWN_SKIP_BOTH);
	shootdown_wait(shootdown_tag());
	shootdown_batch_add(&batch, some_address(), 1);
	shootdown_batch_flush(&batch, SHOOTDOWN_SKIP_BOTH);
	EXPECT_EQ(messages_of(&p), messages);
	EXPECT_EQ(flushes_of(&p), flushes);
	EXPECT_EQ(stats_now().skipped_quiet - before.skipped_quiet, 3);
	EXPECT_EQ(stats_now().ipis, before.ipis);
	program_stop(&p);
	EXPECT_EQ(flushes_of(&p), flushes + 1); /* one flush for all three */
	EXPECT(cpu_data(p.cpu)->tlb_published >= shootdown_done());
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

	test_option("tlb.quiet", "on");
	if (other == CPU_NONE)
		SKIP("needs two CPUs");
	REQUIRE(work_start(other, enter_again_and_again, &missed) == 0);
	for (unsigned i = 0; i < ENTRIES; i++)
		shootdown_full(SHOOTDOWN_SKIP_QUIET);
	work_wait(other, 0);
	EXPECT_EQ(missed, 0);
}

TEST(kernel_quiet, other_rounds_interrupt_it_and_leave_it_quiet)
{
	struct shootdown_batch batch = {0};
	struct program p;
	u64 flushes;

	test_option("tlb.quiet", "on");
	if (!program_start(&p))
		SKIP("needs two CPUs");
	flushes = flushes_of(&p);
	shootdown_full(SHOOTDOWN_SKIP_IDLE);
	EXPECT(flushes_of(&p) > flushes);
	EXPECT(cpu_data(p.cpu)->tlb_published >= shootdown_done());
	flushes = flushes_of(&p);
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	EXPECT(flushes_of(&p) > flushes);
	flushes = cpu_data(p.cpu)->flushes_page;
	shootdown_batch_add(&batch, some_address(), 1);
	shootdown_batch_flush(&batch, SHOOTDOWN_SKIP_IDLE);
	EXPECT_EQ(atomic_load_acquire(&cpu_data(p.cpu)->flushes_page), flushes + 1);
	wait_quiet(&p); /* as before */
	program_stop(&p);
}

TEST(kernel_quiet, with_quiet_off_every_round_interrupts_it)
{
	struct program p;
	u64 flushes;

	test_option("tlb.quiet", "off");
	if (!program_start(&p))
		SKIP("needs two CPUs");
	flushes = flushes_of(&p);
	shootdown_full(SHOOTDOWN_SKIP_BOTH);
	EXPECT_EQ(flushes_of(&p), flushes + 1);
	EXPECT_EQ(shootdown_reusable(), shootdown_done());
	program_stop(&p);
}

/* Does not trust its own count of rounds: a mistake there would be silent. */
TEST(kernel_quiet, an_entry_flushes_although_no_round_was_missed)
{
	struct percpu *self = this_cpu();
	u64 flushes;

	test_option("tlb.quiet", "on");
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	cpu_quiet_begin();
	flushes = self->flushes_full;
	cpu_quiet_end();
	EXPECT(self->flushes_full > flushes);
}

static struct {
	u32 quiet;
	u64 published, generation;
} seen;

/* Called on the quiet CPU, in its interrupt handler. */
static void look(void *arg)
{
	(void)arg;
	seen.quiet = this_cpu()->quiet || context_in(CONTEXT_QUIET);
	seen.published = this_cpu()->tlb_published;
	seen.generation = shootdown_tag() - 1;
}

TEST(kernel_quiet, a_handler_runs_after_the_flush_and_the_cpu_is_quiet_again_after_it)
{
	struct program p;

	test_option("tlb.quiet", "on");
	if (!program_start(&p))
		SKIP("needs two CPUs");
	for (unsigned i = 0; i < 10; i++) {
		shootdown_full(SHOOTDOWN_SKIP_BOTH);
		call_cpu(p.cpu, look, NULL);
		EXPECT(!seen.quiet);
		EXPECT_EQ(seen.published, seen.generation);
		wait_quiet(&p);
	}
	program_stop(&p);
	EXPECT(!cpu_data(p.cpu)->quiet);
}

TEST(kernel_quiet, a_tag_is_done_without_it_but_its_frames_wait)
{
	struct shootdown_stats before;
	struct program p;
	u64 tag;

	test_option("tlb.quiet", "on");
	if (!program_start(&p))
		SKIP("needs two CPUs");
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
	program_stop(&p);
	EXPECT_EQ(shootdown_reusable(), shootdown_done());
}

TEST(kernel_quiet, it_is_asked_after_a_time_and_once_in_that_time)
{
	struct shootdown_stats before;
	struct program p;

	test_option("tlb.quiet", "on");
	test_option("tlb.quiet_ask_ms", "1000000");
	if (!program_start(&p))
		SKIP("needs two CPUs");
	before = stats_now();
	shootdown_ask_quiet(); /* it missed nothing yet */
	shootdown_full(SHOOTDOWN_SKIP_BOTH);
	shootdown_ask_quiet();
	EXPECT_EQ(stats_now().asked, before.asked);
	test_option("tlb.quiet_ask_ms", "0");
	shootdown_ask_quiet();
	EXPECT_EQ(stats_now().asked, before.asked + 1);
	wait_quiet(&p);
	program_stop(&p);
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

TEST(kernel_quiet, a_page_fault_is_an_entry)
{
	struct percpu *self = this_cpu();
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	enum fault_result result;
	bool quiet;
	u64 flushes;

	REQUIRE(page);
	test_option("tlb.quiet", "on");
	cpu_quiet_begin();
	flushes = self->flushes_full;
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

TEST(mm_gate, frames_wait_for_quiet_cpus_until_they_are_short)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	struct block_list list = BLOCK_LIST_INIT, left;
	struct program p = {.cpu = CPU_NONE};
	u64 messages;

	if (!a)
		return;
	test_option("hvo.defer", "off");
	test_option("tlb.quiet", "on");
	test_option("tlb.quiet_ask_ms", "1000000");
	REQUIRE(full_blocks_make(a, FULL_BLOCKS));
	EXPECT_EQ(block_take(arena_phantom_zone(a), FREE_FULL, BLOCK_ORDER, FULL_BLOCKS, BLOCK_HUGE,
			     &list),
		  FULL_BLOCKS);
	if (program_start(&p)) {
		messages = messages_of(&p);
		EXPECT_EQ(hvo_optimise(&a->mm, hvo_mode_find("on"), &list, &left), 0);
		meta_end_batch(&a->mm.node[0]);
		EXPECT(huge_tails_right(&a->mm, list.head, BLOCK_ORDER, 1)); /* in use already */
		EXPECT_EQ(arena_usage(a).gated, FULL_BLOCKS * FRAMES_EACH);
		EXPECT_EQ(messages_of(&p), messages);
		meta_flush_gated(&a->mm.node[0]); /* frames are short */
		EXPECT_EQ(arena_usage(a).gated, 0);
		wait_quiet(&p);
		EXPECT_EQ(messages_of(&p), messages + 1);
		program_stop(&p);
	}
	block_list_publish_free(&a->mm, &list);
	EXPECT(arena_accounted(a));
	arena_return(a);
	if (p.cpu == CPU_NONE)
		SKIP("needs two CPUs");
}

/* ---- races ---- */

enum { TURNS = 40, PAGES = 24 };

struct visitors {
	struct arena *a;
	const struct hvo_mode *mode;
	cpu_t resizer;
	u32 stop, visits; /* visits: of other CPUs */
};

/* One CPU resizes a pool; the others are quiet, for a short time each, and use memory between. */
static void come_and_go(void *arg)
{
	struct visitors *v = arg;
	u64 state = 88172645463325252ULL + cpu_id();

	if (cpu_id() == v->resizer) {
		for (unsigned i = 0; i < TURNS; i++)
			pool_resize(&v->a->pool, v->mode, i % 2 ? 0 : PAGES);
		atomic_store_release(&v->stop, 1);
		return;
	}
	while (!atomic_load_acquire(&v->stop)) {
		struct page *page;

		cpu_quiet_begin();
		for (u64 spins = next_random(&state) % 64; spins > 0; spins--)
			cpu_relax();
		cpu_quiet_end();
		page = mm_page_alloc(&v->a->mm, 0, USE_UNMOVABLE, 0, 0);
		if (page)
			mm_page_free(&v->a->mm, page);
		atomic_fetch_add(&v->visits, 1);
	}
}

static void check_visitors(const char *mode, struct arena *a)
{
	struct visitors v = {.a = a, .mode = hvo_mode_find(mode), .resizer = cpu_id()};

	if (!a)
		return;
	test_option("tlb.quiet", "on");
	test_option("tlb.quiet_ask_ms", "0");
	cpus_run_together(come_and_go, &v);
	cpus_note_met(v.visits, "visits of other CPUs");
	EXPECT_EQ(pool_resize(&a->pool, v.mode, 0), 0);
	meta_flush_gated(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, 0);
	EXPECT_EQ(shootdown_reusable(), shootdown_done());
	pool_expect_consistent(&a->pool);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_pool, quiet_cpus_come_and_go_while_it_is_resized)
{
	check_visitors("on", arena_borrow(MIB(16), .phantom = GIB(1)));
}
