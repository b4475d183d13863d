/*
 * Huge mappings: pages come on the first touch, zero, once; they go with one round; what cannot be had is a defined
 * answer. What must end the machine is in death_test.c, random operations in huge_map_random_test.c.
 */
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/peek.h>
#include <arch/pgtable.h>

#include "kernel/percpu.h"
#include "kernel/shootdown.h"
#include "kernel/test.h"
#include "mm/clear.h"
#include "mm/page.h"
#include "mm/pgtable.h"
#include "mm/pool.h"
#include "mm/section.h"
#include "tests/kernel/cpus.h"

enum { PAGES = 4, SMALL_PAGES = 512 };
#define SIZE MIB(2)

static struct huge_usage before;
static struct shootdown_stats rounds_before;

static void count_from_here(void)
{
	huge_usage(&before);
	shootdown_stats_read(&rounds_before);
}

/* Pages of a size brought since count_from_here(). */
static u64 faults(enum pt_level level)
{
	struct huge_usage now;

	huge_usage(&now);
	return now.faults[level] - before.faults[level];
}

static u64 mapped(enum pt_level level)
{
	struct huge_usage now;

	huge_usage(&now);
	return now.mapped[level] - before.mapped[level];
}

/* Rounds since the last time it was asked. */
static u64 rounds(void)
{
	const u64 then = rounds_before.flushes;

	shootdown_stats_read(&rounds_before);
	return rounds_before.flushes - then;
}

/* Free memory is full of something: what a mapping shows as zero was cleared. */
static bool dirty_free_memory(void)
{
	struct page *page[PAGES];
	unsigned count = 0;

	while (count < PAGES && (page[count] = page_alloc(BLOCK_ORDER, USE_UNMOVABLE, 0, NODE_NONE)))
		count++;
	for (unsigned i = 0; i < count; i++)
		for (u64 *word = page_address(page[i]), *end = word + SIZE / 8; word < end; word += 8)
			*word = 0xa5a5a5a5a5a5a5a5ULL;
	for (unsigned i = 0; i < count; i++)
		page_free(page[i]);
	return count == PAGES;
}

static volatile u64 *word_at(void *addr, u64 offset)
{
	return (volatile u64 *)((char *)addr + offset);
}

/* Words of the page at `offset` that are not zero. Touches it. */
static u64 dirty_words(void *addr, u64 offset, u64 bytes)
{
	u64 dirty = 0;

	for (u64 at = 0; at < bytes; at += 64)
		dirty += *word_at(addr, offset + at) != 0;
	return dirty;
}

#define NEED_MEMORY()                                                                                                  \
	do {                                                                                                           \
		if (!dirty_free_memory())                                                                              \
			SKIP("needs %u MiB of free memory in one piece", (unsigned)(PAGES * SIZE >> 20));              \
	} while (0)

TEST(mm_huge_map, pages_come_zero_when_they_are_touched)
{
	void *addr;

	NEED_MEMORY();
	count_from_here();
	addr = huge_map(PAGES * SIZE, SIZE, 0);
	REQUIRE(addr);
	EXPECT_EQ(mapped(PT_PMD), 0);
	for (unsigned i = PAGES; i-- > 0;) {
		*word_at(addr, i * SIZE + 5 * PAGE_SIZE) = i + 1; /* the touch, in the middle of nowhere */
		EXPECT_EQ(mapped(PT_PMD), PAGES - i);
	}
	for (unsigned i = 0; i < PAGES; i++) {
		EXPECT_EQ(*word_at(addr, i * SIZE + 5 * PAGE_SIZE), i + 1);
		*word_at(addr, i * SIZE + 5 * PAGE_SIZE) = 0;
		EXPECT_EQ(dirty_words(addr, i * SIZE, SIZE), 0);
	}
	EXPECT_EQ(faults(PT_PMD), PAGES);
	huge_unmap(addr);
	EXPECT_EQ(mapped(PT_PMD), 0);
}

TEST(mm_huge_map, populating_brings_all_and_touching_then_none)
{
	void *addr;

	NEED_MEMORY();
	count_from_here();
	addr = huge_map(PAGES * SIZE, SIZE, HUGE_POPULATE);
	REQUIRE(addr);
	EXPECT_EQ(faults(PT_PMD), PAGES);
	EXPECT_EQ(dirty_words(addr, 0, PAGES * SIZE), 0);
	EXPECT_EQ(faults(PT_PMD), PAGES);
	EXPECT_EQ(huge_populate(addr, PAGES * SIZE), 0);
	EXPECT_EQ(faults(PT_PMD), PAGES);
	huge_unmap(addr);
}

TEST(mm_huge_map, pages_go_with_one_round_however_many)
{
	for (unsigned pages = 1; pages <= PAGES; pages++) {
		void *addr;

		NEED_MEMORY();
		addr = huge_map(pages * SIZE, SIZE, HUGE_POPULATE);
		REQUIRE(addr);
		rounds();
		EXPECT_EQ(huge_release(addr, pages * SIZE), 0);
		EXPECT_EQ(rounds(), 1);
		EXPECT_EQ(huge_populate(addr, pages * SIZE), 0);
		rounds();
		huge_unmap(addr);
		EXPECT_EQ(rounds(), 1);
	}
}

TEST(mm_huge_map, released_pages_come_back_zero)
{
	void *addr;

	NEED_MEMORY();
	addr = huge_map(2 * SIZE, SIZE, 0);
	REQUIRE(addr);
	*word_at(addr, 64) = *word_at(addr, SIZE) = 1;
	EXPECT_EQ(huge_release(addr, SIZE), 0);
	EXPECT_EQ(*word_at(addr, 64), 0);
	EXPECT_EQ(*word_at(addr, SIZE), 1);
	EXPECT_EQ(huge_release((char *)addr + PAGE_SIZE, SIZE), (u64)-EINVAL);
	EXPECT_EQ(huge_release(addr, 3 * SIZE), (u64)-EINVAL);
	EXPECT_EQ(huge_release(addr, 0), (u64)-EINVAL);
	huge_unmap(addr);
}

/* Nothing is ever mapped right before a mapping or behind it. */
TEST(mm_huge_map, guards_stand_on_both_sides)
{
	void *a, *b;
	u64 value;

	NEED_MEMORY();
	a = huge_map(SIZE, SIZE, HUGE_POPULATE);
	b = huge_map(SIZE, SIZE, HUGE_POPULATE);
	REQUIRE(a && b);
	EXPECT(((virt_t)a | (virt_t)b) % GIB(1) == 0);
	EXPECT((virt_t)b - (virt_t)a >= GIB(2) || (virt_t)a - (virt_t)b >= GIB(2));
	EXPECT(peek_u64(a, &value) && peek_u64((char *)a + SIZE - 8, &value));
	EXPECT(!peek_u64((char *)a - 8, &value) && !peek_u64((char *)a + SIZE, &value));
	EXPECT(!peek_u64((char *)b - 8, &value) && !peek_u64((char *)b + SIZE, &value));
	huge_unmap(a);
	EXPECT(!peek_u64(a, &value));
	huge_unmap(b);
}

TEST(mm_huge_map, what_cannot_be_is_refused)
{
	void *addr = huge_map(SIZE, SIZE, 0);

	REQUIRE(addr);
	EXPECT(!huge_map(0, SIZE, 0));
	EXPECT(!huge_map(SIZE, KIB(64), 0));
	EXPECT(!huge_map(~0ULL, SIZE, 0));
	EXPECT(!huge_map(SIZE, PAGE_SIZE, HUGE_RESERVE));
	EXPECT(!huge_map(SIZE, SIZE, HUGE_RESERVE)); /* the pool is empty */
	EXPECT(!huge_map(SIZE, SIZE, HUGE_POOL | HUGE_POPULATE));
	EXPECT_EQ(huge_populate((char *)addr + SIZE, SIZE), (u64)-EINVAL);
	EXPECT_EQ(huge_protect((char *)addr + PAGE_SIZE, HUGE_READ_ONLY), (u64)-EINVAL);
	EXPECT_EQ(huge_grow(addr, 0), (u64)-EINVAL);
	EXPECT_EQ(huge_grow(&addr, SIZE), (u64)-EINVAL);
	huge_unmap(addr);
}

/* ---- concurrent touches ---- */

static u64 waited_before;
static u32 overlapped;

/* The first page of a run takes until another CPU waits for it, or half a second. */
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
			test_fail(__FILE__, __LINE__, "page %u was not zero for CPU %u", i, cpu_id());
	for (unsigned i = 0; i < PAGES; i++)
		*word_at(addr, i * SIZE + 64 * (cpu_id() + 1)) = cpu_id() + 1;
}

TEST(mm_huge_map, of_concurrent_touches_one_brings_the_page)
{
	static const struct clear_insn slow = {.name = "slow", .clear = slow_clear};
	const struct clear_how how = {.mode = &clear_modes[1], .insn = {&slow, &slow, &slow}, .threads = 1};

	for (unsigned run = 0; run < 4; run++) {
		void *addr;

		NEED_MEMORY();
		addr = huge_map(PAGES * SIZE, SIZE, 0);
		REQUIRE(addr);
		count_from_here();
		waited_before = before.waited;
		atomic_store_relaxed(&overlapped, cpus_find_other() == CPU_NONE);
		clear_how_force(&how);
		cpus_run_together(touch_all, addr);
		clear_how_force(NULL);
		EXPECT_EQ(faults(PT_PMD), PAGES);
		EXPECT_EQ(mapped(PT_PMD), PAGES);
		for (unsigned i = 0; i < PAGES; i++)
			EXPECT_EQ(*word_at(addr, i * SIZE + 64 * (cpu_id() + 1)), cpu_id() + 1);
		huge_unmap(addr);
	}
}

/* ---- rights ---- */

static bool writable(void *addr)
{
	enum pt_level level;
	phys_t phys;
	pte_t pte;

	return pgtable_translate(pgtable_root(), (virt_t)addr, &phys, &pte, &level) && pte_writable(pte);
}

TEST(mm_huge_map, protecting_takes_one_round_and_allowing_none)
{
	char *addr;

	NEED_MEMORY();
	addr = huge_map(PAGES * SIZE, SIZE, 0);
	REQUIRE(addr);
	*word_at(addr, 0) = 7;
	*word_at(addr, SIZE) = 8;
	rounds();
	EXPECT_EQ(huge_protect(addr, HUGE_READ_ONLY), 0);
	EXPECT_EQ(rounds(), 1);
	EXPECT(!writable(addr) && !writable(addr + SIZE));
	EXPECT_EQ(*word_at(addr, SIZE), 8);
	EXPECT_EQ(*word_at(addr, 2 * SIZE), 0); /* comes read-only */
	EXPECT(!writable(addr + 2 * SIZE));
	rounds();
	EXPECT_EQ(huge_protect(addr, HUGE_READ_WRITE), 0);
	EXPECT_EQ(rounds(), 0);
	*word_at(addr, 0) = 9;
	*word_at(addr, 2 * SIZE) = 1;
	EXPECT(writable(addr) && writable(addr + 2 * SIZE));
	EXPECT_EQ(*word_at(addr, 0), 9);
	huge_unmap(addr);
}

/* ---- growing ---- */

TEST(mm_huge_map, growing_keeps_address_and_contents)
{
	const struct huge_request request = {.size = SIZE, .page = SIZE, .room = GIB(3)};
	void *addr, *next;
	u64 value;

	NEED_MEMORY();
	addr = huge_map_with(&request);
	next = huge_map(SIZE, SIZE, 0);
	REQUIRE(addr && next);
	*word_at(addr, 0) = 5;
	EXPECT_EQ(huge_grow(addr, 2 * SIZE), 0);
	EXPECT_EQ(*word_at(addr, SIZE), 0);
	EXPECT_EQ(huge_grow(addr, GIB(3)), 0);
	*word_at(addr, GIB(3) - 8) = 6;
	EXPECT_EQ(*word_at(addr, 0), 5);
	EXPECT(!peek_u64((char *)addr + GIB(3), &value));
	if ((virt_t)next > (virt_t)addr) /* it stands in the way */
		EXPECT_EQ(huge_grow(addr, GIB(5)), (u64)-ENOMEM);
	EXPECT_EQ(huge_grow(addr, SIZE), (u64)-EINVAL);
	huge_unmap(next);
	huge_unmap(addr);
}

/* ---- pools, and what happens without pages ---- */

/* A pool of exactly `count`, or nothing. */
static bool pool_of(u64 count)
{
	const u64 grown = pool_grow(&pool_2m, hvo_mode_selected(), count);

	if (grown == count)
		return true;
	pool_shrink(&pool_2m, hvo_mode_selected(), grown);
	test_skip("needs %u MiB of free memory in one piece", (unsigned)(count * SIZE >> 20));
	return false;
}

static void pool_back(u64 count)
{
	EXPECT_EQ(pool_shrink(&pool_2m, hvo_mode_selected(), count), count);
}

TEST(mm_huge_map, pages_of_the_pool_go_back_to_it)
{
	void *addr;

	if (!pool_of(2))
		return;
	addr = huge_map(3 * SIZE, SIZE, 0);
	REQUIRE(addr);
	EXPECT_EQ(dirty_words(addr, 0, 3 * SIZE), 0); /* the third is the page allocator's */
	EXPECT_EQ(pool_2m.free, 0);
	EXPECT_EQ(pool_2m.in_use, 2);
	huge_unmap(addr);
	EXPECT_EQ(pool_2m.free, 2);
	pool_back(2);
}

TEST(mm_huge_map, promised_pages_are_kept_for_the_mapping)
{
	void *addr;

	if (!pool_of(3))
		return;
	addr = huge_map(2 * SIZE, SIZE, HUGE_RESERVE);
	REQUIRE(addr);
	EXPECT(!huge_map(2 * SIZE, SIZE, HUGE_RESERVE)); /* one is left */
	EXPECT_EQ(pool_shrink(&pool_2m, hvo_mode_selected(), 3), 1);
	EXPECT(!pool_page_take(&pool_2m, NODE_NONE, POOL_ANY));
	EXPECT_EQ(dirty_words(addr, 0, 2 * SIZE), 0);
	EXPECT_EQ(pool_2m.reserved, 0);
	EXPECT_EQ(huge_release(addr, SIZE), 0);
	EXPECT_EQ(pool_2m.reserved, 1);
	EXPECT_EQ(huge_grow(addr, 3 * SIZE), (u64)-ENOMEM);
	huge_unmap(addr);
	EXPECT_EQ(pool_2m.reserved, 0);
	pool_back(2);
}

/* Volatile: the callback comes between the instructions of who touches. */
struct program {
	void *addr;
	volatile u64 asked;
	void *volatile last;
};

/* Gives the first page back: there is one again. */
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
	const struct huge_request request = {
		.size = 3 * SIZE, .page = SIZE, .flags = HUGE_POOL, .exhausted = give_one_back, .ctx = &program};

	if (!pool_of(2))
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
	pool_back(2);
}

TEST(mm_huge_map, smaller_pages_where_there_is_none)
{
	char *addr;

	if (!pool_of(1))
		return;
	count_from_here();
	addr = huge_map(GIB(1), GIB(1), HUGE_POOL | HUGE_FALLBACK);
	REQUIRE(addr);
	*word_at(addr, SIZE) = 1; /* no page of 1 GiB, but of 2 MiB */
	EXPECT_EQ(faults(PT_PMD), 1);
	for (unsigned i = 0; i < 3; i++)
		*word_at(addr, 5 * SIZE + i * PAGE_SIZE) = i + 1; /* nor that */
	EXPECT_EQ(faults(PT_PAGE), 3);
	EXPECT_EQ(faults(PT_PUD), 0);
	EXPECT_EQ(dirty_words(addr, SIZE + 64, SIZE - 64), 0);
	EXPECT_EQ(huge_release(addr, GIB(1)), 0);
	EXPECT_EQ(mapped(PT_PMD) + mapped(PT_PAGE), 0);
	EXPECT_EQ(*word_at(addr, SIZE), 0);
	EXPECT_EQ(*word_at(addr, 5 * SIZE), 0);
	huge_unmap(addr);
	EXPECT_EQ(mapped(PT_PMD) + mapped(PT_PAGE), 0);
	pool_back(1);
}

TEST(mm_huge_map, small_pages_too)
{
	char *addr = huge_map(SMALL_PAGES * PAGE_SIZE, PAGE_SIZE, 0);

	REQUIRE(addr);
	count_from_here();
	for (unsigned i = 0; i < SMALL_PAGES; i += 2)
		*word_at(addr, i * PAGE_SIZE) = i + 1;
	EXPECT_EQ(faults(PT_PAGE), SMALL_PAGES / 2);
	rounds();
	EXPECT_EQ(huge_release(addr, SMALL_PAGES / 2 * PAGE_SIZE), 0);
	EXPECT_EQ(rounds(), 1);
	EXPECT_EQ(mapped(PT_PAGE), SMALL_PAGES / 4);
	EXPECT_EQ(*word_at(addr, 0), 0);
	EXPECT_EQ(*word_at(addr, SMALL_PAGES / 2 * PAGE_SIZE), SMALL_PAGES / 2 + 1);
	rounds();
	huge_unmap(addr);
	EXPECT_EQ(rounds(), 1);
}

/* ---- 1 GiB ---- */

#ifndef ASHLAR_HOSTED /* a sanitizer's shadow of a GiB is several */
TEST(mm_giga, a_mapping_of_a_1_gib_page)
{
	char *addr;

	if (!cpu_has_1g_mappings())
		SKIP("this CPU maps no 1 GiB pages");
	if (pool_grow(&pool_1g, hvo_mode_selected(), 1) == 0) {
		sections_close_all(&mm_kernel);
		if (pool_grow(&pool_1g, hvo_mode_selected(), 1) == 0)
			SKIP("needs 1024 MiB of free memory in one piece");
	}
	clear_insn_choose(CLEAR_GIANT, clear_insn_by_cpuid(CLEAR_LARGE)); /* an emulated rep stosb takes seconds */
	count_from_here();
	addr = huge_map(GIB(1), GIB(1), HUGE_RESERVE);
	REQUIRE(addr);
	*word_at(addr, MIB(700)) = 1;
	EXPECT_EQ(faults(PT_PUD), 1);
	*word_at(addr, MIB(700)) = 0;
	for (u64 at = 0; at < GIB(1); at += 4096 + 64)
		EXPECT(*word_at(addr, at & ~63ULL) == 0);
	EXPECT_EQ(faults(PT_PUD), 1);
	rounds();
	EXPECT_EQ(huge_protect(addr, HUGE_READ_ONLY), 0);
	EXPECT_EQ(rounds(), 1);
	huge_unmap(addr);
	EXPECT_EQ(rounds(), 1);
	EXPECT_EQ(mapped(PT_PUD), 0);
	clear_insn_choose(CLEAR_GIANT, NULL);
	EXPECT_EQ(pool_shrink(&pool_1g, hvo_mode_selected(), 1), 1);
}
#endif
