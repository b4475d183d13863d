/*
 * Commands that look into memory and change it: their output is true, and they give back what they
 * took.
 */
#include "mm/hugetlb/pool.h"
#include "mm/mm.h"
#include "tests/kernel/test.h"

enum { LINE = 96 };

static unsigned run_at(const char *fmt, u64 addr)
{
	char line[LINE];

	format(line, sizeof(line), fmt, addr);
	return said_run(line);
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
