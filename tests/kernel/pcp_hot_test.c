/*
 * Per-CPU lists: the hot page of each type, the block that was freed to last, and how often the
 * zone's lock is taken for memory in pieces.
 */
#include "kernel/core/percpu.h"
#include "kernel/run/test.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/chain.h"
#include "tests/kernel/listed.h"

static struct page *alloc_one(struct arena *a)
{
	return alloc_on_phantom(a, 0, USE_MOVABLE);
}

/* An arena for pages that are freed as pcp.type_cache=off frees them. */
static struct arena *borrow(void)
{
	test_option("pcp.type_cache", "off");
	return arena_borrow(MIB(16), .phantom = GIB(1));
}

static u32 block_of_page(const struct page *page)
{
	return (u32)(page_to_pfn(page) >> BLOCK_ORDER);
}

/*
 * Allocate pages until one lies in another block whose slot is in the same set as that of `index`.
 * The caller never frees the pages before it.
 */
static struct page *alloc_in_set_of(struct arena *a, u32 index)
{
	struct page *page;

	do {
		page = alloc_one(a);
	} while (page && (block_of_page(page) == index ||
			  block_of_page(page) % PCP_SETS != index % PCP_SETS));
	return page;
}

/* Allocate until the CPU's list of movable pages is empty. */
static void alloc_all_held(struct arena *a)
{
	while (pcp_count(&a->mm, arena_phantom_zone(a)) > 0)
		if (!alloc_one(a))
			return;
}

/* Make `page` the hot page of its type, and its slot empty. Nothing else is held of its block. */
static void make_hot(struct arena *a, struct page *page)
{
	mm_page_free(&a->mm, page);
	EXPECT(alloc_one(a) == page);
	mm_page_free(&a->mm, page);
	EXPECT(pcp_mine(arena_phantom_zone(a))->recent.hot == page);
}

TEST_ARENA(mm_pcp, a_hot_page_is_drained, borrow())
{
	struct page *page;
	u64 listed;
	struct zone *zone = arena_phantom_zone(a);

	REQUIRE((page = alloc_one(a)));
	alloc_all_held(a);
	listed = listed_small(zone, MIGRATE_MOVABLE);
	make_hot(a, page);
	EXPECT_EQ(pcp_count(&a->mm, zone), 1);
	EXPECT(arena_accounted(a));
	pcp_drain_all(&a->mm);
	EXPECT_EQ(pcp_count(&a->mm, zone), 0);
	EXPECT_EQ(listed_small(zone, MIGRATE_MOVABLE), listed + 1);
}

/* A hot page is held without a bit in the slot of its block, so that slot may look empty. */
TEST_ARENA(mm_pcp, a_block_with_a_hot_page_keeps_its_slot, borrow())
{
	struct page *hot, *other;

	REQUIRE((hot = alloc_one(a)));
	REQUIRE((other = alloc_in_set_of(a, block_of_page(hot))));
	alloc_all_held(a);
	make_hot(a, hot);
	mm_page_free(&a->mm, other); /* claims a slot of the same set */
	EXPECT_EQ(pcp_count(&a->mm, arena_phantom_zone(a)), 2);
	EXPECT(alloc_one(a) == other);
	EXPECT(alloc_one(a) == hot);
}

/* Freeing inline goes to the block that was freed to last, as long as that has its slot. */
TEST_ARENA(mm_pcp, a_slot_given_to_another_block_is_not_freed_to, borrow())
{
	struct page *page, *other;

	REQUIRE((page = alloc_one(a)));
	alloc_all_held(a);
	mm_page_free(&a->mm, page);
	EXPECT(alloc_one(a) == page);
	REQUIRE((other = alloc_in_set_of(a, block_of_page(page)))); /* fetched into the slot */
	mm_page_free(&a->mm, page);
	mm_page_free(&a->mm, other);
	EXPECT(arena_accounted(a));
	pcp_drain_all(&a->mm);
	EXPECT_EQ(pcp_count(&a->mm, arena_phantom_zone(a)), 0);
}

/*
 * Allocate until two pages of one block were given out, of which *first stays with the caller and
 * whose word in the block's slot is not empty, and a page of another block after them. No page is
 * hot then, and the next page of the first block is not freed inline. NULL if there is no memory.
 */
static struct page *hold_of_two_blocks(struct arena *a, struct page **first)
{
	struct page *other;

	alloc_all_held(a);
	*first = alloc_one(a);
	if (!*first)
		return NULL;
	do {
		other = alloc_one(a);
	} while (other && block_of_page(other) == block_of_page(*first));
	if (!other)
		return NULL;
	mm_page_free(&a->mm, *first + 1); /* its word is not empty from here on */
	mm_page_free(&a->mm, *first + 2);
	mm_page_free(&a->mm, other);
	return alloc_one(a) == other ? other : NULL;
}

/* Freeing to another block than the last one looks at the type that block has now. */
TEST_ARENA(mm_pcp, a_page_freed_elsewhere_has_the_type_of_its_block, borrow())
{
	struct page *page;

	REQUIRE(hold_of_two_blocks(a, &page));
	EXPECT(!pcp_mine(arena_phantom_zone(a))->recent.hot);
	retype(arena_phantom_zone(a), block_of_page(page), MIGRATE_RECLAIMABLE);
	mm_page_free(&a->mm, page);
	EXPECT_EQ(block_of_page(alloc_on_phantom(a, 0, USE_RECLAIMABLE)), block_of_page(page));
	pcp_drain_all(&a->mm);
}

TEST_ARENA(mm_pcp, a_page_freed_elsewhere_to_an_isolated_block_is_not_kept, borrow())
{
	struct isolation token;
	struct page *page;
	u64 held;
	struct zone *zone = arena_phantom_zone(a);

	REQUIRE(hold_of_two_blocks(a, &page));
	REQUIRE(isolate_block(zone, block_of_page(page), &token) == 0);
	held = pcp_count(&a->mm, zone);
	mm_page_free(&a->mm, page);
	EXPECT_EQ(pcp_count(&a->mm, zone), held);
	isolate_undo(zone, &token);
	pcp_drain_all(&a->mm);
}

/* ---- how often the lock is taken ---- */

enum { BLOCKS = 94, PIECES = BLOCKS * BLOCK_FRAMES / 2 };

/* Takings so far of the zone's lock, modulo 2^16: the tickets drawn at it. */
static u16 takings(struct arena *a)
{
	return atomic_load_relaxed(&arena_phantom_zone(a)->lock.next);
}

static struct page *block[BLOCKS];

/* Take BLOCKS blocks. False if there is too little memory. */
static bool take_blocks(struct arena *a)
{

	alloc_all_held(a);
	for (unsigned b = 0; b < BLOCKS; b++) {
		for (unsigned i = 0; i < BLOCK_FRAMES; i++) {
			struct page *page = alloc_one(a);

			if (!page)
				return false;
			block[b] = block_page(&a->mm, block_of_page(page));
		}
	}
	return true;
}

/*
 * Free every second page of the blocks: one page of each block, then the next of each, straight to
 * the zone, so that neighbours on its lists lie in different blocks.
 */
static void leave_pieces(struct arena *a)
{
	pcp_disable(arena_phantom_zone(a));
	for (unsigned i = 0; i < BLOCK_FRAMES; i += 2)
		for (unsigned b = 0; b < BLOCKS; b++)
			mm_page_free(&a->mm, &block[b][i]);
	pcp_enable(arena_phantom_zone(a));
}

/*
 * Of a block in pieces 256 frames are free here. One turn at the lock for each block would be four
 * for 1,000 pages, and two turns would be eight. CPUs that may hold less than 4,096 frames fetch
 * and give back less at a time; the bounds are not for them.
 */
TEST_ARENA(mm_pcp, memory_in_pieces_takes_the_lock_seldom, borrow())
{
	struct page *chain = NULL;
	u16 before;

	REQUIRE(take_blocks(a));
	leave_pieces(a);
	before = takings(a);
	EXPECT_EQ(chain_take(&chain, &a->mm, PIECES, 0, PAGE_NODE, a->options.nodes), PIECES);
	if (pcp_mine(arena_phantom_zone(a))->high >= 8 * BLOCK_FRAMES)
		EXPECT((u16)(takings(a) - before) <= 3 * PIECES / 1000);
	before = takings(a);
	chain_give(&chain, &a->mm);
	if (pcp_mine(arena_phantom_zone(a))->high >= 8 * BLOCK_FRAMES)
		EXPECT((u16)(takings(a) - before) <= 2 * PIECES / 1000);
}

/* The pieces of one block are neighbours on the list here. Those of the next blocks come, too. */
TEST_ARENA(mm_pcp, few_pieces_of_many_blocks_are_fetched_together, borrow())
{
	enum { EACH = 4 };
	struct page *chain = NULL;
	u16 before;

	REQUIRE(take_blocks(a));
	pcp_disable(arena_phantom_zone(a));
	for (unsigned b = 0; b < BLOCKS; b++)
		for (unsigned i = 0; i < EACH; i++)
			mm_page_free(&a->mm, &block[b][2 * i]);
	pcp_enable(arena_phantom_zone(a));
	before = takings(a);
	EXPECT_EQ(chain_take(&chain, &a->mm, BLOCKS * EACH, 0, PAGE_NODE, a->options.nodes),
		  BLOCKS * EACH);
	EXPECT((u16)(takings(a) - before) <= BLOCKS);
	chain_give(&chain, &a->mm);
}
