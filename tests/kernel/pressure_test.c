/*
 * Memory that programs give back before a request fails (pressure_register() of mm.h).
 */
#include "mm/page/pressure.h"
#include "tests/kernel/mm_test.h"

/* Pages of 2 MiB below 4 GiB: all that there are, chained through their first words. */
struct hoard {
	struct page *first;
	u64 pages;
	u32 asked, gave; /* atomic */
	unsigned order;  /* that was last asked for */
};

static struct page *want(void)
{
	return page_alloc(BLOCK_ORDER, USE_UNMOVABLE, PAGE_DMA32, NODE_NONE);
}

static void hoard_add(struct hoard *hoard, struct page *page)
{
	*(struct page **)page_address(page) = hoard->first;
	hoard->first = page;
	hoard->pages++;
}

static bool hoard_give_one(struct hoard *hoard)
{
	struct page *page = hoard->first;

	if (!page)
		return false;
	hoard->first = *(struct page **)page_address(page);
	hoard->pages--;
	page_free(page);
	return true;
}

/* Take all there is. False if that is nothing. */
static bool hoard_fill(struct hoard *hoard)
{
	struct page *page;

	*hoard = (struct hoard){.first = NULL};
	for (page = want(); page; page = want())
		hoard_add(hoard, page);
	return hoard->pages > 0;
}

static void hoard_empty(struct hoard *hoard)
{
	while (hoard_give_one(hoard))
		;
}

static bool give_one(void *ctx, unsigned order)
{
	struct hoard *hoard = ctx;

	atomic_fetch_add(&hoard->asked, 1);
	hoard->order = order;
	if (!hoard_give_one(hoard))
		return false;
	atomic_fetch_add(&hoard->gave, 1);
	return true;
}

/* The function allocates, as mm.h allows. Nothing is left, and it is not asked by itself. */
static bool allocates(void *ctx, unsigned order)
{
	struct hoard *hoard = ctx;

	hoard->order = order;
	hoard->asked++;
	if (hoard->asked < 10) /* ends if it is called by itself after all */
		EXPECT(!want());
	return hoard_give_one(hoard);
}

/* Both functions give a page back, so that the request gets it. Each is asked once. */
TEST(mm_pressure, a_request_that_would_fail_gets_what_a_program_gives_back)
{
	static pressure_fn *const functions[] = {give_one, allocates};
	struct hoard hoard;

	if (!hoard_fill(&hoard))
		SKIP("needs a free page of 2 MiB below 4 GiB");
	for (unsigned i = 0; i < ARRAY_LEN(functions); i++) {
		const u64 had = hoard.pages;
		struct page *page;

		hoard.asked = 0;
		REQUIRE(pressure_register(functions[i], &hoard) == 0);
		page = want();
		EXPECT(page);
		EXPECT_EQ(hoard.asked, 1);
		EXPECT_EQ(hoard.order, BLOCK_ORDER);
		EXPECT_EQ(hoard.pages, had - 1);
		pressure_unregister(functions[i], &hoard);
		EXPECT(!want());
		EXPECT_EQ(hoard.asked, 1);
		if (page)
			hoard_add(&hoard, page);
	}
	hoard_empty(&hoard);
}

/* ---- who is asked, and when ---- */

static u32 order_of_asking[4], asked_count;

static bool has_nothing(void *ctx, unsigned order)
{
	if (asked_count < ARRAY_LEN(order_of_asking))
		order_of_asking[asked_count] = (u32)(virt_t)ctx;
	asked_count++;
	return false;
}

static bool says_it_has(void *ctx, unsigned order)
{
	has_nothing(ctx, order);
	return true;
}

/* A request that no function can help asks each of them once, and ends. */
TEST(mm_pressure, each_is_asked_once_in_turn)
{
	struct hoard hoard;
	struct page *page;

	if (!hoard_fill(&hoard))
		SKIP("needs a free page of 2 MiB below 4 GiB");
	asked_count = 0;
	REQUIRE(pressure_register(has_nothing, (void *)1) == 0);
	REQUIRE(pressure_register(says_it_has, (void *)2) == 0);
	REQUIRE(pressure_register(has_nothing, (void *)3) == 0);
	EXPECT(!want());
	EXPECT_EQ(asked_count, 3);
	for (u32 i = 0; i < 3; i++)
		EXPECT_EQ(order_of_asking[i], i + 1);
	/* Other CPUs may have given back pages that they held. The last request fails. */
	do {
		page = page_alloc(BLOCK_ORDER, USE_UNMOVABLE, PAGE_DMA32 | PAGE_NOFLUSH, NODE_NONE);
		if (page)
			hoard_add(&hoard, page);
	} while (page);
	EXPECT(!page_alloc(BLOCK_ORDER + 1, USE_UNMOVABLE, 0, NODE_NONE));
	EXPECT_EQ(asked_count, 3);
	pressure_unregister(has_nothing, (void *)1);
	pressure_unregister(says_it_has, (void *)2);
	pressure_unregister(has_nothing, (void *)3);
	hoard_empty(&hoard);
}

/* ---- huge mappings ---- */

static bool grow_pool(void *ctx, unsigned order)
{
	u32 *asked = ctx;

	(*asked)++;
	EXPECT_EQ(order, BLOCK_ORDER);
	return pool_grow(&pool_2m, hvo_mode_find("on"), 1) == 1;
}

/* The mapping is neither pinned nor claimed while the function runs, so that it may change it. */
static bool release_first_page(void *ctx, unsigned order)
{
	return huge_release(ctx, MIB(2)) == 0;
}

TEST(mm_pressure, a_touch_and_a_populate_ask_too)
{
	const u64 pages = pool_2m.pages;
	u32 asked = 0;
	char *addr;

	if (pool_2m.free > pool_2m.reserved || pool_2m.overcommit > 0)
		SKIP("needs a pool without free pages");
	addr = huge_map(4 * MIB(2), MIB(2), HUGE_POOL);
	REQUIRE(addr);
	EXPECT_EQ(huge_populate(addr, MIB(2)), -ENOMEM);
	REQUIRE(pressure_register(grow_pool, &asked) == 0);
	if (huge_populate(addr, MIB(2)) == 0) {
		EXPECT_EQ(asked, 1);
		*(volatile char *)(addr + MIB(2)) = 1;
		EXPECT_EQ(atomic_load_relaxed(&asked), 2);
		EXPECT_EQ(pool_2m.pages, pages + 2);
	}
	pressure_unregister(grow_pool, &asked);
	if (atomic_load_relaxed(&asked) == 2) {
		REQUIRE(pressure_register(release_first_page, addr) == 0);
		*(volatile char *)(addr + 2 * MIB(2)) = 1; /* gets the page of the first */
		pressure_unregister(release_first_page, addr);
	}
	huge_unmap(addr);
	pool_shrink(&pool_2m, hvo_mode_find("on"), pool_2m.pages - pages);
}

/* ---- many CPUs ---- */

enum { RACE_TURNS = 200 };

struct race {
	u32 roles, working, late, runs;
	u32 registered; /* the function may run */
};

static bool look_at_race(void *ctx, unsigned order)
{
	struct race *race = ctx;

	atomic_fetch_add(&race->runs, 1);
	for (u32 i = 0; i < 10; i++) {
		if (!atomic_load_acquire(&race->registered))
			atomic_fetch_add(&race->late, 1);
		cpu_relax();
	}
	return false;
}

/* One CPU registers and unregisters a function that the others run. */
static void ask_or_register(void *arg)
{
	struct race *race = arg;
	const u32 role = atomic_fetch_add(&race->roles, 1);

	for (u32 turn = 0; turn < RACE_TURNS; turn++) {
		unsigned next = 0;

		if (role != 0) {
			pressure_ask(&next, 0);
			continue;
		}
		atomic_store_release(&race->registered, 1);
		pressure_register(look_at_race, race);
		clock_delay_ns(20 * NS_PER_US);
		pressure_unregister(look_at_race, race);
		atomic_store_release(&race->registered, 0);
	}
}

TEST(mm_pressure, a_function_that_was_unregistered_runs_no_more)
{
	struct race race = {.roles = 0};

	SKIP_ON_ONE_CPU();
	cpus_run_together(ask_or_register, &race);
	EXPECT_EQ(race.late, 0);
	cpus_note_met(race.runs, "calls of the function");
}

static void unregister_or_ask(void *arg)
{
	struct race *race = arg;
	unsigned next = 0;

	if (atomic_fetch_add(&race->roles, 1) != 0) {
		pressure_ask(&next, 0);
		return;
	}
	pressure_unregister(look_at_race, race);
	atomic_store_release(&race->registered, 0);
}

TEST(mm_pressure, a_function_that_is_unregistered_once_runs_no_more)
{
	struct race race = {.registered = 1};

	REQUIRE(pressure_register(look_at_race, &race) == 0);
	cpus_run_together(unregister_or_ask, &race);
	EXPECT_EQ(race.late, 0);
}
