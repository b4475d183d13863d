/*
 * Gated frames: each frame waits for its own generation, whatever other frames of its block are
 * gated. Many CPUs that gate frames and end a batch at once get their frames back and share their
 * rounds.
 */
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/cpu.h>

#include "kernel/core/call.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/shootdown.h"
#include "kernel/core/wait.h"
#include "kernel/run/test.h"
#include "mm/memmap/meta.h"
#include "mm/zone/meta_grow.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/pool_check.h"
#include "tests/kernel/provoke.h"

enum { FINISHERS_MAX = 31, PATIENCE_MS = 100, RECYCLED = 8, GENERATIONS = 10 };

/* Take `count` frames for tails. Returns true if all are of one block. */
static bool take_frames(struct arena *a, pfn_t *frame, unsigned count)
{
	if (meta_reserve(&a->mm.node[0], META_TAILS, count) < 0)
		return false;
	meta_take_many(&a->mm.node[0], META_TAILS, frame, count);
	return frame[0] >> BLOCK_ORDER == frame[count - 1] >> BLOCK_ORDER;
}

static bool is_gated(struct arena *a, pfn_t frame)
{
	const struct meta_block *block = block_of(&a->mm, frame)->meta;

	return block->gated_map[frame % BLOCK_FRAMES / 64] >> frame % 64 & 1;
}

static void round_and_release(struct arena *a)
{
	shootdown_full(SHOOTDOWN_SKIP_IDLE);
	meta_release_done(&a->mm.node[0]);
}

TEST_ARENA(mm_gate, a_late_frame_holds_no_early_one_up, arena_borrow(MIB(16)))
{
	pfn_t frame[2];
	u64 tag;

	REQUIRE(take_frames(a, frame, 2));
	tag = shootdown_tag();
	meta_give(&a->mm, frame[0], tag);
	meta_give(&a->mm, frame[1], tag + 1);
	round_and_release(a);
	EXPECT_EQ(shootdown_done(), tag);
	EXPECT(!is_gated(a, frame[0]));
	EXPECT(is_gated(a, frame[1]));
	EXPECT_EQ(arena_usage(a).gated, 1);
	EXPECT(arena_accounted(a));
	round_and_release(a);
	EXPECT_EQ(arena_usage(a).gated, 0);
}

/*
 * A block waits for more generations than it has lots. None of its frames is free early, and the
 * earliest are not late.
 */
TEST_ARENA(mm_gate, no_frame_is_free_early_however_many_generations_its_block_waits_for,
	   arena_borrow(MIB(16)))
{
	pfn_t frame[GENERATIONS];
	u64 tag;

	REQUIRE(take_frames(a, frame, GENERATIONS));
	tag = shootdown_tag();
	for (unsigned i = 0; i < GENERATIONS; i++)
		meta_give(&a->mm, frame[i], tag + i);
	EXPECT(arena_accounted(a));
	for (unsigned i = 0; i < GENERATIONS; i++) {
		for (unsigned late = i; late < GENERATIONS; late++)
			EXPECT(is_gated(a, frame[late]));
		round_and_release(a);
		EXPECT_EQ(shootdown_done(), tag + i);
		if (i + 1 < GATE_LOTS)
			EXPECT(!is_gated(a, frame[i]));
		EXPECT(arena_accounted(a));
	}
	EXPECT_EQ(arena_usage(a).gated, 0);
}

/*
 * Closing a section takes a block with gated frames out of metadata memory. None of those frames
 * may stay in the queue.
 */
TEST_ARENA(mm_gate, a_block_that_leaves_takes_its_gated_frames_along, arena_borrow(MIB(16)))
{
	pfn_t frame[3];
	u32 index;
	struct node *node = &a->mm.node[0];

	REQUIRE(take_frames(a, frame, 3));
	index = (u32)(frame[0] >> BLOCK_ORDER);
	meta_give(&a->mm, frame[0], shootdown_tag());
	meta_give(&a->mm, frame[1], shootdown_tag());
	meta_give(&a->mm, frame[2], shootdown_tag() + 1);
	EXPECT_EQ(meta_remove_block(node, index, 1), -EBUSY);
	REQUIRE(meta_remove_block(node, index, 0) == 0);
	EXPECT_EQ(node->meta.gated, 0);
	round_and_release(a);
	round_and_release(a);
	meta_leave_block(block_zone(&a->mm, index), index);
	EXPECT_EQ(arena_usage(a).gated, 0);
}

/* ---- many CPUs that need the frames that they gate ---- */

struct recycling {
	struct arena *a;
	struct provoke until;
	u32 refused, turns;
};

static void recycle(void *arg)
{
	struct recycling *r = arg;
	struct node *node = &r->a->mm.node[0];
	pfn_t frame[RECYCLED];

	while (provoke_goes_on(&r->until)) {
		if (meta_reserve(node, META_TAILS, RECYCLED) < 0) {
			atomic_fetch_add(&r->refused, 1);
			continue;
		}
		meta_take_many(node, META_TAILS, frame, RECYCLED);
		meta_give_many(&r->a->mm, frame, RECYCLED, shootdown_tag());
		atomic_fetch_add(&r->turns, 1);
	}
}

/*
 * Each CPU needs 8 frames. There are 8 for each CPU and 8 more, so every frame that is neither free
 * nor in use is gated.
 */
TEST(mm_gate, recyclers_in_need_all_get_their_frames_back)
{
	struct recycling r = {.a = arena_borrow(MIB(16)), .until = provoke_begin()};
	struct famine famine;
	pfn_t frame;
	u64 before;

	if (!r.a)
		return;
	REQUIRE(take_frames(r.a, &frame, 1)); /* Metadata memory gets a block for tails */
	meta_give(&r.a->mm, frame, 0);
	famine_begin(&famine, r.a, META_TAILS, RECYCLED * (CPUS_TOGETHER + 1));
	before = rounds_so_far();
	cpus_run_together(recycle, &r);
	EXPECT_EQ(r.refused, 0);
	print("  # %u turns, %llu rounds\n", r.turns, rounds_so_far() - before);
	meta_flush_gated(&r.a->mm.node[0]);
	EXPECT_EQ(arena_usage(r.a).gated, 0);
	famine_end(&famine);
	EXPECT(arena_accounted(r.a));
	arena_return(r.a);
}

/* ---- many CPUs that end a batch at once ---- */

struct finishing {
	struct arena *a;
	pfn_t frame[FINISHERS_MAX];
	u32 next, gated, go;
};

static void finish(void *arg)
{
	struct finishing *s = arg;
	struct wait wait = wait_begin(WAIT_GROWTH, "the other CPUs that end a batch");

	wait.soft = true;
	meta_give(&s->a->mm, s->frame[atomic_fetch_add(&s->next, 1)], shootdown_tag());
	atomic_fetch_add(&s->gated, 1);
	while (!atomic_load_acquire(&s->go))
		wait_spin(&wait, CPU_NONE);
	meta_flush_gated(&s->a->mm.node[0]);
}

static u64 full_rounds(void)
{
	struct shootdown_stats stats;

	shootdown_stats_read(&stats);
	return stats.full;
}

/* Give CPUs that would start more rounds than this time for it, without serving the mailbox. */
static void let_rounds_reach(u64 rounds, u64 ns)
{
	const u64 until = clock_ns() + ns;

	while (full_rounds() < rounds && clock_ns() < until)
		cpu_relax();
}

/* Let up to `count` idle CPUs end a batch. Returns the number of CPUs. */
static u32 start_finishers(struct finishing *s, u32 count)
{
	u32 started = 0;
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
		if (started < count && cpu != cpu_id() && work_done(cpu) &&
		    work_start(cpu, finish, s) == 0)
			started++;
	}
	return started;
}

/*
 * This CPU answers nothing, so a round that another CPU has started cannot end. The other CPUs gate
 * frames for which that round began too early, and end a batch. They must share one round.
 */
TEST(mm_gate, cpus_that_end_a_batch_at_once_share_a_round)
{
	struct finishing first = {0}, s = {.a = NULL};
	u64 before, skipped = 0;
	irq_flags_t flags;
	u32 finishers;
	cpu_t cpu;

	if (cpumask_weight(&cpus_online) < 4)
		SKIP("needs four CPUs");
	s.a = first.a = arena_borrow(MIB(16));
	if (!s.a)
		return;
	REQUIRE(take_frames(s.a, s.frame, FINISHERS_MAX));
	first.frame[0] = s.frame[FINISHERS_MAX - 1];
	first.go = 1;
	cpus_wait_idle();
	before = full_rounds();

	flags = irq_save();
	EXPECT_EQ(start_finishers(&first, 1), 1);
	CPUS_AWAIT(full_rounds() > before);
	finishers = start_finishers(&s, FINISHERS_MAX - 1);
	CPUS_AWAIT(atomic_load_acquire(&s.gated) == finishers);
	atomic_store_release(&s.go, 1);
	/* This is the number of rounds if each CPU started its own. */
	let_rounds_reach(before + 1 + finishers, PATIENCE_MS * NS_PER_MS);
	irq_restore(flags);

	cpumask_foreach(cpu, &cpus_online) {
		if (cpu != cpu_id())
			work_wait(cpu, 0);
	}
	EXPECT(full_rounds() - before <= 2);
	EXPECT_EQ(finishers, MIN((u32)cpumask_weight(&cpus_online) - 2, (u32)FINISHERS_MAX - 1));
	print("  # 1 + %u CPUs ended a batch: %llu rounds\n", finishers, full_rounds() - before);
	for (u32 i = finishers; i < FINISHERS_MAX - 1; i++, skipped++)
		meta_give(&s.a->mm, s.frame[i], 0);
	EXPECT_EQ(finishers + skipped, FINISHERS_MAX - 1);
	EXPECT_EQ(arena_usage(s.a).gated, 0);
	EXPECT(arena_accounted(s.a));
	arena_return(s.a);
}
