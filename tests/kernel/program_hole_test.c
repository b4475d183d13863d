/*
 * The hole in the lower half (<arch/user.h>): programs can neither map nor reach it, and the huge
 * mappings in it (HUGE_LOW) outlive every program.
 */
#include "tests/kernel/huge_check.h"
#include "tests/kernel/pattern.h"
#include "tests/kernel/program_memory.h"

FIXTURE(program_hole, program_box_begin, program_box_end);

enum { NOREPLACE = 0x100022 };

static bool in_hole(u64 start, u64 size)
{
	return start < USER_HOLE_END && start + size > USER_HOLE_START;
}

/* With one byte of the hole in it, a request is refused, and nothing has changed. */
TEST(program_hole, a_program_can_map_nothing_there)
{
	const u64 below = USER_HOLE_START - PAGE_SIZE, above = USER_HOLE_END;
	const u64 at[] = {USER_HOLE_START, USER_HOLE_END - PAGE_SIZE, below,
			  USER_HOLE_END - PAGE_SIZE, below};
	const u64 size[] = {PAGE_SIZE, PAGE_SIZE, 2 * PAGE_SIZE, 2 * PAGE_SIZE,
			    above + PAGE_SIZE - below};

	test_option("program.overcommit", "0"); /* 2 refuses as much as the last size */
	EXPECT_EQ(map_at(below, PAGE_SIZE, RW, FIXED), below);
	EXPECT_EQ(map_at(above, PAGE_SIZE, RW, FIXED), above);
	EXPECT(put(below, 5) == 0 && put(above, 6) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(at); i++) {
		s64 hint;

		EXPECT_EQ(map_at(at[i], size[i], RW, FIXED | NORESERVE), -ENOMEM);
		EXPECT_EQ(map_at(at[i], size[i], RW, NOREPLACE | NORESERVE), -ENOMEM);
		EXPECT_EQ(program_call("mremap", PROGRAM_BOX_MEMORY, PAGE_SIZE, size[i], MOVE_FIXED,
				       at[i]),
			  -ENOMEM);
		hint = map_at(at[i], size[i], RW, NORESERVE);
		EXPECT(hint > 0 && !in_hole((u64)hint, size[i]));
		EXPECT_EQ(unmap((u64)hint, size[i]), 0);
	}
	EXPECT_EQ(program_call("mremap", below, PAGE_SIZE, 2 * PAGE_SIZE, 0), -ENOMEM);
	EXPECT_EQ(program_call("mprotect", USER_HOLE_START, PAGE_SIZE, RW), -ENOMEM);
	EXPECT_EQ(program_call("madvise", USER_HOLE_START, PAGE_SIZE, DONTNEED), -ENOMEM);
	EXPECT(get(below) == 5 && get(above) == 6);
	program_box_heap(below - PAGE_SIZE);
	EXPECT_EQ(program_call("brk", below), below);
	EXPECT_EQ(program_call("brk", USER_HOLE_END + PAGE_SIZE), below);
}

/* A program with pages on both sides, whose calls name the hole as well. */
static void live_around(char *low)
{
	const u64 below = USER_HOLE_START - PAGE_SIZE, above = USER_HOLE_END;

	EXPECT_EQ(map_at(below, PAGE_SIZE, RW, FIXED), below);
	EXPECT_EQ(map_at(above, PAGE_SIZE, RW, FIXED), above);
	EXPECT(put(below, 5) == 0 && put(above, 6) == 0);
	EXPECT_EQ(get((u64)low), ~0ULL);
	EXPECT(put((u64)low, 1) < 0);
	EXPECT_EQ(unmap(USER_HOLE_START, USER_HOLE_END - USER_HOLE_START), 0);
	EXPECT(get(below) == 5 && get(above) == 6);
	EXPECT_EQ(unmap(below, above + PAGE_SIZE - below), 0);
	EXPECT(get(below) == ~0ULL && get(above) == ~0ULL);
	EXPECT_EQ(map_at(below, PAGE_SIZE, RW, FIXED), below);
	EXPECT_EQ(map_at(above, PAGE_SIZE, RW, FIXED), above);
	EXPECT(get(below) == 0 && get(above) == 0);
}

TEST(program_hole, a_huge_mapping_in_it_outlives_programs)
{
	enum { PROGRAMS = 3 };
	char *large, *small;
	u64 small_before;

	huge_count_from_here();
	large = huge_map(MIB(2), MIB(2), HUGE_LOW | HUGE_FALLBACK);
	small = huge_map(MIB(2), PAGE_SIZE, HUGE_LOW);
	REQUIRE(large && small);
	pattern_fill(large, MIB(2), 0, 1);
	pattern_fill(small, 8 * PAGE_SIZE, 0, 2);
	small_before = huge_faults(PT_PAGE);
	for (unsigned i = 0; i < PROGRAMS; i++) {
		live_around(large);
		EXPECT_PATTERN(large, MIB(2), 0, 1);
		*word_at(small, MIB(1) + i * PAGE_SIZE) = i + 1; /* comes while a program lives */
		REQUIRE(program_box_again());
		EXPECT_PATTERN(large, MIB(2), 0, 1);
		EXPECT_PATTERN(small, 8 * PAGE_SIZE, 0, 2);
		EXPECT_EQ(*word_at(small, MIB(1) + i * PAGE_SIZE), i + 1);
	}
	EXPECT_EQ(huge_faults(PT_PAGE), small_before + PROGRAMS); /* nothing came twice */
	huge_unmap(small);
	huge_unmap(large);
	EXPECT_EQ(huge_mapped(PT_PAGE) + huge_mapped(PT_PMD), 0);
}
