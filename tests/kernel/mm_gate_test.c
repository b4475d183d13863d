/*
 * Frames that backed tails, and CPUs that may still see them: no frame is reused before every CPU
 * has flushed.
 *
 * The CPU that has not flushed is the one that runs the case, with interrupts off and without
 * serving its mailbox. Another CPU does the conversion and waits for it in its round.
 */
#include "mm/zone/meta_grow.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/provoke.h"

struct conversion {
	struct arena *a;
	struct block_list list; /* one full block, in transit */
	pfn_t frames[MEMMAP_FRAMES_PER_BLOCK];
	u32 returned;
};

/*
 * Take one block of the phantom that was split and freed, and note the frames of its struct pages.
 */
static bool take_full_block(struct conversion *c)
{
	u32 index;

	if (!full_blocks_make(c->a, 1))
		return false;
	c->list = BLOCK_LIST_INIT;
	if (block_take(arena_phantom_zone(c->a), FREE_FULL, BLOCK_ORDER, 1, BLOCK_HUGE, &c->list) !=
	    1)
		return false;
	index = c->list.head;
	for (unsigned i = 0; i < MEMMAP_FRAMES_PER_BLOCK; i++)
		c->frames[i] = pte_pfn(pte_load(&vmemmap_line(&c->a->mm, index)[i]));
	return true;
}

static void convert(void *arg)
{
	struct conversion *c = arg;
	struct block_list left;

	hvo_optimise(&c->a->mm, hvo_on(), &c->list, &left);
	hvo_complete_round(&c->a->mm, c->list.head);
	atomic_store_release(&c->returned, 1);
}

/*
 * Take every frame that metadata memory gives out and put all back. Returns how many of them are
 * among the frames noted.
 */
static unsigned reusable(const struct conversion *c)
{
	struct node *node = &c->a->mm.node[0];
	static pfn_t taken[4 * BLOCK_FRAMES];
	unsigned count = 0, found = 0;

	meta_release_done(node);
	while (count < ARRAY_LEN(taken) && meta_reserve_now(node, META_TAILS, 1) == 0)
		taken[count++] = meta_take(node, META_TAILS);
	for (unsigned t = 0; t < count; t++) {
		for (unsigned i = 1; i < MEMMAP_FRAMES_PER_BLOCK; i++)
			found += taken[t] == c->frames[i];
		meta_give(&c->a->mm, taken[t], 0);
	}
	return found;
}

/*
 * Read the counter without spinning for the lock. A CPU that spins serves calls, and this CPU must
 * answer none.
 */
static u64 gated_frames(struct arena *a)
{
	struct meta *meta = &a->mm.node[0].meta;
	u64 gated;

	while (!spin_trylock(&meta->lock))
		cpu_relax();
	gated = meta->gated;
	spin_unlock(&meta->lock);
	return gated;
}

TEST_ARENA(mm_hvo, frame_is_gated_until_every_cpu_passed, arena_for_cpus(2))
{
	struct conversion c = {.a = a};
	const cpu_t other = cpus_find_other();
	irq_flags_t flags;

	REQUIRE(take_full_block(&c));
	EXPECT_EQ(reusable(&c), 0); /* the frames are in use */

	flags = irq_save(); /* from here on this CPU answers nothing */
	EXPECT(work_start(other, convert, &c) == 0);
	CPUS_AWAIT(gated_frames(a) == MEMMAP_FRAMES_PER_BLOCK - 1);
	EXPECT_EQ(reusable(&c), 0);
	EXPECT(shootdown_done() < a->mm.node[0].meta.gate_first->tag);
	EXPECT(!atomic_load_acquire(&c.returned)); /* the page is not handed out, either */
	irq_restore(flags);

	work_wait(other, 0);
	EXPECT_EQ(reusable(&c), MEMMAP_FRAMES_PER_BLOCK - 1);
	block_list_publish_free(&a->mm, &c.list);
}

/*
 * ---- writers that know nothing of this: heads stay writable, whatever happens to the tails ----
 */

struct stress {
	struct arena *a;
	u32 failures;
};

enum { STRESS_TURNS = 12 };

/*
 * Split a block, write every struct page, free the block, make it huge and check its heads, over
 * and over, on several CPUs at once.
 */
static void split_and_share(void *arg)
{
	struct stress *s = arg;
	struct mm *mm = &s->a->mm;

	for (unsigned turn = 0; turn < STRESS_TURNS; turn++) {
		struct page *page =
			mm_page_alloc(mm, BLOCK_ORDER - 1, USE_MOVABLE, 0, s->a->options.nodes);
		struct page *huge =
			mm_page_alloc(mm, BLOCK_ORDER, USE_MOVABLE, 0, s->a->options.nodes);

		for (u64 i = 0; page && i < order_pages(BLOCK_ORDER - 1); i++)
			page[i].private[1] = i;
		for (u64 i = 0; page && i < order_pages(BLOCK_ORDER - 1); i++)
			if (page[i].private[1] != i || page_head(&page[i]) != page)
				atomic_fetch_add(&s->failures, 1);
		for (u64 i = 1; huge && i < BLOCK_FRAMES; i++)
			if (page_head(&huge[i]) != huge)
				atomic_fetch_add(&s->failures, 1);
		if (huge)
			mm_page_free(mm, huge);
		if (page)
			mm_page_free(mm, page);
		hvo_huge_free_full(arena_phantom_zone(s->a), 1);
	}
}

TEST_ARENA(mm_hvo, all_cpus_split_and_share_at_once, arena_usual())
{
	struct stress s = {.a = a};

	cpus_run_together(split_and_share, &s);
	EXPECT_EQ(s.failures, 0);
}

/* The end of a batch releases gated frames on every node, not only on the first. */
TEST_ARENA(mm_gate, the_end_of_a_batch_covers_every_node, arena_borrow(MIB(16), .nodes = 2))
{
	for (node_t n = 0; n < a->mm.nodes; n++) {
		REQUIRE(meta_reserve(&a->mm.node[n], META_LASTING, 1) == 0);
		meta_give(&a->mm, meta_take(&a->mm.node[n], META_LASTING), shootdown_tag());
	}
	EXPECT_EQ(arena_usage(a).gated, a->mm.nodes);
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	meta_end_batch_all(&a->mm);
	EXPECT_EQ(arena_usage(a).gated, 0);
}

/* ---- generations ---- */

/*
 * Gated frames: each frame waits for its own generation, whatever other frames of its block are
 * gated. Many CPUs that gate frames and end a batch at once get their frames back and share their
 * rounds.
 */

enum { FINISHERS_MAX = 31, PATIENCE_MS = 100, RECYCLED = 8, GENERATIONS = 10 };

/* Take `count` frames for tails. Returns true if all are of one block. */
static bool take_frames(struct arena *a, pfn_t *frame, unsigned count)
{
	if (meta_reserve(&a->mm.node[0], META_TAILS, count) < 0)
		return false;
	meta_take_many(&a->mm.node[0], META_TAILS, BLOCK_NONE, frame, count);
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
		meta_take_many(node, META_TAILS, BLOCK_NONE, frame, RECYCLED);
		meta_give_many(&r->a->mm, frame, RECYCLED, shootdown_tag());
		atomic_fetch_add(&r->turns, 1);
	}
}

/*
 * Each CPU needs 8 frames. There are 8 for each CPU and 8 more, so every frame that is neither free
 * nor in use is gated.
 */
TEST_ARENA(mm_gate, recyclers_in_need_all_get_their_frames_back, arena_borrow(MIB(16)))
{
	struct recycling r = {.a = a, .until = provoke_begin()};
	struct famine famine;
	pfn_t frame;
	u64 before;

	REQUIRE(take_frames(a, &frame, 1)); /* Metadata memory gets a block for tails */
	meta_give(&a->mm, frame, 0);
	famine_begin(&famine, a, META_TAILS, RECYCLED * (CPUS_TOGETHER + 1));
	before = rounds_so_far();
	cpus_run_together(recycle, &r);
	EXPECT_EQ(r.refused, 0);
	print("  # %u turns, %llu rounds\n", r.turns, rounds_so_far() - before);
	meta_flush_gated(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, 0);
	famine_end(&famine);
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

	wait.bound = 0;
	meta_give(&s->a->mm, s->frame[atomic_fetch_add(&s->next, 1)], shootdown_tag());
	atomic_fetch_add(&s->gated, 1);
	while (!atomic_load_acquire(&s->go))
		wait_spin(&wait, CPU_NONE);
	meta_flush_gated(&s->a->mm.node[0]);
}

/* Give CPUs that would start more rounds than this time for it, without serving the mailbox. */
static void let_rounds_reach(u64 rounds, u64 ns)
{
	const u64 until = clock_ns() + ns;

	while (stats_now().full < rounds && clock_ns() < until)
		cpu_relax();
}

/*
 * This CPU answers nothing, so a round that another CPU has started cannot end. The other CPUs gate
 * frames for which that round began too early, and end a batch. They must share one round.
 */
TEST_ARENA(mm_gate, cpus_that_end_a_batch_at_once_share_a_round,
	   cpus_needed(4) ? arena_borrow(MIB(16)) : NULL)
{
	struct finishing first = {.a = a, .go = 1}, s = {.a = a};
	irq_flags_t flags;
	u32 finishers;
	u64 before;

	REQUIRE(take_frames(a, s.frame, FINISHERS_MAX));
	first.frame[0] = s.frame[FINISHERS_MAX - 1];
	cpus_wait_idle();
	before = stats_now().full;

	flags = irq_save();
	EXPECT_EQ(cpus_start_idle(finish, &first, 1), 1);
	CPUS_AWAIT(stats_now().full > before);
	finishers = cpus_start_idle(finish, &s, FINISHERS_MAX - 1);
	CPUS_AWAIT(atomic_load_acquire(&s.gated) == finishers);
	atomic_store_release(&s.go, 1);
	/* This is the number of rounds if each CPU started its own. */
	let_rounds_reach(before + 1 + finishers, PATIENCE_MS * NS_PER_MS);
	irq_restore(flags);

	cpus_await_work();
	EXPECT(stats_now().full - before <= 2);
	EXPECT_EQ(finishers, MIN((u32)cpumask_weight(&cpus_online) - 2, (u32)FINISHERS_MAX - 1));
	print("  # 1 + %u CPUs ended a batch: %llu rounds\n", finishers, stats_now().full - before);
	for (u32 i = finishers; i < FINISHERS_MAX - 1; i++)
		meta_give(&a->mm, s.frame[i], 0);
	EXPECT_EQ(arena_usage(a).gated, 0);
}
