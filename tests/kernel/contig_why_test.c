/*
 * What keeps a GiB from becoming a page: the frame that is named is the one in the way, and the
 * search agrees that there is one.
 */
#include "mm/contig/contig_why.h"

#include "mm/zone/meta_grow.h"
#include "tests/kernel/mm_test.h"

enum { IN_BLOCK = 300 };

static bool is_made(struct arena *a)
{
	const u64 made = pool_grow_on(&a->giga, hvo_on(), a->options.nodes, 1);

	EXPECT_EQ(pool_shrink(&a->giga, hvo_on(), made), made);
	return made == 1;
}

/* Expect this letter and this frame, 0 if the GiB can be emptied, and that a search agrees. */
static void expect_why(struct arena *a, char letter, pfn_t frame)
{
	struct contig_why why;

	test_option("contig", "index");
	pcp_drain_all(&a->mm);
	why = contig_why(&a->mm, arena_phantom_block(a) / GIB_BLOCKS);
	if (letter != (why.text ? why.text[0] : 0))
		test_fail(__FILE__, __LINE__, "expected %c, and it is %s", letter ? letter : '.',
			  why.text ? why.text : "free");
	EXPECT_EQ(why.frame, frame);
	EXPECT_EQ(why.node, a->options.nodes);
	EXPECT_EQ(is_made(a), !letter);
}

/* A frame in the middle of the phantom, and of a block. */
static pfn_t middle(const struct arena *a)
{
	return block_pfn(arena_phantom_block(a) + AT) + IN_BLOCK;
}

TEST_ARENA(mm_why, a_range_that_is_held_is_named_by_its_first_frame, borrow_gigabyte())
{
	const pfn_t first = block_pfn(arena_phantom_block(a) + AT);

	EXPECT_EQ(mm_contig_alloc_range(&a->mm, first, 2 * BLOCK_FRAMES), 0);
	expect_why(a, 'u', first);
	for (pfn_t pfn = first; pfn < middle(a); pfn++)
		mm_page_free(&a->mm, pfn_page(&a->mm, pfn));
	expect_why(a, 'u', middle(a));
	for (pfn_t pfn = middle(a); pfn < first + 2 * BLOCK_FRAMES; pfn++)
		mm_page_free(&a->mm, pfn_page(&a->mm, pfn));
	expect_why(a, 0, PFN_NONE);
}

TEST_ARENA(mm_why, metadata_memory_in_the_middle_is_named, borrow_gigabyte())
{
	struct zone *zone = arena_phantom_zone(a);
	const u32 index = arena_phantom_block(a) + AT;

	REQUIRE(block_take_in(zone, index, 1, TAKE_BARE, BLOCK_META) == index);
	expect_why(a, 't', PFN_NONE); /* in transit */
	block_set_state(&a->mm, index, BLOCK_META);
	block_publish_used(zone, index, BLOCK_ORDER);
	EXPECT_EQ(meta_add_block(&a->mm.node[0], index, META_MEMMAP, BLOCK_FRAMES), 0);
	expect_why(a, 'M', block_pfn(index));
	EXPECT_EQ(meta_remove_block(&a->mm.node[0], index, BLOCK_FRAMES), 0);
	meta_leave_block(zone, index);
	expect_why(a, 0, PFN_NONE);
}

/* Bad for good, and bad but in use, which is bad as soon as its user frees it. */
TEST_ARENA(mm_why, a_bad_frame_is_named, borrow_gigabyte())
{
	const pfn_t pending = ALIGN_DOWN(middle(a), BLOCK_FRAMES);

	EXPECT_EQ(mm_contig_alloc_range(&a->mm, pending, BLOCK_FRAMES), 0);
	EXPECT_EQ(mm_mark_bad(&a->mm, pending), (u64)-EBUSY);
	expect_why(a, 'x', pending);
	mm_contig_free_range(&a->mm, pending, BLOCK_FRAMES);
	bad_frames_withdraw(&a->mm);
	EXPECT_EQ(mm_mark_bad(&a->mm, middle(a)), 0);
	expect_why(a, 'x', pending);
}

TEST_ARENA(mm_why, a_frame_that_is_bad_in_memory_never_opened_is_named, arena_usual())
{
	expect_why(a, 0, PFN_NONE);
	EXPECT_EQ(mm_mark_bad(&a->mm, middle(a)), 0);
	expect_why(a, 'x', middle(a));
}

/* The firmware keeps a frame, as at boot. The first look is at memory that was never opened. */
TEST_ARENA(mm_why, a_frame_of_the_firmware_is_named, arena_usual())
{
	const phys_t at = middle(a) << PAGE_SHIFT;
	const struct memblock_range kept = {at, at + PAGE_SIZE, .owner = OWNER_FIRMWARE};

	EXPECT(memblock_list_add(&a->reserved, kept));
	arena_phantom_zone(a)->unopened--;
	arena_phantom_zone(a)->reserved++;
	expect_why(a, 'f', middle(a));
	arena_open_all(a);
	expect_why(a, 'f', middle(a));
}

/* The search tries the GiB, and learns only then that the holder does not let go. */
TEST_ARENA(mm_why, a_holder_that_refuses_is_named_after_it_refused, borrow_gigabyte())
{
	const node_t node = a->options.nodes;
	struct page *page = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, PAGE_NODE, node);
	struct page *other = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, PAGE_NODE, node);

	REQUIRE(page && other);
	expect_why(a, 'u', MIN(page_to_pfn(page), page_to_pfn(other)));
	mm_page_free(&a->mm, other);
	mm_page_set_movable(&a->mm, page, &mover_refuses);
	gib_of(&a->mm, block_of_page(page))->refused = 0;
	EXPECT(!is_made(a));
	expect_why(a, 'r', page_to_pfn(page));
	mm_page_free(&a->mm, page);
	expect_why(a, 0, PFN_NONE);
}

TEST_ARENA(mm_why, pages_of_pools_and_of_declared_ranges_are_told_apart, borrow_gigabyte())
{
	const pfn_t first = block_pfn(arena_phantom_block(a));
	struct page *page;

	EXPECT_EQ(mm_contig_declare_cma(&a->mm, first + AT * BLOCK_FRAMES, BLOCK_FRAMES), 0);
	expect_why(a, 'c', first + AT * BLOCK_FRAMES);
	EXPECT_EQ(migratetype_set(&a->mm, (u32)(first >> BLOCK_ORDER) + AT, 1, MIGRATE_MOVABLE), 0);
	EXPECT_EQ(pool_grow_on(&a->pool, hvo_on(), a->options.nodes, 1), 1);
	page = pool_page_take(&a->pool, a->options.nodes, POOL_ANY);
	REQUIRE(page);
	expect_why(a, 'p', page_to_pfn(page));
	pool_page_give(&a->pool, page);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 1), 1);
	EXPECT_EQ(pool_grow_on(&a->giga, hvo_on(), a->options.nodes, 1), 1);
	expect_why(a, 'G', first);
}

/* The command walks the machine itself, whose memory is spoilt by what it happens to hold. */
TEST(mm_why, each_gib_of_the_machine_is_judged)
{
	EXPECT_EQ(said_run("mem why 1G"), 0);
	EXPECT(said_says("now * GiB cannot become"));
	EXPECT_REFUSED("mem why 2M", "\"2M\"");
}
