/*
 * Rights of ranges inside huge mappings: each 4 KiB page has the rights that it was given last,
 * whatever the size of the page it is part of, and its contents stay. huge_map_random_test.c does
 * this at random.
 */
#include "tests/kernel/huge_check.h"
#include "tests/kernel/test.h"

enum { LARGE = 3 };
#define LARGE_BYTES MIB(2)

TEST(mm_huge_map, a_part_of_a_1g_page)
{
	enum pt_level level;
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
	EXPECT_EQ(huge_protect(addr + MIB(5), PAGE_SIZE, HUGE_NONE), 0);
	EXPECT(!huge_leaf(addr + MIB(5), &level) && huge_writable(addr + MIB(5) - PAGE_SIZE));
	EXPECT(huge_leaf(addr + MIB(8), &level) && level == PT_PMD);
	EXPECT_EQ(huge_rounds(), 1);
	EXPECT_EQ(huge_release(addr, GIB(1)), 0);
	EXPECT_EQ(huge_mapped(PT_PUD), (u64)-1);
	*word_at(addr, MIB(6)) = 66; /* comes as one page again, in the same pieces */
	EXPECT_EQ(huge_mapped(PT_PUD), 0);
	EXPECT(!huge_leaf(addr + MIB(5), &level));
	EXPECT_EQ(huge_protect(addr, PAGE_SIZE, HUGE_NONE), 0);
	EXPECT_EQ(huge_protect(addr, MIB(2), HUGE_READ_WRITE), 0);
	EXPECT(huge_leaf(addr, &level) && level == PT_PMD); /* the first part is one piece again */
	EXPECT_EQ(huge_release(addr, GIB(1)), 0);
	*word_at(addr, MIB(6)) = 66;
	EXPECT_EQ(huge_mapped(PT_PUD), 0);
	EXPECT_EQ(huge_protect(addr, GIB(1), HUGE_READ_WRITE), 0);
	EXPECT(huge_leaf(addr, &level) && level == PT_PUD);
	EXPECT_EQ(*word_at(addr, MIB(5)), 0);
	EXPECT_EQ(*word_at(addr, MIB(6)), 66);
	huge_unmap(addr);
}

/*
 * A part costs areas and entries only as long as its rights differ. The guard has the rights of the
 * last page, so a mapping whose rights are all the same is one area.
 */
TEST(mm_huge_map, parts_with_the_same_rights_are_one_again)
{
	enum { PAGES = 2 };
	const u64 areas = huge_space.tree.count + 1, size = PAGES * MIB(2);
	char *addr = huge_map(size, MIB(2), HUGE_POPULATE);
	const struct {
		u64 from, bytes;
		enum huge_access access;
		u64 more_areas, rounds;
		enum pt_level first, last; /* sizes of the entries at both ends */
	} steps[] = {
		{0, size, HUGE_READ_ONLY, 0, 1, PT_PMD, PT_PMD},
		{0, size, HUGE_READ_WRITE, 0, 0, PT_PMD, PT_PMD},
		{PAGE_SIZE, PAGE_SIZE, HUGE_READ_ONLY, 2, 1, PT_PAGE, PT_PMD},
		{PAGE_SIZE, PAGE_SIZE, HUGE_READ_WRITE, 0, 0, PT_PAGE, PT_PMD},
		{0, MIB(2), HUGE_READ_WRITE, 0, 1, PT_PMD, PT_PMD},
		{size - PAGE_SIZE, PAGE_SIZE, HUGE_READ_ONLY, 1, 1, PT_PMD, PT_PAGE},
		{0, size, HUGE_READ_WRITE, 0, 1, PT_PMD, PT_PMD},
	};
	enum pt_level level;

	REQUIRE(addr);
	huge_rounds();
	for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
		EXPECT_EQ(huge_protect(addr + steps[i].from, steps[i].bytes, steps[i].access), 0);
		EXPECT_EQ(huge_rounds(), steps[i].rounds);
		EXPECT_EQ(huge_space.tree.count, areas + steps[i].more_areas);
		EXPECT(huge_leaf(addr, &level) && level == steps[i].first);
		EXPECT(huge_leaf(addr + size - PAGE_SIZE, &level) && level == steps[i].last);
	}
	huge_unmap(addr);
	EXPECT_EQ(huge_space.tree.count, areas - 1);
}

/* ---- several CPUs ---- */

struct race {
	char *addr;
	u32 roles;
};

/* Each CPU changes the rights of pages of its own, which lie in the large pages of the others. */
static void change_and_write(void *arg)
{
	struct race *race = arg;
	const u32 role = atomic_fetch_add(&race->roles, 1) % 64;

	for (unsigned turn = 0; turn < 20; turn++) {
		char *pages = race->addr + turn % LARGE * LARGE_BYTES + role * 8 * PAGE_SIZE;
		const enum huge_access access = turn & 1 ? HUGE_NONE : HUGE_READ_ONLY;

		*word_at(pages, 0) = role + 1;
		EXPECT_EQ(huge_protect(pages, 2 * PAGE_SIZE, access), 0);
		EXPECT(!huge_writable(pages));
		EXPECT_EQ(huge_protect(pages, 2 * PAGE_SIZE, HUGE_READ_WRITE), 0);
		EXPECT_EQ(*word_at(pages, 0), role + 1);
	}
}

TEST(mm_huge_map, many_cpus_change_rights_in_one_page)
{
	struct race race = {.addr = huge_map(LARGE * LARGE_BYTES, LARGE_BYTES, HUGE_FALLBACK)};

	REQUIRE(race.addr);
	cpus_run_together(change_and_write, &race);
	EXPECT_EQ(huge_protect(race.addr, LARGE * LARGE_BYTES, HUGE_READ_WRITE), 0);
	huge_unmap(race.addr);
}
