/*
 * Placement by GiB: memory that cannot be moved fills as few GiB as possible (zone/gigablock.h).
 */
#include "mm/zone/gigablock.h"

#include "mm/contig/bad_frames.h"
#include "mm/contig/evacuate.h"
#include "mm/page/migrate.h"
#include "mm/page/pcp_drain.h"
#include "mm/page/refuge.h"
#include "mm/zone/migratetype.h"
#include "mm/zone/transit.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/holder.h"
#include "tests/kernel/listed.h"
#include "tests/kernel/test.h"

enum { PAGES = 1500, BIG = BLOCK_ORDER - 1, GIBS = 2, ROOM = GIBS * GIB_BLOCKS * 2 };

static struct page *table[ROOM];

/*
 * Borrow phantom memory, open and free, that is placed by GiB. `real` bytes have room for the
 * struct pages of the blocks that are split, 32 KiB for each.
 */
static struct arena *borrow_gibs(u64 gibs, u64 real)
{
	struct arena *a = arena_borrow(real, .phantom = gibs * GIB(1));

	if (!a)
		return NULL;
	arena_open_all(a);
	EXPECT(gigablock_begin(&a->mm, 2));
	return a;
}

static u64 tainted_gibs(struct arena *a)
{
	const u32 first = arena_phantom_block(a);
	u64 count = 0;

	for (u32 index = first; index < first + a->options.phantom / GIB(1) * GIB_BLOCKS;
	     index += GIB_BLOCKS)
		count += gigablock_is_tainted(&a->mm, index);
	return count;
}

TEST_ARENA(mm_gigablock, unmovable_pages_share_a_gib_without_movable_ones, borrow_gibs(4, MIB(16)))
{
	u64 home = 0, mixed = 0;

	for (unsigned i = 0; i < PAGES; i++) {
		struct page *stuck =
			alloc_on_phantom(a, i % 4, i % 3 ? USE_UNMOVABLE : USE_RECLAIMABLE);
		struct page *free = alloc_on_phantom(a, i % 4, USE_MOVABLE);

		REQUIRE(stuck && free);
		home = home ? home : gib_of_page(stuck);
		mixed += gib_of_page(stuck) != home || gib_of_page(free) == home;
	}
	EXPECT_EQ(mixed, 0);
	EXPECT_EQ(tainted_gibs(a), 1);
}

/*
 * A GiB that has lost its last unmovable page is clean, and its free memory is for movable ones. A
 * 2 MiB page that has all its struct pages, as hvo=off has them, is not in the way.
 */
TEST_ARENA(mm_gigablock, emptied_gib_is_clean_again, borrow_gibs(2, MIB(16)))
{
	struct zone *zone = arena_phantom_zone(a);
	struct page *page = alloc_on_phantom(a, 0, USE_UNMOVABLE),
		    *low = alloc_on_phantom(a, BIG, USE_UNMOVABLE),
		    *high = alloc_on_phantom(a, BIG, USE_UNMOVABLE);
	u32 huge;

	REQUIRE(page && low && high);
	mm_page_free(&a->mm, low);
	mm_page_free(&a->mm, high);
	huge = gigablock_take(zone, FREE_FULL, BLOCK_FULL);
	REQUIRE(huge != BLOCK_NONE);
	block_publish_used(zone, huge, BLOCK_ORDER);
	EXPECT_EQ(tainted_gibs(a), 1);
	EXPECT(zone->free_type[MIGRATE_UNMOVABLE] > 0);
	mm_page_free(&a->mm, page);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(gigablock_take(zone, FREE_FULL, BLOCK_FULL), BLOCK_NONE);
	EXPECT_EQ(tainted_gibs(a), 0);
	EXPECT_EQ(zone->free_type[MIGRATE_UNMOVABLE], 0);
	block_free(zone, huge, BLOCK_ORDER);
}

/*
 * Movable pages leave room in the tainted GiB for struct pages of all memory while a free huge page
 * can be split instead: else metadata memory would taint the GiB of that page.
 */
TEST_ARENA(mm_gigablock, tainted_room_for_struct_pages_outlasts_free_huge_pages,
	   borrow_gibs(GIBS, MIB(48)))
{
	struct zone *zone = arena_phantom_zone(a);
	const u64 *left = &zone->free_type[MIGRATE_UNMOVABLE], kept = zone->ram / STRUCTS_PER_FRAME;
	struct page *page;
	u64 clean;

	page = mm_page_alloc(&a->mm, GIGA_ORDER, USE_MOVABLE, PAGE_NODE, a->options.nodes);
	REQUIRE(page);
	clean = gib_of_page(page);
	mm_page_free(&a->mm, page);
	page = alloc_on_phantom(a, BIG, USE_UNMOVABLE);
	REQUIRE(page && gib_of_page(page) != clean);
	do {
		page = alloc_on_phantom(a, BIG, USE_MOVABLE);
		REQUIRE(page);
	} while (gib_of_page(page) != clean);
	EXPECT(*left <= kept && *left + BLOCK_FRAMES > kept);
}

/*
 * All free memory is in huge pages, in both GiB. Pages that cannot be moved come from those of the
 * tainted GiB.
 */
TEST_ARENA(mm_gigablock, free_huge_pages_of_a_tainted_gib_are_used_before_another,
	   borrow_gibs(GIBS, MIB(48)))
{
	enum { FREED = 100 };
	struct page *stuck = alloc_on_phantom(a, 0, USE_UNMOVABLE), *page;
	u64 freed[2] = {0}, count = 0, home;

	REQUIRE(stuck);
	home = gib_of_page(stuck);
	while (count < ROOM && (page = alloc_on_phantom(a, BLOCK_ORDER, USE_MOVABLE)))
		table[count++] = page;
	for (u64 i = 0; i < count; i++) {
		u64 *in_gib = &freed[gib_of_page(table[i]) == home];

		if (*in_gib < FREED) {
			++*in_gib;
			mm_page_free(&a->mm, table[i]);
		}
	}
	EXPECT(freed[0] == FREED && freed[1] == FREED);
	pcp_drain_all(&a->mm);
	for (unsigned i = 0; i < FREED; i++) {
		page = alloc_on_phantom(a, BIG, USE_UNMOVABLE);
		REQUIRE(page);
		EXPECT_EQ(gib_of_page(page), home);
	}
	EXPECT_EQ(tainted_gibs(a), 1);
}

/* The pool has taken all there was, that of the tainted GiB last. That leaves it first. */
TEST_ARENA(mm_gigablock, a_pool_gives_back_memory_of_tainted_gibs_first, borrow_gibs(GIBS, MIB(16)))
{
	enum { BACK = 100 };
	const node_t node = a->options.nodes;
	struct page *page = alloc_on_phantom(a, 0, USE_UNMOVABLE), *chain = NULL;
	u64 home;

	REQUIRE(page);
	home = gib_of_page(page);
	page_chain_push(&chain, page);
	EXPECT(pool_grow_on(&a->pool, hvo_on(), node, ROOM) > GIB_BLOCKS + BACK);
	EXPECT_EQ(pool_shrink_on(&a->pool, hvo_on(), node, BACK), BACK);
	for (unsigned i = 0; i < BACK; i++) {
		page = alloc_on_phantom(a, BIG, USE_UNMOVABLE);
		REQUIRE(page);
		EXPECT_EQ(gib_of_page(page), home);
		page_chain_push(&chain, page);
	}
	EXPECT_EQ(tainted_gibs(a), 1);
}

/* Unmovable pages of half a block from all that is free. Returns how many. */
static u64 take_all_stuck(struct arena *a)
{
	u64 count = 0;

	while (alloc_on_phantom(a, BIG, USE_UNMOVABLE))
		count++;
	return count;
}

/*
 * Huge pages in use, in two GiB, which are then tainted, so that their blocks are still movable
 * when they are freed. Pages that cannot be moved find all of them.
 */
TEST_ARENA(mm_gigablock, huge_pages_freed_after_their_gib_was_tainted_are_found,
	   borrow_gibs(GIBS, MIB(48)))
{
	struct page *page;
	u64 count = 0;

	while (count < ROOM && (page = alloc_on_phantom(a, BLOCK_ORDER, USE_MOVABLE)))
		table[count++] = page;
	EXPECT_EQ(count, ROOM / 2);
	while (tainted_gibs(a) < GIBS) {
		mm_page_free(&a->mm, table[tainted_gibs(a) == 0 ? 0 : --count]);
		pcp_drain_all(&a->mm);
		REQUIRE(alloc_on_phantom(a, BIG, USE_UNMOVABLE));
	}
	for (u64 i = 1; i < count; i++)
		mm_page_free(&a->mm, table[i]);
	pcp_drain_all(&a->mm);
	EXPECT(take_all_stuck(a) >= 2 * (count - 1));
}

/* Free blocks of another type, too, in a tainted GiB: they were isolated when it was tainted. */
static void free_blocks_of_type_are_found(struct arena *a, enum migratetype type)
{
	struct zone *zone = arena_phantom_zone(a);
	const u32 first = arena_phantom_block(a);

	for (u32 index = first; index < first + GIBS * GIB_BLOCKS; index += GIB_BLOCKS)
		gigablock_taint(zone, index);
	EXPECT_EQ(migratetype_set(&a->mm, first, GIBS * GIB_BLOCKS, type), 0);
	EXPECT_EQ(take_all_stuck(a), ROOM);
}

TEST_ARENA(mm_gigablock, movable_free_blocks_of_a_tainted_gib_are_found, borrow_gibs(GIBS, MIB(48)))
{
	free_blocks_of_type_are_found(a, MIGRATE_MOVABLE);
}

TEST_ARENA(mm_gigablock, reclaimable_free_blocks_of_a_tainted_gib_are_found,
	   borrow_gibs(GIBS, MIB(48)))
{
	free_blocks_of_type_are_found(a, MIGRATE_RECLAIMABLE);
}

static struct page *claimed;

/* A request looks whether tainted GiB are clean by now. A block that it finds is given back. */
static void look_for_clean(struct zone *zone)
{
	const u32 index = gigablock_take(zone, FREE_FULL, BLOCK_FULL);

	if (index != BLOCK_NONE)
		block_publish_free(zone, index, BLOCK_ORDER);
}

/* Some CPUs look whether the tainted GiB is clean, others claim a movable page's block there. */
static void clean_or_claim(void *arg)
{
	struct zone *zone = arena_phantom_zone(arg);

	if (cpu_id() % 2 == 1)
		gigablock_claim(zone, 0, MIGRATE_UNMOVABLE);
	else
		look_for_clean(zone);
}

TEST_ARENA(mm_gigablock, a_gib_that_seems_clean_while_a_block_is_claimed_there_is_tainted,
	   borrow_gibs(GIBS, MIB(16)))
{
	struct page *page;
	u32 index;

	claimed = alloc_on_phantom(a, 0, USE_MOVABLE);
	REQUIRE(claimed);
	pcp_drain_all(&a->mm);
	index = block_of_page(claimed);
	gigablock_taint(arena_phantom_zone(a), index);
	page = alloc_on_phantom(a, BIG, USE_UNMOVABLE);
	REQUIRE(page && gib_of_page(page) == gib_of_page(claimed));
	mm_page_free(&a->mm, page);
	pcp_drain_all(&a->mm);
	cpus_run_together(clean_or_claim, a);
	if (block_type(block_at(&a->mm, index)) == MIGRATE_UNMOVABLE)
		EXPECT(gigablock_is_tainted(&a->mm, index));
	mm_page_free(&a->mm, claimed);
}

/*
 * All of memory is in use but for one chunk in a clean GiB. For each page that cannot be moved a
 * movable page of the tainted GiB goes to that chunk, and then another chunk of the clean GiB is
 * given back. Movable pages had all the rest before, also the part that is kept from them as long
 * as there is anything else.
 */
TEST_ARENA(mm_gigablock, movable_chunks_leave_a_tainted_gib_in_full_memory,
	   borrow_gibs(GIBS, MIB(48)))
{
	enum { CHUNKS = 100 };
	const u64 before = evacuated_chunks;
	struct page *page;
	struct holder h;
	u64 slot = 0;

	REQUIRE(alloc_on_phantom(a, BIG, USE_UNMOVABLE));
	holder_init(&h, &a->mm, table, ROOM);
	h.phantom = true;
	while (holder_take(&h, BIG, a->options.nodes))
		;
	EXPECT_EQ(h.slots, ROOM - 1);
	for (unsigned i = 0; i < CHUNKS; i++, slot++) {
		while (gigablock_is_tainted(&a->mm, block_of_page(table[slot])))
			slot++;
		holder_give(&h, slot);
		page = alloc_on_phantom(a, BIG, USE_UNMOVABLE);
		REQUIRE(page);
		EXPECT(gigablock_is_tainted(&a->mm, block_of_page(page)));
	}
	EXPECT_EQ(evacuated_chunks, before + CHUNKS);
	EXPECT_EQ(h.moved, CHUNKS);
	EXPECT_EQ(tainted_gibs(a), 1);
	EXPECT(holder_intact(&h));
	EXPECT(arena_accounted(a));
	holder_give_all(&h);
}

/* No page of 100 blocks may leave. A search has asked for those of 16 when it gives up. */
TEST_ARENA(mm_gigablock, holders_that_refuse_end_a_search, borrow_gibs(GIBS, MIB(16)))
{
	struct zone *zone = arena_phantom_zone(a);
	u32 first = ~0U;

	for (unsigned i = 0; i < 200; i++) {
		REQUIRE((table[i] = alloc_on_phantom(a, BIG, USE_MOVABLE)));
		mm_page_set_movable(&a->mm, table[i], &mover_refuses);
		first = MIN(first, block_of_page(table[i]));
	}
	gigablock_taint(zone, first);
	EXPECT(!evacuate(zone, BIG, MIGRATE_UNMOVABLE, true));
	EXPECT_EQ(gib_of(&a->mm, first)->refused, first % GIB_BLOCKS + 16);
}

TEST_ARENA(mm_gigablock, tainted_gibs_are_filled_from_the_highest_down, borrow_gibs(4, MIB(16)))
{
	u64 before = ~0ULL, first;
	struct zone *zone = arena_phantom_zone(a);
	const u32 index = arena_phantom_block(a);

	first = index / GIB_BLOCKS;
	gigablock_taint(zone, index);
	gigablock_taint(zone, index + 2 * GIB_BLOCKS);
	EXPECT_EQ(gigablock_next(zone, &before), first + 2);
	EXPECT_EQ(gigablock_next(zone, &before), first);
	EXPECT_EQ(gigablock_next(zone, &before), GIGABLOCK_NONE);
	EXPECT_EQ(gigablock_next(zone, &before), GIGABLOCK_NONE);
}

TEST_ARENA(mm_gigablock, machine_with_one_whole_gib_is_refused, arena_usual())
{
	EXPECT(!gigablock_begin(&a->mm, 2));
	EXPECT(!a->mm.gigablock);
}

/* ---- refuges ---- */

/*
 * Refuges: the places to which single pages move if they are in the way of 1 GiB pages.
 */

enum { TAKEN = BLOCK_FRAMES + 3 };

static struct refuge refuge;

/*
 * Borrow two GiB of phantom memory. The case empties the second one, which would be the first
 * choice.
 */
static struct arena *borrow_two(void)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(2));

	if (!a)
		return NULL;
	arena_open_all(a);
	refuge = refuge_beside(arena_phantom_zone(a), arena_phantom_block(a) / GIB_BLOCKS + 1);
	return a;
}

TEST_ARENA(mm_refuge, one_block_is_filled_before_the_next_is_split, borrow_two())
{
	u64 full = 0;

	for (unsigned i = 0; i < TAKEN; i++) {
		struct page *page = refuge_take(&refuge);

		REQUIRE(page);
		EXPECT(gib_of_page(page) != refuge.avoid);
		EXPECT(page->refcount == 1 && page_order(page) == 0 && page_head(page) == page);
	}
	for (u32 i = arena_phantom_block(a); i < arena_phantom_block(a) + 2 * GIB_BLOCKS; i++)
		full += block_look_at(&a->mm, i).state == BLOCK_FULL;
	EXPECT_EQ(full, 2);
	refuge_end(&refuge);
	EXPECT_EQ(arena_usage(a).in_use, TAKEN);
}

/* The frame after the one that was taken is found bad, or reported, before its turn. */
static void find_bad_in_refuge(struct arena *a, bool reported)
{
	struct page *page[4];
	pfn_t bad = PFN_NONE;

	for (unsigned i = 0; i < ARRAY_LEN(page); i++) {
		page[i] = refuge_take(&refuge);
		REQUIRE(page[i]);
		EXPECT(page_to_pfn(page[i]) != bad);
		if (i > 0)
			continue;
		bad = page_to_pfn(page[i]) + 1;
		if (reported)
			mm_report_bad(&a->mm, bad);
		else
			EXPECT_EQ(mm_mark_bad(&a->mm, bad), -EBUSY);
	}
	refuge_end(&refuge);
	for (unsigned i = 0; i < ARRAY_LEN(page); i++)
		mm_page_free(&a->mm, page[i]);
	EXPECT_EQ(arena_usage(a).bad, 1);
}

TEST_ARENA(mm_refuge, a_frame_found_bad_in_it_is_not_taken, borrow_two())
{
	find_bad_in_refuge(a, false);
}

TEST_ARENA(mm_refuge, a_frame_reported_in_it_is_not_taken, borrow_two())
{
	find_bad_in_refuge(a, true);
}

/*
 * A block that cannot be split for lack of struct pages is passed over. If no block can be split,
 * there is no refuge, and nothing has changed.
 */
TEST_ARENA(mm_refuge, without_struct_pages_there_is_none, borrow_two())
{
	struct page *page;

	fail_arm(&a->mm.fail, FAIL_META, 1, FAIL_AGAIN);
	EXPECT(!refuge_take(&refuge));
	fail_disarm(&a->mm.fail);
	EXPECT(arena_accounted(a));
	refuge = refuge_beside(refuge.zone, refuge.avoid);
	fail_arm(&a->mm.fail, FAIL_META, 1, FAIL_ONCE);
	page = refuge_take(&refuge);
	EXPECT(fail_disarm(&a->mm.fail));
	REQUIRE(page);
	EXPECT(gib_of_page(page) != refuge.avoid);
	refuge_end(&refuge);
}

static u32 parts;

static void taint_own(void *arg)
{
	const u32 part = atomic_fetch_add(&parts, 1);
	struct arena *a = arg;

	if (part < CPUS_TOGETHER)
		gigablock_taint(arena_phantom_zone(a), arena_phantom_block(a) + part * GIB_BLOCKS);
}

TEST_ARENA(mm_gigablock, gibs_that_several_cpus_taint_at_once_are_all_filled,
	   borrow_gibs(CPUS_TOGETHER, MIB(16)))
{
	u64 before = ~0ULL, count = 0;

	parts = 0;
	cpus_run_together(taint_own, a);
	while (gigablock_next(arena_phantom_zone(a), &before) != GIGABLOCK_NONE)
		count++;
	EXPECT_EQ(count, MIN(parts, (u32)CPUS_TOGETHER));
}

static struct page *taken[CPUS_TOGETHER];

/* Some CPUs look whether the tainted GiB is clean, others take pages there. */
static void clean_or_take(void *arg)
{
	if (cpu_id() % 2 == 1)
		taken[atomic_fetch_add(&parts, 1)] = alloc_on_phantom(arg, 0, USE_UNMOVABLE);
	else
		look_for_clean(arena_phantom_zone(arg));
}

TEST_ARENA(mm_gigablock, a_gib_that_seems_clean_while_a_page_is_taken_there_is_tainted,
	   borrow_gibs(GIBS, MIB(16)))
{
	struct page *page = alloc_on_phantom(a, 0, USE_UNMOVABLE);

	REQUIRE(page);
	mm_page_free(&a->mm, page);
	pcp_drain_all(&a->mm);
	parts = 0;
	cpus_run_together(clean_or_take, a);
	for (u32 i = 0; i < parts; i++) {
		REQUIRE(taken[i]);
		EXPECT(gigablock_is_tainted(&a->mm, block_of_page(taken[i])));
		mm_page_free(&a->mm, taken[i]);
	}
}
