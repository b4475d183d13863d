/*
 * Refuges: the places to which single pages move if they are in the way of 1 GiB pages.
 */
#include "mm/page/refuge.h"

#include "kernel/run/test.h"
#include "mm/page/page_alloc.h"
#include "tests/kernel/chain.h"
#include "tests/kernel/listed.h"

enum { TAKEN = BLOCK_FRAMES + 3 };

static struct refuge refuge;

/*
 * Borrow two GiB of phantom memory. The case empties the second one, which would be the first
 * choice.
 */
static struct arena *borrow_two(void)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(2));

	if (!a)
		return NULL;
	arena_open_all(a);
	refuge = refuge_beside(arena_phantom_zone(a), arena_phantom_block(a) / GIB_BLOCKS + 1);
	return a;
}

static u64 gib_of_page(const struct page *page)
{
	return page_to_pfn(page) / order_pages(GIGA_ORDER);
}

TEST_ARENA(mm_refuge, one_block_is_filled_before_the_next_is_split, borrow_two())
{
	struct page *chain = NULL;
	u64 full = 0;

	for (unsigned i = 0; i < TAKEN; i++) {
		struct page *page = refuge_take(&refuge);

		REQUIRE(page);
		EXPECT(gib_of_page(page) != refuge.avoid);
		EXPECT(page->refcount == 1 && page_order(page) == 0 && page_head(page) == page);
		page_chain_push(&chain, page);
	}
	for (u32 i = arena_phantom_block(a); i < arena_phantom_block(a) + 2 * GIB_BLOCKS; i++)
		full += block_look_at(&a->mm, i).state == BLOCK_FULL;
	EXPECT_EQ(full, 2);
	EXPECT_EQ(arena_usage(a).in_use, TAKEN);
	EXPECT(arena_accounted(a));
	chain_give(&chain, &a->mm);
}

/*
 * A block that cannot be split for lack of struct pages is passed over. If no block can be split,
 * there is no refuge, and nothing has changed.
 */
TEST_ARENA(mm_refuge, without_struct_pages_there_is_none, borrow_two())
{
	struct page *page;

	fail_arm(&a->mm.fail, FAIL_META, 1, FAIL_AGAIN);
	EXPECT(!refuge_take(&refuge));
	fail_disarm(&a->mm.fail);
	EXPECT(arena_accounted(a));
	refuge = refuge_beside(refuge.zone, refuge.avoid);
	fail_arm(&a->mm.fail, FAIL_META, 1, FAIL_ONCE);
	page = refuge_take(&refuge);
	EXPECT(fail_disarm(&a->mm.fail));
	REQUIRE(page);
	EXPECT(gib_of_page(page) != refuge.avoid);
	EXPECT(arena_accounted(a));
	mm_page_free(&a->mm, page);
}
