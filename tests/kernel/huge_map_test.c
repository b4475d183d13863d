/*
 * Huge mappings: pages come on the first touch, zeroed, and once; they go with one round.
 * huge_map_pool_test.c has the cases with pools and without free pages, death_test.c those that
 * must end the machine, and huge_map_random_test.c random operations.
 */
#include "mm/clear/clear.h"
#include "tests/kernel/huge_check.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/pattern.h"

enum { PAGES = 4 };
#define SIZE MIB(2)

/* Fill free memory with a pattern, so that zeros in a mapping show that it was cleared. */
static bool dirty_free_memory(void)
{
	struct page *page[PAGES];
	unsigned count = 0;

	while (count < PAGES &&
	       (page[count] = page_alloc(BLOCK_ORDER, USE_UNMOVABLE, 0, NODE_NONE)))
		count++;
	for (unsigned i = 0; i < count; i++)
		pattern_fill(page_address(page[i]), SIZE, i * SIZE, 1);
	for (unsigned i = 0; i < count; i++)
		page_free(page[i]);
	return count == PAGES;
}

#define NEED_MEMORY()                                                                              \
	do {                                                                                       \
		if (!dirty_free_memory())                                                          \
			SKIP("needs %u MiB of free memory in one piece",                           \
			     (unsigned)(PAGES * SIZE >> 20));                                      \
	} while (0)

/*
 * Pages of one size are zero when they come, keep each byte while others come and go, and are zero
 * when they come again.
 */
static void expect_contents(u64 size)
{
	char *addr = huge_map(PAGES * size, size, 0);

	REQUIRE(addr);
	for (unsigned i = 0; i < PAGES; i++) {
		if (huge_populate(addr + i * size, size) < 0)
			break;
		EXPECT_ZERO(addr + i * size, size);
		pattern_fill(addr + i * size, size, i * size, 3);
	}
	EXPECT_EQ(huge_protect(addr, PAGES * size, HUGE_READ_ONLY), 0);
	EXPECT_PATTERN(addr, PAGES * size, 0, 3);
	EXPECT_EQ(huge_protect(addr, PAGES * size, HUGE_READ_WRITE), 0);
	EXPECT_EQ(huge_release(addr + size, 2 * size), 0);
	EXPECT_PATTERN(addr, size, 0, 3);
	/* this touch is in the middle of the page; the other page is touched at its first byte */
	addr[size + size / 2] = 0;
	EXPECT_ZERO(addr + size, 2 * size);
	EXPECT_PATTERN(addr, size, 0, 3);
	EXPECT_PATTERN(addr + 3 * size, size, 3 * size, 3);
	huge_unmap(addr);
}

TEST(mm_huge_map, each_byte_is_zero_first_and_then_as_it_was_written)
{
	NEED_MEMORY();
	expect_contents(PAGE_SIZE);
	expect_contents(SIZE);
}

TEST(mm_huge_map, pages_go_with_one_round_however_many)
{
	pool_makes_on_demand(); /* the baselines need more rounds, for struct pages */
	for (unsigned pages = 1; pages <= PAGES; pages++) {
		void *addr;

		NEED_MEMORY();
		addr = huge_map(pages * SIZE, SIZE, HUGE_POPULATE);
		REQUIRE(addr);
		huge_rounds();
		EXPECT_EQ(huge_release(addr, pages * SIZE), 0);
		EXPECT_EQ(huge_rounds(), 1);
		EXPECT_EQ(huge_populate(addr, pages * SIZE), 0);
		huge_rounds();
		huge_unmap(addr);
		EXPECT_EQ(huge_rounds(), 1);
	}
}

/* ---- concurrent touches ---- */

static u64 waited_before;
static u32 overlapped;

/* Clearing the first page of a run lasts until another CPU waits for the page, or half a second. */
static void slow_clear(void *addr, size_t bytes)
{
	const u64 end = clock_ns() + NS_PER_S / 2;
	struct huge_usage now;

	clear_insn_by_cpuid(CLEAR_LARGE)->clear(addr, bytes);
	if (atomic_exchange(&overlapped, 1))
		return;
	do {
		cpu_relax();
		huge_usage(&now);
	} while (now.waited == waited_before && clock_ns() < end);
}

static void touch_all(void *addr)
{
	for (unsigned i = 0; i < PAGES; i++)
		if (*word_at(addr, i * SIZE + 64 * (cpu_id() + 1)) != 0)
			test_fail(__FILE__, __LINE__, "page %u was not zero for CPU %u", i,
				  cpu_id());
	for (unsigned i = 0; i < PAGES; i++)
		*word_at(addr, i * SIZE + 64 * (cpu_id() + 1)) = cpu_id() + 1;
}

TEST(mm_huge_map, of_concurrent_touches_one_brings_the_page)
{
	static const struct clear_insn slow = {.name = "slow", .clear = slow_clear};
	const struct clear_how how = {
		.mode = &clear_modes[1], .insn = {&slow, &slow, &slow}, .threads = 1};

	for (unsigned run = 0; run < 4; run++) {
		struct huge_usage usage;
		void *addr;

		NEED_MEMORY();
		addr = huge_map(PAGES * SIZE, SIZE, 0);
		REQUIRE(addr);
		huge_count_from_here();
		huge_usage(&usage);
		waited_before = usage.waited;
		atomic_store_relaxed(&overlapped, cpus_find_other() == CPU_NONE);
		clear_how_force(&how);
		cpus_run_together(touch_all, addr);
		clear_how_force(NULL);
		EXPECT_EQ(huge_faults(PT_PMD), PAGES);
		EXPECT_EQ(huge_mapped(PT_PMD), PAGES);
		for (unsigned i = 0; i < PAGES; i++)
			EXPECT_EQ(*word_at(addr, i * SIZE + 64 * (cpu_id() + 1)), cpu_id() + 1);
		huge_unmap(addr);
	}
}

TEST(mm_huge_map, populating_brings_every_smaller_page_where_a_large_one_is_lacking)
{
	const char *addr = huge_map(2 * SIZE, SIZE, HUGE_POOL | HUGE_FALLBACK);

	REQUIRE(addr);
	huge_count_from_here();
	EXPECT_EQ(huge_populate((void *)addr, 2 * SIZE), 0);
	EXPECT_EQ(huge_mapped(PT_PMD) * SIZE + huge_mapped(PT_PAGE) * PAGE_SIZE, 2 * SIZE);
	huge_unmap((void *)addr);
}
