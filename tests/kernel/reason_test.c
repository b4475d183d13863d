/*
 * last_reason(): each way in which a call of the interface fails leaves its own reason, and a call
 * that succeeds leaves the word alone.
 */
#include "kernel/core/reason_set.h"
#include "mm/memmap/zone.h"
#include "mm/pools.h"
#include "tests/kernel/test.h"

#define SIZE MIB(2)

/* Is this the reason of the call that was just made? The next call begins without one. */
#define EXPECT_REASON(failed, expected)                                                            \
	do {                                                                                       \
		reason_set(REASON_NONE);                                                           \
		EXPECT(failed);                                                                    \
		if (last_reason() != (expected))                                                   \
			test_fail(__FILE__, __LINE__, "%s: %s", #failed,                           \
				  reason_text(last_reason()));                                     \
	} while (0)

TEST(kernel_reason, each_has_a_text_of_its_own)
{
	for (unsigned a = 0; a < REASONS; a++) {
		REQUIRE(reason_text((enum reason)a));
		for (unsigned b = 0; b < a; b++)
			EXPECT(strcmp(reason_text((enum reason)a), reason_text((enum reason)b)));
	}
	EXPECT(strcmp(reason_text(REASONS), "there is no such reason") == 0);
}

TEST(kernel_reason, of_a_page_that_is_not_allocated)
{
	struct page *page, *pages[2];

	EXPECT_REASON(!page_alloc(10, USE_MOVABLE, 0, NODE_NONE), REASON_BAD_ORDER);
	EXPECT_REASON(!page_alloc(0, (enum page_use)7, 0, NODE_NONE), REASON_BAD_USE);
	EXPECT_REASON(!page_alloc(0, USE_MOVABLE, PAGE_NODE, mm_kernel.nodes), REASON_BAD_NODE);
	EXPECT_REASON(page_alloc_bulk(USE_MOVABLE, PAGE_NODE, mm_kernel.nodes, pages, 2) == 0,
		      REASON_BAD_NODE);
	EXPECT_REASON(!contig_alloc(19, NODE_NONE), REASON_BAD_ORDER);
	fail_arm(&mm_kernel.fail, FAIL_ALLOC, 1, FAIL_AGAIN);
	EXPECT_REASON(!page_alloc(5, USE_MOVABLE, 0, NODE_NONE), REASON_NO_MEMORY);
	fail_disarm(&mm_kernel.fail);
	reason_set(REASON_BUSY);
	page = page_alloc(0, USE_MOVABLE, 0, NODE_NONE);
	REQUIRE(page);
	EXPECT_EQ(last_reason(), REASON_BUSY); /* what succeeds writes nothing */
	EXPECT_REASON(!mmio_map(0xfec00000, 0), REASON_BAD_SIZE);
	EXPECT_REASON(!mmio_map(1ULL << 60, 8), REASON_BAD_PHYS);
	said_begin(); /* a line of the log says it, too */
	EXPECT_REASON(!mmio_map(page_pfn(page) << PAGE_SHIFT, 8), REASON_IS_RAM);
	said_end();
	page_free(page);
}

TEST(kernel_reason, of_a_huge_mapping_that_is_not_made)
{
	struct huge_request bound = {
		.size = SIZE, .page = SIZE, .flags = HUGE_BIND, .node = mm_kernel.nodes};

	EXPECT_REASON(!huge_map_with(&bound), REASON_BAD_NODE);
	bound.node = NODE_NONE;
	EXPECT_REASON(!huge_map_with(&bound), REASON_BAD_NODE);
	bound.node = 0;
	bound.flags |= HUGE_RESERVE;
	EXPECT_REASON(!huge_map_with(&bound), REASON_BAD_FLAGS);
	EXPECT_REASON(!huge_map(0, SIZE, 0), REASON_BAD_SIZE);
	EXPECT_REASON(!huge_map(HUGE_MAP_SIZE + SIZE, SIZE, 0), REASON_BAD_SIZE);
	EXPECT_REASON(!huge_map(SIZE, KIB(64), 0), REASON_BAD_PAGE_SIZE);
	EXPECT_REASON(!huge_map(SIZE, PAGE_SIZE, HUGE_RESERVE), REASON_BAD_FLAGS);
	EXPECT_REASON(!huge_map(HUGE_MAP_SIZE, SIZE, 0), REASON_NO_ADDRESSES); /* no guards */
	EXPECT_REASON(!huge_map(HUGE_MAP_SIZE / 2, SIZE, HUGE_RESERVE), REASON_NO_POOL_PAGE);
	if (!cpu_has_1g_mappings())
		EXPECT_REASON(!huge_map(GIB(1), GIB(1), 0), REASON_CPU_LACKS);
}

TEST(kernel_reason, of_a_huge_mapping_that_does_not_change)
{
	char *addr = huge_map(2 * SIZE, SIZE, 0), *behind = huge_map(SIZE, SIZE, 0);

	REQUIRE(addr && behind);
	EXPECT_REASON(huge_populate(addr, 0) == -EINVAL, REASON_BAD_SIZE);
	EXPECT_REASON(huge_populate(addr, 3 * SIZE) == -EINVAL, REASON_BAD_ADDRESS);
	EXPECT_REASON(huge_release(addr + 1, SIZE) == -EINVAL, REASON_BAD_ADDRESS);
	EXPECT_REASON(huge_release(addr, 0) == -EINVAL, REASON_BAD_SIZE);
	EXPECT_REASON(huge_release(addr, 3 * SIZE) == -EINVAL, REASON_BAD_ADDRESS);
	EXPECT_REASON(huge_protect(addr, 0, HUGE_NONE) == -EINVAL, REASON_BAD_SIZE);
	EXPECT_REASON(huge_protect(addr + 1, PAGE_SIZE, HUGE_NONE) == -EINVAL, REASON_BAD_ADDRESS);
	EXPECT_REASON(huge_protect(addr + SIZE, 2 * SIZE, HUGE_NONE) == -EINVAL,
		      REASON_BAD_ADDRESS); /* more than the mapping has */
	EXPECT_REASON(huge_protect(addr - PAGE_SIZE, PAGE_SIZE, HUGE_NONE) == -EINVAL,
		      REASON_BAD_ADDRESS);
	EXPECT_EQ(huge_protect(addr, PAGE_SIZE + 1, HUGE_NONE), -EINVAL);
	EXPECT_EQ(huge_protect(addr, PAGE_SIZE, HUGE_NONE + 1), -EINVAL);
	huge_unmap(behind);
	huge_unmap(addr);
}

/* Whichever CPU finds no page, the caller learns why. All free pages are promised. */
TEST(kernel_reason, of_pages_that_helpers_did_not_find)
{
	struct pool_usage before;
	u64 promised;
	void *addr;

	pool_usage(&pool_2m, &before);
	promised = before.free - before.reserved;
	pool_set_overcommit(&pool_2m, 0);
	EXPECT_EQ(pool_reserve(&pool_2m, promised), 0);
	EXPECT_EQ(before.page_bytes, SIZE);
	EXPECT_EQ(before.pages, before.free + before.in_use);
	EXPECT_REASON(pool_grow_on(&pool_2m, NULL, mm_kernel.nodes, 1) == 0, REASON_BAD_NODE);
	EXPECT_REASON(pool_reserve(&pool_2m, 1) == -ENOMEM, REASON_NO_POOL_PAGE);
	EXPECT_REASON(!pool_page_take(&pool_2m, NODE_NONE, POOL_ANY), REASON_NO_POOL_PAGE);
	addr = huge_map(64 * SIZE, SIZE, HUGE_POOL);
	REQUIRE(addr);
	EXPECT_REASON(huge_populate(addr, 64 * SIZE) == -ENOMEM, REASON_NO_POOL_PAGE);
	huge_unmap(addr);
	EXPECT_REASON(!huge_map(64 * SIZE, SIZE, HUGE_POOL | HUGE_POPULATE), REASON_NO_POOL_PAGE);
	pool_unreserve(&pool_2m, promised);
	pool_set_overcommit(&pool_2m, before.overcommit);
}
