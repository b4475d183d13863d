/*
 * Commands that look into memory and change it: their output is true, and they give back what they
 * took.
 */
#include "kernel/console/command.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/fail.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "mm/hugetlb/pool.h"
#include "mm/memmap/page.h"
#include "mm/mm.h"
#include "tests/kernel/said.h"

enum { LINE = 96, MAPS = 8 };

static unsigned run_at(const char *fmt, u64 addr)
{
	char line[LINE];

	format(line, sizeof(line), fmt, addr);
	return said_run(line);
}

TEST(mm_command, memory_is_mapped_and_given_back)
{
	struct huge_usage before, after;

	huge_usage(&before);
	EXPECT_EQ(said_run("map 5K 4K"), 0);
	EXPECT(said_says("2 pages of 4 KiB are there and zero"));
	huge_usage(&after);
	EXPECT_EQ(after.mapped[0], before.mapped[0] + 2);
	for (unsigned i = 1; i < MAPS; i++)
		EXPECT_EQ(said_run("map 4K 4K"), 0);
	EXPECT_REFUSED("map 4K 4K", "refused*at most 8 mappings");
	EXPECT_EQ(said_run("map unmap"), 0);
	EXPECT(said_says("8 mappings given back"));
	huge_usage(&after);
	EXPECT_EQ(after.mapped[0], before.mapped[0]);
}

/*
 * If a pool is asked for one page more than it can spare, the message names the reason. All its
 * free pages but one are in use meanwhile.
 */
TEST(mm_command, a_pool_says_why_it_stops_short)
{
	u64 others;
	void *map;

	test_option("hvo", "on");
	if (said_run("pool 2M grow 1") != 0)
		SKIP("needs a free page of 2 MiB");
	others = pool_2m.free - 1;
	if (others > 0)
		EXPECT_EQ(run_at("map 0x%llx 2M pool", others * MIB(2)), 0);
	map = huge_map(MIB(2), MIB(2), HUGE_RESERVE);
	EXPECT(map);
	EXPECT_REFUSED("pool 2M shrink 1",
		       "1 pages fewer than asked for: the 1 free pages are promised");
	huge_unmap(map);
	EXPECT_EQ(said_run("map 2M 2M pool"), 0);
	EXPECT_REFUSED("pool 2M shrink 1", "pages are in use, none is free");
	EXPECT_EQ(said_run("map unmap; pool 2M shrink 1"), 0);
}

/* The baselines need frames to remove a page, and make pages only where struct pages are mapped. */
TEST(mm_command, a_pool_of_a_baseline_says_why_it_stops_short)
{
	test_option("hvo", "batched");
	if (said_run("pool 2M grow 1") != 0) {
		EXPECT(said_says("memory: 1 pages fewer*in mapped sections, and hvo=batched takes "
				 "no other"));
		SKIP("needs 2 MiB in a mapped section");
	}
	fail_arm(&mm_kernel.fail, FAIL_META, 1, FAIL_AGAIN);
	EXPECT_REFUSED("pool 2M shrink 1", "no frames for their struct pages");
	fail_disarm(&mm_kernel.fail);
	EXPECT_EQ(said_run("pool 2M shrink 1"), 0);
}

TEST(mm_command, a_range_is_made_or_said_to_be_impossible)
{
	EXPECT_EQ(said_run("page contig 3"), 0);
	EXPECT(said_says("search *: *given back again"));
	EXPECT_EQ(said_run("page contig 10") == 0, said_says("given back again"));
	EXPECT(said_says("given back again") || said_says("no range of 2^10"));
}

TEST(mm_command, a_frame_is_found_by_any_of_its_addresses)
{
	struct page *page = page_alloc(3, USE_UNMOVABLE, 0, NODE_NONE);
	char frame[LINE];

	REQUIRE(page);
	format(frame, sizeof(frame), "frame 0x%llx: RAM", page_pfn(page) + 1);
	/* An address in the direct map. */
	EXPECT_EQ(run_at("page 0x%llx", (virt_t)page_address(page) + PAGE_SIZE + 8), 0);
	EXPECT(said_says(frame) && said_says("a tail of frame"));
	/* the address of its struct page */
	EXPECT_EQ(run_at("page 0x%llx", (virt_t)(page + 1)), 0);
	EXPECT(said_says(frame));
	EXPECT(said_says("entry * maps frame*rw"));
	page_free(page);
	EXPECT_REFUSED("page 0xffffffffffff0000", "neither a frame number nor a mapped address");
}

TEST(mm_command, what_alloc_gave_free_takes)
{
	EXPECT_EQ(said_run("page alloc 0 count=6; page alloc 2 unmovable; page free"), 0);
	EXPECT(said_says("and 2 more*7 pages freed"));
	EXPECT_REFUSED("page alloc 13", "orders 10 to 17");
}

static unsigned complete(const char *text)
{
	char found[64];

	return command_complete(text, strlen(text), found, sizeof(found), false);
}

TEST(mm_command, what_can_follow_is_offered)
{
	EXPECT_EQ(complete("mem "), 5);
	EXPECT_EQ(complete("map 4K "), 3);
	EXPECT_EQ(complete("page alloc 0 "), 3);
	EXPECT_EQ(complete("page alloc 0 movable "), 2);
	EXPECT_EQ(complete("pool 2M grow 3 "), 1);
}
