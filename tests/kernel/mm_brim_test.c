/*
 * In the kernel, giving back needs no memory. While every site of debug.fail= fails, each call that
 * frees pages succeeds, and the account after the case says that nothing is lost. For the calls of
 * programs see program_brim_test.c.
 */
#include "tests/kernel/brim.h"
#include "tests/kernel/mm_test.h"

enum { PAGES = 8, RANGE_ORDER = 11 };

/* Whatever of it there was memory for. */
struct held {
	u64 pool;
	struct page *chain, *range;
	void *huge, *mapped;
};

static struct held hold(const struct hvo_mode *mode)
{
	struct held held = {.pool = pool_grow(&pool_2m, mode, PAGES)};

	for (unsigned order = 0; order <= BLOCK_ORDER; order++) {
		struct page *page = page_alloc(order, USE_UNMOVABLE, 0, NODE_NONE);

		if (page)
			page_chain_push(&held.chain, page);
	}
	held.range = contig_alloc(RANGE_ORDER, NODE_NONE);
	held.huge = huge_map(PAGES * MIB(2), MIB(2), HUGE_POPULATE | HUGE_FALLBACK);
	held.mapped = held.chain ? page_map(held.chain, PAGE_SIZE) : NULL;
	return held;
}

/* Returns how many pages left the pool. */
static u64 give_back(struct held *held, const struct hvo_mode *mode)
{
	if (held->mapped)
		page_unmap(held->mapped);
	if (held->huge) {
		EXPECT_EQ(huge_release(held->huge, MIB(2)), 0);
		huge_unmap(held->huge);
	}
	if (held->range)
		contig_free_range(page_pfn(held->range), 1ULL << RANGE_ORDER);
	chain_give(&held->chain, &mm_kernel);
	return pool_shrink(&pool_2m, mode, held->pool);
}

/*
 * Huge pages of mapped sections get their struct pages back before they are freed, as the HVO
 * series does it. Without frames, they stay in the pool.
 */
static void hold_and_give_back(const char *name)
{
	const struct hvo_mode *mode = hvo_mode_find(name);
	struct held held = hold(mode);
	u64 given;

	EXPECT(held.chain != NULL);
	brim_begin(FAIL_ANY, 1, FAIL_AGAIN);
	given = give_back(&held, mode);
	brim_end();
	if (mm_kernel.style == SECTION_ON_DEMAND && !hvo_mode_selected()->mapped)
		EXPECT_EQ(given, held.pool);
	EXPECT_EQ(given + pool_shrink(&pool_2m, mode, held.pool - given), held.pool);
}

TEST(mm_brim, everything_can_be_given_back)
{
	hold_and_give_back("off");
	hold_and_give_back("on");
}
