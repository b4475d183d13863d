/*
 * The block table: which state may become which, and how records are found.
 */
#include "kernel/core/panic.h"
#include "kernel/run/test.h"
#include "mm/memmap/block_state.h"
#include "mm/zone/section.h"
#include "mm/zone/transit.h"
#include "tests/kernel/arena.h"

/* The table of the design, repeated pair by pair, so that neither list can drift alone. */
static const struct {
	u8 from, to;
} changes[] = {
	{BLOCK_UNOPENED, BLOCK_ABSENT}, {BLOCK_UNOPENED, BLOCK_RESERVED},
	{BLOCK_UNOPENED, BLOCK_BARE},   {BLOCK_UNOPENED, BLOCK_FULL},
	{BLOCK_UNOPENED, BLOCK_META},   {BLOCK_BARE, BLOCK_HUGE},
	{BLOCK_BARE, BLOCK_NOHEAD},     {BLOCK_BARE, BLOCK_FULL},
	{BLOCK_BARE, BLOCK_META},       {BLOCK_BARE, BLOCK_UNOPENED},
	{BLOCK_HUGE, BLOCK_BARE},       {BLOCK_HUGE, BLOCK_FULL},
	{BLOCK_NOHEAD, BLOCK_BARE},     {BLOCK_NOHEAD, BLOCK_HUGE},
	{BLOCK_FULL, BLOCK_HUGE},       {BLOCK_FULL, BLOCK_META},
	{BLOCK_FULL, BLOCK_UNOPENED},   {BLOCK_META, BLOCK_BARE},
	{BLOCK_META, BLOCK_FULL},       {BLOCK_META, BLOCK_UNOPENED},
	{BLOCK_FULL, BLOCK_NOHEAD},     {BLOCK_NOHEAD, BLOCK_FULL},
};

static bool listed(unsigned from, unsigned to)
{
	for (unsigned i = 0; i < ARRAY_LEN(changes); i++)
		if (changes[i].from == from && changes[i].to == to)
			return true;
	return false;
}

TEST(mm_block, only_listed_changes_are_legal)
{
	for (unsigned from = 0; from <= BLOCK_STATES; from++)
		for (unsigned to = 0; to <= BLOCK_STATES; to++)
			if (block_change_legal(from, to) != listed(from, to))
				test_fail(__FILE__, __LINE__, "%s to %s is %s",
					  block_state_name(from), block_state_name(to),
					  listed(from, to) ? "refused" : "allowed");
}

TEST(mm_block, a_change_is_made_and_counted)
{
	struct arena *a = arena_borrow(MIB(4), .phantom = GIB(1));
	u64 before, back;
	u32 index;

	if (!a)
		return;
	arena_open_all(a);
	index = block_take_one(arena_phantom_zone(a), FREE_BARE, BLOCK_META);
	REQUIRE(index != BLOCK_NONE);
	before = block_changes(&a->mm, BLOCK_BARE, BLOCK_META);
	back = block_changes(&a->mm, BLOCK_META, BLOCK_BARE);
	block_set_state(&a->mm, index, BLOCK_META);
	EXPECT_EQ(block_look_at(&a->mm, index).state, BLOCK_META);
	EXPECT_EQ(block_changes(&a->mm, BLOCK_BARE, BLOCK_META), before + 1);
	EXPECT_EQ(block_changes(&a->mm, BLOCK_META, BLOCK_BARE), back);
	block_set_state(&a->mm, index, BLOCK_BARE);
	block_publish_free(arena_phantom_zone(a), index, BLOCK_ORDER);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_block, records_exist_where_memory_was_opened)
{
	struct arena *a = arena_borrow(MIB(4), .phantom = GIB(2));
	const u32 gib_blocks = GIB_BLOCKS;
	u32 phantom;

	if (!a)
		return;
	phantom = arena_phantom_block(a);
	EXPECT(block_at(&a->mm, arena_block(a)) != NULL);
	EXPECT(block_at(&a->mm, phantom) == NULL); /* no section of its GiB was opened */
	EXPECT(section_open(&a->mm, phantom / SECTION_BLOCKS, SECTION_ON_DEMAND) == 0);
	REQUIRE(block_at(&a->mm, phantom) != NULL);
	EXPECT(block_at(&a->mm, phantom + gib_blocks - 1) ==
	       block_at(&a->mm, phantom) + gib_blocks - 1);
	EXPECT_EQ(block_look_at(&a->mm, phantom + gib_blocks - 1).state, BLOCK_UNOPENED);
	EXPECT(block_at(&a->mm, phantom + gib_blocks) == NULL);
	EXPECT(block_at(&a->mm, phantom + 2 * gib_blocks) == NULL); /* above all memory */
	EXPECT(block_at(&a->mm, (u32)(a->mm.first_gib * gib_blocks) - 1) == NULL);
	EXPECT(block_of(&a->mm, block_pfn(phantom) + BLOCK_FRAMES - 1) ==
	       block_at(&a->mm, phantom));
	arena_return(a);
}

TEST(mm_block, a_list_gives_back_in_order)
{
	struct arena *a = arena_borrow(MIB(4), .phantom = GIB(1));
	struct block_list list = BLOCK_LIST_INIT;
	u32 first;

	if (!a)
		return;
	arena_open_all(a);
	first = arena_phantom_block(a) + 100;
	EXPECT_EQ(block_list_pop(&a->mm, &list), BLOCK_NONE);
	for (u32 i = 0; i < 5; i++)
		block_list_push(&a->mm, &list, first + 7 * i % 5);
	EXPECT_EQ(list.count, 5);
	for (u32 i = 0; i < 5; i++)
		EXPECT_EQ(block_list_pop(&a->mm, &list), first + 7 * i % 5);
	EXPECT_EQ(block_list_pop(&a->mm, &list), BLOCK_NONE);
	EXPECT_EQ(list.count, 0);
	EXPECT_EQ(list.tail, BLOCK_NONE);
	arena_return(a);
}
