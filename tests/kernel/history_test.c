/*
 * After a history, when everything has been given back, whatever could be had before can be had
 * again: as many pages of 1 GiB and of 2 MiB, whichever hvo= mode had them and has them now.
 *
 * The machine is measured before and after, with the pools themselves, and that is a part of the
 * history. The histories of the first cases are fixed. In those of the last one, pools grow, shrink
 * and are demoted at random, pages of any order are allocated and freed, movable or not, memory is
 * mapped, ranges are emptied, and now and then something fails.
 */
#include "mm/hvo/hvo_restore.h"
#include "mm/page/page_split.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/random.h"

enum { STEPS = 12, CHAINS = 3, MANY = 1 << 20, FILL_ORDER = 6 };

static u64 histories;
OPTION_U64(test.histories, histories, 0, 1ULL << 32,
	   "random histories of mm.history.random_steps in each mode; 0: one");

struct history {
	const struct hvo_mode *mode;
	u64 state;
	struct page *chain[CHAINS];
	void *mapping;
};

struct measure {
	u64 large, small; /* pages of 1 GiB, of 2 MiB */
	u64 meta;         /* frames that metadata memory uses then, gated ones not counted */
};

static u64 most(struct pool *pool, const struct hvo_mode *mode)
{
	const u64 pages = pool_grow(pool, mode, MANY);

	EXPECT_EQ(pool_shrink(pool, mode, pages), pages);
	return pages;
}

static u64 meta_used(void)
{
	u64 used = 0;

	for (node_t n = 0; n < mm_kernel.nodes; n++) {
		meta_flush_gated(&mm_kernel.node[n]);
		used += mm_kernel.node[n].meta.used;
	}
	return used;
}

static struct measure measure(const struct hvo_mode *mode)
{
	struct measure m;

	m.large = most(&pool_1g, mode);
	m.small = most(&pool_2m, mode);
	m.meta = meta_used();
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

static void map_and_unmap_a_page(void)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	void *address = page ? page_map(page, PAGE_SIZE) : NULL;

	if (address)
		page_unmap(address);
	if (page)
		page_free(page);
}

static void map_or_unmap(struct history *h)
{
	const u64 pages = 1 + next_random(&h->state) % 64;

	if (h->mapping)
		huge_unmap(h->mapping);
	h->mapping =
		h->mapping ? NULL : huge_map(pages * MIB(2), MIB(2), HUGE_POPULATE | HUGE_FALLBACK);
	map_and_unmap_a_page();
}

static void step(struct history *h, const struct measure *fresh)
{
	struct page *range;

	switch (next_random(&h->state) % 9) {
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
	case 5:
		pool_demote(&pool_1g, &pool_2m, h->mode, 1);
		break;
	case 6:
		map_or_unmap(h);
		break;
	case 7: /* a failure somewhere in the steps to come */
		fail_disarm(&mm_kernel.fail);
		fail_arm(&mm_kernel.fail, FAIL_ANY, 1 + (u32)(next_random(&h->state) % 500),
			 FAIL_ONCE);
		break;
	default:
		range = mm_contig_alloc(&mm_kernel, BLOCK_ORDER + 2, NODE_NONE);
		if (range)
			mm_contig_free_range(&mm_kernel, page_to_pfn(range), 4 * BLOCK_FRAMES);
	}
}

typedef void history_fn(struct history *h, const struct measure *fresh);

/*
 * Where sections are mapped from the start, a pool may take blocks with struct pages elsewhere
 * before these come home, and two blocks hold the frames then (tests/STATUS.md).
 */
static u64 blocks_lost(void)
{
	return mm_kernel.style == SECTION_MAPPED ? 2 : 0;
}

/* As a user goes on with another mode: nothing but the monitor's word. */
static void go_on_with(const struct hvo_mode *mode)
{
	char line[32];

	format(line, sizeof(line), "set hvo=%s", mode->name);
	EXPECT_EQ(said_run(line), 0);
}

/* Mode `used` of hvo= has the pages of the history, and `mode` those of the measure. */
static void expect_as_before(const char *used, const char *mode, u64 seed, history_fn *history)
{
	const struct hvo_mode *measured = hvo_mode_find(mode);
	struct history h = {.mode = hvo_mode_find(used), .state = seed};
	struct measure fresh, now;

	sections_close_all(&mm_kernel);
	go_on_with(measured);
	fresh = measure(measured);
	go_on_with(h.mode);
	history(&h, &fresh);
	fail_disarm(&mm_kernel.fail);
	if (h.mapping)
		huge_unmap(h.mapping);
	for (unsigned i = 0; i < CHAINS; i++)
		chain_give(&h.chain[i], &mm_kernel);
	pool_shrink(&pool_1g, h.mode, pool_1g.pages);
	pool_shrink(&pool_2m, h.mode, pool_2m.pages);
	go_on_with(measured);
	now = measure(measured);
	EXPECT_EQ(now.large, fresh.large);
	EXPECT(now.small + blocks_lost() >= fresh.small);
	/* with more pages than before, one more section is open, and has struct pages */
	EXPECT(now.small > fresh.small || now.meta <= fresh.meta + fresh.meta / 50);
	print("  # %s, then %s: 1 GiB pages %llu before, %llu after; 2 MiB pages %llu, %llu; "
	      "metadata frames %llu, %llu\n",
	      used, mode, fresh.large, now.large, fresh.small, now.small, fresh.meta, now.meta);
	sections_close_all(&mm_kernel);
}

/* The cases give struct pages to all memory, which a host must have: a GiB in 64. */
static bool is_too_large(void)
{
	struct mm_usage usage;

	mm_usage(&usage);
	return usage.ram > GIB(256) >> PAGE_SHIFT;
}

/* Where sections are mapped from the start they stay so, whatever mode follows. */
static void in_every_mode(history_fn *history, u64 runs)
{
	if (is_too_large())
		SKIP("needs at most 256 GiB of RAM");
	if (pool_1g.pages + pool_2m.pages > 0)
		SKIP("pools have pages already");
	test_option("contig", "index"); /* the baselines give up earlier */
	test_option("hvo", "on");       /* the cases change it, and it is put back */
	for (u64 seed = 1; seed <= 4 * runs && !test_failed(); seed += 4) {
		expect_as_before("on", "on", seed, history);
		expect_as_before("off", "off", seed + 1, history);
		expect_as_before("batched", "batched", seed + 2, history);
		if (mm_kernel.style == SECTION_ON_DEMAND)
			expect_as_before("off", "on", seed + 3, history);
	}
}

/* The heads of 2 MiB pages must not stay where no 1 GiB page can be then. */
static void pages_of_both_sizes(struct history *h, const struct measure *fresh)
{
	most(&pool_1g, h->mode);
	pool_grow(&pool_2m, h->mode, fresh->small / 4 * 3);
}

TEST(mm_history, pools_of_both_sizes_leave_no_trace)
{
	in_every_mode(pages_of_both_sizes, 1);
}

/* Not only when something asks for it: free struct pages hold a GiB in 64. */
TEST(mm_history, another_mode_gives_back_what_the_first_left)
{
	u64 fresh, left, now;

	if (is_too_large())
		SKIP("needs at most 256 GiB of RAM");
	if (pool_1g.pages + pool_2m.pages > 0 || mm_kernel.style == SECTION_MAPPED)
		SKIP("pools have pages already, or sections are mapped from the start");
	test_option("hvo", "on");
	sections_close_all(&mm_kernel);
	fresh = meta_used();
	go_on_with(hvo_mode_find("off"));
	most(&pool_2m, hvo_mode_selected());
	left = meta_used();
	go_on_with(hvo_mode_find("on"));
	now = meta_used();
	print("  # metadata frames %llu fresh, %llu with hvo=off, %llu with on\n", fresh, left,
	      now);
	EXPECT(left >= fresh);
	EXPECT(now <= fresh + (left - fresh) / 50);
}

/* Private struct pages of all memory take a GiB in 64, and go away again. */
static void small_pages_everywhere(struct history *h, const struct measure *fresh)
{
	struct page *page;

	while ((page = mm_page_alloc(&mm_kernel, FILL_ORDER, USE_UNMOVABLE, 0, NODE_NONE)))
		page_chain_push(&h->chain[0], page);
}

TEST(mm_history, pages_that_cannot_move_leave_no_trace)
{
	in_every_mode(small_pages_everywhere, 1);
}

static void random_steps(struct history *h, const struct measure *fresh)
{
	for (unsigned i = 0; i < STEPS; i++)
		step(h, fresh);
}

TEST(mm_history, random_steps_leave_no_trace)
{
	in_every_mode(random_steps, histories ? histories : 1);
}

/*
 * Full blocks may merge to a GiB. Its page gets another head, or one block for the struct pages of
 * small pages would stay for as long as the page does, in whichever GiB it lies.
 */
TEST(mm_history, the_head_of_a_page_that_was_in_pieces_lies_where_frames_last)
{
	struct page *chain = NULL, *page;
	pfn_t head;

	if (is_too_large())
		SKIP("needs at most 256 GiB of RAM");
	if (pool_1g.pages + pool_2m.pages > 0 || mm_kernel.style == SECTION_MAPPED)
		SKIP("pools have pages already, or sections are mapped from the start");
	test_option("hvo", "on");
	chain_take_all(&chain, &mm_kernel, FILL_ORDER, 0, NODE_NONE);
	chain_give(&chain, &mm_kernel);
	page = mm_page_alloc(&mm_kernel, GIGA_ORDER, USE_MOVABLE, 0, NODE_NONE);
	if (page) {
		const u32 index = block_of_page(page);

		head = pte_pfn(pte_load(vmemmap_line(&mm_kernel, index)));
		EXPECT_EQ(block_of(&mm_kernel, head)->meta->kind, META_LASTING);
		mm_page_free(&mm_kernel, page);
	}
	sections_close_all(&mm_kernel);
}

static void give_back_sections(void *arena)
{
	sections_give_back(&((struct arena *)arena)->mm, SECTION_ON_DEMAND);
}

/*
 * The pieces of a block that was split ahead of its use are not freed, so they merge only here. One
 * CPU merges them, and the others may come when the block has no struct pages any more.
 */
TEST_ARENA(mm_history, a_block_that_was_split_ahead_becomes_whole_again,
	   arena_borrow(MIB(16), .nodes = 2))
{
	const u32 index = arena_block(a) + (u32)(a->options.bytes >> BLOCK_SHIFT) - 1;

	EXPECT(block_zone(&a->mm, index) == arena_zone(a, 1));
	REQUIRE(page_split_block(block_zone(&a->mm, index), index, 0));
	EXPECT_EQ(block_look_at(&a->mm, index).free_pages, BLOCK_FRAMES);
	EXPECT_EQ(buddy_find_run(&a->mm, index), BLOCK_NONE);
	cpus_run_together(give_back_sections, a);
	EXPECT(buddy_find_run(&a->mm, index) != BLOCK_NONE);
	EXPECT_EQ(block_look_at(&a->mm, index).state, BLOCK_BARE);
}

/* A sum over the struct pages of the full blocks of an arena. */
static u64 sum_of_struct_pages(const struct arena *a)
{
	const u32 first = arena_block(a);
	u64 sum = 0;

	for (u32 index = first; index < first + (a->options.bytes >> BLOCK_SHIFT); index++) {
		const u64 *word = (const u64 *)block_page(&a->mm, index);

		if (block_look_at(&a->mm, index).state != BLOCK_FULL)
			continue;
		for (u64 i = 0; i < BLOCK_FRAMES * sizeof(struct page) / sizeof(*word); i++)
			sum = sum * 31 + word[i];
	}
	return sum;
}

/*
 * batched makes heads anew, as its series does, and a page that is restored keeps its head. The
 * frame of such a head lies outside the section's own memmap.
 */
TEST_ARENA(mm_history, heads_of_mapped_sections_come_home, arena_borrow(MIB(256)))
{
	enum { PAGES = 8 };
	const struct hvo_mode *batched = hvo_mode_find("batched");
	u64 sum;
	struct zone *zone = arena_zone(a, 0);

	EXPECT_EQ(section_open_next(zone, SECTION_MAPPED), 0);
	EXPECT_EQ(hvo_bring_home(zone), 0);
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_EQ(pool_grow(&a->pool, batched, PAGES), PAGES);
		EXPECT_EQ(pool_shrink(&a->pool, batched, PAGES), PAGES);
		meta_flush_gated(zone_meta_node(zone));
		sum = sum_of_struct_pages(a);
		if (i == 0)
			EXPECT_EQ(hvo_bring_home(zone), PAGES);
		else
			sections_give_back(&a->mm, SECTION_MAPPED);
		EXPECT(i > 0 || sum_of_struct_pages(a) == sum);
		EXPECT_EQ(hvo_bring_home(zone), 0);
		EXPECT(arena_accounted(a));
	}
}

/* Frames of the section's own memmap are gated when the page is restored: they are waited for. */
TEST_ARENA(mm_history, a_page_of_a_mapped_section_is_restored_from_its_own_frames,
	   arena_borrow(MIB(256)))
{
	enum { PAGES = 32 }; /* metadata blocks of the section leave some of its frames unused */
	struct block_list list = BLOCK_LIST_INIT, done = BLOCK_LIST_INIT;
	u64 restored;
	struct zone *zone = arena_zone(a, 0);

	EXPECT_EQ(section_open_next(zone, SECTION_MAPPED), 0);
	EXPECT_EQ(block_take(zone, FREE_MAPPED, BLOCK_ORDER, PAGES, BLOCK_HUGE, &list), PAGES);
	hvo_make_all(&a->mm, hvo_on(), &list);
	EXPECT_EQ(hvo_restore(&a->mm, hvo_on(), &list, &done, &restored), 0);
	EXPECT_EQ(restored, PAGES);
	block_list_publish_free(&a->mm, &done);
	meta_flush_gated(zone_meta_node(zone));
	EXPECT_EQ(hvo_bring_home(zone), 0);
}
