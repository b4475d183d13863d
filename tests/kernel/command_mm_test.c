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

/* The first number after `what` in the output, or 0. */
static u64 number_after(const char *what)
{
	const size_t len = strlen(what);
	u64 value = 0;

	for (const char *at = said_text; *at; at++)
		if (strncmp(at, what, len) == 0) {
			at += len;
			return parse_u64(&at, &value) < 0 ? 0 : value;
		}
	return 0;
}

static unsigned run_at(const char *fmt, u64 addr)
{
	char line[LINE];

	format(line, sizeof(line), fmt, addr);
	return said_run(line);
}

TEST(mm_command, memory_is_mapped_touched_and_given_back)
{
	struct huge_usage before, after;
	u64 addr;

	huge_usage(&before);
	EXPECT_EQ(said_run("map 32K 4K"), 0);
	addr = number_after("mapped at ");
	REQUIRE(addr);
	EXPECT_EQ(run_at("map touch 0x%llx 8K", addr + 100), 0);
	EXPECT(said_says("2 pages of 4 KiB are there and zero"));
	huge_usage(&after);
	EXPECT_EQ(after.mapped[0], before.mapped[0] + 2);
	EXPECT_EQ(run_at("map touch 0x%llx", addr + KIB(28)), 0);
	EXPECT(said_says("1 pages of 4 KiB"));
	EXPECT_EQ(run_at("map touch 0x%llx", addr + KIB(32)),
		  1); /* beyond the end of the mapping */
	EXPECT(said_says("refused"));
	EXPECT_EQ(said_run("map"), 0);
	EXPECT(said_says("0 MiB in pages of 4 KiB"));
	EXPECT_EQ(run_at("map unmap 0x%llx", addr + KIB(4)), 1);
	EXPECT(said_says("refused*no mapping of the monitor begins at"));
	EXPECT_EQ(run_at("map unmap 0x%llx", addr), 0);
	EXPECT_EQ(run_at("map unmap 0x%llx", addr), 1);
	huge_usage(&after);
	EXPECT_EQ(after.mapped[0], before.mapped[0]);
}

TEST(mm_command, so_many_mappings_and_no_more)
{
	u64 addr[MAPS];

	for (unsigned i = 0; i < MAPS; i++) {
		EXPECT_EQ(said_run("map 4K 4K fallback"), 0);
		addr[i] = number_after("mapped at ");
	}
	EXPECT_REFUSED("map 4K 4K", "refused*at most 8 mappings");
	for (unsigned i = 0; i < MAPS / 2; i++)
		EXPECT_EQ(run_at("map unmap 0x%llx", addr[i]), 0);
	EXPECT_EQ(said_run("map unmap all"), 0);
	EXPECT(said_says("4 mappings given back"));
	EXPECT_EQ(said_run("map 4K 4K low"), 0);
	EXPECT(number_after("mapped at ") - HUGE_LOW_BASE < HUGE_LOW_SIZE);
	EXPECT_EQ(said_run("map unmap all"), 0);
	if (pool_2m.free == 0)
		EXPECT_REFUSED("map 2M 2M reserve", "too few pages to promise");
}

/*
 * If a pool is asked for one page more than it can spare, the message names the reason. All its
 * free pages but one are in use meanwhile.
 */
TEST(mm_command, a_pool_says_why_it_stops_short)
{
	u64 others, addr;

	test_option("hvo", "on");
	if (said_run("pool 2M grow 1") != 0)
		SKIP("needs a free page of 2 MiB");
	others = pool_2m.free - 1;
	if (others > 0)
		EXPECT_EQ(run_at("pool 2M take %llu", others), 0);
	EXPECT_EQ(said_run("map 2M 2M reserve"), 0);
	addr = number_after("mapped at ");
	EXPECT_REFUSED("pool 2M shrink 1",
		       "1 pages fewer than asked for: the 1 free pages are promised");
	EXPECT_EQ(run_at("map unmap 0x%llx", addr), 0);
	EXPECT_EQ(said_run("pool 2M take 1"), 0);
	EXPECT_REFUSED("pool 2M shrink 1", "pages are in use, none is free");
	EXPECT_REFUSED("pool 2M take 1", "the pool has no free page");
	EXPECT_EQ(run_at("pool 2M give %llu", others + 1), 0);
	EXPECT_REFUSED("pool 2M give 1", "the monitor has taken no others");
	EXPECT_EQ(said_run("pool 2M shrink 1"), 0);
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
	EXPECT_EQ(run_at("page phys=0x%llx", (page_pfn(page) + 1) << PAGE_SHIFT), 0);
	EXPECT(said_says(frame));
	EXPECT_EQ(run_at("page free 0x%llx", page_pfn(page) + 1), 1);
	EXPECT(said_says("a tail of a larger page"));
	EXPECT_EQ(run_at("page walk 0x%llx", (virt_t)page), 0);
	EXPECT(said_says("512G*1G*2M*maps frame*rw"));
	page->private[1] = 0xabcdef0123456789ULL;
	EXPECT_EQ(run_at("page peek 0x%llx 2", (virt_t)&page->private[1]), 0);
	EXPECT(said_says("abcdef0123456789"));
	EXPECT_EQ(run_at("page peek 0x%llx", (virt_t)page + 4), 1);
	EXPECT(said_says("no multiple of 8"));
	page_free(page);
	EXPECT_REFUSED("page 0xffffffffffff0000", "neither a frame number nor a mapped address");
	EXPECT_REFUSED("page peek 0x8", "is not mapped");
}

TEST(mm_command, what_alloc_gave_free_takes)
{
	u64 pfn;

	EXPECT_EQ(said_run("page alloc 1 unmovable"), 0);
	pfn = number_after("frame ");
	REQUIRE(pfn);
	EXPECT_EQ(said_run("page alloc 0 count=6"), 0);
	EXPECT(said_says("and 2 more"));
	EXPECT_EQ(run_at("page free 0x%llx", pfn), 0); /* the oldest page */
	EXPECT_EQ(run_at("page free 0x%llx", pfn), 1);
	EXPECT(said_says("refused"));
	EXPECT_EQ(said_run("page free all"), 0);
	EXPECT(said_says("6 pages freed"));
}

static unsigned complete(const char *text)
{
	char found[64];

	return command_complete(text, strlen(text), found, sizeof(found), false);
}

TEST(mm_command, what_can_follow_is_offered)
{
	u64 addr;

	EXPECT_EQ(complete("mem "), 6);
	EXPECT_EQ(complete("map 4K "), 3);
	EXPECT_EQ(complete("map 4K 2M "), 4);
	EXPECT_EQ(complete("clear "), 2);
	EXPECT_EQ(complete("page alloc 0 "), 3);
	EXPECT_EQ(complete("page alloc 0 movable "), 2);
	EXPECT_EQ(complete("page free "), 1);
	EXPECT_EQ(complete("pool 2M grow 3 "), 1);
	EXPECT_EQ(complete("map unmap "), 0);
	EXPECT_EQ(said_run("map 4K 4K"), 0);
	addr = number_after("mapped at ");
	EXPECT_EQ(complete("map unmap "), 1); /* the one mapping that exists */
	EXPECT_EQ(run_at("map unmap 0x%llx", addr), 0);
}

/* This clears 20 MiB with every variant, which takes long where CPUs are emulated. */
#ifdef ASHLAR_HOSTED
TEST(mm_command, a_page_is_cleared_in_every_way)
{
	if (said_run("clear 2M") != 0)
		SKIP("needs a free page of 2 MiB");
	EXPECT(said_says("* *page*\n") && said_says("multi"));
	EXPECT(!said_says("NOT CLEARED"));
	EXPECT_REFUSED("clear 3M", "3M");
}
#endif
