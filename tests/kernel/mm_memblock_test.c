/*
 * Boot memory: memory maps as bad as firmware makes them, sorted into private lists.
 */
#include "mm/map/memblock.h"

#include <arch/memory.h>

#include "boot/boot_info.h"
#include "tests/kernel/scratch.h"
#include "tests/kernel/test.h"

enum { LIST_MAX = 512 };

static struct boot_info *info; /* NULL: nothing was said since the last time */
static struct memblock_range memory_ranges[LIST_MAX], reserved_ranges[LIST_MAX];
static struct memblock_list memory, reserved;

/* Add a range as firmware would, and not through boot_info_add_range(), which refuses nonsense. */
static void say(phys_t start, phys_t end, enum mem_kind kind)
{
	info = info ? info : SCRATCH(struct boot_info, 1);
	info->range[info->ranges++] = (struct mem_range){.start = start, .end = end, .kind = kind};
}

/* Sort out what was said since the last time, into a list with so much room. */
static int sort_out(size_t room)
{
	int err;

	memory = (struct memblock_list){.range = memory_ranges, .max = room};
	reserved = (struct memblock_list){.range = reserved_ranges, .max = LIST_MAX};
	err = memblock_sort_out(info, &memory, &reserved);
	info = NULL;
	return err;
}

static void expect_range(size_t i, phys_t start, phys_t end)
{
	REQUIRE(i < memory.count);
	EXPECT_EQ(memory.range[i].start, start);
	EXPECT_EQ(memory.range[i].end, end);
}

static bool sorted_and_disjoint(const struct memblock_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->range[i].start >= list->range[i].end)
			return false;
		if (i > 0 && list->range[i - 1].end > list->range[i].start)
			return false;
	}
	return true;
}

TEST(mm_memblock, unaligned_ram_shrinks_and_unaligned_rest_grows)
{
	say(MIB(1) + 1, MIB(4) - 1, MEM_RAM);
	say(MIB(2) + 100, MIB(2) + 200, MEM_RESERVED);
	say(MIB(8) + 10, MIB(8) + 4000, MEM_RAM); /* less than a page */
	EXPECT_EQ(sort_out(LIST_MAX), 0);
	EXPECT_EQ(memory.count, 2);
	expect_range(0, MIB(1) + KIB(4), MIB(2));
	expect_range(1, MIB(2) + KIB(4), MIB(4) - KIB(4));
}

TEST(mm_memblock, what_is_not_ram_wins_wherever_it_is_listed)
{
	say(MIB(10), MIB(12), MEM_RESERVED); /* before */
	say(MIB(1), MIB(64), MEM_RAM);
	say(MIB(20), MIB(22), MEM_RESERVED); /* after */
	say(MIB(30), MIB(31), MEM_RESERVED);
	say(MIB(63), MIB(70), MEM_RESERVED);
	EXPECT_EQ(sort_out(LIST_MAX), 0);
	EXPECT_EQ(memory.count, 4);
	expect_range(0, MIB(1), MIB(10));
	expect_range(1, MIB(12), MIB(20));
	expect_range(2, MIB(22), MIB(30));
	expect_range(3, MIB(31), MIB(63));
}

TEST(mm_memblock, what_the_loader_left_is_ram_but_kept)
{
	say(MIB(1), MIB(8), MEM_RAM);
	say(MIB(8), MIB(9), MEM_LOADER);
	say(MIB(9), MIB(16), MEM_RAM);
	EXPECT_EQ(sort_out(LIST_MAX), 0);
	EXPECT_EQ(memory.count, 1);
	expect_range(0, MIB(1), MIB(16));
	REQUIRE(reserved.count == 2);
	EXPECT_EQ(reserved.range[0].end, PAGE_SIZE); /* frame 0 is always reserved */
	EXPECT_EQ(reserved.range[1].start, MIB(8));
	EXPECT_EQ(reserved.range[1].end, MIB(9));
	EXPECT_EQ(reserved.range[1].owner, OWNER_LOADER);
}

TEST(mm_memblock, a_full_list_loses_ram_but_never_invents_any)
{
	for (unsigned i = 0; i < 8; i++)
		say(MIB(1) + i * MIB(3), MIB(2) + i * MIB(3), MEM_RAM);
	EXPECT_EQ(sort_out(4), 0);
	EXPECT_EQ(memory.count, 4);
	EXPECT(sorted_and_disjoint(&memory));
	for (size_t i = 0; i < memory.count; i++)
		EXPECT_EQ((memory.range[i].start - MIB(1)) % MIB(3) + memory.range[i].end -
				  memory.range[i].start,
			  MIB(1));
}

TEST(mm_memblock, no_ram_is_an_error)
{
	info = SCRATCH(struct boot_info, 1);
	EXPECT_EQ(sort_out(LIST_MAX), -ENOMEM);
	say(0, GIB(1), MEM_RESERVED);
	say(MIB(1) + 1, MIB(1) + KIB(4), MEM_RAM);
	EXPECT_EQ(sort_out(LIST_MAX), -ENOMEM);
	say(MIB(1), MIB(2), MEM_RAM);
	say(0, GIB(1), MEM_RESERVED);
	EXPECT_EQ(sort_out(LIST_MAX), -ENOMEM);
	EXPECT_EQ(memory.count, 0);
}

TEST(mm_memblock, ram_beyond_what_can_be_mapped_is_cut_off)
{
	say(MIB(1), MIB(2), MEM_RAM);
	say(PHYS_LIMIT - MIB(1), PHYS_LIMIT + MIB(1), MEM_RAM);
	say(PHYS_LIMIT + GIB(1), PHYS_LIMIT + GIB(2), MEM_RAM);
	say(~0ULL - 5000, ~0ULL, MEM_RAM);
	say(~0ULL - 100, ~0ULL, MEM_RAM); /* rounding up must not wrap to 0 */
	say(~0ULL - 50, ~0ULL, MEM_RESERVED);
	EXPECT_EQ(sort_out(LIST_MAX), 0);
	EXPECT_EQ(memory.count, 2);
	expect_range(0, MIB(1), MIB(2));
	expect_range(1, PHYS_LIMIT - MIB(1), PHYS_LIMIT);
}

TEST(mm_memblock, a_range_that_ends_before_it_starts_is_nothing)
{
	say(MIB(1), MIB(32), MEM_RAM);
	say(MIB(64), MIB(40), MEM_RAM);
	say(MIB(20), MIB(10), MEM_RESERVED);
	say(MIB(5), MIB(5), MEM_RESERVED);
	EXPECT_EQ(sort_out(LIST_MAX), 0);
	EXPECT_EQ(memory.count, 1);
	expect_range(0, MIB(1), MIB(32));
}

/* ---- finding memory ---- */

static void take(phys_t start, u64 bytes)
{
	const struct memblock_range range = {
		.start = start, .end = start + bytes, .owner = OWNER_BOOT};

	EXPECT(memblock_list_add(&reserved, range));
}

TEST(mm_memblock, the_highest_place_that_fits_is_found)
{
	say(MIB(1), MIB(16), MEM_RAM);
	say(MIB(32), MIB(33), MEM_RAM);
	EXPECT_EQ(sort_out(LIST_MAX), 0);
	EXPECT_EQ(memblock_find(&memory, &reserved, KIB(64), PAGE_SIZE, TIB(1), NODE_NONE),
		  MIB(33) - KIB(64));
	EXPECT_EQ(memblock_find(&memory, &reserved, MIB(2), PAGE_SIZE, TIB(1), NODE_NONE), MIB(14));
	EXPECT_EQ(memblock_find(&memory, &reserved, KIB(64), PAGE_SIZE, MIB(20), NODE_NONE),
		  MIB(16) - KIB(64));
	take(MIB(15), MIB(1));
	EXPECT_EQ(memblock_find(&memory, &reserved, MIB(2), PAGE_SIZE, TIB(1), NODE_NONE), MIB(13));
	take(MIB(13) + KIB(4), KIB(8));
	EXPECT_EQ(memblock_find(&memory, &reserved, MIB(2), MIB(2), TIB(1), NODE_NONE), MIB(10));
	EXPECT_EQ(memblock_find(&memory, &reserved, MIB(15), PAGE_SIZE, TIB(1), NODE_NONE), 0);
	EXPECT_EQ(memblock_find(&memory, &reserved, KIB(4), PAGE_SIZE, MIB(1), NODE_NONE), 0);
	EXPECT_EQ(memblock_find(&memory, &reserved, GIB(4), PAGE_SIZE, TIB(1), NODE_NONE), 0);
	reserved.count = 0; /* below the only reserved range there is none */
	take(MIB(33) - KIB(4), KIB(4));
	EXPECT_EQ(memblock_find(&memory, &reserved, KIB(4), PAGE_SIZE, TIB(1), NODE_NONE),
		  MIB(33) - KIB(8));
}

TEST(mm_memblock, what_fits_nowhere_is_no_address)
{
	EXPECT_EQ(memblock_alloc(2 * PAGE_SIZE, PAGE_SIZE, PAGE_SIZE, NODE_NONE), 0);
	EXPECT_EQ(memblock_alloc(2 * PAGE_SIZE, PAGE_SIZE, PAGE_SIZE, 0), 0);
}

TEST(mm_memblock, nodes_split_ranges_and_rest_stays_on_node_0)
{
	say(MIB(1), MIB(64), MEM_RAM);
	EXPECT_EQ(sort_out(LIST_MAX), 0);
	memblock_list_set_node(&memory, MIB(16), MIB(32), 1);
	memblock_list_set_node(&memory, MIB(48), GIB(4), 2);
	EXPECT_EQ(memory.count, 4);
	expect_range(0, MIB(1), MIB(16));
	expect_range(1, MIB(16), MIB(32));
	expect_range(2, MIB(32), MIB(48));
	expect_range(3, MIB(48), MIB(64));
	EXPECT_EQ(memory.range[0].node, 0);
	EXPECT_EQ(memory.range[1].node, 1);
	EXPECT_EQ(memory.range[2].node, 0);
	EXPECT_EQ(memory.range[3].node, 2);
	EXPECT_EQ(memblock_find(&memory, &reserved, KIB(4), PAGE_SIZE, TIB(1), 1),
		  MIB(32) - KIB(4));
	memblock_list_set_node(&memory, 0, GIB(4), 0);
	EXPECT_EQ(memory.count, 1); /* all nodes are alike again, so the ranges are joined */
}
