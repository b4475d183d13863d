/*
 * Pages: which allocations are possible, what an allocated page looks like, and that all memory can
 * be allocated and given back.
 */
#include "tests/kernel/mm_test.h"
#include "tests/kernel/random.h"

TEST_ARENA(mm_page, every_order_is_one_aligned_compound_page, arena_usual())
{
	for (unsigned order = 0; order <= BLOCK_ORDER; order++) {
		struct page *page = take_phantom(a, order);

		REQUIRE(page);
		EXPECT(IS_ALIGNED(page_to_pfn(page), order_pages(order)));
		EXPECT_EQ(page_order(page), order);
		EXPECT_EQ(page->refcount, 1);
		for (u64 i = 0; i < order_pages(order); i++)
			if (page_head(&page[i]) != page || page_order(&page[i]) != order ||
			    (i && page[i].refcount))
				test_fail(__FILE__, __LINE__,
					  "page %llu of order %u has another head", i, order);
		EXPECT(arena_accounted(a));
		mm_page_free(&a->mm, page);
		EXPECT_EQ(page->refcount, 0);
	}
	EXPECT_EQ(arena_usage(a).in_use, 0);
}

/*
 * PAGE_NODE with such a node finds nothing, even if pages of other nodes lie ready. Without
 * PAGE_NODE, such a node means this CPU's own.
 */
TEST_ARENA(mm_page, a_node_that_does_not_exist_has_no_page,
	   arena_borrow(MIB(16), .phantom = GIB(2)))
{
	const unsigned orders[] = {0, 1, PAGE_ORDERS - 1, BLOCK_ORDER, GIGA_ORDER};
	struct page *page, *pages[4];

	for (unsigned i = 0; i < ARRAY_LEN(orders); i++) {
		page = mm_page_alloc(&a->mm, orders[i], USE_MOVABLE, PAGE_NODE, a->mm.nodes - 1);
		REQUIRE(page);
		mm_page_free(&a->mm, page); /* one page lies ready */
		for (node_t node = a->mm.nodes; node != NODE_NONE && node >= a->mm.nodes;
		     node = node * 2 + 1) {
			page = mm_page_alloc(&a->mm, orders[i], USE_MOVABLE, PAGE_NODE, node);
			EXPECT(!page);
			if (page)
				mm_page_free(&a->mm, page);
		}
	}
	EXPECT_EQ(mm_page_alloc_bulk(&a->mm, USE_MOVABLE, PAGE_NODE, a->mm.nodes, pages,
				     ARRAY_LEN(pages)),
		  0);
	EXPECT_EQ(mm_page_alloc_bulk(&a->mm, USE_MOVABLE, 0, a->mm.nodes, pages, ARRAY_LEN(pages)),
		  ARRAY_LEN(pages));
	mm_page_free_bulk(&a->mm, pages, ARRAY_LEN(pages));
	page = mm_page_alloc(&a->mm, 0, USE_MOVABLE, 0, a->mm.nodes);
	REQUIRE(page);
}

/* ---- edges of RAM ---- */

/*
 * Allocate everything and expect each frame of the `bytes` from `from` on to occur `times` times.
 */
static void expect_frames_taken(struct arena *a, phys_t from, u64 bytes, unsigned times)
{
	struct page *chain = NULL, *page;
	u64 seen = 0;

	chain_take_all(&chain, &a->mm, 0, 0, 0);
	for (page = chain; page; page = (struct page *)(virt_t)page->private[0]) {
		const phys_t phys = page_to_pfn(page) << PAGE_SHIFT;

		seen += phys >= from && phys < from + bytes;
	}
	EXPECT_EQ(seen, bytes / PAGE_SIZE * times);
	EXPECT(arena_accounted(a));
	chain_give(&chain, &a->mm);
}

TEST_ARENA(mm_page, the_last_page_of_ram_is_used_and_none_beyond,
	   arena_borrow(MIB(16), .short_by = KIB(300)))
{
	expect_frames_taken(a, a->start + MIB(16) - KIB(304), KIB(4), 1);
	expect_frames_taken(a, a->start + MIB(16) - KIB(300), KIB(300), 0);
}

/*
 * Two nodes meet in the middle of a block. Its pages belong to two zones and never merge across the
 * border.
 */
TEST_ARENA(mm_page, a_block_shared_by_two_nodes_serves_both,
	   arena_borrow(MIB(16), .nodes = 2, .skew = KIB(700)))
{
	struct page *page;
	const phys_t border = a->start + MIB(8) + KIB(700);

	expect_frames_taken(a, border - KIB(64), KIB(128), 1);
	pcp_drain_all(&a->mm);
	for (phys_t at = border - KIB(4); at <= border; at += KIB(4)) {
		page = pfn_page(&a->mm, at >> PAGE_SHIFT);
		EXPECT_EQ(a->mm.zone[page->zone].node, at >= border);
		EXPECT(page->flags & PAGE_BUDDY || page->flags == 0);
	}
}

struct boot_pages {
	struct arena *a;
	u32 freed;
};

static void free_boot_page(void *arg)
{
	struct boot_pages *boot = arg;
	const u32 n = atomic_fetch_add(&boot->freed, 1);

	if (n < 4)
		mm_page_free(&boot->a->mm,
			     pfn_page(&boot->a->mm,
				      (boot->a->start + MIB(6) + KIB(40)) / PAGE_SIZE + n));
}

TEST_ARENA(mm_page, pages_of_the_boot_are_freed_like_any_other,
	   arena_borrow(MIB(16), .boot = {{MIB(6) + KIB(40), KIB(16)}}))
{
	struct boot_pages boot = {.a = a};
	u64 available;

	EXPECT_EQ(arena_usage(a).in_use, 4);
	EXPECT(arena_accounted(a));
	available = arena_available(a);
	cpus_run_together(free_boot_page, &boot); /* by several CPUs, each counts its own */
	while (boot.freed < 4)
		free_boot_page(&boot);
	EXPECT_EQ(arena_usage(a).in_use, 0);
	EXPECT_EQ(arena_available(a), available + 4);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(arena_zone(a, 0)->free_small, 0);
}

/* ---- random work ---- */

enum { HELD = 64, TURNS = 400 };

/* Allocate and free pages at random. Each page carries a mark while it is held. */
static void allocate_at_random(struct arena *a, u64 number)
{
	struct random_source random = {.state = (number + 1) * 0x9e3779b97f4a7c15ULL};
	struct page *held[HELD] = {NULL};

	for (unsigned turn = 0; turn < TURNS; turn++) {
		const u64 slot = random_below(&random, HELD);

		if (held[slot]) {
			EXPECT_EQ(held[slot]->private[0], (number << 32) + slot);
			mm_page_free(&a->mm, held[slot]);
			held[slot] = NULL;
			continue;
		}
		held[slot] =
			mm_page_alloc(&a->mm, (unsigned)random_below(&random, 10),
				      (enum page_use)random_below(&random, 3), 0, a->options.nodes);
		if (held[slot])
			held[slot]->private[0] = (number << 32) + slot;
	}
	for (unsigned slot = 0; slot < HELD; slot++)
		if (held[slot])
			mm_page_free(&a->mm, held[slot]);
}

TEST_ARENA(mm_page, counters_equal_walks_after_random_work, arena_usual())
{
	for (unsigned i = 0; i < 8; i++)
		allocate_at_random(a, i);
	EXPECT(arena_accounted(a));
	pcp_drain_all(&a->mm);
	EXPECT_EQ(arena_usage(a).in_use, 0);
	EXPECT(arena_small_lists_whole(a));
}

/* ---- freeing a page to which there are references ---- */

static void expect_kept(struct arena *a, unsigned order)
{
	struct page *page = take_phantom(a, order),
		    *many[3] = {take_phantom(a, 0), page, take_phantom(a, 3)};
	const u64 before = page_misuses();

	REQUIRE(page && many[0] && many[2]);
	page_get(page);
	mm_page_free(&a->mm, page);
	EXPECT_EQ(page_misuses(), before + 1);
	mm_page_free_bulk(&a->mm, many, ARRAY_LEN(many)); /* the other pages are freed */
	EXPECT_EQ(page_misuses(), before + 2);
	EXPECT(page->refcount == 2 && page_order(page) == order);
	EXPECT(many[0]->refcount == 0 && many[2]->refcount == 0);
	EXPECT(arena_accounted(a));
	mm_page_put(&a->mm, page);
	mm_page_free(&a->mm, page);
	EXPECT_EQ(page_misuses(), before + 2);
	EXPECT_EQ(arena_usage(a).in_use, 0);
}

/*
 * Pages of any order are kept, freed singly or in bulk, on the fast path and on the path that
 * records owners.
 */
TEST_ARENA(mm_page, a_page_of_any_order_with_references_is_kept,
	   arena_borrow(MIB(16), .phantom = GIB(2)))
{
	test_option("debug.bad_free", "keep");
	for (unsigned order = 0; order <= BLOCK_ORDER + 1 && !test_failed(); order++) {
		atomic_store_relaxed(&a->mm.watch, 0);
		expect_kept(a, order <= BLOCK_ORDER ? order : GIGA_ORDER);
		atomic_store_relaxed(&a->mm.watch, WATCH_OWNERS);
		expect_kept(a, order <= BLOCK_ORDER ? order : GIGA_ORDER);
	}
}

/* What is printed of a page that is part of a larger free one shows no order left over. */
TEST_ARENA(mm_page, a_page_that_merged_with_the_one_below_has_no_order, arena_borrow(MIB(16)))
{
	struct page *below = mm_page_alloc(&a->mm, PCP_ORDERS, USE_MOVABLE, 0, 0),
		    *above = mm_page_alloc(&a->mm, PCP_ORDERS, USE_MOVABLE, 0, 0);

	REQUIRE(below && above == below + order_pages(PCP_ORDERS));
	mm_page_free(&a->mm, below);
	mm_page_free(&a->mm, above);
	EXPECT_EQ(above->order, 0);
}

/* A struct page with an order that its first tail denies. */
TEST_ARENA(mm_page, an_order_that_the_first_tail_denies_is_refused,
	   arena_borrow(MIB(16), .phantom = GIB(2)))
{
	atomic_store_relaxed(&a->mm.watch, 0);
	test_option("debug.bad_free", "keep");
	for (unsigned row = 2; row <= BLOCK_ORDER + 1 && !test_failed(); row++) {
		const unsigned order = row <= BLOCK_ORDER ? row : GIGA_ORDER;
		struct page *page = take_phantom(a, order);
		const u64 misuses = page_misuses();

		REQUIRE(page);
		page_set_kind(page, page->flags, row - 1);
		mm_page_free(&a->mm, page);
		EXPECT_EQ(page_misuses(), misuses + 1);
		page_set_kind(page, page->flags, order);
		mm_page_free(&a->mm, page);
		EXPECT_EQ(page_misuses(), misuses + 1);
	}
}

/* ---- several CPUs ---- */

static struct {
	struct arena *a;
	struct page *page[CPUS_TOGETHER];
	u32 parts;
} several;

/* Free a page, and take a reference to the next CPU's as one does that would move it. */
static void free_and_look(void *unused)
{
	const u32 own = atomic_fetch_add(&several.parts, 1);
	struct page *next = several.page[(own + 1) % CPUS_TOGETHER];

	if (own >= CPUS_TOGETHER)
		return;
	if (own % 2)
		mm_page_free(&several.a->mm, several.page[own]);
	if (page_get_movable(next))
		mm_page_put(&several.a->mm, next);
	if (own % 2 == 0)
		mm_page_free(&several.a->mm, several.page[own]);
}

TEST_ARENA(mm_page, movable_pages_are_freed_once_while_other_cpus_look_at_them,
	   arena_borrow(MIB(16)))
{
	several.a = a;
	for (unsigned i = 0; i < CPUS_TOGETHER; i++) {
		several.page[i] = mm_page_alloc(&a->mm, 0, USE_MOVABLE, 0, 0);
		REQUIRE(several.page[i]);
		mm_page_set_movable(&a->mm, several.page[i], &mover_refuses);
	}
	several.parts = 0;
	cpus_run_together(free_and_look, NULL);
	for (u32 i = several.parts; i < CPUS_TOGETHER; i++)
		mm_page_free(&a->mm, several.page[i]);
	EXPECT_EQ(arena_usage(a).in_use, 0);
}

/* freeing a page twice is a race by itself */
#if !defined(__SANITIZE_THREAD__) || defined(HOST_EXPLORE)

static void free_the_same(void *unused)
{
	mm_page_free(&several.a->mm, several.page[0]);
}

TEST_ARENA(mm_page, of_several_cpus_that_free_one_page_one_does, arena_borrow(MIB(16)))
{
	const u64 before = page_misuses();
	cpu_t cpus;

	several.a = a;
	test_option("debug.bad_free", "keep");
	several.page[0] = mm_page_alloc(&a->mm, PCP_ORDERS, USE_MOVABLE, 0, 0);
	REQUIRE(several.page[0]);
	cpus = cpus_run_together(free_the_same, NULL);
	EXPECT_EQ(page_misuses() - before, cpus - 1);
	EXPECT_EQ(arena_usage(a).in_use, 0);
}

#endif
