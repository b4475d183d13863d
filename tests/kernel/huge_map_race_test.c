/*
 * Huge mappings that several CPUs work on at once: what is recorded of a mapping, its rights and
 * its promises, is what its entries and its pool have.
 */
#include <arch/cpu.h>

#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"
#include "kernel/run/test.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/hvo/hvo_take.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/huge_check.h"
#include "tests/kernel/pool_check.h"

enum { SMALL_PAGES = 512, ROUNDS = 12, PAGES = 8 };
#define SIZE MIB(2)

/* ---- rights ---- */

static u32 turn;

/* Half of the CPUs each way. */
static void protect(void *addr)
{
	huge_protect(addr, atomic_fetch_add(&turn, 1) & 1 ? HUGE_READ_ONLY : HUGE_READ_WRITE);
}

/*
 * Entries that do not have the recorded rights. A write to one that is recorded writable and is not
 * would fault for ever.
 */
static unsigned wrong_entries(char *addr)
{
	const struct huge_pin pin = huge_pin((virt_t)addr);
	const bool read_only = atomic_load_relaxed(&pin.map->read_only);
	unsigned wrong = 0;

	for (unsigned i = 0; i < SMALL_PAGES; i++)
		wrong += huge_writable(addr + i * PAGE_SIZE) == read_only;
	huge_unpin(pin);
	return wrong;
}

TEST(mm_huge_map, of_two_who_protect_at_once_one_is_obeyed_everywhere)
{
	char *addr;

	if (cpus_find_other() == CPU_NONE)
		SKIP("needs two CPUs");
	addr = huge_map(SMALL_PAGES * PAGE_SIZE, PAGE_SIZE, HUGE_POPULATE);
	REQUIRE(addr);
	for (unsigned round = 0; round < ROUNDS; round++) {
		cpus_run_together(protect, addr);
		EXPECT_EQ(wrong_entries(addr), 0);
	}
	huge_unmap(addr);
}

/* ---- promises ---- */

/* The mapping's promises are gone, as after a release whose pages others took in between. */
static void lose_promises(void *addr, struct pool *pool)
{
	const struct huge_pin pin = huge_pin((virt_t)addr);

	pool_unreserve(pool, atomic_exchange(&pin.map->promised, 0));
	huge_unpin(pin);
}

/* As if it had grown, without the pages: the next page needs the slot behind. */
static void set_size(void *addr, u64 size)
{
	const struct huge_pin pin = huge_pin((virt_t)addr);

	atomic_store_relaxed(&pin.map->size, size);
	huge_unpin(pin);
}

static u32 attempts, brought;

/* Until the other is at it. */
static void await_attempt(void)
{
	const u32 seen = atomic_load_relaxed(&attempts);
	struct wait wait = wait_begin(WAIT_ANSWER, "an attempt to grow a mapping");

	while (atomic_load_relaxed(&attempts) == seen)
		wait_spin(&wait, CPU_NONE);
}

/* One CPU tries to grow the mapping, in vain, while another touches its pages. */
static void grow_or_touch(void *arg)
{
	char *addr = arg;
	const u32 part = atomic_fetch_add(&turn, 1);

	for (unsigned i = 0; part == 1 && i < PAGES; i++) {
		await_attempt();
		huge_populate(addr + i * SIZE, SIZE);
		atomic_fetch_add(&brought, 1);
	}
	while (part == 0 && atomic_load_relaxed(&brought) < PAGES) {
		if (huge_grow(addr, GIB(1) + SIZE) != -ENOMEM)
			test_fail(__FILE__, __LINE__, "it grew over the guard of the next");
		atomic_fetch_add(&attempts, 1);
	}
}

TEST(mm_huge_map, growing_in_vain_takes_back_no_promise_that_a_touch_used)
{
	char *addr, *next;

	if (cpus_find_other() == CPU_NONE)
		SKIP("needs two CPUs");
	if (!pool_borrow(&pool_2m, PAGES + 1))
		return;
	addr = huge_map(PAGES * SIZE, SIZE, HUGE_RESERVE);
	next = addr ? huge_map(SIZE, SIZE, 0) : NULL;
	EXPECT(next);
	if (next) {
		set_size(addr, GIB(1));
		lose_promises(addr, &pool_2m);
		turn = brought = 0;
		cpus_run_together(grow_or_touch, addr);
		EXPECT_EQ(pool_2m.reserved, 0);
		huge_unmap(next);
		huge_unmap(addr);
		EXPECT_EQ(pool_2m.reserved, 0);
	}
	pool_return(&pool_2m, PAGES + 1);
}

#ifndef ASHLAR_HOSTED
/*
 * Where pages of 2 MiB stand in for one of 1 GiB, none of 1 GiB was promised: giving them back
 * promises none.
 */
TEST(mm_giga, pages_that_stand_in_for_a_larger_one_were_not_promised)
{
	struct page *other;
	char *addr;

	if (!cpu_has_1g_mappings())
		SKIP("this CPU maps no 1 GiB pages");
	if (!pool_borrow(&pool_1g, 1))
		return;
	addr = huge_map(GIB(1), GIB(1), HUGE_RESERVE | HUGE_FALLBACK);
	REQUIRE(addr && pool_grow(&pool_2m, hvo_mode_selected(), 2) == 2);
	lose_promises(addr, &pool_1g);
	other = pool_page_take(&pool_1g, NODE_NONE, POOL_ANY);
	REQUIRE(other);
	EXPECT_EQ(huge_populate(addr, GIB(1)), 0);
	EXPECT_EQ(*(volatile char *)(addr + SIZE), 0);
	EXPECT_EQ(pool_2m.in_use, 2);
	pool_page_give(&pool_1g, other);
	EXPECT_EQ(huge_release(addr, GIB(1)), 0);
	EXPECT_EQ(pool_1g.reserved, 0);
	huge_unmap(addr);
	pool_return(&pool_2m, 2);
	pool_return(&pool_1g, 1);
}
#endif
