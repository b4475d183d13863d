/*
 * The contents of struct pages, byte by byte: as each function of memmap.h writes them, and as each
 * form of a block has them. The metadata frames were full of other data before.
 *
 *   HUGE     [head][63 tails written][64 x 7 tails of the shared page]
 *   NOHEAD   [64 x 8 tails of the shared page]
 *   FULL     [512 of their own]
 *
 * In a tail of the head's frame, and in the tails of small compound pages, the first 16 bytes are
 * defined. In all other struct pages all 64 are.
 */
#include "tests/kernel/mm_test.h"
#include "tests/kernel/pattern.h"

enum { SOILED = 300, ROOM = 2 * BLOCK_FRAMES };

static struct page single(u8 zone)
{
	return (struct page){.head_mask = head_mask_of(0), .zone = zone};
}

static struct page tail(unsigned order, u8 zone)
{
	return (struct page){.head_mask = head_mask_of(order),
			     .flags = PAGE_TAIL,
			     .order = (u8)order,
			     .zone = zone};
}

static struct page head(u16 flags, unsigned order, u8 zone, u32 references)
{
	return (struct page){.head_mask = head_mask_of(0),
			     .flags = flags,
			     .order = (u8)order,
			     .zone = zone,
			     .refcount = references};
}

static bool all_say(const struct page *pages, u64 count, struct page want, unsigned bytes)
{
	for (u64 i = 0; i < count; i++)
		if (!struct_page_says(&pages[i], want, bytes))
			return false;
	return true;
}

/* ---- the functions ---- */

/*
 * Struct pages that describe no frames. The array is aligned so that each order's mask leads from a
 * tail to its head.
 */
static struct page room[ROOM] __attribute__((aligned(ROOM * sizeof(struct page))));

static void soil_room(u64 use)
{
	pattern_fill(room, sizeof(room), 0, use);
}

/* Everything outside [first, first + count) must be as it was. */
static void expect_rest(u64 first, u64 count, u64 use)
{
	EXPECT_PATTERN(room, first * WHOLE, 0, use);
	EXPECT_PATTERN(room + first + count, (ROOM - first - count) * WHOLE,
		       (first + count) * WHOLE, use);
}

TEST(mm_memmap, what_is_written_is_whole_and_no_more)
{
	static const u64 counts[] = {1, 2, 63, 64, 65, 511, 512};

	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		soil_room(i);
		memmap_init_pages(room + 64, counts[i], 5);
		all_say(room + 64, counts[i], single(5), WHOLE);
		expect_rest(64, counts[i], i);
		soil_room(i);
		memmap_stream_pages(room + 64, counts[i], 6);
		all_say(room + 64, counts[i], single(6), WHOLE);
		expect_rest(64, counts[i], i);
	}
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		soil_room(i);
		memmap_form_free(room + 64, counts[i], 7);
		all_say(room + 64, counts[i], single(7), MEANT);
		for (u64 n = 64; n < 64 + counts[i]; n++)
			EXPECT(room[n].owner == 0 && room[n].private[0] != 0);
		expect_rest(64, counts[i], i);
	}
	for (unsigned order = BLOCK_ORDER; order <= GIGA_ORDER; order += GIGA_ORDER - BLOCK_ORDER) {
		soil_room(order);
		memmap_init_head_frame(room + BLOCK_FRAMES, order, 7);
		struct_page_says(room + BLOCK_FRAMES,
				 head(PAGE_COMPOUND | PAGE_OPTIMISED | PAGE_HUGETLB, order, 7, 0),
				 WHOLE);
		all_say(room + BLOCK_FRAMES + 1, STRUCTS_PER_FRAME - 1, tail(order, 7), MEANT);
		expect_rest(BLOCK_FRAMES, STRUCTS_PER_FRAME, order);
		soil_room(order);
		memmap_init_tail_frame(room + 64, order, 8);
		all_say(room + 64, STRUCTS_PER_FRAME, tail(order, 8), WHOLE);
		expect_rest(64, STRUCTS_PER_FRAME, order);
	}
}

TEST(mm_memmap, a_compound_page_is_formed_to_its_last_tail_and_no_further)
{
	for (unsigned order = 0; order <= BLOCK_ORDER; order++) {
		const u64 count = order_pages(order);
		struct page *first = room + BLOCK_FRAMES;

		soil_room(order);
		first->zone = 9;
		memmap_form_compound(first, order);
		struct_page_says(first, head(order ? PAGE_COMPOUND : 0, order, 9, 1), MEANT);
		all_say(first + 1, count - 1, tail(order, 9), MEANT);
		expect_rest(BLOCK_FRAMES, count, order);
		for (u64 i = 0; i < count; i++)
			EXPECT(page_head(first + i) == first);
	}
}

/* ---- blocks ---- */

/* Fill the frames that metadata memory gives out next with other data. */
static void soil_meta(struct arena *a)
{
	static pfn_t frames[SOILED];
	struct node *node = &a->mm.node[0];
	unsigned count = 0;

	while (count < SOILED && meta_reserve_now(node, META_LASTING, 1) == 0)
		frames[count++] = meta_take(node, META_LASTING);
	EXPECT(count > 0);
	while (count-- > 0) {
		pattern_fill(phys_to_virt(frames[count] << PAGE_SHIFT), PAGE_SIZE, frames[count],
			     1);
		meta_give(&a->mm, frames[count], 0);
	}
}

static struct arena *borrow_soiled(u64 phantom)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = phantom);

	if (a)
		soil_meta(a);
	return a;
}

/* Check the head and the tails of a page of 2 MiB or 1 GiB. */
static void expect_huge(const struct arena *a, u32 index, unsigned order, u16 flags, u32 references)
{
	const struct page *page = block_page(&a->mm, index);
	const u8 zone = block_look_at(&a->mm, index).zone;

	struct_page_says(page, head(flags, order, zone, references), WHOLE);
	all_say(page + 1, STRUCTS_PER_FRAME - 1, tail(order, zone), MEANT);
	all_say(page + STRUCTS_PER_FRAME, order_pages(order) - STRUCTS_PER_FRAME, tail(order, zone),
		WHOLE);
}

/* The pages lie side by side, so that the last tail of one stands before the head of the next. */
TEST_ARENA(mm_memmap, huge_pages_are_described_to_their_last_tails, borrow_soiled(GIB(1)))
{
	struct page *page[6];

	for (unsigned i = 0; i < ARRAY_LEN(page); i++)
		REQUIRE((page[i] = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, PAGE_NODE, 1)));
	for (unsigned i = 0; i < ARRAY_LEN(page); i++)
		expect_huge(a, block_of_page(page[i]), BLOCK_ORDER, PAGE_COMPOUND | PAGE_OPTIMISED,
			    1);
	for (unsigned i = 0; i < ARRAY_LEN(page); i++)
		mm_page_free(&a->mm, page[i]);
	for (unsigned i = 0; i < ARRAY_LEN(page); i++) /* they stay formed */
		expect_huge(a, block_of_page(page[i]), BLOCK_ORDER,
			    PAGE_COMPOUND | PAGE_OPTIMISED | PAGE_HUGETLB, 0);
}

TEST_ARENA(mm_memmap, a_gigabyte_is_described_in_all_its_tails_and_so_are_its_parts,
	   borrow_soiled(GIB(1)))
{
	u32 index;
	struct page *page = mm_page_alloc(&a->mm, GIGA_ORDER, USE_MOVABLE, PAGE_NODE, 1);

	REQUIRE(page);
	index = block_of_page(page);
	expect_huge(a, index, GIGA_ORDER, PAGE_COMPOUND | PAGE_OPTIMISED, 1);
	mm_page_free(&a->mm, page);
	EXPECT_EQ(pool_grow(&a->giga, hvo_on(), 1), 1);
	EXPECT_EQ(pool_demote(&a->giga, &a->pool, hvo_on(), 1), 1);
	for (u32 i = 0; i < GIB_BLOCKS && !test_failed(); i++)
		expect_huge(a, index + i, BLOCK_ORDER,
			    PAGE_COMPOUND | PAGE_OPTIMISED | PAGE_HUGETLB, 0);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), GIB_BLOCKS), GIB_BLOCKS);
}

/*
 * Each frame is a page of its own, in use or free. A free page has only the links of its list and
 * the order of its chunk; all other bytes are as in a single page.
 */
static void expect_split(const struct arena *a, u32 index, const struct page *used)
{
	const struct page *pages = block_page(&a->mm, index);
	const u8 zone = block_look_at(&a->mm, index).zone;

	for (unsigned i = 0; i < BLOCK_FRAMES; i++) {
		struct page want = head(pages[i].flags & (PAGE_BUDDY | PAGE_PCP), pages[i].order,
					zone, &pages[i] == used);

		if (!struct_page_says(&pages[i], want, MEANT))
			return;
		EXPECT_EQ(pages[i].owner, 0);
		EXPECT((pages[i].flags & PAGE_BUDDY) || pages[i].order == 0);
	}
}

TEST_ARENA(mm_memmap, a_block_that_is_split_has_512_struct_pages_of_its_own, borrow_soiled(GIB(1)))
{
	struct page *page, *huge;

	page = mm_page_alloc(&a->mm, 0, USE_MOVABLE, PAGE_NODE, 1);
	REQUIRE(page);
	expect_split(a, block_of_page(page), page);
	mm_page_free(&a->mm, page);
	/* Whether or not the block of this page was split before, the page is whole. */
	huge = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, PAGE_NODE, 1);
	REQUIRE(huge);
	expect_huge(a, block_of_page(huge), BLOCK_ORDER, huge->flags, 1);
	mm_page_free(&a->mm, huge);
}

/*
 * Check a mapped section that was streamed, optimised, or restored into frames that held other data
 * meanwhile.
 */
static void expect_section(const struct arena *a, u64 section)
{
	for (u32 i = 0; i < SECTION_BLOCKS; i++) {
		const u32 index = (u32)(section * SECTION_BLOCKS) + i;
		const struct block_word word = block_look_at(&a->mm, index);
		const struct page *pages = block_page(&a->mm, index);

		if (word.state == BLOCK_FULL)
			all_say(pages, BLOCK_FRAMES, single(word.zone), WHOLE);
		else if (word.state == BLOCK_HUGE)
			expect_huge(a, index, BLOCK_ORDER,
				    PAGE_COMPOUND | PAGE_OPTIMISED | PAGE_HUGETLB, 0);
	}
}

TEST_ARENA(mm_memmap, a_mapped_section_is_whole_before_after_and_when_restored,
	   arena_borrow(MIB(256)))
{
	const struct hvo_mode *batched = hvo_mode_find("batched");
	u64 section, grown;

	section = arena_block(a) / SECTION_BLOCKS + 1;
	pattern_fill(phys_to_virt(section * SECTION_BYTES), SECTION_BYTES, section, 1);
	EXPECT_EQ(section_open(&a->mm, section, SECTION_MAPPED), 0);
	expect_section(a, section);
	grown = pool_grow(&a->pool, batched, 8);
	EXPECT_EQ(grown, 8);
	expect_section(a, section);
	soil_meta(a);
	EXPECT_EQ(pool_shrink(&a->pool, batched, grown), grown);
	expect_section(a, section);
}

/* ---- records ---- */

/*
 * The records of a GiB lie in metadata frames that held other data before. When the GiB is opened,
 * each record is zero or says what its block has become.
 */
TEST_ARENA(mm_memmap, records_of_blocks_are_clean_when_their_gigabyte_is_opened,
	   borrow_soiled(GIB(2)))
{
	static const struct block none;
	u32 first, clean = 0;

	first = arena_phantom_block(a);
	EXPECT(!block_at(&a->mm, first));
	EXPECT_EQ(section_open(&a->mm, first / SECTION_BLOCKS, SECTION_ON_DEMAND), 0);
	REQUIRE(block_at(&a->mm, first));
	for (u32 i = SECTION_BLOCKS; i < GIB_BLOCKS; i++)
		clean += memcmp(block_at(&a->mm, first + i), &none, sizeof(none)) == 0;
	EXPECT_EQ(clean, GIB_BLOCKS - SECTION_BLOCKS);
}
