/*
 * Cases that break rules on purpose: the machine must end and name the rule. Only the hosted runner
 * gives each case a machine of its own, so the kernel does not contain these cases.
 */
#ifdef ASHLAR_HOSTED

#include "kernel/core/watchdog.h"
#include "kernel/virtio/virtq.h"
#include "mm/mapping/map.h"
#include "mm/vm/pages.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/must_end.h"

TEST_ARENA(mm_block, an_unlisted_change_is_caught, arena_borrow(MIB(4)))
{
	MUST_END("goes from meta to huge", block_set_state(&a->mm, arena_block(a), BLOCK_HUGE));
}

TEST_ARENA(mm_buddy, a_block_freed_twice_is_caught, arena_borrow(MIB(4), .phantom = GIB(1)))
{
	struct zone *zone;
	u32 index;

	arena_open_all(a);
	zone = arena_phantom_zone(a);
	index = block_take_one(zone, FREE_BARE, BLOCK_HUGE);
	/* its neighbour, so that the block does not merge */
	block_take_one(zone, FREE_BARE, BLOCK_HUGE);
	block_publish_free(zone, index, BLOCK_ORDER);
	MUST_END("a double free, or the caller does not own it",
		 block_free(zone, index, BLOCK_ORDER));
}

TEST_ARENA(mm_isolate, an_isolation_is_ended_by_its_holder_only,
	   arena_borrow(MIB(4), .phantom = GIB(1)))
{
	struct isolation token, copy;

	arena_open_all(a);
	REQUIRE(isolate_range(arena_phantom_zone(a), arena_phantom_block(a), 4, &token) == 0);
	copy = token;
	MUST_END("or by a caller that does not hold it",
		 isolate_undo(arena_phantom_zone(a), &copy));
}

TEST(mm_page, a_small_page_freed_twice_is_caught)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);

	REQUIRE(page);
	page_free(page);
	MUST_END("double free of frame", page_free(page));
}

TEST(mm_page, a_tail_cannot_be_freed)
{
	struct page *page = page_alloc(3, USE_UNMOVABLE, 0, NODE_NONE);

	REQUIRE(page);
	MUST_END("a tail", page_free(&page[3]));
}

TEST(mm_page, a_reference_too_many_given_back_is_caught)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);

	REQUIRE(page);
	page_put(page);
	MUST_END("reference underflow of frame", page_put(page));
}

TEST(mm_page, what_is_no_struct_page_cannot_be_freed)
{
	MUST_END("which is no struct page", page_free(NULL));
}

TEST(mm_page, a_free_page_cannot_be_referenced)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);

	REQUIRE(page);
	page_free(page);
	MUST_END("reference to free frame", page_get(page));
}

/*
 * Nothing is reused merely because time has passed. After ten periods the machine is declared
 * broken.
 */
TEST(kernel_wait, a_cpu_that_never_acknowledges_ends_the_machine)
{
	static struct cpus_deaf deaf = {.for_ever = true};
	const cpu_t other = cpus_find_other();

	SKIP_ON_ONE_CPU();
	cpus_deaf_start(&deaf, other);
	wait_period_ms = 20;
	MUST_END("gave up waiting for a TLB shootdown from CPU",
		 shootdown_full(SHOOTDOWN_SKIP_IDLE));
}

/*
 * A wait for work without a known duration is bounded as well, although other messages are printed
 * meanwhile.
 */
TEST(kernel_wait, a_soft_wait_ends_the_machine_after_hang_seconds)
{
	struct wait wait = wait_begin(WAIT_JOB, "a chunk that never ends");
	const u64 start = clock_ns();

	wait.deadline_ns = 20 * NS_PER_MS;
	hang_seconds = 1;
	MUST_END_SAYING("gave up waiting for a chunk that never ends");
	while (clock_ns() - start < 20 * NS_PER_S) {
		wait_spin(&wait, CPU_NONE);
		watchdog_touch();
	}
	STILL_THERE();
}

/* ---- levels of waits ---- */

/* Wait for some seconds, or until the machine ends. */
static void wait_in_vain(enum wait_level level, const char *what, cpu_t culprit)
{
	const u64 start = clock_ns();
	struct wait wait = wait_begin(level, what);

	/* The host runs the other CPU within this time, however busy it is. */
	wait.deadline_ns = 100 * NS_PER_MS;
	while (clock_ns() - start < 10 * NS_PER_S)
		wait_spin(&wait, culprit);
}

/* The activity elsewhere may have nothing to do with this wait. */
TEST(kernel_wait, one_that_was_extended_ends_after_hang_seconds)
{
	static struct cpus_moving moving = {.level = WAIT_LOCK};
	const cpu_t other = cpus_find_other();

	SKIP_ON_ONE_CPU();
	cpus_move_start(&moving, other);
	hang_seconds = 2;
	MUST_END("gave up waiting for what never comes",
		 wait_in_vain(WAIT_ANSWER, "what never comes", CPU_NONE));
}

enum { INNER_PERIODS = 5 };
#define INNER_PERIOD_NS (100 * NS_PER_MS)

static u32 inner_turns;

/* This CPU first works without any visible event, and then waits for something that never comes. */
static void work_and_hang(void *unused)
{
	struct wait wait;
	u64 since;

	for (unsigned i = 0; i < INNER_PERIODS; i++)
		for (since = clock_ns(); clock_ns() - since < INNER_PERIOD_NS; cpu_relax())
			atomic_add_relaxed(&inner_turns, 1);
	wait = wait_begin(WAIT_ANSWER, "the inner event");
	wait.deadline_ns = INNER_PERIOD_NS;
	for (;; wait_spin(&wait, CPU_NONE))
		atomic_add_relaxed(&inner_turns, 1);
}

/*
 * The outer wait begins earlier and is for a CPU without visible activity. Its bound leaves enough
 * time for the inner wait to end. A turn of a wait ends one period at most, and the outer wait has
 * no more turns than the inner one, so it does not matter how long the host stops either CPU.
 */
TEST(kernel_wait, of_two_that_hang_the_inner_one_is_named)
{
	const cpu_t other = cpus_find_other();
	u32 seen = 0, turns;
	struct wait wait;
	cpu_t idle;

	if (other == CPU_NONE || cpu_count < 3)
		SKIP("needs three CPUs");
	for (idle = 0; idle == other || idle == cpu_id(); idle++)
		;
	cpus_wait_idle();
	wait = wait_begin(WAIT_DRAIN, "the outer event");
	wait.deadline_ns = INNER_PERIOD_NS;
	REQUIRE(work_start(other, work_and_hang, NULL) == 0);
	MUST_END_SAYING("gave up waiting for the inner event");
	for (;; seen = turns, wait_spin(&wait, idle))
		while ((turns = atomic_load_relaxed(&inner_turns)) == seen)
			cpu_relax();
}

/* Else two waits that report at the same time, and so wait for the console, keep each other up. */
TEST(kernel_wait, a_report_is_no_movement)
{
	struct percpu *cpu = this_cpu();
	const u32 before = cpu->waits.moved[WAIT_CONSOLE];

	cpu->complaining++;
	wait_begin(WAIT_CONSOLE, "a console for a report");
	cpu->complaining--;
	EXPECT_EQ(cpu->waits.moved[WAIT_CONSOLE], before);
	wait_begin(WAIT_CONSOLE, "a console");
	EXPECT_EQ(cpu->waits.moved[WAIT_CONSOLE], before + 1);
}

TEST(kernel_wait, one_inside_another_of_its_level_is_caught)
{
	struct wait outer = wait_begin(WAIT_DRAIN, "the outer event"), inner;

	wait_spin(&outer, CPU_NONE);
	inner = wait_begin(WAIT_ANSWER, "the inner event");
	wait_spin(&inner, CPU_NONE);
	wait_spin(&outer, CPU_NONE); /* this order is right */
	inner = wait_begin(WAIT_DRAIN, "the inner event");
	wait_spin(&inner, CPU_NONE);
	MUST_END("another wait of its level or above began during a wait for the outer event",
		 wait_spin(&outer, CPU_NONE));
}

TEST_ARENA(mm_meta, a_frame_needs_a_reservation, arena_borrow(MIB(4)))
{
	MUST_END("taken without a reservation", meta_take(&a->mm.node[0], META_LASTING));
}

TEST_ARENA(mm_meta, a_frame_given_twice_is_caught, arena_borrow(MIB(4)))
{
	pfn_t pfn;

	REQUIRE(meta_reserve(&a->mm.node[0], META_LASTING, 1) == 0);
	pfn = meta_take(&a->mm.node[0], META_LASTING);
	meta_give(&a->mm, pfn, shootdown_tag());
	MUST_END("freed twice", meta_give(&a->mm, pfn, shootdown_tag()));
}

#ifndef HOST_FAST /* with HOST_FAST no mapping is real */
TEST_ARENA(mm_vmemmap, a_write_to_a_shared_tail_faults, arena_borrow(MIB(16)))
{
	struct page *page;

	REQUIRE(pool_grow(&a->pool, hvo_mode_find("on"), 1) == 1);
	page = pool_page_take(&a->pool, 0, POOL_ANY);
	REQUIRE(page);
	MUST_END("write to a read-only tail of the huge page",
		 *(volatile u32 *)&page[100].refcount = 1);
}

TEST_ARENA(mm_vmemmap, a_struct_page_that_does_not_exist_faults,
	   arena_borrow(MIB(4), .phantom = GIB(1)))
{
	arena_open_all(a);
	MUST_END("does not exist",
		 *(volatile u32 *)&pfn_page(&a->mm, a->phantom >> PAGE_SHIFT)->refcount = 1);
}
#endif

/* ---- huge mappings ---- */

TEST(mm_map, the_entry_of_an_address_elsewhere_is_not_asked_for)
{
	MUST_END("no page of the space is at", pages_entry(&map_space, 0, PT_PAGE));
}

TEST(mm_huge_map, a_write_to_a_read_only_mapping_is_caught)
{
	char *addr = huge_map(MIB(2), PAGE_SIZE, 0);

	REQUIRE(addr && *(volatile char *)addr == 0 &&
		huge_protect(addr, MIB(2), HUGE_READ_ONLY) == 0);
	MUST_END("huge mapping that is read-only", *(volatile char *)addr = 1);
}

TEST(mm_huge_map, a_read_where_nothing_is_allowed_is_caught)
{
	char *addr = huge_map(MIB(2), PAGE_SIZE, HUGE_POPULATE);

	REQUIRE(addr && huge_protect(addr + PAGE_SIZE, PAGE_SIZE, HUGE_NONE) == 0);
	MUST_END("huge mapping, where access is not allowed",
		 (void)*(volatile char *)(addr + PAGE_SIZE));
}

TEST(mm_huge_map, unmapping_what_is_not_mapped_is_caught)
{
	char *addr = huge_map(MIB(2), PAGE_SIZE, 0);

	REQUIRE(addr);
	MUST_END("where no huge mapping begins", huge_unmap(addr + GIB(1)));
}

/* ---- devices ---- */

TEST(virtio_queue, the_frame_of_a_device_that_may_write_is_not_freed)
{
	struct virtio_device dev = {.was_reset = false};
	struct virtq q = {.dev = &dev, .frame = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE)};

	REQUIRE(q.frame);
	MUST_END("memory is freed that a device may write to", virtq_end(&q));
}

#ifdef ASHLAR_DEBUG
TEST(kernel_lock, locks_taken_against_their_rank_are_caught)
{
	struct spinlock zone = SPINLOCK_INIT(LOCK_ZONE), meta = SPINLOCK_INIT(LOCK_META);

	spin_lock(&zone);
	spin_lock(&meta); /* this order is right */
	spin_unlock(&meta);
	spin_unlock(&zone);
	spin_lock(&meta);
	MUST_END("lock of rank 1 taken while one of rank 2 is held", spin_lock(&zone));
}
#endif

#endif
