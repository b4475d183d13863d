/* RAM that MTRRs leave uncached, with the registers of machines that are invented here. */
#include "arch/x86_64/cpu/mtrr.h"
#include "mm/map/memblock.h"
#include "tests/kernel/fixture.h"
#include "tests/kernel/test.h"

enum { LIST_MAX = 16, UNCACHED = 0, WRITE_BACK = MTRR_WRITE_BACK, ON = 1 << 11 };

static struct memblock_range ranges[2][LIST_MAX];
static struct memblock_list memory, reserved;

/* A register for `size` bytes, a power of two, as a CPU with `bits` address bits has it. */
static struct mtrr covers(phys_t start, u64 size, unsigned type, unsigned bits)
{
	const u64 all = (1ULL << bits) - 1;

	return (struct mtrr){start | type, (all & ~(size - 1)) | 1 << 11};
}

/* RAM of 3 GiB, and of 5 GiB from 4 GiB on. */
static bool begin(void)
{
	memory = (struct memblock_list){.range = ranges[0], .max = LIST_MAX};
	reserved = (struct memblock_list){.range = ranges[1], .max = LIST_MAX};
	memblock_list_add(&memory, (struct memblock_range){.start = PAGE_SIZE, .end = 0xa0000});
	memblock_list_add(&memory, (struct memblock_range){.start = MIB(1), .end = GIB(3)});
	memblock_list_add(&memory, (struct memblock_range){.start = GIB(4), .end = GIB(9)});
	return true;
}

static void end(void)
{
}

FIXTURE(arch_mtrr, begin, end);

static u64 drop(const struct mtrrs *m)
{
	return mtrr_drop_uncached(m, &memory, &reserved);
}

static bool has(phys_t addr)
{
	for (size_t i = 0; i < memory.count; i++)
		if (memory.range[i].start <= addr && addr < memory.range[i].end)
			return true;
	return false;
}

TEST(arch_mtrr, ram_that_no_register_covers_is_dropped)
{
	/* The last GiB has no register. */
	struct mtrrs m = {.def_type = ON | UNCACHED,
			  .variable = {covers(0, GIB(2), WRITE_BACK, 39),
				       covers(GIB(2), GIB(1), WRITE_BACK, 39),
				       covers(GIB(4), GIB(4), WRITE_BACK, 39)},
			  .count = 3};

	EXPECT_EQ(drop(&m), GIB(1));
	EXPECT(has(GIB(3) - 1) && has(GIB(8) - 1) && !has(GIB(8)) && !has(GIB(9) - 1));
	EXPECT(has(PAGE_SIZE)); /* below 1 MiB other registers rule */
	EXPECT_EQ(drop(&m), 0);
}

TEST(arch_mtrr, uncached_wins_where_registers_overlap)
{
	struct mtrrs m = {.def_type = ON | WRITE_BACK,
			  .variable = {covers(GIB(3) - MIB(16), MIB(16), UNCACHED, 46),
				       covers(0, GIB(16), WRITE_BACK, 46),
				       covers(GIB(5), MIB(2), 1, 46), /* write-combining */
				       covers(GIB(6), MIB(2), WRITE_BACK, 46)},
			  .count = 4};
	phys_t until;

	EXPECT_EQ(mtrr_type(&m, GIB(1), &until), WRITE_BACK);
	EXPECT_EQ(until, GIB(3) - MIB(16));
	EXPECT_EQ(drop(&m), MIB(18));
	EXPECT(has(GIB(3) - MIB(16) - 1) && !has(GIB(3) - MIB(16)));
	EXPECT(has(GIB(5) - 1) && !has(GIB(5)) && has(GIB(5) + MIB(2)) && has(GIB(6)));
}

TEST(arch_mtrr, what_is_in_use_stays)
{
	struct mtrrs m = {.def_type = ON | WRITE_BACK,
			  .variable = {covers(GIB(2), MIB(16), UNCACHED, 46)},
			  .count = 1};

	memblock_list_add(&reserved, (struct memblock_range){.start = GIB(2) + MIB(4),
							     .end = GIB(2) + MIB(6)});
	EXPECT_EQ(drop(&m), MIB(14));
	EXPECT(!has(GIB(2)) && has(GIB(2) + MIB(4)) && has(GIB(2) + MIB(6) - 1));
	EXPECT(!has(GIB(2) + MIB(6)) && !has(GIB(2) + MIB(16) - 1) && has(GIB(2) + MIB(16)));
}

TEST(arch_mtrr, amd_has_write_back_up_to_top_mem2)
{
	struct mtrrs m = {.def_type = ON | UNCACHED,
			  .variable = {covers(0, GIB(4), WRITE_BACK, 48),
				       covers(GIB(5), MIB(2), UNCACHED, 48)},
			  .count = 2,
			  .top_mem2 = GIB(9)};

	EXPECT_EQ(drop(&m), MIB(2));
	EXPECT(!has(GIB(5)) && has(GIB(9) - 1));
}

/* Registers that leave more than half of RAM uncached are not believed. */
TEST(arch_mtrr, half_of_ram_is_dropped_and_more_is_not)
{
	struct mtrrs m = {.def_type = ON | UNCACHED,
			  .variable = {covers(0, GIB(4), WRITE_BACK, 39),
				       covers(GIB(4), GIB(1), WRITE_BACK, 39),
				       covers(GIB(5), MIB(1), WRITE_BACK, 39)},
			  .count = 2};

	EXPECT_EQ(drop(&m), 0);
	m.count = 3;
	EXPECT_EQ(drop(&m), GIB(4) - MIB(1));
}

TEST(arch_mtrr, registers_that_say_nothing_useful_change_nothing)
{
	struct mtrrs off = {.def_type = UNCACHED}, all = {.def_type = ON | UNCACHED},
		     odd = {.def_type = ON | WRITE_BACK,
			    .variable = {{UNCACHED, 0x0ff0f00000 | ON},     /* a mask with gaps */
					 {GIB(1) | UNCACHED, 0x7fffe00000}, /* not in use */
					 {UNCACHED, ON}},
			    .count = 3};

	EXPECT_EQ(drop(&off), 0);
	EXPECT_EQ(drop(&all), 0);
	said_begin();
	EXPECT_EQ(drop(&odd), 0);
	said_end();
	EXPECT(said_says("*MTRR 0 has a mask with gaps (ff0f00800)*"));
	EXPECT(!said_says("*MTRR 1*") && !said_says("*MTRR 2*"));
	EXPECT_EQ(memory.count, 3);
}
