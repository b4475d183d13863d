/*
 * Pages made of blocks that were split before: one round for a batch, at once or when somebody
 * wants the first of them. And batches that several CPUs share.
 */
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/tlb.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"
#include "kernel/core/shootdown.h"
#include "kernel/lib/string.h"
#include "kernel/run/test.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/hvo/hvo_share.h"
#include "mm/hvo/hvo_take.h"
#include "mm/map/memblock.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/zone.h"
#include "mm/page/page_alloc.h"
#include "mm/page/pcp.h"
#include "mm/zone/section.h"
#include "mm/zone/transit.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/pool_check.h"

/* `count` full blocks of the phantom are made huge; the rounds that takes. */
static u64 rounds_to_convert(struct arena *a, u64 count, const struct hvo_mode *mode,
			     struct block_list *list)
{
	struct block_list left;
	u64 before;

	EXPECT(full_blocks_make(a, count));
	EXPECT_EQ(
		block_take(arena_phantom_zone(a), FREE_FULL, BLOCK_ORDER, count, BLOCK_HUGE, list),
		count);
	before = rounds_so_far();
	EXPECT_EQ(hvo_optimise(&a->mm, mode, list, &left), 0);
	EXPECT_EQ(arena_usage(a).gated, count * 7); /* seven frames of each */
	return rounds_so_far() - before;
}

TEST(mm_hvo, recycled_blocks_take_one_round_however_many)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	struct block_list list = BLOCK_LIST_INIT;
	struct option_saved saved;
	u64 before;

	if (!a)
		return;
	EXPECT_EQ(option_set_for_now(option_find("hvo_defer"), "off", &saved), 0);
	EXPECT_EQ(rounds_to_convert(a, 24, hvo_mode_find("on"), &list), 1);
	option_put_back(&saved, 1);
	EXPECT(huge_tails_right(&a->mm, list.head, BLOCK_ORDER, 1));
	before = rounds_so_far();
	meta_settle(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, 0); /* the round was theirs too */
	hvo_settle(&a->mm, list.head);
	EXPECT_EQ(rounds_so_far() - before, 0);
	block_list_publish_free(&a->mm, &list);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_hvo, the_round_waits_until_a_page_is_wanted_and_serves_the_whole_batch)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	struct block_list list = BLOCK_LIST_INIT;
	u64 before;

	if (!a)
		return;
	test_option("hvo_defer", "on");
	EXPECT_EQ(rounds_to_convert(a, 24, hvo_mode_find("on"), &list), 0);
	before = rounds_so_far();
	block_list_foreach(&a->mm, index, &list) {
		hvo_settle(&a->mm, index);
		EXPECT_EQ(rounds_so_far() - before, 1);
		EXPECT(huge_tails_right(&a->mm, index, BLOCK_ORDER, 1));
	}
	meta_settle(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, 0);
	EXPECT_EQ(rounds_so_far() - before, 1);
	block_list_publish_free(&a->mm, &list);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/*
 * Two batches, put into the pool and the buddy: whoever takes the first page starts the one round
 * for both.
 */
TEST(mm_hvo, a_page_is_given_out_after_its_round)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	const struct hvo_mode *on = hvo_mode_find("on");
	struct page *page;
	u64 before;

	if (!a)
		return;
	test_option("hvo_defer", "on");
	REQUIRE(full_blocks_make(a, 30));
	before = rounds_so_far();
	/* the full ones last: these are huge now */
	EXPECT_EQ(pool_grow_on(&a->pool, on, 1, GIB_BLOCKS), GIB_BLOCKS);
	EXPECT_EQ(block_changes(&a->mm, BLOCK_FULL, BLOCK_HUGE), 30);
	EXPECT_EQ(pool_shrink_on(&a->pool, on, 1, GIB_BLOCKS), GIB_BLOCKS);
	EXPECT_EQ(rounds_so_far() - before, 0);
	for (unsigned i = 0; i < GIB_BLOCKS; i++) {
		page = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, PAGE_NODE, 1);
		REQUIRE(page);
		EXPECT(huge_tails_right(&a->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER),
					BLOCK_ORDER, 1));
	}
	EXPECT_EQ(rounds_so_far() - before, 1);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_hvo, the_pool_gives_a_page_out_after_its_round)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	const struct hvo_mode *on = hvo_mode_find("on");
	u64 before;

	if (!a)
		return;
	test_option("hvo_defer", "on");
	REQUIRE(full_blocks_make(a, 30));
	before = rounds_so_far();
	EXPECT_EQ(pool_grow_on(&a->pool, on, 1, GIB_BLOCKS), GIB_BLOCKS);
	EXPECT_EQ(rounds_so_far() - before, 0);
	for (unsigned i = 0; i < GIB_BLOCKS; i++) {
		struct page *page = pool_page_take(&a->pool, 1, POOL_ANY);

		REQUIRE(page);
		EXPECT(huge_tails_right(&a->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER),
					BLOCK_ORDER, 1));
	}
	EXPECT_EQ(rounds_so_far() - before, 1);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* ---- what other CPUs see ---- */

enum { WATCHED_BLOCKS = 12, WATCHERS_MAX = 7, PASSES = 3, PATIENCE_S = 20 };

struct watchers {
	struct arena *a;
	u32 first;
	u32 held; /* block of the page in use, or BLOCK_NONE */
	u32 stop, wrong;
	u64 passes;
};

/*
 * Struct pages of all blocks are read over and over, so that this CPU's TLB knows where they were
 * before.
 */
static void watch(void *arg)
{
	struct watchers *w = arg;
	struct page copy;

	while (!atomic_load_acquire(&w->stop)) {
		const u32 held = atomic_load_acquire(&w->held);

		for (u32 b = 0; b < WATCHED_BLOCKS; b++)
			for (unsigned i = STRUCTS_PER_FRAME; i < BLOCK_FRAMES;
			     i += STRUCTS_PER_FRAME)
				mm_page_peek(&w->a->mm, block_pfn(w->first + b) + i, &copy);
		for (unsigned i = STRUCTS_PER_FRAME; i < BLOCK_FRAMES && held != BLOCK_NONE;
		     i += STRUCTS_PER_FRAME)
			if (!mm_page_peek(&w->a->mm, block_pfn(held) + i, &copy) ||
			    copy.head_mask != head_mask_of(BLOCK_ORDER) || copy.flags != PAGE_TAIL)
				atomic_fetch_add(&w->wrong, 1);
		atomic_fetch_add(&w->passes, 1);
	}
}

static cpu_t watchers_start(struct watchers *w)
{
	cpu_t cpu, started = 0;

	cpumask_foreach(cpu, &cpus_online)
		if (started < WATCHERS_MAX && cpu != cpu_id())
			started += work_start(cpu, watch, w) == 0;
	return started;
}

/* Until there were so many more passes, over all watchers. */
static void watchers_pass(struct watchers *w, u64 passes)
{
	const u64 from = atomic_load_relaxed(&w->passes),
		  until = clock_ns() + PATIENCE_S * NS_PER_S;

	while (atomic_load_relaxed(&w->passes) < from + passes && clock_ns() < until)
		cpu_relax();
}

TEST(mm_hvo, every_cpu_sees_the_tails_of_a_page_given_out)
{
	struct watchers w = {.held = BLOCK_NONE};
	const struct hvo_mode *on = hvo_mode_find("on");
	struct page *page;
	cpu_t watchers, cpu;

	if (cpus_find_other() == CPU_NONE)
		SKIP("needs two CPUs");
	w.a = arena_borrow(MIB(16), .phantom = GIB(1));
	if (!w.a)
		return;
	EXPECT(full_blocks_make(w.a, WATCHED_BLOCKS));
	w.first = arena_phantom_block(w.a);
	while (block_look_at(&w.a->mm, w.first).state != BLOCK_FULL)
		w.first++;
	watchers = watchers_start(&w);
	watchers_pass(&w, PASSES * watchers);
	EXPECT_EQ(pool_grow_on(&w.a->pool, on, 1, ~0ULL) > WATCHED_BLOCKS, true);
	EXPECT_EQ(block_changes(&w.a->mm, BLOCK_FULL, BLOCK_HUGE), WATCHED_BLOCKS);
	watchers_pass(&w, watchers);
	while ((page = pool_page_take(&w.a->pool, 1, POOL_ANY))) {
		const u32 block = (u32)(page_to_pfn(page) >> BLOCK_ORDER);

		if (block - w.first >= WATCHED_BLOCKS)
			continue; /* was never split */
		atomic_store_release(&w.held, block);
		watchers_pass(&w, PASSES * watchers);
	}
	atomic_store_release(&w.stop, 1);
	cpumask_foreach(cpu, &cpus_online)
		if (cpu != cpu_id())
			work_wait(cpu, 0);
	EXPECT(w.held != BLOCK_NONE);
	EXPECT_EQ(w.wrong, 0);
	arena_return(w.a);
}

/*
 * With one instruction for everybody, where there is one: the hosted machine's watcher believes it,
 * and nothing else.
 */
TEST(mm_hvo, a_broadcast_round_is_as_good_as_any)
{
	struct arena *a;
	struct block_list list = BLOCK_LIST_INIT;
	struct option_saved saved;

	if (!tlb_can_broadcast())
		SKIP("this CPU has no INVLPGB");
	a = arena_borrow(MIB(16), .phantom = GIB(1));
	if (!a)
		return;
	EXPECT_EQ(option_set_for_now(option_find("hvo_defer"), "off", &saved), 0);
	tlb_broadcast = true;
	EXPECT_EQ(rounds_to_convert(a, 24, hvo_mode_find("on"), &list), 1);
	option_put_back(&saved, 1);
	meta_settle(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, 0);
	block_list_publish_free(&a->mm, &list);
	EXPECT(full_blocks_make(a, 30)); /* takes the frames again */
	tlb_broadcast = false;
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* ---- shared by CPUs ---- */

enum { SHARED_MAX = 16 * GIB_BLOCKS, ATTEMPTS = 20 };

#define NOBODY (~0ULL)

/*
 * Pages for as many threads as there are heads for, at 1024 pages a thread; hosted each is eight
 * mappings of 65530, or sixteen.
 */
static u64 shared_pages(void)
{
	if (memblock_totals().ram_bytes < MIB(400))
		return SHARED_MAX / 4;
#ifdef __SANITIZE_MEMORY__
	return SHARED_MAX / 4;
#elif defined(ASHLAR_HOSTED)
	return SHARED_MAX / 2;
#else
	return SHARED_MAX;
#endif
}

static struct arena *borrow_shared(void)
{
	const u64 pages = shared_pages();

	return arena_borrow(pages > SHARED_MAX / 4 ? MIB(64) : MIB(32),
			    .phantom = pages << BLOCK_SHIFT);
}

/*
 * The pool's free pages in the order of their list, from the phantom's first block on. Heads and
 * tails are looked at.
 */
static u64 list_pages(struct arena *a, u32 *order)
{
	u64 pages = 0;

	for (u32 index = a->pool.node[1].free.head; index != BLOCK_NONE && pages < SHARED_MAX;
	     index = block_at(&a->mm, index)->next) {
		const struct page *head = block_page(&a->mm, index);

		if (head->refcount != 0 || page_head(head + 1) != head ||
		    page_head(head + 511) != head)
			test_fail(__FILE__, __LINE__,
				  "block %u has a head or tail that is not right", index);
		order[pages++] = index - arena_phantom_block(a);
	}
	return pages;
}

/* Blocks that other CPUs than this one have counted as made huge: each in a line of its own. */
static u64 counted_by_others(const struct arena *a)
{
	u64 counted = 0;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		if (cpu != cpu_id())
			counted += a->mm.pcp[cpu]->counts->change[BLOCK_BARE][BLOCK_HUGE];
	return counted;
}

/*
 * All pages made in an arena of their own, and in which order. How many stretches helpers did;
 * NOBODY: no arena, skipped.
 */
static u64 make_shared(u32 *order)
{
	const struct hvo_mode *on = hvo_mode_find("on");
	const u64 pages = shared_pages();
	struct arena *a = borrow_shared();
	u64 helped;

	if (!a)
		return NOBODY;
	while (section_open_next(arena_phantom_zone(a), SECTION_ON_DEMAND) == 0)
		; /* else many CPUs do, and whose sections come first is chance */
	hvo_cpus_forget();
	EXPECT_EQ(pool_grow_on(&a->pool, on, 1, pages), pages);
	EXPECT_EQ(block_changes(&a->mm, BLOCK_BARE, BLOCK_HUGE), pages);
	EXPECT_EQ(list_pages(a, order), pages);
	EXPECT(arena_accounted(a));
	helped = mm_counted(&a->mm, COUNT_STRETCHES_HELPED);
	EXPECT_EQ(counted_by_others(a) > 0, helped > 0);
	/* one may be a helper, that did all while the host ran nobody else */
	EXPECT(helped > 0 || hvo_cpus_most() == 1);
	EXPECT_EQ(pool_shrink_on(&a->pool, on, 1, pages), pages);
	EXPECT(arena_accounted(a));
	arena_return(a);
	return helped;
}

/*
 * Many pages are divided among CPUs; what comes of it is the same list. A CPU that the host does
 * not run until all is done did nothing: hence several attempts, of which one must have been
 * shared.
 */
TEST(mm_hvo, a_batch_divided_among_cpus_is_complete_and_in_order)
{
	const bool several = cpus_find_other() != CPU_NONE;
	static u32 alone[SHARED_MAX], shared[SHARED_MAX];
	static const char *const threads[] = {"4", "8"};
	u64 helped;

	test_option("hvo_threads", "1");
	helped = make_shared(alone);
	if (helped == NOBODY)
		return;
	EXPECT_EQ(helped, 0);
	for (unsigned i = 0; i < ARRAY_LEN(threads); i++) {
		unsigned attempt = 0;

		test_option("hvo_threads", threads[i]);
		do {
			helped = make_shared(shared);
			EXPECT_EQ(memcmp(alone, shared, shared_pages() * sizeof(alone[0])), 0);
		} while (hvo_cpus_most() == 1 && several && ++attempt < ATTEMPTS && !test_failed());
		EXPECT((hvo_cpus_most() > 1 && helped > 0 && helped != NOBODY) == several ||
		       test_failed());
	}
}
