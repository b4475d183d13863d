/*
 * The account itself (mm/account.h): what every case relies on must notice each owner's count that is one off, and each list, record
 * and line of PTEs that does not say what it should. What is broken is an arena's, and mended again.
 */
#include "mm/account.h"

#include "kernel/printk.h"
#include "kernel/test.h"
#include "mm/page_alloc.h"
#include "tests/kernel/arena.h"

/* Memory of every kind: free in small pieces and in whole blocks, in use, huge. */
static struct arena *borrow_with_all_kinds(struct page **small, struct page **huge)
{
	struct arena *a = arena_borrow(MIB(16), .boot = {{MIB(5), KIB(8)}});

	if (!a)
		return NULL;
	*small = mm_page_alloc(&a->mm, 4, USE_MOVABLE, 0, 0);
	*huge = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, 0);
	EXPECT(*small && *huge);
	return a;
}

static void expect_noticed(struct arena *a, const char *what)
{
	if (arena_accounted(a))
		test_fail(__FILE__, __LINE__, "%s: the account does not notice", what);
}

TEST(mm_account, a_counter_that_is_one_off_is_noticed)
{
	struct page *small, *huge;
	struct arena *a = borrow_with_all_kinds(&small, &huge);
	struct zone *zone;
	struct meta *meta;

	if (!a)
		return;
	zone = arena_zone(a, 0);
	meta = &a->mm.node[0].meta;
	u64 *const counters[] = {
		&zone->free_class[FREE_BARE], &zone->free_small, &zone->free_type[MIGRATE_MOVABLE], &zone->transit,
		&zone->bad, &zone->unopened, &zone->reserved, &zone->boot, &zone->ram, &meta->blocks, &meta->used,
		&meta->gated, &meta->reserved[META_LONG],
	};

	EXPECT(arena_accounted(a));
	for (unsigned i = 0; i < ARRAY_LEN(counters); i++) {
		*counters[i] += 1;
		if (arena_accounted(a))
			test_fail(__FILE__, __LINE__, "counter %u of those above is one too high, and nobody notices", i);
		*counters[i] -= 1;
	}
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_account, a_list_that_lies_is_noticed)
{
	struct page *small, *huge, *first = NULL;
	struct arena *a = borrow_with_all_kinds(&small, &huge);
	struct block *head = NULL;
	struct zone *zone;

	if (!a)
		return;
	zone = arena_zone(a, 0);
	for (unsigned order = 0; order < PAGE_ORDERS && !first; order++)
		first = zone->page_list[MIGRATE_MOVABLE][order];
	for (unsigned list = 0; list < BLOCK_ORDERS && !head; list++)
		if (zone->block_list[FREE_BARE][MIGRATE_MOVABLE][list] != BLOCK_NONE)
			head = block_at(&a->mm, zone->block_list[FREE_BARE][MIGRATE_MOVABLE][list]);
	REQUIRE(first && head);
	first->order++;
	expect_noticed(a, "a free page of another order");
	first->order--;
	first->prev = first;
	expect_noticed(a, "a free page linked to itself");
	first->prev = NULL;
	head->prev = 0;
	expect_noticed(a, "a free block behind one that is not before it");
	head->prev = BLOCK_NONE;
	head->order++;
	expect_noticed(a, "a free block on the list of another order");
	head->order--;
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_account, a_record_or_line_that_lies_is_noticed)
{
	struct page *small, *huge;
	struct arena *a = borrow_with_all_kinds(&small, &huge);
	struct block *of_huge, *of_small;

	if (!a)
		return;
	of_huge = block_of(&a->mm, page_to_pfn(huge));
	of_small = block_of(&a->mm, page_to_pfn(small));
	REQUIRE(of_huge->state == BLOCK_HUGE && of_small->state == BLOCK_FULL);
	of_huge->state = BLOCK_FULL; /* its tails are shared and read-only */
	expect_noticed(a, "a full block whose tails are shared");
	of_huge->state = BLOCK_HUGE;
	of_small->state = BLOCK_HUGE; /* its tails are its own and writable */
	expect_noticed(a, "a huge page whose tails can be written");
	of_small->state = BLOCK_FULL;
	small->refcount = 0;
	small->flags |= PAGE_BUDDY;
	expect_noticed(a, "a page in use that says it is free");
	small->refcount = 1;
	small->flags &= (u16)~PAGE_BUDDY;
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* The summaries of GiB, from which ranges are chosen, are kept for whole ones only. */
TEST(mm_account, a_summary_that_lies_is_noticed)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	struct gib *gib;

	if (!a)
		return;
	arena_open_all(a);
	gib = gib_of(&a->mm, arena_phantom_block(a));
	EXPECT(gib->whole);
	gib->free++;
	expect_noticed(a, "a GiB that counts one free frame more");
	gib->free--;
	gib->movable++;
	expect_noticed(a, "a GiB that counts one movable frame more");
	gib->movable--;
	EXPECT(arena_accounted(a));
	arena_return(a);
}
