/*
 * Huge mappings with low addresses (HUGE_LOW). program_hole_test.c has the cases about programs,
 * whose half of the address space the mappings lie in.
 */
#include <arch/peek.h>

#include "tests/kernel/test.h"
#include "mm/memmap/page.h"
#include "tests/kernel/huge_check.h"

#define SIZE MIB(2)

static bool is_low(const void *addr, u64 size)
{
	const virt_t start = (virt_t)addr;

	return start >= HUGE_LOW_BASE && size <= HUGE_LOW_SIZE &&
	       start - HUGE_LOW_BASE <= HUGE_LOW_SIZE - size && (start + size - 1) >> 47 == 0;
}

/* The upper 16 bits of a pointer are the program's, as long as it takes them away before a use. */
static volatile u64 *untagged(u64 tagged)
{
	return (volatile u64 *)(tagged << 16 >> 16);
}

/* Has one page at a time. */
static void expect_memory(u64 page)
{
	char *addr = huge_map(4 * page, page, HUGE_LOW);
	u64 tagged, value;

	REQUIRE(addr);
	EXPECT(is_low(addr, 4 * page));
	tagged = (virt_t)(addr + page) | 0xabcdULL << 48;
	EXPECT_EQ(*untagged(tagged), 0); /* the touch brings the page */
	*untagged(tagged) = 7;
	EXPECT_EQ(*word_at(addr, page), 7);
	EXPECT_EQ(huge_protect(addr, 4 * page, HUGE_READ_ONLY), 0);
	EXPECT(!huge_writable(addr + page));
	EXPECT_EQ(huge_protect(addr, 4 * page, HUGE_READ_WRITE), 0);
	EXPECT_EQ(huge_protect(addr + page, PAGE_SIZE, HUGE_NONE), 0);
	EXPECT(!peek_u64(addr + page, &value));
	EXPECT_EQ(huge_protect(addr + page, PAGE_SIZE, HUGE_READ_WRITE), 0);
	EXPECT_EQ(*word_at(addr, page), 7);
	EXPECT_EQ(huge_release(addr + page, page), 0);
	EXPECT_EQ(*word_at(addr, page), 0);
	EXPECT_EQ(huge_release(addr + page, page), 0);
	EXPECT_EQ(*word_at(addr, 4 * page - 8), 0);
	EXPECT(!peek_u64(addr - 8, &value));
	huge_unmap(addr);
	EXPECT(!peek_u64(addr + 4 * page - 8, &value));
}

static bool has_2m_page(void)
{
	struct page *page = page_alloc(BLOCK_ORDER, USE_UNMOVABLE, 0, NODE_NONE);

	if (page)
		page_free(page);
	return page;
}

TEST(mm_huge_map, low_addresses_have_room_for_tags)
{
	void *high = huge_map(SIZE, SIZE, 0), *large;

	REQUIRE(high);
	EXPECT(!is_low(high, 1));
	huge_count_from_here();
	expect_memory(PAGE_SIZE);
	if (has_2m_page())
		expect_memory(SIZE);
	large = huge_map(GIB(1), GIB(1), HUGE_LOW | HUGE_POPULATE);
	if (large) { /* not on each machine */
		EXPECT(is_low(large, GIB(1)));
		EXPECT_EQ(*word_at(large, GIB(1) - 8), 0);
		huge_unmap(large);
	}
	EXPECT_EQ(huge_mapped(PT_PAGE) + huge_mapped(PT_PMD) + huge_mapped(PT_PUD), 0);
	huge_unmap(high);
}

/* Every entry on the way is the kernel's. */
TEST(mm_huge_map, low_mappings_have_entries_of_the_kernel)
{
	char *addr = huge_map(SIZE, PAGE_SIZE, HUGE_LOW | HUGE_POPULATE);
	const pte_t *table = phys_to_virt(pgtable_root() << PAGE_SHIFT);
	pte_t pte = 0;

	REQUIRE(addr);
	for (int level = PT_PGD; level >= PT_PAGE; level--) {
		pte = pte_load(&table[pt_index((virt_t)addr, level)]);
		EXPECT(pte_present(pte) && !pte_user(pte));
		table = pte_table(pte);
	}
	EXPECT(pte_writable(pte) && !pte_executable(pte) && (pte & PTE_GLOBAL));
	huge_unmap(addr);
}

TEST(mm_huge_map, the_low_window_has_an_end)
{
	const u64 size = HUGE_LOW_SIZE - GIB(2);
	char *addr = huge_map(size, PAGE_SIZE, HUGE_LOW);
	u64 value;

	REQUIRE(addr);
	EXPECT_EQ((virt_t)addr, HUGE_LOW_BASE + GIB(1)); /* behind a guard */
	EXPECT(!huge_map(SIZE, SIZE, HUGE_LOW));
	*word_at(addr, size - 8) = 5;
	EXPECT_EQ(*word_at(addr, size - 8), 5);
	EXPECT(!peek_u64(addr + size, &value));
	huge_unmap(addr);
	EXPECT(!huge_map(HUGE_LOW_SIZE, PAGE_SIZE, HUGE_LOW)); /* no guard */
	EXPECT(!huge_map(HUGE_LOW_SIZE + GIB(1), PAGE_SIZE, HUGE_LOW));
}

/* Addresses are used again, also after a hundred mappings, with zeros and all rights. */
TEST(mm_huge_map, low_addresses_come_again)
{
	for (u64 i = 0; i < HUGE_LOW_SIZE / GIB(2) + 2; i++) {
		char *addr = huge_map(GIB(2), PAGE_SIZE, HUGE_LOW);

		REQUIRE(addr);
		EXPECT(is_low(addr, GIB(2)));
		if (i % 16 == 0) {
			EXPECT_EQ(*word_at(addr, GIB(1)), 0);
			*word_at(addr, GIB(1)) = i + 1;
		}
		EXPECT_EQ(huge_protect(addr, GIB(2), HUGE_READ_ONLY), 0);
		huge_unmap(addr);
	}
}
