/*
 * After a history, when everything has been given back, whatever could be had before can be had
 * again: as many pages of 1 GiB and of 2 MiB, with hvo=on and with hvo=off.
 *
 * The machine is measured before and after, with the pools themselves, and that is a part of the
 * history. The histories of the first cases are fixed. In those of the last one, pools grow and
 * shrink at random, pages of any order are allocated and freed, movable or not, and ranges are
 * emptied.
 */
#include "kernel/core/printk.h"
#include "kernel/run/test.h"
#include "mm/contig/contig.h"
#include "mm/hvo/hvo.h"
#include "mm/memmap/block_state.h"
#include "mm/page/page_alloc.h"
#include "mm/page/page_split.h"
#include "mm/pools.h"
#include "mm/zone/buddy.h"
#include "mm/zone/section_close.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/chain.h"
#include "tests/kernel/random.h"

enum { STEPS = 12, CHAINS = 3, MANY = 1 << 20, FILL_ORDER = 6 };

struct history {
	const struct hvo_mode *mode;
	u64 state;
	struct page *chain[CHAINS];
};

struct measure {
	u64 large, small; /* pages of 1 GiB, of 2 MiB */
};

static u64 most(struct pool *pool, const struct hvo_mode *mode)
{
	const u64 pages = pool_grow(pool, mode, MANY);

	EXPECT_EQ(pool_shrink(pool, mode, pages), pages);
	return pages;
}

static struct measure measure(const struct hvo_mode *mode)
{
	struct measure m;

	m.large = most(&pool_1g, mode);
	m.small = most(&pool_2m, mode);
	return m;
}

static void change_pool(struct history *h, struct pool *pool, u64 below)
{
	const u64 have = pool->pages, wanted = next_random(&h->state) % below;

	if (have < wanted)
		pool_grow(pool, h->mode, wanted - have);
	else
		pool_shrink(pool, h->mode, have - wanted);
}

static void take_pages(struct history *h)
{
	const enum page_use use = next_random(&h->state) % 3 ? USE_MOVABLE : USE_UNMOVABLE;
	const unsigned order = (unsigned)(next_random(&h->state) % (BLOCK_ORDER + 1));
	const u64 count = next_random(&h->state) % 1024 << (BLOCK_ORDER - order) / 2;
	struct page **chain = &h->chain[next_random(&h->state) % CHAINS];

	for (u64 i = 0; i < count; i++) {
		struct page *page = mm_page_alloc(&mm_kernel, order, use, 0, NODE_NONE);

		if (!page)
			return;
		page_chain_push(chain, page);
	}
}

static void step(struct history *h, const struct measure *fresh)
{
	struct page *range;

	switch (next_random(&h->state) % 6) {
	case 0:
		change_pool(h, &pool_1g, fresh->large + 2);
		break;
	case 1:
		change_pool(h, &pool_2m, fresh->small + 2);
		break;
	case 2:
	case 3:
		take_pages(h);
		break;
	case 4:
		chain_give(&h->chain[next_random(&h->state) % CHAINS], &mm_kernel);
		break;
	default:
		range = mm_contig_alloc(&mm_kernel, BLOCK_ORDER + 2, NODE_NONE);
		if (range)
			mm_contig_free_range(&mm_kernel, page_to_pfn(range), 4 * BLOCK_FRAMES);
	}
}

typedef void history_fn(struct history *h, const struct measure *fresh);

static void expect_as_before(const char *mode, u64 seed, history_fn *history)
{
	enum { LARGE = 1, SMALL = 2 }; /* pages that the history may cost */
	struct history h = {.mode = hvo_mode_find(mode), .state = seed};
	struct measure fresh, now;

	sections_close_all(&mm_kernel);
	fresh = measure(h.mode);
	history(&h, &fresh);
	for (unsigned i = 0; i < CHAINS; i++)
		chain_give(&h.chain[i], &mm_kernel);
	pool_shrink(&pool_1g, h.mode, pool_1g.pages);
	pool_shrink(&pool_2m, h.mode, pool_2m.pages);
	now = measure(h.mode);
	EXPECT(now.large + LARGE >= fresh.large);
	EXPECT(now.small + SMALL >= fresh.small);
	print("  # hvo=%s: 1 GiB pages %llu before, %llu after; 2 MiB pages %llu, %llu\n", mode,
	      fresh.large, now.large, fresh.small, now.small);
	sections_close_all(&mm_kernel);
}

/*
 * A history may still cost a 1 GiB page and two blocks of metadata memory. Pages that batched makes
 * in mapped sections keep the new frames of their heads, and in sections with boot memory they keep
 * them for ever (tests/STATUS.md). So that mode is not among these.
 */
static void with_and_without_hvo(history_fn *history)
{
	if (pool_1g.pages + pool_2m.pages > 0)
		SKIP("pools have pages already");
	test_option("contig", "index"); /* the baselines give up earlier */
	expect_as_before("on", 1, history);
	expect_as_before("off", 2, history);
}

/* The heads of 2 MiB pages must not stay where no 1 GiB page can be then. */
static void pages_of_both_sizes(struct history *h, const struct measure *fresh)
{
	most(&pool_1g, h->mode);
	pool_grow(&pool_2m, h->mode, fresh->small / 4 * 3);
}

TEST(mm_history, pools_of_both_sizes_leave_no_trace)
{
	with_and_without_hvo(pages_of_both_sizes);
}

/* Private struct pages of all memory take a GiB in 64, and go away again. */
static void small_pages_everywhere(struct history *h, const struct measure *fresh)
{
	struct page *page;

	(void)fresh;
	while ((page = mm_page_alloc(&mm_kernel, FILL_ORDER, USE_UNMOVABLE, 0, NODE_NONE)))
		page_chain_push(&h->chain[0], page);
}

TEST(mm_history, pages_that_cannot_move_leave_no_trace)
{
	with_and_without_hvo(small_pages_everywhere);
}

static void random_steps(struct history *h, const struct measure *fresh)
{
	for (unsigned i = 0; i < STEPS; i++)
		step(h, fresh);
}

TEST(mm_history, random_steps_leave_next_to_no_trace)
{
	with_and_without_hvo(random_steps);
}

/* The pieces of a block that was split ahead of its use are not freed, so they merge only here. */
TEST(mm_history, a_block_that_was_split_ahead_becomes_whole_again)
{
	struct arena *a = arena_borrow(MIB(16));
	u32 index;

	if (!a)
		return;
	index = arena_block(a) + (u32)(a->options.bytes >> BLOCK_SHIFT) - 1;
	REQUIRE(page_split_block(arena_zone(a, 0), index, block_look_at(&a->mm, index).state));
	EXPECT_EQ(block_look_at(&a->mm, index).free_pages, BLOCK_FRAMES);
	EXPECT_EQ(buddy_find_run(&a->mm, index), BLOCK_NONE);
	sections_give_back(&a->mm, SECTION_ON_DEMAND);
	EXPECT(buddy_find_run(&a->mm, index) != BLOCK_NONE);
	EXPECT_EQ(block_look_at(&a->mm, index).state, BLOCK_BARE);
	EXPECT(arena_accounted(a));
	arena_return(a);
}
