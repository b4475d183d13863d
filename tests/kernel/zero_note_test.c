/*
 * Blocks that are known to be zero (mm/memmap/block.h): the note goes with the block from a pool to
 * the buddy and back, through splits and merges, and it is never wrong.
 *
 * Where memory is real the cases read every byte of each block that has the note. Cases of 1 GiB
 * pages use phantom RAM, which the kernel neither reads nor writes, and follow the notes only.
 */
#include <arch/check.h>
#include <arch/pgtable.h>

#include "kernel/core/call.h"
#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"
#include "kernel/run/test.h"
#include "mm/contig/contig.h"
#include "mm/contig/contig_search.h"
#include "mm/debug/account.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/hvo/hvo_take.h"
#include "mm/memmap/block_state.h"
#include "mm/page/page_alloc.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/buddy.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/holder.h"
#include "tests/kernel/pool_check.h"
#include "tests/kernel/random.h"

#define DIRT 0x5a5a5a5a5a5a5a5aULL

static u64 *words_of(pfn_t pfn)
{
	return phys_to_virt(pfn << PAGE_SHIFT);
}

/* Write a word to every frame, each to another place. */
static void dirty(pfn_t pfn, u64 frames)
{
	for (u64 i = 0; i < frames; i++)
		words_of(pfn + i)[i % (PAGE_SIZE / sizeof(u64))] = DIRT;
}

CHECK_READS_ANYTHING
static bool is_zero(pfn_t pfn, u64 frames)
{
	const u64 *word = words_of(pfn);
	u64 any = 0;

	for (u64 i = 0; i < frames * PAGE_SIZE / sizeof(*word); i++)
		any |= word[i];
	return any == 0;
}

/* Count the blocks of the arena's real memory with a note, and read each of them. */
static u64 notes(struct arena *a)
{
	u64 count = 0;

	for (u32 i = arena_block(a); block_pfn(i) << PAGE_SHIFT < a->start + a->options.bytes;
	     i++) {
		if (!block_at(&a->mm, i) || !block_is_zero(&a->mm, i))
			continue;
		if (!is_zero(block_pfn(i), BLOCK_FRAMES))
			test_fail(__FILE__, __LINE__, "block %u is said to be zero: %s, flags %x",
				  i, block_state_name(block_look_at(&a->mm, i).state),
				  block_look_at(&a->mm, i).flags);
		count++;
	}
	return count;
}

/* Clear `count` free pages of a pool as an idle CPU would. Phantom pages are only said to be. */
static void clear_ahead(struct arena *a, struct pool *pool, u64 count)
{
	for (u64 i = 0; i < count; i++) {
		const u32 index = pool_take_to_clear(pool, 0, ~0ULL);

		if (index == BLOCK_NONE)
			return;
		if (block_pfn(index) << PAGE_SHIFT < a->start + a->options.bytes)
			for (u64 w = 0; w < BLOCK_FRAMES * PAGE_SIZE / sizeof(u64); w++)
				words_of(block_pfn(index))[w] = 0;
		pool_give_cleared(pool, index, true, 0);
	}
}

/* All free memory of the arena was written to, in pages of 2 MiB. Returns how many there are. */
static u64 dirty_all(struct arena *a)
{
	const struct hvo_mode *on = hvo_mode_find("on");
	u64 pages;

	arena_open_all(a);
	pages = pool_grow(&a->pool, on, a->options.bytes / MIB(2));
	block_list_foreach(&a->mm, index, &a->pool.node[0].free)
		dirty(block_pfn(index), BLOCK_FRAMES);
	EXPECT_EQ(pool_shrink(&a->pool, on, pages), pages);
	return pages;
}

static struct arena *borrow_dirty(u64 bytes)
{
	struct arena *a;

	pool_makes_on_demand();
	a = arena_borrow(bytes);
	if (a)
		dirty_all(a);
	return a;
}

TEST(mm_zero, growing_again_after_shrinking_finds_zero_pages)
{
	enum { PAGES = 6, ZERO = 4 };
	struct arena *a = borrow_dirty(MIB(32));
	const struct hvo_mode *on = hvo_mode_find("on");

	if (!a)
		return;
	EXPECT_EQ(pool_grow(&a->pool, on, PAGES), PAGES);
	clear_ahead(a, &a->pool, ZERO);
	EXPECT_EQ(a->pool.zeroed, ZERO);
	EXPECT_EQ(pool_shrink(&a->pool, on, PAGES), PAGES);
	EXPECT_EQ(a->pool.zeroed, 0);
	EXPECT_EQ(arena_zone(a, 0)->free_zero, ZERO * BLOCK_FRAMES);
	EXPECT_EQ(notes(a), ZERO);
	EXPECT(arena_accounted(a));

	/* zero pages come first */
	EXPECT_EQ(pool_grow(&a->pool, on, ZERO - 1), ZERO - 1);
	EXPECT_EQ(a->pool.zeroed, ZERO - 1);
	EXPECT_EQ(pool_grow(&a->pool, on, 2), 2);
	EXPECT_EQ(a->pool.zeroed, ZERO);
	EXPECT(block_is_zero(&a->mm, a->pool.node[0].free.head));
	EXPECT(!block_is_zero(&a->mm, a->pool.node[0].free.tail));
	EXPECT_EQ(arena_zone(a, 0)->free_zero, 0);
	EXPECT_EQ(notes(a), ZERO);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* A pool's page may be made as surplus, and then it goes straight to its user. */
TEST(mm_zero, a_surplus_page_is_known_to_be_zero_by_its_user_only)
{
	struct arena *a = borrow_dirty(MIB(16));
	const struct hvo_mode *on = hvo_mode_find("on");
	bool zeroed = false;
	struct page *page;

	if (!a)
		return;
	EXPECT_EQ(pool_grow(&a->pool, on, 1), 1);
	clear_ahead(a, &a->pool, 1);
	EXPECT_EQ(pool_shrink(&a->pool, on, 1), 1);
	pool_set_overcommit(&a->pool, 1);
	page = pool_page_take_zero(&a->pool, 0, POOL_ANY, &zeroed);
	REQUIRE(page);
	EXPECT(zeroed);
	EXPECT_EQ(notes(a), 0);
	EXPECT(arena_accounted(a));
	dirty(page_to_pfn(page), BLOCK_FRAMES);
	pool_page_give(&a->pool, page);
	EXPECT_EQ(notes(a), 0);
	arena_return(a);
}

TEST(mm_zero, a_cleared_page_is_asked_for_and_a_zero_one_is_found)
{
	struct arena *a = borrow_dirty(MIB(32));
	const struct hvo_mode *on = hvo_mode_find("on");
	struct page *other, *page;
	struct zone *zone;

	if (!a)
		return;
	zone = arena_zone(a, 0);
	EXPECT_EQ(pool_grow(&a->pool, on, 2), 2);
	clear_ahead(a, &a->pool, 1);
	EXPECT_EQ(pool_shrink(&a->pool, on, 2), 2);

	other = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, 0);
	EXPECT_EQ(zone->free_zero, BLOCK_FRAMES); /* whoever asks for no zeros gets none */
	/* so that a page that is cleared once more can be told from one that is not */
	words_of(block_pfn(zone->block_list[FREE_HUGE][MIGRATE_MOVABLE][HUGE_ZERO_LIST]))[7] = DIRT;
	page = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, PAGE_ZERO, 0);
	REQUIRE(page && other);
	EXPECT_EQ(words_of(page_to_pfn(page))[7], DIRT);
	EXPECT_EQ(zone->free_zero, 0);
	EXPECT(!block_is_zero(&a->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER)));
	EXPECT(arena_accounted(a));
	mm_page_free(&a->mm, page);
	mm_page_free(&a->mm, other);
	EXPECT_EQ(notes(a), 0);
	arena_return(a);
}

/* Fill a pool with pages that are known to be zero and empty it again, so that all are free. */
static u64 shrink_cleared(struct arena *a, u64 pages)
{
	const struct hvo_mode *on = hvo_mode_find("on");

	EXPECT_EQ(pool_grow(&a->pool, on, pages), pages);
	clear_ahead(a, &a->pool, pages);
	EXPECT_EQ(pool_shrink(&a->pool, on, pages), pages);
	return arena_zone(a, 0)->free_zero / BLOCK_FRAMES;
}

/* A range is given out as small pages, which have no notes. */
TEST(mm_zero, a_range_taken_over_zero_pages_has_no_note)
{
	enum { PAGES = 8 };
	struct arena *a = borrow_dirty(MIB(32));
	u64 before, ranges = 0;

	if (!a)
		return;
	before = shrink_cleared(a, PAGES);
	EXPECT_EQ(before, PAGES);
	for (u32 i = arena_block(a); ranges < PAGES / 2; i++) {
		if (!block_at(&a->mm, i) || !block_is_zero(&a->mm, i))
			continue;
		EXPECT_EQ(mm_contig_alloc_range(&a->mm, block_pfn(i), BLOCK_FRAMES), 0);
		dirty(block_pfn(i), BLOCK_FRAMES);
		ranges++;
		EXPECT(!block_is_zero(&a->mm, i));
		mm_contig_free_range(&a->mm, block_pfn(i), BLOCK_FRAMES);
		EXPECT(!block_is_zero(&a->mm, i));
	}
	/* metadata memory took a block, too, for the struct pages of the ranges */
	EXPECT_EQ(notes(a), before - ranges - 1);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* The page that replaces a moved one was zero before it received the copy. */
TEST(mm_zero, a_page_that_replaces_a_moved_one_is_not_known)
{
	enum { PAGES = 4 };
	struct arena *a = borrow_dirty(MIB(32));
	struct page *slot[1], *used;
	struct holder h;
	pfn_t from;

	if (!a)
		return;
	holder_init(&h, &a->mm, slot, 1);
	EXPECT_EQ(shrink_cleared(a, a->options.bytes / MIB(2) - PAGES),
		  a->options.bytes / MIB(2) - PAGES);
	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("on"), 1), 1);
	used = pool_page_take(&a->pool, 0, POOL_ANY);
	REQUIRE(used);
	from = page_to_pfn(used);
	EXPECT(holder_adopt(&h, used));
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, from, BLOCK_FRAMES), 0);
	EXPECT(page_to_pfn(slot[0]) != from);
	EXPECT(holder_intact(&h));
	notes(a);
	EXPECT(arena_accounted(a));
	mm_contig_free_range(&a->mm, from, BLOCK_FRAMES);
	pool_page_give(&a->pool, slot[0]);
	notes(a);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_mode_find("on"), 1), 1);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* Bare blocks keep the note, whichever runs they form, until one becomes small pages. */
TEST(mm_zero, small_pages_are_not_known)
{
	enum { PAGES = 8 };
	struct arena *a = borrow_dirty(MIB(32));
	const struct hvo_mode *on = hvo_mode_find("on");
	struct page *page;

	if (!a)
		return;
	EXPECT_EQ(pool_grow(&a->pool, on, PAGES), PAGES);
	clear_ahead(a, &a->pool, PAGES);
	EXPECT_EQ(pool_shrink(&a->pool, on, PAGES), PAGES);
	hvo_bare_free_huge(arena_zone(a, 0), ~0U);
	EXPECT_EQ(arena_zone(a, 0)->free_class[FREE_HUGE], 0);
	EXPECT_EQ(notes(a), PAGES);
	EXPECT(arena_accounted(a));
	while (notes(a) > 0) {
		const u64 before = notes(a);

		page = NULL;
		for (unsigned i = 0; i < 2 * BLOCK_FRAMES && notes(a) == before; i++) {
			page = mm_page_alloc(&a->mm, 6, USE_MOVABLE, 0, 0);
			if (!page)
				break;
			dirty(page_to_pfn(page), order_pages(6));
		}
		if (!page)
			break;
	}
	EXPECT_EQ(notes(a), 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* ---- 1 GiB pages ---- */

struct giga {
	struct arena *a;
	struct pool pool;
	struct pool_node nodes[ARENA_NODES_MAX * 2];
};

static bool giga_begin(struct giga *g)
{
	g->a = arena_borrow(MIB(16), .phantom = GIB(1));
	if (g->a)
		pool_init(&g->pool, &g->a->mm, GIGA_ORDER, g->nodes);
	return g->a != NULL;
}

static bool giga_accounted(struct giga *g)
{
	pool_expect_consistent(&g->pool);
	pool_expect_consistent(&g->a->pool);
	return arena_accounted_with(g->a, &g->pool);
}

/* Of the blocks of the phantom, how many have the note themselves? */
static u64 phantom_notes(struct giga *g)
{
	const u32 first = arena_phantom_block(g->a);
	u64 count = 0;

	for (u32 i = first; i < first + GIB_BLOCKS; i++)
		count += block_is_zero(&g->a->mm, i);
	return count;
}

TEST(mm_zero, a_zero_1g_page_is_512_zero_pages_after_demotion)
{
	struct giga g;
	const struct hvo_mode *on = hvo_mode_find("on");

	if (!giga_begin(&g))
		return;
	EXPECT_EQ(pool_grow(&g.pool, on, 1), 1);
	EXPECT_EQ(phantom_notes(&g), 0);
	clear_ahead(g.a, &g.pool, 1);
	EXPECT_EQ(g.pool.zeroed, 1);
	EXPECT_EQ(phantom_notes(&g), 1); /* the head's covers the page */
	EXPECT(giga_accounted(&g));
	EXPECT_EQ(pool_demote(&g.pool, &g.a->pool, on, 1), 1);
	EXPECT_EQ(g.pool.zeroed, 0);
	EXPECT_EQ(g.a->pool.zeroed, GIB_BLOCKS);
	EXPECT_EQ(phantom_notes(&g), GIB_BLOCKS);
	EXPECT(giga_accounted(&g));
	arena_return(g.a);
}

/*
 * Take a page of 2 MiB out of the pool and give it back, as a user might have written to it: any
 * but the first of its GiB, whose note would be the 1 GiB page's.
 */
static void use_one(struct giga *g)
{
	struct pool *pool = &g->a->pool;
	struct page *page = pool_page_take(pool, NODE_NONE, POOL_ANY), *first = NULL;

	if (page && page_to_pfn(page) % order_pages(GIGA_ORDER) == 0) {
		first = page;
		page = pool_page_take(pool, NODE_NONE, POOL_ANY);
	}
	REQUIRE(page);
	if (first) {
		pool_page_give(pool, first);
		clear_ahead(g->a, pool, 1);
	}
	pool_page_give(pool, page);
}

/*
 * All blocks of the phantom but `used` become zero, and then a 1 GiB page: out of 512 free huge
 * pages, or out of one run of bare blocks.
 */
static void expect_joined(unsigned used, bool bare)
{
	struct giga g;
	const struct hvo_mode *on = hvo_mode_find("on");
	const struct contig_search *search = contig_search_select(contig_search_find("index"));

	if (!giga_begin(&g)) {
		contig_search_select(search);
		return;
	}
	EXPECT_EQ(pool_grow_on(&g.a->pool, on, 1, GIB_BLOCKS), GIB_BLOCKS);
	clear_ahead(g.a, &g.a->pool, GIB_BLOCKS);
	EXPECT_EQ(phantom_notes(&g), GIB_BLOCKS);
	for (unsigned i = 0; i < used; i++)
		use_one(&g);
	EXPECT_EQ(pool_shrink_on(&g.a->pool, on, 1, GIB_BLOCKS), GIB_BLOCKS);
	EXPECT_EQ(phantom_notes(&g), GIB_BLOCKS - used);
	if (bare) {
		EXPECT_EQ(hvo_bare_free_huge(arena_phantom_zone(g.a), GIB_BLOCKS), GIB_BLOCKS);
		EXPECT_EQ(phantom_notes(&g), GIB_BLOCKS - used);
	}
	EXPECT(giga_accounted(&g));
	EXPECT_EQ(pool_grow_on(&g.pool, on, 1, 1), 1);
	EXPECT_EQ(g.pool.zeroed, used == 0);
	EXPECT_EQ(phantom_notes(&g), used == 0);
	EXPECT(giga_accounted(&g));

	/* and back: free as one page, then as 512 bare blocks */
	EXPECT_EQ(pool_shrink_on(&g.pool, on, 1, 1), 1);
	EXPECT_EQ(g.pool.zeroed, 0);
	hvo_bare_free_huge(arena_phantom_zone(g.a), GIB_BLOCKS);
	EXPECT_EQ(phantom_notes(&g), used == 0 ? GIB_BLOCKS : 0);
	EXPECT(giga_accounted(&g));
	arena_return(g.a);
	contig_search_select(search);
}

TEST(mm_zero, a_1g_page_of_zero_blocks_is_zero)
{
	expect_joined(0, true);
	expect_joined(0, false);
}

TEST(mm_zero, a_1g_page_is_not_known_if_one_block_is_not)
{
	expect_joined(1, true);
	expect_joined(1, false);
}

/*
 * Pages that a CPU's list takes from the buddy are no longer known to be zero, so that the fast
 * paths need not look. Where many CPUs share little memory, their lists hold no huge page.
 */
TEST(mm_zero, a_page_on_a_cpus_list_is_not_known)
{
	enum { PAGES = 64 };
	struct giga g;
	const struct hvo_mode *on = hvo_mode_find("on");
	struct page *page[PAGES];
	u64 held = 0;

	if (!giga_begin(&g))
		return;
	EXPECT_EQ(pool_grow_on(&g.a->pool, on, 1, PAGES), PAGES);
	clear_ahead(g.a, &g.a->pool, PAGES);
	EXPECT_EQ(pool_shrink_on(&g.a->pool, on, 1, PAGES), PAGES);
	EXPECT_EQ(phantom_notes(&g), PAGES);
	for (unsigned i = 0; i < PAGES; i++) {
		page[i] = mm_page_alloc(&g.a->mm, BLOCK_ORDER, USE_MOVABLE, PAGE_NODE, 1);
		REQUIRE(page[i]);
		held += pcp_count(&g.a->mm, arena_phantom_zone(g.a));
		EXPECT(giga_accounted(&g));
	}
	if (pcp_mine(arena_phantom_zone(g.a))->high >= 2 * BLOCK_FRAMES)
		EXPECT(held > 0);
	for (unsigned i = 0; i < PAGES; i++)
		mm_page_free(&g.a->mm, page[i]);
	pcp_drain_all(&g.a->mm);
	EXPECT_EQ(phantom_notes(&g), 0);
	EXPECT(giga_accounted(&g));
	arena_return(g.a);
}

/* ---- the account ---- */

TEST(mm_zero, a_note_on_a_page_in_use_is_noticed)
{
	struct arena *a = arena_borrow(MIB(16));
	struct page *page;
	u32 index;

	if (!a)
		return;
	page = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, 0);
	REQUIRE(page);
	index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	EXPECT(arena_accounted(a));
	block_set_flags(block_at(&a->mm, index), BLOCK_ZERO);
	EXPECT(!arena_accounted(a));
	EXPECT(block_forget_zero(&a->mm, index));
	EXPECT(!block_forget_zero(&a->mm, index));
	arena_zone(a, 0)->free_zero++;
	EXPECT(!arena_accounted(a));
	arena_zone(a, 0)->free_zero--;
	EXPECT(arena_accounted(a));
	mm_page_free(&a->mm, page);
	arena_return(a);
}

/* ---- at random ---- */

enum { HELD_MAX = 24, STEPS = 250 };

struct work {
	struct arena *a;
	struct random_source random;
	struct page *held[HELD_MAX];
	bool pooled[HELD_MAX];
	unsigned count;
	u64 seen, taken; /* notes after each step, and pages known to be zero that the pool gave */
};

static u64 draw(struct work *w, u64 below)
{
	return random_below(&w->random, below);
}

static void hold(struct work *w, struct page *page, unsigned order, bool pooled)
{
	if (!page)
		return;
	dirty(page_to_pfn(page), order_pages(order));
	w->held[w->count] = page;
	w->pooled[w->count++] = pooled;
}

static void give_one(struct work *w)
{
	unsigned i;

	if (w->count == 0)
		return;
	i = (unsigned)draw(w, w->count--);
	if (w->pooled[i])
		pool_page_give(&w->a->pool, w->held[i]);
	else
		mm_page_free(&w->a->mm, w->held[i]);
	w->held[i] = w->held[w->count];
	w->pooled[i] = w->pooled[w->count];
}

static void take_from_pool(struct work *w)
{
	bool zeroed = false;
	struct page *page = pool_page_take_zero(&w->a->pool, 0, POOL_ANY, &zeroed);

	if (page && zeroed)
		EXPECT(is_zero(page_to_pfn(page), BLOCK_FRAMES));
	w->taken += page && zeroed;
	hold(w, page, BLOCK_ORDER, true);
}

static void take_cleared(struct work *w, unsigned order)
{
	struct page *page = mm_page_alloc(&w->a->mm, order, USE_MOVABLE, PAGE_ZERO, 0);

	if (page)
		EXPECT(is_zero(page_to_pfn(page), order_pages(order)));
	hold(w, page, order, false);
}

static void take_range(struct work *w)
{
	const pfn_t first = block_pfn(arena_block(w->a)) + draw(w, 16) * BLOCK_FRAMES;

	if (mm_contig_alloc_range(&w->a->mm, first, BLOCK_FRAMES) < 0)
		return;
	dirty(first, BLOCK_FRAMES);
	mm_contig_free_range(&w->a->mm, first, BLOCK_FRAMES);
}

static void step(struct work *w)
{
	const struct hvo_mode *on = hvo_mode_find("on");
	struct arena *a = w->a;
	const unsigned small = (unsigned)draw(w, BLOCK_ORDER);

	switch (w->count == HELD_MAX ? 0 : draw(w, 12)) {
	case 0:
	case 1:
		give_one(w);
		break;
	case 2:
	case 3:
		clear_ahead(a, &a->pool, 1 + draw(w, 3));
		break;
	case 4:
		pool_grow(&a->pool, on, 1 + draw(w, 4));
		break;
	case 5:
		pool_shrink(&a->pool, on, 1 + draw(w, 4));
		break;
	case 6:
		take_from_pool(w);
		break;
	case 7:
		hold(w, mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, 0), BLOCK_ORDER, false);
		break;
	case 8:
		take_cleared(w, BLOCK_ORDER);
		break;
	case 9:
		hold(w, mm_page_alloc(&a->mm, small, USE_MOVABLE, 0, 0), small, false);
		break;
	case 10:
		hvo_bare_free_huge(arena_zone(a, 0), 1 + draw(w, 4));
		break;
	default:
		take_range(w);
	}
}

static void work_at_random(struct arena *a, u64 seed)
{
	struct work w = {.a = a, .random = {.state = seed}};

	pool_set_overcommit(&a->pool, 2);
	for (unsigned i = 0; i < STEPS; i++) {
		step(&w);
		w.seen += notes(a);
		EXPECT(arena_accounted(a));
	}
	while (w.count > 0)
		give_one(&w);
	notes(a);
	EXPECT(w.seen > 0);
	EXPECT(w.taken > 0);
	EXPECT(arena_accounted(a));
}

TEST(mm_zero, nothing_that_was_written_is_called_zero)
{
	struct arena *a = borrow_dirty(MIB(32));

	if (!a)
		return;
	work_at_random(a, 1);
	arena_return(a);
}

/* debug.poison=on writes to free pages: see page_poison.h. */
TEST(mm_zero, what_poison_filled_is_not_called_zero)
{
	struct arena *a = borrow_dirty(MIB(32));

	if (!a)
		return;
	a->mm.watch = WATCH_POISON;
	work_at_random(a, 2);
	arena_return(a);
}

/* ---- pages that nobody wrote ---- */

enum { MAPPED = 4, POOLED = 2 * MAPPED };

/* Borrow pool pages with contents, so that none is zero by chance. */
static bool borrow_used_pages(void)
{
	struct page *page[POOLED];

	if (!pte_notes_writes()) {
		test_skip("no processor notes writes in these page tables");
		return false;
	}
	pool_makes_on_demand();
	test_option("prezero", "0"); /* notes come from mappings alone */
	if (!pool_borrow(&pool_2m, POOLED))
		return false;
	for (unsigned i = 0; i < POOLED; i++) {
		page[i] = pool_page_take(&pool_2m, NODE_NONE, POOL_ANY);
		if (!page[i])
			return false;
		dirty(page_to_pfn(page[i]), BLOCK_FRAMES);
	}
	for (unsigned i = 0; i < POOLED; i++)
		pool_page_give(&pool_2m, page[i]);
	return true;
}

/* Count the free pages of the machine's pool with a note, and read each of them. */
static u64 pool_notes(void)
{
	u64 count = 0;

	for (node_t n = 0; n < pool_2m.mm->nodes; n++)
		block_list_foreach(pool_2m.mm, index, &pool_2m.node[n].free) {
			if (!block_is_zero(pool_2m.mm, index))
				continue;
			EXPECT(is_zero(block_pfn(index), BLOCK_FRAMES));
			count++;
		}
	EXPECT_EQ(pool_2m.zeroed, count);
	return count;
}

TEST(mm_zero, a_page_that_a_mapping_brought_and_nobody_wrote_comes_back_zero)
{
	volatile char *addr;

	if (!borrow_used_pages())
		return;
	addr = huge_map(MAPPED * MIB(2), MIB(2), HUGE_RESERVE | HUGE_POPULATE);
	REQUIRE(addr);
	(void)*addr; /* reading leaves it as it is */
	addr[MIB(2)] = 0;
	addr[3 * MIB(2) - 1] = 1;
	huge_unmap((void *)addr);
	EXPECT_EQ(pool_notes(), 2);
	pool_return(&pool_2m, POOLED);
}

/* An entry that is made anew does not know what was written before. */
TEST(mm_zero, a_page_whose_rights_changed_may_have_been_written)
{
	volatile char *addr;

	if (!borrow_used_pages())
		return;
	addr = huge_map(MAPPED * MIB(2), MIB(2), HUGE_RESERVE | HUGE_POPULATE);
	REQUIRE(addr);
	addr[0] = 1;
	EXPECT_EQ(huge_protect((void *)addr, HUGE_READ_ONLY), 0);
	huge_unmap((void *)addr);
	EXPECT_EQ(pool_notes(), 0);
	pool_return(&pool_2m, POOLED);
}

struct writer {
	volatile char *addr;
	bool stop;  /* atomic */
	u64 writes; /* atomic, written by the writer */
};

static void write_all_the_time(void *arg)
{
	struct writer *w = arg;

	while (!atomic_load_relaxed(&w->stop)) {
		w->addr[w->writes % MAPPED * MIB(2) + w->writes % MIB(2)] = 1;
		counter_add(&w->writes, 1);
	}
}

/*
 * Pages are taken from a mapping while another CPU writes to it. The pool has enough for that CPU
 * while those that were taken are on their way.
 */
TEST(mm_zero, a_page_that_is_written_as_it_is_taken_away_is_not_called_zero)
{
	const cpu_t cpu = cpus_find_other();
	struct wait wait = wait_begin(WAIT_GROWTH, "the first write of another CPU");
	struct writer w = {.writes = 0};

	wait.soft = true;
	if (cpu == CPU_NONE) {
		test_skip("needs two CPUs");
		return;
	}
	if (!borrow_used_pages())
		return;
	w.addr = huge_map(MAPPED * MIB(2), MIB(2), HUGE_POOL);
	REQUIRE(w.addr);
	REQUIRE(work_start(cpu, write_all_the_time, &w) == 0);
	while (atomic_load_relaxed(&w.writes) == 0)
		wait_spin(&wait, cpu);
	for (unsigned i = 0; i < 100; i++) {
		EXPECT_EQ(huge_release((void *)w.addr, MAPPED * MIB(2)), 0);
		spin_lock(&pool_2m.lock); /* nobody takes the pages while they are read */
		pool_notes();
		spin_unlock(&pool_2m.lock);
	}
	atomic_store_relaxed(&w.stop, true);
	work_wait(cpu, 0);
	huge_unmap((void *)w.addr);
	pool_notes();
	pool_return(&pool_2m, POOLED);
}
