/*
 * Pages cleared ahead of need: they are zero, no more are cleared than asked for, they are used
 * first and never cleared again. The note that a page is zero is never wrong, whichever code used
 * the page in between.
 */
#include "mm/hugetlb/prezero.h"

#include <arch/check.h>
#include <arch/clock.h>

#include "kernel/core/call.h"
#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"
#include "kernel/run/test.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/hvo/hvo_take.h"
#include "mm/memmap/page.h"
#include "mm/mm.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/pool_check.h"

enum { PAGES = 6, BOUND = 4 };
#define SIZE   MIB(2)
#define POISON 0x5a5a5a5a5a5a5a5aULL

/* Borrow pool pages and fill all of them with the poison, as if they had been used. */
static bool poisoned_pool(void)
{
	struct page *page[PAGES];

	test_option("prezero", "0"); /* until the case sets it */
	if (!pool_borrow(&pool_2m, PAGES))
		return false;
	for (unsigned i = 0; i < PAGES; i++)
		page[i] = pool_page_take(&pool_2m, NODE_NONE, POOL_ANY);
	for (unsigned i = 0; i < PAGES; i++) {
		for (u64 *word = page_address(page[i]), *end = word + SIZE / 8; word < end; word++)
			*word = POISON;
		pool_page_give(&pool_2m, page[i]);
	}
	return true;
}

static void pool_away(void)
{
	pool_return(&pool_2m, PAGES);
	EXPECT_EQ(pool_2m.zeroed, 0);
}

/*
 * Wait until `count` pages are known to be zero and every CPU is idle again. Returns true on
 * success.
 */
static bool wait_zeroed(u64 count)
{
	struct wait wait = wait_begin(WAIT_GROWTH, "pages to be cleared ahead");

	wait.soft = true;
	while (atomic_load_acquire(&pool_2m.zeroed) < count && wait.late < 4)
		wait_spin(&wait, CPU_NONE);
	return cpus_wait_idle() && pool_2m.zeroed == count;
}

/* Let idle CPUs clear BOUND pages, and no more from then on. */
static void clear_ahead(void)
{
	prezero_set(BOUND);
	EXPECT(wait_zeroed(BOUND));
	prezero_set(0);
}

/* Make a poisoned pool of which BOUND pages are zero. Returns false if the case was skipped. */
static bool cleared_pool(void)
{
	if (cpus_find_other() == CPU_NONE) {
		test_skip("needs two CPUs");
		return false;
	}
	if (!poisoned_pool())
		return false;
	clear_ahead();
	return true;
}

CHECK_READS_ANYTHING
static bool is_zero(u32 index)
{
	const u64 *word = phys_to_virt(block_pfn(index) << PAGE_SHIFT);
	u64 dirty = 0;

	for (u64 i = 0; i < SIZE / 8; i++)
		dirty |= word[i];
	return dirty == 0;
}

/* Count the free pages noted as zero, and check each of them. */
static u64 notes(void)
{
	u64 count = 0;

	for (node_t n = 0; n < pool_2m.mm->nodes; n++)
		block_list_foreach(pool_2m.mm, index, &pool_2m.node[n].free) {
			if (!block_is_zero(pool_2m.mm, index))
				continue;
			EXPECT(is_zero(index));
			count++;
		}
	return count;
}

TEST(mm_prezero, off_nothing_is_cleared)
{
	if (!poisoned_pool())
		return;
	EXPECT(wait_zeroed(0));
	EXPECT_EQ(notes(), 0);
	pool_away();
}

TEST(mm_prezero, idle_cpus_clear_as_many_as_asked_for)
{
	if (!cleared_pool())
		return;
	EXPECT_EQ(notes(), BOUND);
	EXPECT_EQ(pool_2m.free, pool_2m.boot + PAGES);
	pool_away();
}

/*
 * Clearing ahead moves the cost of a touch to idle CPUs. Their time is counted, page by page,
 * and is no less than a page can take and no more than all CPUs had.
 */
TEST(mm_prezero, time_of_idle_cpus_is_counted)
{
	const u64 before = atomic_load_relaxed(&pool_2m.cleared_ns), start = clock_ns();
	u64 spent, all;

	if (!cleared_pool())
		return;
	spent = atomic_load_relaxed(&pool_2m.cleared_ns) - before;
	all = (clock_ns() - start) * cpumask_weight(&cpus_online);
	EXPECT(spent >= BOUND * (SIZE / 1024)); /* no CPU writes more than a KiB in 1 ns */
	EXPECT(spent <= all);
	pool_away();
	EXPECT_EQ(atomic_load_relaxed(&pool_2m.cleared_ns) - before, spent);
}

TEST(mm_prezero, a_page_known_to_be_zero_is_used_first_and_not_cleared_again)
{
	struct huge_usage before, after;
	char *addr;
	u64 dirty = 0;

	if (!cleared_pool())
		return;
	addr = huge_map(PAGES * SIZE, SIZE, HUGE_RESERVE);
	REQUIRE(addr);
	huge_usage(&before);
	for (unsigned i = 0; i < PAGES; i++) {
		*(volatile char *)(addr + i * SIZE) = 0;
		huge_usage(&after);
		/* A nearby page is used before a zero page that is far away. */
		if (pool_2m.mm->nodes == 1 || i + 1 == PAGES)
			EXPECT_EQ(after.zeroed - before.zeroed, MIN(i + 1, BOUND));
	}
	for (u64 at = 0; at < PAGES * SIZE; at += 8)
		dirty |= *(volatile u64 *)(addr + at);
	EXPECT_EQ(dirty, 0);
	huge_unmap(addr);
	EXPECT_EQ(notes(), 0);
	pool_away();
}

/* Whoever gets a page, from the pool or from the buddy, removes the note. */
TEST(mm_prezero, a_page_that_was_out_is_not_known)
{
	struct page *page[PAGES];

	if (!cleared_pool())
		return;
	for (unsigned i = 0; i < PAGES; i++) { /* the page is used and given back */
		page[i] = pool_page_take(&pool_2m, NODE_NONE, POOL_ANY);
		*(volatile u64 *)page_address(page[i]) = POISON;
	}
	EXPECT_EQ(pool_2m.zeroed, 0);
	for (unsigned i = 0; i < PAGES; i++)
		pool_page_give(&pool_2m, page[i]);
	EXPECT_EQ(notes(), 0);

	clear_ahead();
	pool_away(); /* the pages go to the buddy, are used there, and return to a pool */
	for (unsigned i = 0; i < BOUND; i++)
		page[i] = page_alloc(BLOCK_ORDER, USE_UNMOVABLE, 0, NODE_NONE);
	for (unsigned i = 0; i < BOUND; i++) {
		if (!page[i])
			continue;
		*(volatile u64 *)page_address(page[i]) = POISON;
		page_free(page[i]);
	}
	EXPECT_EQ(pool_grow(&pool_2m, hvo_mode_selected(), PAGES), PAGES);
	EXPECT(notes() <= BOUND); /* those that nobody got, and each of them is read */
	pool_away();
}

/* This CPU takes, writes, gives back and maps pages while other CPUs clear behind it. */
TEST(mm_prezero, clearing_behind_the_users_back_is_never_wrong)
{
	u64 dirty = 0, missing = 0;

	if (!poisoned_pool())
		return;
	prezero_set(PAGES);
	for (unsigned round = 0; round < 30; round++) {
		struct page *page = pool_page_take(&pool_2m, NODE_NONE, POOL_ANY);
		char *addr = huge_map(2 * SIZE, SIZE, HUGE_RESERVE);

		missing += !page + !addr;
		if (page) {
			((volatile u64 *)page_address(page))[round] = POISON;
			pool_page_give(&pool_2m, page);
		}
		for (u64 at = 0; at < 2 * SIZE && addr; at += PAGE_SIZE / 2) {
			dirty |= *(volatile u64 *)(addr + at);
			dirty |= *(volatile u64 *)(addr + at + 8 * (round % 32));
			*(volatile u64 *)(addr + at) = POISON;
		}
		if (addr)
			huge_unmap(addr);
	}
	prezero_set(0);
	EXPECT(cpus_wait_idle());
	EXPECT_EQ(dirty, 0);
	EXPECT_EQ(missing, 0);
	notes();
	pool_away();
}
