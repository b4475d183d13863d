/*
 * Rights of ranges inside huge mappings: each 4 KiB page has the rights that it was given last,
 * whatever the size of the page it is part of, and its contents stay.
 */
#include <arch/cpu.h>
#include <arch/peek.h>

#include "kernel/run/test.h"
#include "mm/memmap/zone.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/huge_check.h"

enum { SMALL = 512, LARGE = 3, ALL = LARGE * SMALL };
#define LARGE_BYTES MIB(2)

/* A page by the tables: its rights, or that it is not mapped. */
enum seen { SEEN_WRITABLE, SEEN_READ_ONLY, SEEN_NOTHING };

static enum seen rights_at(const char *addr)
{
	u64 value;

	if (!peek_u64((const u64 *)addr, &value))
		return SEEN_NOTHING;
	return huge_writable(addr) ? SEEN_WRITABLE : SEEN_READ_ONLY;
}

/* The number of pages of [first, end) whose rights are not these. */
static unsigned others(const char *addr, unsigned first, unsigned end, enum seen want)
{
	unsigned wrong = 0;

	for (unsigned i = first; i < end; i++)
		wrong += rights_at(addr + i * PAGE_SIZE) != want;
	return wrong;
}

static char *map_large(unsigned flags)
{
	char *addr = huge_map(LARGE * LARGE_BYTES, LARGE_BYTES, flags);

	if (!addr || huge_populate(addr, LARGE * LARGE_BYTES) == 0)
		return addr;
	huge_unmap(addr);
	return NULL;
}

static void write_tags(char *addr)
{
	for (unsigned i = 0; i < ALL; i++)
		*word_at(addr, i * PAGE_SIZE) = i + 1;
}

static unsigned wrong_tags(char *addr)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < ALL; i++)
		wrong += *word_at(addr, i * PAGE_SIZE) != i + 1;
	return wrong;
}

static int protect(char *addr, unsigned first, unsigned end, enum huge_access access)
{
	return huge_protect_range(addr + first * PAGE_SIZE, (end - first) * PAGE_SIZE, access);
}

static enum pt_level level_at(const char *addr)
{
	enum pt_level level = PT_PAGE;

	huge_leaf(addr, &level);
	return level;
}

TEST(mm_huge_map, parts_of_large_pages_have_rights_of_their_own)
{
	enum { FIRST = 100, END = SMALL * 2 + 7 };
	char *addr;

	huge_count_from_here();
	addr = map_large(0);
	if (!addr)
		SKIP("needs three free pages of 2 MiB");
	write_tags(addr);
	huge_rounds();
	EXPECT_EQ(protect(addr, FIRST, END, HUGE_READ_ONLY), 0);
	EXPECT_EQ(huge_rounds(), 1);
	EXPECT_EQ(others(addr, 0, FIRST, SEEN_WRITABLE), 0);
	EXPECT_EQ(others(addr, FIRST, END, SEEN_READ_ONLY), 0);
	EXPECT_EQ(others(addr, END, ALL, SEEN_WRITABLE), 0);
	EXPECT_EQ(level_at(addr + LARGE_BYTES), PT_PMD); /* the one in the middle is whole */
	EXPECT_EQ(wrong_tags(addr), 0);

	EXPECT_EQ(protect(addr, 3, 4, HUGE_NONE), 0);
	EXPECT_EQ(protect(addr, SMALL, 2 * SMALL, HUGE_NONE), 0);
	EXPECT_EQ(huge_rounds(), 2);
	EXPECT_EQ(rights_at(addr + 3 * PAGE_SIZE), SEEN_NOTHING);
	EXPECT_EQ(others(addr, SMALL, 2 * SMALL, SEEN_NOTHING), 0);
	EXPECT_EQ(huge_mapped(PT_PMD), LARGE);

	EXPECT_EQ(protect(addr, 0, ALL, HUGE_READ_WRITE), 0);
	EXPECT_EQ(huge_rounds(), 1);
	for (unsigned i = 0; i < LARGE; i++)
		EXPECT_EQ(level_at(addr + i * LARGE_BYTES), PT_PMD);
	EXPECT_EQ(wrong_tags(addr), 0);
	write_tags(addr);
	EXPECT_EQ(protect(addr, 5, 9, HUGE_NONE), 0);
	huge_unmap(addr); /* with a page in pieces, some of them hidden */
	EXPECT_EQ(huge_mapped(PT_PMD), 0);
	EXPECT_EQ(huge_mapped(PT_PAGE), 0);
}

/* Rights are given before the pages are there, and they stay when the pages are released. */
TEST(mm_huge_map, pages_to_come_have_the_rights_they_were_given)
{
	char *addr = huge_map(LARGE * LARGE_BYTES, LARGE_BYTES, 0);

	REQUIRE(addr);
	huge_count_from_here();
	EXPECT_EQ(protect(addr, 7, 8, HUGE_NONE), 0);
	EXPECT_EQ(protect(addr, 9, 2 * SMALL, HUGE_READ_ONLY), 0);
	EXPECT_EQ(huge_rounds(), 0); /* nothing is there that a CPU could know */
	for (unsigned turn = 0; turn < 2; turn++) {
		if (huge_populate(addr, LARGE * LARGE_BYTES) < 0)
			break;
		EXPECT_EQ(huge_mapped(PT_PMD), LARGE);
		EXPECT_EQ(others(addr, 0, 7, SEEN_WRITABLE), 0);
		EXPECT_EQ(rights_at(addr + 7 * PAGE_SIZE), SEEN_NOTHING);
		EXPECT_EQ(rights_at(addr + 8 * PAGE_SIZE), SEEN_WRITABLE);
		EXPECT_EQ(others(addr, 9, 2 * SMALL, SEEN_READ_ONLY), 0);
		EXPECT_EQ(others(addr, 2 * SMALL, ALL, SEEN_WRITABLE), 0);
		EXPECT_EQ(*word_at(addr, 8 * PAGE_SIZE), 0);
		*word_at(addr, 8 * PAGE_SIZE) = 1;
		EXPECT_EQ(huge_release(addr, LARGE * LARGE_BYTES), 0);
		EXPECT_EQ(huge_mapped(PT_PMD), 0);
	}
	huge_unmap(addr);
	addr = huge_map(LARGE * LARGE_BYTES, LARGE_BYTES, 0);
	REQUIRE(addr);
	huge_unmap(addr);
}

/* A mapping that gets the addresses of one with rights of its own gets no rights of it. */
TEST(mm_huge_map, rights_go_with_their_mapping)
{
	char *addr, *first = NULL;

	for (u64 i = 0; i < 2 * (HUGE_MAP_SIZE / GIB(1)) && i < 200; i++) {
		addr = huge_map(2 * GIB(1), PAGE_SIZE, 0);
		REQUIRE(addr);
		if (addr == first) { /* used again */
			*(volatile char *)addr = 1;
			*(volatile char *)(addr + GIB(1)) = 1;
		}
		if (!first)
			first = addr;
		EXPECT_EQ(huge_protect_range(addr, 2 * GIB(1), HUGE_READ_ONLY), 0);
		huge_unmap(addr);
	}
}

TEST(mm_huge_map, a_part_of_a_1g_page)
{
	char *addr;

	if (!cpu_has_1g_mappings())
		SKIP("this CPU maps no 1 GiB pages");
	addr = huge_map(GIB(1), GIB(1), 0);
	REQUIRE(addr);
	if (huge_populate(addr, GIB(1)) < 0) {
		huge_unmap(addr);
		SKIP("needs 1024 MiB of free memory in one piece");
	}
	huge_count_from_here();
	*word_at(addr, MIB(5)) = 55;
	EXPECT_EQ(huge_protect_range(addr + MIB(5), PAGE_SIZE, HUGE_NONE), 0);
	EXPECT_EQ(rights_at(addr + MIB(5)), SEEN_NOTHING);
	EXPECT_EQ(rights_at(addr + MIB(5) - PAGE_SIZE), SEEN_WRITABLE);
	EXPECT_EQ(level_at(addr + MIB(8)), PT_PMD);
	EXPECT_EQ(huge_rounds(), 1);
	EXPECT_EQ(huge_release(addr, GIB(1)), 0);
	EXPECT_EQ(huge_mapped(PT_PUD), (u64)-1);
	*word_at(addr, MIB(6)) = 66; /* comes as one page again, in the same pieces */
	EXPECT_EQ(huge_mapped(PT_PUD), 0);
	EXPECT_EQ(rights_at(addr + MIB(5)), SEEN_NOTHING);
	EXPECT_EQ(huge_protect_range(addr, PAGE_SIZE, HUGE_NONE), 0);
	EXPECT_EQ(huge_protect_range(addr, MIB(2), HUGE_READ_WRITE), 0);
	EXPECT_EQ(level_at(addr), PT_PMD); /* the first part is one piece again */
	EXPECT_EQ(huge_release(addr, GIB(1)), 0);
	*word_at(addr, MIB(6)) = 66;
	EXPECT_EQ(huge_mapped(PT_PUD), 0);
	EXPECT_EQ(huge_protect_range(addr, GIB(1), HUGE_READ_WRITE), 0);
	EXPECT_EQ(level_at(addr), PT_PUD);
	EXPECT_EQ(*word_at(addr, MIB(5)), 0);
	EXPECT_EQ(*word_at(addr, MIB(6)), 66);
	huge_unmap(addr);
}

/* ---- several CPUs ---- */

struct race {
	char *addr;
	u32 roles, wrong;
};

/* Each CPU changes the rights of pages of its own, which lie in the large pages of the others. */
static void change_and_write(void *arg)
{
	struct race *race = arg;
	const u32 role = atomic_fetch_add(&race->roles, 1) % 64;

	for (unsigned turn = 0; turn < 20; turn++) {
		const unsigned page = turn % LARGE * SMALL + role * 8;
		volatile u64 *word = word_at(race->addr, page * PAGE_SIZE);

		*word = role + 1;
		if (protect(race->addr, page, page + 2, turn & 1 ? HUGE_NONE : HUGE_READ_ONLY) < 0)
			atomic_fetch_add(&race->wrong, 1);
		if (huge_writable((const void *)(virt_t)word))
			atomic_fetch_add(&race->wrong, 1);
		if (protect(race->addr, page, page + 2, HUGE_READ_WRITE) < 0)
			atomic_fetch_add(&race->wrong, 1);
		if (*word != role + 1)
			atomic_fetch_add(&race->wrong, 1);
	}
}

TEST(mm_huge_map, many_cpus_change_rights_in_one_page)
{
	struct race race = {.addr = huge_map(LARGE * LARGE_BYTES, LARGE_BYTES, HUGE_FALLBACK)};

	REQUIRE(race.addr);
	cpus_run_together(change_and_write, &race);
	EXPECT_EQ(race.wrong, 0);
	EXPECT_EQ(huge_protect_range(race.addr, LARGE * LARGE_BYTES, HUGE_READ_WRITE), 0);
	huge_unmap(race.addr);
}
