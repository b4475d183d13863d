/*
 * Per-CPU lists: what enters, where it drains to, and drains that somebody else asks for.
 */
#include "mm/pcp.h"

#include "kernel/percpu.h"
#include "kernel/test.h"
#include "kernel/wait.h"
#include "mm/buddy.h"
#include "mm/page_alloc.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/cpus.h"

static struct page *alloc_one(struct arena *a)
{
	return mm_page_alloc(&a->mm, 0, USE_MOVABLE, PAGE_NODE, a->options.nodes);
}

/* All 512 pages of one block, and of nothing else: refills take 32 at a time, so rings are empty afterwards. */
static struct page *take_whole_block(struct arena *a)
{
	struct page *first = NULL;

	for (unsigned i = 0; i < BLOCK_FRAMES; i++) {
		struct page *page = alloc_one(a);

		if (!page)
			return NULL;
		first = first && first < page ? first : page;
	}
	return first;
}

/* Pages of order 0 on the zone's list of one type. */
static u64 listed(struct zone *zone, enum migratetype type)
{
	u64 frames = 0;

	for (unsigned order = 0; order < PAGE_ORDERS; order++)
		for (const struct page *page = zone->page_list[type][order]; page; page = page->next)
			frames += order_pages(order);
	return frames;
}

static void set_type(struct zone *zone, u32 index, u8 type)
{
	spin_lock(&zone->lock);
	atomic_store_relaxed(&block_at(zone->mm, index)->type, type);
	spin_unlock(&zone->lock);
}

TEST(mm_pcp, pages_of_a_retyped_block_drain_to_its_new_list)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	struct zone *zone;
	struct page *pages;
	u32 index;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	pages = take_whole_block(a);
	REQUIRE(pages && IS_ALIGNED(page_to_pfn(pages), BLOCK_FRAMES));
	index = (u32)(page_to_pfn(pages) >> BLOCK_ORDER);
	EXPECT_EQ(pcp_count(&a->mm, zone), 0);
	for (unsigned i = 0; i < 20; i++)
		mm_page_free(&a->mm, &pages[2 * i]); /* none may merge */
	EXPECT_EQ(pcp_count(&a->mm, zone), 20); /* on the list of movable ones */

	set_type(zone, index, MIGRATE_UNMOVABLE);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(pcp_count(&a->mm, zone), 0);
	EXPECT_EQ(listed(zone, MIGRATE_UNMOVABLE), 20);
	EXPECT_EQ(listed(zone, MIGRATE_MOVABLE), 0);
	EXPECT(arena_accounted(a));

	for (unsigned i = 0; i < BLOCK_FRAMES; i++)
		if (i % 2 || i >= 40)
			mm_page_free(&a->mm, &pages[i]);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(zone->free_small, 0); /* wholly free: the block left the small lists, under its new type */
	EXPECT_EQ(zone->block_list[FREE_FULL][MIGRATE_UNMOVABLE][0], index);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* What pcp_type_cache=on restores: the type found on freeing is believed on draining. */
TEST(mm_pcp, a_cached_type_is_stale_after_retyping)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	struct zone *zone;
	struct page *pages;
	u32 index;
	bool was;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	pages = take_whole_block(a);
	REQUIRE(pages);
	index = (u32)(page_to_pfn(pages) >> BLOCK_ORDER);
	was = pcp_set_type_cache(true);
	for (unsigned i = 0; i < 20; i++)
		mm_page_free(&a->mm, &pages[2 * i]);
	set_type(zone, index, MIGRATE_UNMOVABLE);
	pcp_drain_all(&a->mm);
	pcp_set_type_cache(was);
	EXPECT_EQ(pcp_stats(&a->mm).stale, 20);
	EXPECT_EQ(listed(zone, MIGRATE_MOVABLE), 20);
	EXPECT_EQ(listed(zone, MIGRATE_UNMOVABLE), 0);
	set_type(zone, index, MIGRATE_MOVABLE); /* lists and types agree again */
	EXPECT(arena_accounted(a));
	for (unsigned i = 0; i < BLOCK_FRAMES; i++)
		if (i % 2 || i >= 40)
			mm_page_free(&a->mm, &pages[i]);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(pcp_stats(&a->mm).stale, 20);
	EXPECT_EQ(zone->free_small, 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_pcp, each_page_freed_is_looked_up_once)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	static struct page *pages[BLOCK_FRAMES];
	u64 before;

	if (!a)
		return;
	for (unsigned bulk = 0; bulk < 2; bulk++) {
		REQUIRE(mm_page_alloc_bulk(&a->mm, USE_MOVABLE, PAGE_NODE, a->options.nodes, pages, BLOCK_FRAMES) ==
			BLOCK_FRAMES);
		before = pcp_stats(&a->mm).lookups;
		if (bulk)
			mm_page_free_bulk(&a->mm, pages, BLOCK_FRAMES);
		else
			for (unsigned i = 0; i < BLOCK_FRAMES; i++)
				mm_page_free(&a->mm, pages[i]);
		EXPECT_EQ(pcp_stats(&a->mm).lookups - before, BLOCK_FRAMES);
	}
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_pcp, pages_of_isolated_blocks_never_enter)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	struct zone *zone;
	struct page *pages;
	u32 index;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	pages = take_whole_block(a);
	REQUIRE(pages);
	index = (u32)(page_to_pfn(pages) >> BLOCK_ORDER);
	set_type(zone, index, MIGRATE_MOVABLE | BLOCK_ISOLATED);
	for (unsigned i = 0; i < 20; i++)
		mm_page_free(&a->mm, &pages[2 * i]);
	EXPECT_EQ(pcp_count(&a->mm, zone), 0);
	EXPECT_EQ(zone->free_small, 20);
	EXPECT_EQ(block_at(&a->mm, index)->free_pages, 20);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* Allocate `count` pages into a chain. NULL, all given back, if there are not so many. */
static struct page *alloc_chain(struct arena *a, u64 count)
{
	struct page *chain = NULL;

	for (u64 i = 0; i < count; i++) {
		struct page *page = alloc_one(a);

		if (!page)
			return NULL;
		page->private[1] = (u64)(virt_t)chain;
		chain = page;
	}
	return chain;
}

static u64 free_chain(struct arena *a, struct page *chain)
{
	u64 count = 0;

	for (struct page *next; chain; chain = next, count++) {
		next = (struct page *)(virt_t)chain->private[1];
		mm_page_free(&a->mm, chain);
	}
	return count;
}

TEST(mm_pcp, what_a_cpu_holds_too_much_goes_back)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	struct page *chain, *last;
	struct zone *zone;
	s64 high;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	REQUIRE((last = alloc_one(a)));
	high = pcp_mine(zone)->high;
	EXPECT(high >= PCP_HIGH_MIN && (u64)high * PCP_SHARE * cpu_count <= MAX(zone->ram, PCP_HIGH_MIN * PCP_SHARE * cpu_count));
	chain = alloc_chain(a, (u64)high + 4 * BLOCK_FRAMES);
	REQUIRE(chain);
	EXPECT_EQ(free_chain(a, chain), (u64)high + 4 * BLOCK_FRAMES);
	EXPECT((s64)pcp_count(&a->mm, zone) <= high);
	EXPECT((s64)pcp_count(&a->mm, zone) > high / 2 - BLOCK_FRAMES);
	EXPECT(pcp_stats(&a->mm).evictions > 0);
	mm_page_free(&a->mm, last);
	EXPECT_EQ(page_to_pfn(alloc_one(a)) / 64, page_to_pfn(last) / 64); /* the hottest goes out first */
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* ---- drains asked for by another CPU ---- */

static void leave_some_on_the_rings(void *arg)
{
	struct arena *a = arg;
	struct page *pages[10];

	for (unsigned i = 0; i < ARRAY_LEN(pages); i++)
		pages[i] = alloc_one(a);
	for (unsigned i = 0; i < ARRAY_LEN(pages); i++)
		if (pages[i])
			mm_page_free(&a->mm, pages[i]);
}

TEST(mm_pcp, a_drain_empties_the_rings_of_all_cpus)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	cpu_t cpus;

	if (!a)
		return;
	cpus = cpus_run_together(leave_some_on_the_rings, a);
	EXPECT(pcp_count(&a->mm, arena_phantom_zone(a)) >= cpus * 10);
	EXPECT(arena_accounted(a));
	pcp_drain_all(&a->mm);
	EXPECT_EQ(pcp_count(&a->mm, arena_phantom_zone(a)), 0);
	EXPECT(arena_small_lists_whole(a));
	EXPECT(arena_accounted(a));
	arena_return(a);
}

struct insider {
	struct arena *a;
	u32 inside, leave;
};

/* A CPU that is just inside the allocator, with pages on its ring: its interrupt must leave the ring alone. */
static void stay_inside(void *arg)
{
	struct insider *in = arg;
	struct wait wait = wait_begin(wait_deadline_cpus(), "a case to let a CPU leave the allocator");

	struct pcp *pcp;

	leave_some_on_the_rings(in->a);
	pcp = pcp_enter(&in->a->mm);
	atomic_store_release(&in->inside, 1);
	while (!atomic_load_acquire(&in->leave))
		wait_spin(&wait, CPU_NONE);
	pcp_leave(&in->a->mm, pcp);
}

static void drain(void *arg)
{
	pcp_drain_all(arg);
}

TEST(mm_pcp, a_cpu_inside_the_allocator_drains_when_it_leaves)
{
	struct insider in = {.a = NULL};
	struct wait wait = wait_begin(wait_deadline_cpus(), "a CPU to enter the allocator");
	const cpu_t owner = cpus_find_other();
	cpu_t asker;

	if (cpumask_weight(&cpus_online) < 3)
		SKIP("needs three CPUs");
	in.a = arena_borrow(MIB(16), .phantom = GIB(1));
	if (!in.a)
		return;
	REQUIRE(work_start(owner, stay_inside, &in) == 0);
	while (!atomic_load_acquire(&in.inside))
		wait_spin(&wait, owner);
	asker = cpus_find_other();
	REQUIRE(work_start(asker, drain, &in.a->mm) == 0);
	while (!atomic_load_acquire(&in.a->mm.pcp[owner]->drain_wanted))
		wait_spin(&wait, owner);
	EXPECT(!work_done(asker)); /* it waits */
	EXPECT(pcp_count(&in.a->mm, arena_phantom_zone(in.a)) >= 10);
	atomic_store_release(&in.leave, 1);
	work_wait(asker, 0);
	work_wait(owner, 0);
	EXPECT_EQ(pcp_count(&in.a->mm, arena_phantom_zone(in.a)), 0);
	EXPECT(arena_accounted(in.a));
	arena_return(in.a);
}
