/*
 * Huge mappings and pools: promises are kept, and if there is no page, the result is defined: the
 * program is asked, or smaller pages take its place. Some cases map 4 KiB and 1 GiB pages.
 */
#include <arch/cpu.h>

#include "kernel/run/test.h"
#include "mm/clear/clear.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/memmap/page.h"
#include "tests/kernel/huge_check.h"
#include "tests/kernel/pool_check.h"

#define SIZE MIB(2)

TEST(mm_huge_map, promised_pages_are_kept_for_the_mapping)
{
	void *addr;

	if (!pool_borrow(&pool_2m, 3))
		return;
	addr = huge_map(2 * SIZE, SIZE, HUGE_RESERVE);
	REQUIRE(addr);
	EXPECT(!huge_map(2 * SIZE, SIZE, HUGE_RESERVE)); /* one page is left */
	EXPECT_EQ(pool_shrink(&pool_2m, hvo_mode_selected(), 3), 1);
	EXPECT(!pool_page_take(&pool_2m, NODE_NONE, POOL_ANY));
	EXPECT_EQ(dirty_words(addr, 0, 2 * SIZE), 0);
	EXPECT_EQ(pool_2m.reserved, 0);
	EXPECT_EQ(huge_release(addr, SIZE), 0);
	EXPECT_EQ(pool_2m.reserved, 1);
	EXPECT_EQ(huge_grow(addr, 3 * SIZE), (u64)-ENOMEM);
	huge_unmap(addr);
	EXPECT_EQ(pool_2m.reserved, 0);
	pool_return(&pool_2m, 2);
}

/* Volatile, because the callback runs between two instructions of the touching code. */
struct program {
	void *addr;
	volatile u64 asked;
	void *volatile last;
};

/* Give the first page back, so that the pool has one again. */
static bool give_one_back(void *ctx, void *addr)
{
	struct program *program = ctx;

	program->asked++;
	program->last = addr;
	return huge_release(program->addr, SIZE) == 0;
}

TEST(mm_huge_map, without_a_page_the_program_is_asked)
{
	struct program program = {.asked = 0};
	const struct huge_request request = {.size = 3 * SIZE,
					     .page = SIZE,
					     .flags = HUGE_POOL,
					     .exhausted = give_one_back,
					     .ctx = &program};

	if (!pool_borrow(&pool_2m, 2))
		return;
	program.addr = huge_map_with(&request);
	REQUIRE(program.addr);
	*word_at(program.addr, 0) = *word_at(program.addr, SIZE) = 1;
	EXPECT_EQ(huge_populate(program.addr, 3 * SIZE), (u64)-ENOMEM);
	EXPECT_EQ(program.asked, 0);
	*word_at(program.addr, 2 * SIZE + 72) = 3;
	EXPECT_EQ(program.asked, 1);
	EXPECT(program.last == (char *)program.addr + 2 * SIZE + 72);
	EXPECT_EQ(*word_at(program.addr, 2 * SIZE + 72), 3);
	EXPECT_EQ(*word_at(program.addr, SIZE), 1);
	huge_unmap(program.addr);
	pool_return(&pool_2m, 2);
}

TEST(mm_huge_map, smaller_pages_where_there_is_none)
{
	char *addr;

	if (!pool_borrow(&pool_2m, 1))
		return;
	huge_count_from_here();
	addr = huge_map(GIB(1), GIB(1), HUGE_POOL | HUGE_FALLBACK);
	REQUIRE(addr);
	*word_at(addr, SIZE) = 1; /* there is a page of 2 MiB, but none of 1 GiB */
	EXPECT_EQ(huge_faults(PT_PMD), 1);
	for (unsigned i = 0; i < 3; i++)
		/* there is no page of 2 MiB, either */
		*word_at(addr, 5 * SIZE + i * PAGE_SIZE) = i + 1;
	EXPECT_EQ(huge_faults(PT_PAGE), 3);
	EXPECT_EQ(huge_faults(PT_PUD), 0);
	EXPECT_EQ(dirty_words(addr, SIZE + 64, SIZE - 64), 0);
	EXPECT_EQ(huge_release(addr, GIB(1)), 0);
	EXPECT_EQ(huge_mapped(PT_PMD) + huge_mapped(PT_PAGE), 0);
	EXPECT_EQ(*word_at(addr, SIZE), 0);
	EXPECT_EQ(*word_at(addr, 5 * SIZE), 0);
	huge_unmap(addr);
	EXPECT_EQ(huge_mapped(PT_PMD) + huge_mapped(PT_PAGE), 0);
	pool_return(&pool_2m, 1);
}

/* ---- 1 GiB ---- */

#ifndef ASHLAR_HOSTED /* the shadow of 1 GiB in a sanitizer takes several GiB */
TEST(mm_giga, a_mapping_of_a_1_gib_page)
{
	char *addr;

	if (!cpu_has_1g_mappings())
		SKIP("this CPU maps no 1 GiB pages");
	if (!pool_borrow(&pool_1g, 1))
		return;
	test_option("clear.insn", "nt"); /* an emulated rep stosb takes seconds */
	huge_count_from_here();
	addr = huge_map(GIB(1), GIB(1), HUGE_RESERVE);
	REQUIRE(addr);
	*word_at(addr, MIB(700)) = 1;
	EXPECT_EQ(huge_faults(PT_PUD), 1);
	*word_at(addr, MIB(700)) = 0;
	for (u64 at = 0; at < GIB(1); at += 4096 + 64)
		EXPECT(*word_at(addr, at & ~63ULL) == 0);
	EXPECT_EQ(huge_faults(PT_PUD), 1);
	huge_rounds();
	EXPECT_EQ(huge_protect(addr, HUGE_READ_ONLY), 0);
	EXPECT_EQ(huge_rounds(), 1);
	huge_unmap(addr);
	EXPECT_EQ(huge_rounds(), 1);
	EXPECT_EQ(huge_mapped(PT_PUD), 0);
	pool_return(&pool_1g, 1);
}
#endif
