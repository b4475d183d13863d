/*
 * Fault injection itself (kernel/core/fail.h), and the page tables of the kernel's own region. The
 * sweeps are in hvo_fault_test.c, huge_map_fault_test.c, mm_contig_test.c,
 * contig_search_test.c, mm_meta_test.c and mm_isolate_test.c.
 */
#include "kernel/core/fail.h"

#include "mm/mapping/map.h"
#include "mm/memmap/zone.h"
#include "tests/kernel/test.h"

enum { FAULTS_MAX = 200 };

static struct fail_plan plan;

/* Pass the site `passes` times. Returns a bit for each pass that fails. */
static u32 failing(enum fail_site site, unsigned passes)
{
	u32 failed = 0;

	for (unsigned i = 0; i < passes; i++)
		failed |= (u32)fail_here(&plan, site) << i;
	return failed;
}

TEST(kernel_fail, the_nth_pass_fails_once)
{
	plan = (struct fail_plan){0};
	EXPECT_EQ(failing(FAIL_META, 8), 0);
	fail_arm(&plan, FAIL_META, 3, FAIL_ONCE);
	EXPECT_EQ(failing(FAIL_MOVE, 4), 0); /* a pass of another site does not count */
	EXPECT_EQ(failing(FAIL_META, 8), 1u << 2);
	EXPECT_EQ(plan.passed[FAIL_META], 8);
	EXPECT_EQ(plan.failed[FAIL_META], 1);
	EXPECT(fail_disarm(&plan));
}

/* The plan is armed as start-up does it, though start-up is over. */
TEST(kernel_fail, what_the_command_line_asks_for_is_armed)
{
	const struct option *opt = option_find("debug.fail");

	REQUIRE(opt);
	REQUIRE(opt->parse(opt, "3") == 0);
	plan = (struct fail_plan){0};
	fail_begin(&plan);
	EXPECT_EQ(opt->parse(opt, "0"), 0);
	EXPECT_EQ(failing(FAIL_META, 4), 1u << 2);
	EXPECT_EQ(failing(FAIL_OPEN, 6), 1u << 1 | 1u << 4);
	EXPECT_EQ(plan.failed[FAIL_META] + plan.failed[FAIL_OPEN], 3);
	fail_disarm(&plan);
	said_begin();
	fail_print(&plan);
	said_end();
	EXPECT(said_says("meta *passed 4 times, failed 1*open *passed 6 times, failed 2"));
}

/*
 * Map at addresses whose upper table is there already. Each table that is needed fails once, and
 * the tables made before it go back, with the addresses.
 */
TEST(mm_fault, mapping_a_page)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	bool met = true;
	void *at, *first;
	u32 fault;

	REQUIRE(page);
	map_space.next = map_space.range.start;
	first = page_map(page, PAGE_SIZE);
	REQUIRE(first);
	page_unmap(first);
	for (fault = 1; met && fault < FAULTS_MAX; fault++) {
		map_space.next = map_space.range.start;
		fail_arm(&mm_kernel.fail, FAIL_PTE, fault, FAIL_ONCE);
		at = page_map(page, PAGE_SIZE);
		met = fail_disarm(&mm_kernel.fail);
		EXPECT(at == (met ? NULL : first));
		EXPECT_EQ(page->refcount, met ? 1 : 2);
		if (at)
			page_unmap(at);
	}
	EXPECT_EQ(fault - 2, 2); /* a table of 2 MiB entries and one of 4 KiB entries */
	page_free(page);
}
