/*
 * The description of an access that faulted, and whether the access may simply be repeated.
 */
#include "mm/mapping/fault.h"

#include "tests/kernel/test.h"
#include "mm/memmap/zone.h"

enum access { READ, WRITE, FETCH };

static bool described(virt_t addr, enum access access, const char *glob)
{
	char text[160];

	fault_describe(FAULT_BUG, addr, access == WRITE, access == FETCH, text, sizeof(text));
	return glob_match(glob, text);
}

TEST(mm_faults, each_kind_of_address_is_told_apart)
{
	EXPECT(described(16, READ, "read of address 10: a NULL pointer*"));
	EXPECT(described(0, FETCH, "execution of address 0: a NULL pointer*"));
	EXPECT(described(PAGE_SIZE, WRITE, "write to unmapped address 1000"));
	EXPECT(described(DIRECT_MAP_BASE + 0x123000, FETCH,
			 "execution of physical address 123000*nothing in it is executable"));
	EXPECT(described(DIRECT_MAP_BASE + 0x123000, WRITE,
			 "write to physical address 123000*there is no RAM, or it is read-only*"));
	EXPECT(described(VMEMMAP_BASE + VMEMMAP_WINDOW_SIZE - sizeof(struct page), READ,
			 "read of the struct page*does not exist*"));
}

/*
 * Another CPU may have made the access legal between the fault and the look, so the tables decide.
 * Execution from memory is never legal.
 */
TEST(mm_faults, what_is_legal_by_now_is_done_again)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	const struct page *huge = page_alloc(BLOCK_ORDER, USE_UNMOVABLE, 0, NODE_NONE);

	REQUIRE(page);
	EXPECT_EQ(fault_resolve((virt_t)page, false, false, true), FAULT_RETRY);
	EXPECT_EQ(fault_resolve((virt_t)page, true, false, true), FAULT_RETRY);
	EXPECT_EQ(fault_resolve((virt_t)page, false, true, true), FAULT_BUG);
	EXPECT_EQ(fault_resolve(PAGE_SIZE, false, false, true), FAULT_BUG);
	if (huge && block_look(block_of(&mm_kernel, page_to_pfn(huge))).state == BLOCK_HUGE) {
		EXPECT_EQ(fault_resolve((virt_t)(huge + 100), false, false, true), FAULT_RETRY);
		/* a shared tail stays read-only */
		EXPECT_EQ(fault_resolve((virt_t)(huge + 100), true, false, true), FAULT_BUG);
	}
	if (huge)
		page_free((struct page *)huge);
	page_free(page);
}
