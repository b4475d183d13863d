/* The calls of mm.h that are thin: over the machine's own memory, as a program makes them. */
#include "kernel/cmdline.h"
#include "kernel/test.h"
#include "mm/mm.h"
#include "mm/page.h"

enum { MANY = 200 };

TEST(mm_api, many_pages_at_once_are_each_somebodys)
{
	static struct page *page[MANY];
	const size_t got = page_alloc_bulk(USE_UNMOVABLE, 0, NODE_NONE, page, MANY);

	REQUIRE(got == MANY);
	for (unsigned i = 0; i < MANY; i++) {
		EXPECT(page[i]->refcount == 1 && page_order(page[i]) == 0);
		page[i]->private[0] = i;
	}
	for (unsigned i = 0; i < MANY; i++)
		EXPECT_EQ(page[i]->private[0], i); /* none was given out twice */
	page_free_bulk(page, MANY);
}

static int refuse(struct page *from, struct page *to)
{
	(void)from;
	(void)to;
	return -EBUSY;
}

/* Set twice it counts once: the account after the case would say so. */
TEST(mm_api, a_mover_can_be_changed)
{
	static const struct page_mover first = {.name = "first", .move = refuse}, second = {.name = "second", .move = refuse};
	struct page *page = page_alloc(0, USE_MOVABLE, 0, NODE_NONE);

	REQUIRE(page);
	page_set_movable(page, &first);
	page_set_movable(page, &second);
	EXPECT(page->mover == &second && page->flags & PAGE_MOVABLE);
	page_free(page);
}

TEST(mm_api, a_range_is_made_and_given_back)
{
	struct page *page = contig_alloc(BLOCK_ORDER + 1, NODE_NONE);

	if (!page)
		SKIP("needs 4 MiB that can be emptied");
	EXPECT_EQ(page_pfn(page) % (2 * BLOCK_FRAMES), 0);
	EXPECT(page_order(page) == 0 && page[2 * BLOCK_FRAMES - 1].refcount == 1);
	contig_free_range(page_pfn(page), 2 * BLOCK_FRAMES);
}

TEST(mm_api, impossible_frames_are_refused)
{
	EXPECT_EQ(contig_declare_cma(1, BLOCK_FRAMES), -EINVAL);
	EXPECT_EQ(contig_declare_cma(0, 0), -EINVAL);
	EXPECT_EQ(contig_alloc_range(1, 1), -EINVAL);
	EXPECT_EQ(page_mark_bad(~0ULL >> PAGE_SHIFT), -EINVAL);
	EXPECT(!contig_alloc(GIGA_ORDER + 1, NODE_NONE));
}

/* memmap_threads= decides at boot only, so trying it later changes nothing. */
TEST(mm_api, counts_of_threads_are_numbers_or_percentages)
{
	static const char *const good[] = {"0", "7", "65535", "0%", "50%", "100%"};
	static const char *const bad[] = {"", "x", "-1", "101%", "65536", "5%%", "5 %", "%"};
	const struct option *opt = option_find("memmap_threads");

	REQUIRE(opt);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		if (opt->parse(opt, bad[i]) >= 0)
			test_fail(__FILE__, __LINE__, "memmap_threads=%s was taken", bad[i]);
	for (unsigned i = 0; i < ARRAY_LEN(good); i++)
		if (opt->parse(opt, good[i]) < 0)
			test_fail(__FILE__, __LINE__, "memmap_threads=%s was refused", good[i]);
}
