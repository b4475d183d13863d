/* Mappings for programs: the same memory through leaves of either size, and nothing once it is unmapped. */
#include <arch/peek.h>

#include "kernel/test.h"
#include "mm/mm.h"
#include "mm/page.h"

TEST(mm_map, a_page_is_the_same_through_every_leaf)
{
	struct page *page = page_alloc(BLOCK_ORDER, USE_UNMOVABLE, 0, NODE_NONE);
	u64 *direct, *small, *large, value;

	if (!page)
		SKIP("needs a free page of 2 MiB");
	direct = page_address(page);
	small = page_map(page, PAGE_SIZE);
	large = page_map(page, MIB(2));
	if (!small || !large) {
		page_free(page);
		SKIP("needs room for mappings");
	}
	EXPECT_EQ((virt_t)large % MIB(2), 0);
	direct[0] = 11;
	direct[MIB(2) / 8 - 1] = 22;
	EXPECT_EQ(small[0], 11);
	EXPECT_EQ(large[MIB(2) / 8 - 1], 22);
	small[4096] = 33;
	EXPECT_EQ(large[4096], 33);
	EXPECT(!peek_u64(large + MIB(2) / 8, &value)); /* nothing behind */
	page_unmap(small);
	page_unmap(large);
	EXPECT(!peek_u64(small, &value));
	EXPECT(!peek_u64(large + 4096, &value));
	EXPECT_EQ(direct[4096], 33);
	page_free(page);
}

TEST(mm_map, impossible_leaves_are_refused)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);

	REQUIRE(page);
	EXPECT(!page_map(page, MIB(2)));
	EXPECT(!page_map(page, 0));
	EXPECT(!page_map(page, 3 * PAGE_SIZE));
	page_free(page);
}
