/*
 * Boot information: the PVH parser, and the list of ranges that both parsers fill. Blocks are built
 * by hand, truncated at every length and given wrong words. The parser reaches the data that they
 * point to through a map that ends where the block ends.
 */
#include "tests/kernel/boot_block.h"

enum { PVH_BASE = 0x9000 };

static size_t pvh_len;

static const void *pvh_map(phys_t addr, size_t len, void *ctx)
{
	if (addr < PVH_BASE || addr > PVH_BASE + pvh_len || len > PVH_BASE + pvh_len - addr)
		return NULL;
	return (u8 *)ctx + (addr - PVH_BASE);
}

/* Start info, memory map, module, command line, the module's text. */
static const struct pvh_block {
	u32 magic, version, flags, modules;
	u64 module_list, command_line, rsdp, map;
	u32 entries, reserved;
	struct {
		u64 start, size, type;
	} entry[2];
	struct {
		u64 start, size, text, reserved;
	} module;
	char texts[8];
} good_block = {
	.magic = 0x336ec578,
	.modules = 1,
	.module_list = PVH_BASE + __builtin_offsetof(struct pvh_block, module),
	.command_line = PVH_BASE + __builtin_offsetof(struct pvh_block, texts),
	.rsdp = 0xf5000,
	.map = PVH_BASE + __builtin_offsetof(struct pvh_block, entry),
	.entries = 2,
	.entry = {{0x100000, 0x3f00000, 1}, {0x4000000, 0x10000, 3}},
	.module = {0x800000, 0x1000, PVH_BASE + __builtin_offsetof(struct pvh_block, texts) + 4, 0},
	.texts = "a=b\0m 1",
};

static void pvh_good(u32 version)
{
	memset(block, 0, sizeof(block));
	used = 0;
	put(&good_block, sizeof(good_block));
	set_u32(4, version);
	pvh_len = used;
}

/* Parse the block. */
static int parse_block(void)
{
	reset(&shared_info, QUIET);
	return pvh_parse(PVH_BASE, pvh_map, block, &shared_info);
}

static bool has_range(phys_t start, phys_t end, enum mem_kind kind)
{
	for (size_t i = 0; i < shared_info.ranges; i++) {
		if (shared_info.range[i].start == start && shared_info.range[i].end == end &&
		    shared_info.range[i].kind == kind)
			return true;
	}
	return false;
}

TEST(boot_pvh, version_0_has_no_memory_map)
{
	pvh_good(0);
	EXPECT_EQ(parse_block(), 0);
	EXPECT(!has_range(0x100000, 0x4000000, MEM_RAM));
	EXPECT_EQ(shared_info.faults, QUIET + 1);
	set_u32(0, 0x2badb002); /* a wrong magic number */
	EXPECT_EQ(parse_block(), -EINVAL);
	EXPECT_EQ(shared_info.ranges, 0);
}

TEST(boot_pvh, truncated_at_every_length_is_survived)
{
	pvh_good(1);
	for (pvh_len = 0; pvh_len < used; pvh_len++) {
		const int ret = parse_block();

		EXPECT_EQ(ret, pvh_len < 56 ? -EINVAL : 0);
		EXPECT(shared_info.faults > QUIET);
		EXPECT(has_range(0x100000, 0x4000000, MEM_RAM) == (pvh_len >= 56 + 24));
	}
}

TEST(boot_pvh, lying_counts_are_cut)
{
	pvh_good(1);
	set_u32(12, 0xffffffff); /* number of modules */
	set_u32(48, 0xffffffff); /* number of memory map entries */
	EXPECT_EQ(parse_block(), 0);
	EXPECT(shared_info.faults >= QUIET + 4);
	EXPECT(has_range(0x100000, 0x4000000, MEM_RAM));
	EXPECT(shared_info.ranges < 64);
}

/* ---- the list of ranges ---- */

TEST(boot_ranges, empty_and_wrapping_ranges)
{
	reset(&shared_info, QUIET);
	boot_info_add_range(&shared_info, 0x1000, 0, MEM_RAM);
	EXPECT_EQ(shared_info.ranges, 0);
	boot_info_add_range(&shared_info, ~0ULL - 10, 100, MEM_RESERVED);
	REQUIRE(shared_info.ranges == 1);
	EXPECT_EQ(shared_info.range[0].end, ~0ULL);
	EXPECT_EQ(shared_info.faults, QUIET + 1);
	/* the length is cut to 0; the fuzzer found this */
	boot_info_add_range(&shared_info, ~0ULL, 1, MEM_RAM);
	EXPECT_EQ(shared_info.ranges, 1);
}

TEST(boot_ranges, a_full_list_loses_ram_and_no_reservation)
{
	reset(&shared_info, QUIET);
	for (u64 i = 0; i < BOOT_RANGES_MAX + 10; i++)
		boot_info_add_range(&shared_info, i * 0x1000, 0x1000, MEM_RAM);
	EXPECT_EQ(shared_info.ranges, BOOT_RANGES_MAX);
	EXPECT_EQ(shared_info.ranges_lost, 10);
	boot_info_add_range(&shared_info, 0x1000, 0x1000, MEM_RESERVED);
	EXPECT_EQ(shared_info.ranges, BOOT_RANGES_MAX);
	EXPECT_EQ(shared_info.ranges_lost, 11);
	EXPECT(has_range(0x1000, 0x2000, MEM_RESERVED));
	EXPECT(has_range(0, 0x1000, MEM_RAM));
}
