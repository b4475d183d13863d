/*
 * Movable pages that are scattered over all memory. Only the hosted kernel has these cases, because
 * they fill memory twice.
 */
#include "mm/hvo/hvo.h"
#include "mm/pools.h"
#include "mm/zone/section_close.h"
#include "tests/kernel/chain.h"
#include "tests/kernel/holder.h"
#include "tests/kernel/random.h"
#include "tests/kernel/test.h"

enum { MANY = 1 << 20, SLOTS = 1 << 16, HELD_ORDER = 4 };

/* 1 GiB pages that can be had, all given back. */
static u64 most(void)
{
	const u64 pages = pool_grow(&pool_1g, hvo_mode_selected(), MANY);

	EXPECT_EQ(pool_shrink(&pool_1g, hvo_mode_selected(), pages), pages);
	return pages;
}

static u64 free_frames(void)
{
	u64 frames = 0;

	for (unsigned z = 0; z < mm_kernel.zones; z++)
		frames += zone_free(&mm_kernel.zone[z]) + mm_kernel.zone[z].unopened;
	return frames;
}

/* Movable pages everywhere, of which `percent` are kept. */
static void scatter(struct holder *holder, u64 percent)
{
	struct page *drop = NULL, *page;
	u64 state = percent;

	while ((page = mm_page_alloc(&mm_kernel, HELD_ORDER, USE_MOVABLE, 0, NODE_NONE)))
		if (next_random(&state) % 100 >= percent || !holder_adopt(holder, page))
			page_chain_push(&drop, page);
	chain_give(&drop, &mm_kernel);
}

static void expect_packed(struct holder *holder, u64 percent, u64 fresh)
{
	u64 ideal, got;

	scatter(holder, percent);
	ideal = MIN(fresh, free_frames() / order_pages(GIGA_ORDER));
	got = pool_grow(&pool_1g, hvo_mode_selected(), MANY);
	print("  # %llu%% in use: 1 GiB pages %llu of %llu, %llu fresh\n", percent, got, ideal,
	      fresh);
	EXPECT(got * 100 >= ideal * 95);
	EXPECT_EQ(pool_shrink(&pool_1g, hvo_mode_selected(), got), got);
	EXPECT(holder_intact(holder));
	holder_give_all(holder);
	EXPECT_EQ(most(), fresh);
}

/*
 * Half-way, too: movable pages that are scattered over all memory leave as many 1 GiB pages as an
 * ideal packing of them would, less 5%, and so they do when memory was full of others before.
 */
TEST(mm_packed, movable_pages_leave_as_many_large_ones_as_their_packing_would)
{
	static struct page *slots[SLOTS];
	struct holder holder;
	u64 fresh;

	test_option("contig", "index");
	sections_close_all(&mm_kernel);
	fresh = most();
	if (fresh == 0)
		SKIP("no GiB can be one page");
	holder_init(&holder, &mm_kernel, slots, SLOTS);
	holder.sparse = true;
	expect_packed(&holder, 40, fresh);
	expect_packed(&holder, 20, fresh);
	sections_close_all(&mm_kernel);
}
