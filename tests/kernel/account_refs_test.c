/*
 * The account of references and promises (mm/debug/account_refs.c). It must notice each value that
 * is one off and each reference that leads elsewhere. The cases restore what they break.
 */
#include "mm/debug/account_refs.h"
#include "mm/mapping/huge_map.h"
#include "tests/kernel/mm_test.h"

static void expect_noticed(const char *what)
{
	if (account_machine())
		test_fail(__FILE__, __LINE__, "%s, and nobody notices", what);
}

static struct page *mapped_at(const char *addr, pte_t **entry, enum pt_level level)
{
	*entry = pgtable_entry(pgtable_root(), (virt_t)addr, level, NULL, NULL);
	return pfn_to_page(pte_pfn(pte_load(*entry)));
}

static void store(pte_t *entry, const char *addr, enum pt_level level, pte_t pte)
{
	pte_store(entry, (virt_t)addr, level, 0);
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	pte_store(entry, (virt_t)addr, level, pte);
}

/* Check a mapping of three pages, of which two are present. */
static void expect_mapping_watched(u64 size, enum pt_level level)
{
	char *start = huge_map(3 * size, size, 0);
	pte_t *entry[2], second;
	struct page *page;
	struct huge_map *map;

	if (!start || huge_populate(start, 2 * size) < 0)
		goto out; /* no memory, so nothing to check */
	page = mapped_at(start, &entry[0], level);
	mapped_at(start + size, &entry[1], level);
	second = pte_load(entry[1]);
	map = huge_map_at((virt_t)start);
	EXPECT(cpus_wait_idle() && account_machine());
	for (int by = 1; by >= -1; by -= 2) {
		space_here(&huge_space)->leaves[level] += (u64)(s64)by;
		expect_noticed("the count of mapped pages is one off");
		space_here(&huge_space)->leaves[level] -= (u64)(s64)by;
	}
	page_get(page);
	expect_noticed("a mapped page has two references");
	page_put(page);
	store(entry[1], start + size, level, pte_load(entry[0]));
	expect_noticed("a page is mapped twice");
	store(entry[1], start + size, level, second);
	map->object.bytes -= 2 * size;
	expect_noticed("an entry maps a page beyond the mapping");
	map->object.bytes += 2 * size;
	EXPECT(account_machine());
out:
	if (start)
		huge_unmap(start);
}

TEST(mm_account, a_huge_mapping_that_lies_is_noticed)
{
	expect_mapping_watched(PAGE_SIZE, PT_PAGE);
	expect_mapping_watched(MIB(2), PT_PMD);
}

/* The pool counts the pages that mappings have or are promised, too. */
TEST(mm_account, what_a_pool_does_not_know_of_is_noticed)
{
	const u64 pages = pool_2m.pages;
	char *start;

	if (pool_grow(&pool_2m, hvo_mode_selected(), 4) < 4) {
		pool_resize(&pool_2m, hvo_mode_selected(), pages);
		SKIP("needs 8 MiB of free memory");
	}
	start = huge_map(MIB(6), MIB(2), HUGE_RESERVE);
	REQUIRE(start && huge_populate(start, MIB(2)) == 0);
	EXPECT(cpus_wait_idle() && account_machine());
	pool_2m.reserved--;
	EXPECT(!account_machine());
	pool_2m.reserved++;
	EXPECT(account_machine());
	huge_unmap(start);
	EXPECT_EQ(pool_resize(&pool_2m, hvo_mode_selected(), pages), pages);
}

TEST_ARENA(mm_account, a_movable_page_without_a_mover_is_noticed, arena_borrow(MIB(16)))
{
	static const struct page_mover none = {.name = "cannot"};

	for (unsigned order = 0; order <= BLOCK_ORDER; order += 3) {
		struct page *page = mm_page_alloc(&a->mm, order, USE_MOVABLE, 0, 0);

		REQUIRE(page);
		mm_page_set_movable(&a->mm, page, &mover_refuses);
		EXPECT(arena_accounted(a));
		page->mover = NULL;
		EXPECT(!arena_accounted(a));
		page->mover = &none;
		EXPECT(!arena_accounted(a));
		page->mover = &mover_refuses;
		EXPECT(arena_accounted(a));
		mm_page_free(&a->mm, page);
	}
}

/* The pages have any size and come from any call. */
TEST_ARENA(mm_account, a_page_that_nobody_took_is_noticed, arena_borrow(MIB(16)))
{
	struct page *page[BLOCK_ORDER + 1], *many[3];
	pfn_t range;

	atomic_store_relaxed(&a->mm.watch, WATCH_OWNERS);
	for (unsigned order = 0; order <= BLOCK_ORDER; order++)
		REQUIRE((page[order] = mm_page_alloc(&a->mm, order, USE_MOVABLE, 0, 0)));
	REQUIRE(mm_page_alloc_bulk(&a->mm, USE_MOVABLE, 0, 0, many, ARRAY_LEN(many)) ==
		ARRAY_LEN(many));
	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 1), 1);
	REQUIRE(pool_page_take(&a->pool, NODE_NONE, POOL_ANY));
	range = block_pfn(arena_block(a) + 7);
	REQUIRE(mm_contig_alloc_range(&a->mm, range, BLOCK_FRAMES) == 0);
	EXPECT(account_pages(&a->mm, CHECK_CALLER));
	for (unsigned order = 0; order <= BLOCK_ORDER; order += 3) {
		const u64 owner = page[order]->owner;

		page[order]->owner = 0;
		EXPECT(!account_pages(&a->mm, CHECK_CALLER));
		page[order]->owner = owner;
	}
	pfn_page(&a->mm, range + 77)->owner = 0;
	EXPECT(!account_pages(&a->mm, CHECK_CALLER));
}

TEST_ARENA(mm_account, a_reference_that_nobody_drops_is_noticed, arena_borrow(MIB(16)))
{
	for (unsigned order = 0; order <= BLOCK_ORDER; order++) {
		struct page *page = mm_page_alloc(&a->mm, order, USE_MOVABLE, 0, 0);

		REQUIRE(page);
		EXPECT(account_pages(&a->mm, CHECK_UNSHARED));
		page_get(page);
		EXPECT(!account_pages(&a->mm, CHECK_UNSHARED));
		EXPECT(arena_accounted(a)); /* a page in use may have two holders */
		page_put(page);
		EXPECT(account_pages(&a->mm, CHECK_UNSHARED));
		mm_page_free(&a->mm, page);
	}
}
