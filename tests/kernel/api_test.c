/*
 * The thin calls of mm.h, over the machine's own memory, as a program makes them.
 */
#include <arch/check.h>

#include "tests/kernel/mm_test.h"
#include "tests/kernel/pattern.h"

enum { MANY = 200 };

static struct page *many[MANY];

/* In machines with more than 4 GiB, other memory comes first unless this memory is asked for. */
TEST(mm_api, pages_below_4_gib_are_below_it)
{
	static const u8 orders[] = {0, 3, 8, BLOCK_ORDER};
	struct page *page;
	size_t got;

	for (unsigned i = 0; i < ARRAY_LEN(orders); i++) {
		page = page_alloc(orders[i], USE_UNMOVABLE, PAGE_DMA32, NODE_NONE);
		if (!page)
			continue; /* all of this memory may be in use */
		EXPECT(page_pfn(page) + order_pages(orders[i]) <= GIB(4) / PAGE_SIZE);
		page_free(page);
	}
	got = page_alloc_bulk(USE_UNMOVABLE, PAGE_DMA32, NODE_NONE, many, MANY);
	for (size_t i = 0; i < got; i++)
		EXPECT(page_pfn(many[i]) < GIB(4) / PAGE_SIZE);
	page_free_bulk(many, got);
}

static u64 bytes_of(const struct page *page)
{
	return PAGE_SIZE << page_order(page);
}

/* Fill every byte of the page, so that clearing it shows. */
static void soil(struct page *page)
{
	pattern_fill(page_address(page), bytes_of(page), page_to_pfn(page) << PAGE_SHIFT, 1);
}

/*
 * Allocate many pages at once, some of which lie on the CPU's lists as they were freed. (The
 * machine's own pages take the slow path while cases run: page_owner.h.)
 */
static void expect_zero_in_bulk(struct arena *a)
{
	for (unsigned turn = 0; turn < 2; turn++) {
		/* This call fetches other pages to the lists. */
		struct page *first = mm_page_alloc(&a->mm, 0, USE_UNMOVABLE, 0, 0);
		const size_t got =
			mm_page_alloc_bulk(&a->mm, USE_UNMOVABLE, PAGE_ZERO, 0, many, MANY);

		EXPECT_EQ(got, MANY);
		for (size_t i = 0; i < got; i++) {
			EXPECT_ZERO(page_address(many[i]), PAGE_SIZE);
			soil(many[i]);
		}
		mm_page_free_bulk(&a->mm, many, got);
		mm_page_free(&a->mm, first);
	}
}

/*
 * Pages of any size, allocated singly or in bulk, are zero although the same memory probably held
 * other data before.
 */
TEST_ARENA(mm_api, pages_that_shall_be_zero_are, arena_borrow(MIB(8)))
{
	for (unsigned i = 0; i < 2 * (BLOCK_ORDER + 1); i++) {
		struct page *page = mm_page_alloc(&a->mm, i / 2, USE_UNMOVABLE, PAGE_ZERO, 0);

		REQUIRE(page);
		EXPECT_ZERO(page_address(page), bytes_of(page));
		soil(page);
		mm_page_free(&a->mm, page);
	}
	expect_zero_in_bulk(a);
}

/* The words before and behind a page, if they belong to the arena. A copy must not change them. */
CHECK_READS_ANYTHING
static u64 words_around(const struct arena *a, const struct page *page)
{
	const char *start = page_address(page), *end = start + bytes_of(page),
		   *first = phys_to_virt(a->start);
	u64 sum = 0;

	for (unsigned i = 1; i <= 8; i++) {
		sum = sum * 31 + (start > first ? ((const u64 *)start)[-(int)i] : 0);
		sum = sum * 31 + (end < first + a->options.bytes ? ((const u64 *)end)[i - 1] : 0);
	}
	return sum;
}

TEST_ARENA(mm_api, a_copy_has_all_bytes_and_private_words_and_no_more, arena_borrow(MIB(16)))
{
	for (unsigned order = 0; order <= BLOCK_ORDER; order++) {
		struct page *from = mm_page_alloc(&a->mm, order, USE_MOVABLE, 0, 0),
			    *to = mm_page_alloc(&a->mm, order, USE_MOVABLE, 0, 0);
		const u64 place = page_to_pfn(from) << PAGE_SHIFT;
		u64 around;

		REQUIRE(from && to);
		pattern_fill(page_address(from), bytes_of(from), place, 2);
		soil(to);
		for (unsigned i = 0; i < ARRAY_LEN(from->private); i++)
			from->private[i] = place + i;
		around = words_around(a, to);
		page_copy(to, from);
		EXPECT_PATTERN(page_address(to), bytes_of(to), place, 2);
		EXPECT_PATTERN(page_address(from), bytes_of(from), place, 2);
		EXPECT_EQ(words_around(a, to), around);
		for (unsigned i = 0; i < ARRAY_LEN(from->private); i++)
			EXPECT_EQ(to->private[i], place + i);
		EXPECT(to->refcount == 1 && page_order(to) == order);
		mm_page_free(&a->mm, from);
		mm_page_free(&a->mm, to);
	}
}

/* Map 1 GiB in one page and touch a byte in its middle. */
static void expect_mapped_zero(void)
{
	/* The CPU maps 2 MiB pages if it has no larger ones. */
	char *addr = huge_map(GIB(1), GIB(1), HUGE_FALLBACK);

	REQUIRE(addr);
	addr[GIB(1) / 2 + 12345] = 0;
	EXPECT_ZERO(addr, GIB(1));
	huge_unmap(addr);
}

/*
 * Check 1 GiB that is cleared on allocation, written, copied and mapped. Each byte of two gigabytes
 * is written, so the case runs only where 1 GiB is a small part of the machine.
 */
TEST(mm_api, a_gigabyte_is_cleared_and_copied_in_all_bytes)
{
	struct page *from, *to;
	struct mm_usage usage;

	mm_usage(&usage);
	if (usage.ram < 11 * (GIB(1) / PAGE_SIZE) / 2)
		SKIP("needs 5.5 GiB of RAM");
	from = page_alloc(GIGA_ORDER, USE_UNMOVABLE, 0, NODE_NONE);
	to = from ? page_alloc(GIGA_ORDER, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE) : NULL;
	if (from && to) {
		EXPECT_ZERO(page_address(to), GIB(1));
		soil(from);
		page_copy(to, from);
		EXPECT_PATTERN(page_address(to), GIB(1), page_pfn(from) << PAGE_SHIFT, 1);
		page_free(to);
		expect_mapped_zero(); /* maps the freed page */
		to = NULL;
	}
	if (to)
		page_free(to);
	if (from)
		page_free(from);
}

/* A mover that is set twice counts once. Otherwise the account after the case would fail. */
TEST(mm_api, a_mover_can_be_changed)
{
	const struct page_mover second = mover_refuses;
	struct page *page = page_alloc(0, USE_MOVABLE, 0, NODE_NONE);

	REQUIRE(page);
	page_set_movable(page, &mover_refuses);
	page_set_movable(page, &second);
	EXPECT(page->mover == &second && page->flags & PAGE_MOVABLE);
	page_free(page);
}

TEST(mm_api, impossible_frames_are_refused)
{
	EXPECT_EQ(contig_declare_cma(1, BLOCK_FRAMES), -EINVAL);
	EXPECT_EQ(contig_declare_cma(0, 0), -EINVAL);
	EXPECT_EQ(contig_alloc_range(1, 1), -EINVAL);
	EXPECT_EQ(page_mark_bad(~0ULL >> PAGE_SHIFT), -EINVAL);
	EXPECT(!contig_alloc(GIGA_ORDER + 1, NODE_NONE));
}
