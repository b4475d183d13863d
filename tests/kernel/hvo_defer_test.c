/*
 * Huge pages made of blocks that were split before: a batch takes one round, either at once or when
 * its first page is wanted. Also batches that several CPUs share.
 */

#include "tests/kernel/mm_test.h"
#include "tests/kernel/scratch.h"

/* Make `count` full blocks of the phantom huge. Returns the number of rounds that this takes. */
static u64 rounds_to_convert(struct arena *a, u64 count, const struct hvo_mode *mode,
			     struct block_list *list)
{
	struct block_list left;
	u64 before;

	EXPECT(full_blocks_make(a, count));
	EXPECT_EQ(
		block_take(arena_phantom_zone(a), FREE_FULL, BLOCK_ORDER, count, BLOCK_HUGE, list),
		count);
	before = rounds_so_far();
	EXPECT_EQ(hvo_optimise(&a->mm, mode, list, &left), 0);
	EXPECT_EQ(arena_usage(a).gated, count * 7); /* seven frames of each block */
	return rounds_so_far() - before;
}

TEST_ARENA(mm_hvo, recycled_blocks_take_one_round_however_many, arena_usual())
{
	struct block_list list = BLOCK_LIST_INIT;
	struct option_saved saved;
	u64 before;

	EXPECT_EQ(option_set_for_now(option_find("hvo.defer"), "off", &saved), 0);
	EXPECT_EQ(rounds_to_convert(a, 24, hvo_on(), &list), 1);
	option_put_back(&saved, 1);
	EXPECT(huge_tails_right(&a->mm, list.head, BLOCK_ORDER, 1));
	before = rounds_so_far();
	meta_end_batch(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, 0); /* the round served these frames, too */
	hvo_complete_round(&a->mm, list.head);
	EXPECT_EQ(rounds_so_far() - before, 0);
	block_list_publish_free(&a->mm, &list);
}

TEST_ARENA(mm_hvo, the_pool_gives_a_page_out_after_its_round, arena_usual())
{
	u64 before;

	test_option("hvo.defer", "on");
	REQUIRE(full_blocks_make(a, 30));
	before = rounds_so_far();
	EXPECT_EQ(pool_grow_on(&a->pool, hvo_on(), 1, GIB_BLOCKS), GIB_BLOCKS);
	EXPECT_EQ(rounds_so_far() - before, 0);
	for (unsigned i = 0; i < GIB_BLOCKS; i++) {
		struct page *page = pool_page_take(&a->pool, 1, POOL_ANY);

		REQUIRE(page);
		EXPECT(huge_tails_right(&a->mm, block_of_page(page), BLOCK_ORDER, 1));
	}
	EXPECT_EQ(rounds_so_far() - before, 1);
}

/* ---- shared by CPUs ---- */

enum { SHARED_MAX = 16 * GIB_BLOCKS };

/*
 * The number of pages for as many threads as can get heads, at 1024 pages for each thread. In the
 * hosted runner each page takes 8 or 16 of the host's 65530 mappings.
 */
static u64 shared_pages(void)
{
	if (memblock_list_bytes(&memblock_memory, 0, ~0ULL, OWNER_ANY) < MIB(400))
		return SHARED_MAX / 4;
#ifdef __SANITIZE_MEMORY__
	return SHARED_MAX / 4;
#elif defined(ASHLAR_HOSTED)
	return SHARED_MAX / 2;
#else
	return SHARED_MAX;
#endif
}

static struct arena *borrow_shared(void)
{
	const u64 pages = shared_pages();

	return arena_borrow(pages > SHARED_MAX / 4 ? MIB(64) : MIB(32),
			    .phantom = pages << BLOCK_SHIFT);
}

/*
 * Record the pool's free pages in the order of their list, relative to the phantom's first block,
 * and check their heads and tails. Returns the number of pages.
 */
static u64 list_pages(struct arena *a, u32 *order)
{
	u64 pages = 0;

	for (u32 index = a->pool.node[1].free.head; index != BLOCK_NONE && pages < SHARED_MAX;
	     index = block_at(&a->mm, index)->next) {
		const struct page *head = block_page(&a->mm, index);

		if (head->refcount != 0 || page_head(head + 1) != head ||
		    page_head(head + 511) != head)
			test_fail(__FILE__, __LINE__,
				  "block %u has a head or tail that is not right", index);
		order[pages++] = index - arena_phantom_block(a);
	}
	return pages;
}

/* Number of CPUs that did stretches for another one. */
static unsigned cpus_that_helped(const struct mm *mm)
{
	unsigned cpus = 0;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		cpus += mm->pcp[cpu]->counts->count[COUNT_STRETCHES_HELPED] > 0;
	return cpus;
}

/*
 * Make all pages in a new arena and record their order. Returns how many CPUs made them, or 0 if
 * the case was skipped without an arena.
 */
static unsigned make_shared(u32 *order, bool may_help)
{
	const u64 pages = shared_pages();
	struct arena *a = borrow_shared();
	unsigned cpus;
	u64 helped;

	if (!a)
		return 0;
	while (section_open_next(arena_phantom_zone(a), SECTION_ON_DEMAND) == 0)
		; /* otherwise many CPUs open sections, and the order is left to chance */
	EXPECT_EQ(pool_grow_on(&a->pool, hvo_on(), 1, pages), pages);
	EXPECT_EQ(mm_counted(&a->mm, COUNT_CHANGE(BLOCK_BARE, BLOCK_HUGE)), pages);
	EXPECT_EQ(list_pages(a, order), pages);
	EXPECT(arena_accounted(a));
	helped = mm_counted(&a->mm, COUNT_STRETCHES_HELPED);
	EXPECT_EQ(arena_changes_by_others(a, BLOCK_BARE, BLOCK_HUGE) > 0, helped > 0);
	cpus = 1 + cpus_that_helped(&a->mm);
	/* A single CPU may be a helper that did everything while the host ran no other CPU. */
	EXPECT(helped > 0 || cpus == 1);
	EXPECT(helped == 0 || may_help);
	EXPECT_EQ(pool_shrink_on(&a->pool, hvo_on(), 1, pages), pages);
	arena_return(a);
	return cpus;
}

/* However many CPUs share a batch, the resulting list is the same. */
TEST(mm_hvo, a_batch_divided_among_cpus_is_complete_and_in_order)
{
	const bool several = cpus_find_other() != CPU_NONE;
	u32 *const alone = SCRATCH(u32, 2 * SHARED_MAX), *const shared = alone + SHARED_MAX;
	static const char *const threads[] = {"4", "8"};
	unsigned cpus;

	test_option("hvo.threads", "1");
	cpus = make_shared(alone, false);
	if (cpus == 0)
		return;
	EXPECT_EQ(cpus, 1);
	for (unsigned i = 0; i < ARRAY_LEN(threads); i++) {
		test_option("hvo.threads", threads[i]);
		cpus = make_shared(shared, true);
		EXPECT_EQ(memcmp(alone, shared, shared_pages() * sizeof(alone[0])), 0);
		EXPECT(several || cpus == 1);
		cpus_note_met(cpus - 1, "helpers that took part");
	}
}

/* ---- gated frames ---- */

/* Gated frames: they are few at the end of a batch and never stay gated for ever. */

enum { BOUND = 512 };

/*
 * Gate frames for a round that no CPU has started: take them from metadata memory and give them
 * back with a tag.
 */
static void gate(struct arena *a, unsigned count)
{
	struct node *node = &a->mm.node[0];
	static pfn_t frame[2 * BOUND];

	EXPECT_EQ(meta_reserve(node, META_TAILS, count), 0);
	for (unsigned i = 0; i < count; i++)
		frame[i] = meta_take(node, META_TAILS);
	for (unsigned i = 0; i < count; i++)
		meta_give(&a->mm, frame[i], shootdown_tag());
}

/* Up to the bound, frames wait for any CPU's round. With one more, the batch starts a round. */
TEST_ARENA(mm_hvo, the_bound_of_gated_frames_starts_a_round, arena_borrow(MIB(16)))
{
	const u64 before = rounds_so_far();

	gate(a, BOUND);
	meta_end_batch(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, BOUND);
	EXPECT_EQ(rounds_so_far() - before, 0);
	gate(a, 1);
	meta_end_batch(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, 0);
	EXPECT_EQ(rounds_so_far() - before, 1);
}

/*
 * No CPU flushes, and metadata memory has nothing to grow into. The allocation that needs the
 * frames starts the round itself.
 */
TEST_ARENA(mm_hvo, who_needs_gated_frames_starts_the_round, arena_borrow(MIB(16)))
{
	struct famine famine;
	u64 before;

	REQUIRE(meta_reserve(&a->mm.node[0], META_TAILS, 1) ==
		0); /* Metadata memory gets a block for tails */
	meta_unreserve(&a->mm.node[0], META_TAILS, 1);
	famine_begin(&famine, a, META_TAILS, 100);
	gate(a, 100);
	before = rounds_so_far();
	EXPECT_EQ(meta_reserve_now(&a->mm.node[0], META_TAILS, 8), -ENOMEM);
	EXPECT_EQ(rounds_so_far() - before, 0);
	EXPECT_EQ(meta_reserve(&a->mm.node[0], META_TAILS, 8), 0);
	EXPECT_EQ(rounds_so_far() - before, 1);
	meta_unreserve(&a->mm.node[0], META_TAILS, 8);
	famine_end(&famine);
}

/* A pool born at boot makes pages of what was small in the meantime, before sections are closed. */
TEST_ARENA(mm_hvo, what_was_split_can_be_a_page_of_every_mode_again, arena_usual())
{
	enum { PAGES = 64 };
	const struct hvo_mode *preinit = hvo_mode_find("preinit");
	struct block_list list = BLOCK_LIST_INIT;
	struct page *chain = NULL;
	u64 all;

	EXPECT_EQ(pool_grow_on(&a->pool, hvo_on(), 1, GIB_BLOCKS), GIB_BLOCKS);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), GIB_BLOCKS), GIB_BLOCKS);
	all = pool_grow_on(&a->pool, preinit, 1, GIB_BLOCKS);
	EXPECT(all > PAGES);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), all), all);
	REQUIRE(chain_take(&chain, &a->mm, PAGES, BLOCK_ORDER - 1, PAGE_NODE, 1) == PAGES);
	chain_give(&chain, &a->mm);
	pcp_drain_all(&a->mm);
	/* as surplus pages are made; metadata memory may have taken a block or two */
	EXPECT(pool_make(&a->pool, preinit, 1, GIB_BLOCKS, &list) + 2 >= all);
	block_list_publish_free(&a->mm, &list);
}
