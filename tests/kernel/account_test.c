/*
 * The account itself (mm/debug/account.h), on which every case relies. It must notice each owner's
 * count that is one off, each list, record and line of PTEs that is wrong, and each frame of
 * metadata memory that is lost, used twice, or used and free, even if every counter agrees with
 * every map. The cases break the state of an arena and restore it.
 */
#include "tests/kernel/mm_test.h"

/*
 * Borrow an arena with memory of every kind: free in small pieces and in whole blocks, in use,
 * huge.
 */
static struct {
	struct page *small, *huge;
} held;

static struct arena *borrow_all_kinds(void)
{
	struct arena *a = arena_borrow(MIB(16), .boot = {{MIB(5), KIB(8)}});

	if (!a)
		return NULL;
	held.small = mm_page_alloc(&a->mm, 4, USE_MOVABLE, 0, 0);
	held.huge = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, 0);
	EXPECT(held.small && held.huge);
	EXPECT(arena_accounted(a));
	return a;
}

static void expect_noticed(struct arena *a, const char *what)
{
	if (arena_accounted(a))
		test_fail(__FILE__, __LINE__, "%s: the account does not notice", what);
}

/* Flip these bits of the record until the account has looked at it. */
static void lie(struct arena *a, struct block *block, struct block_word bits, const char *what)
{
	const u64 truth = block->word;

	block_put(block, block_word_of(truth ^ block_word_bits(bits)));
	expect_noticed(a, what);
	block_put(block, block_word_of(truth));
}

/* ---- counters ---- */

struct counter {
	const char *name;
	void *at;
	unsigned bytes;
};

#define COUNTER(lvalue)                                                                            \
	(struct counter)                                                                           \
	{                                                                                          \
#lvalue, &(lvalue), sizeof(lvalue)                                                 \
	}

static void count(const struct counter *c, s64 by)
{
	switch (c->bytes) {
	case sizeof(u16):
		*(u16 *)c->at = (u16)(*(u16 *)c->at + by);
		break;
	case sizeof(u32):
		*(u32 *)c->at += (u32)by;
		break;
	default:
		*(u64 *)c->at += (u64)by;
	}
}

/* Try each counter one too high and one too low. */
static void expect_watched(struct arena *a, const struct counter *counters, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		for (int by = 1; by >= -1; by -= 2) {
			count(&counters[i], by);
			if (arena_accounted(a))
				test_fail(__FILE__, __LINE__, "%s is %d off, and nobody notices",
					  counters[i].name, by);
			count(&counters[i], -by);
		}
	}
	EXPECT(arena_accounted(a));
}

#define EXPECT_WATCHED(a, ...)                                                                     \
	expect_watched(a, (const struct counter[]){__VA_ARGS__},                                   \
		       sizeof((const struct counter[]){__VA_ARGS__}) / sizeof(struct counter))

/*
 * Statistics since the start are not among the counters, and neither are hints (hint, open_cursor,
 * high), because they count nothing that exists.
 */
TEST_ARENA(mm_account, a_counter_that_is_one_off_is_noticed, borrow_all_kinds())
{
	struct zone *zone = arena_zone(a, 0);
	struct block *of_small = block_of(&a->mm, page_to_pfn(held.small));
	struct meta *meta = &a->mm.node[0].meta;

	for (unsigned i = 0; i < FREE_CLASSES; i++)
		EXPECT_WATCHED(a, COUNTER(zone->free_class[i]));
	for (unsigned i = 0; i < MIGRATE_LISTS; i++)
		EXPECT_WATCHED(a, COUNTER(zone->free_type[i]));
	for (unsigned i = 0; i < META_KINDS; i++)
		EXPECT_WATCHED(a, COUNTER(meta->free[i]), COUNTER(meta->reserved[i]),
			       COUNTER(meta->unused[i]));
	EXPECT_WATCHED(a, COUNTER(zone->free_small), COUNTER(zone->transit), COUNTER(zone->bad),
		       COUNTER(zone->unopened), COUNTER(zone->ram), COUNTER(zone->reserved),
		       COUNTER(zone->boot), COUNTER(zone->pcp_disabled), COUNTER(meta->blocks),
		       COUNTER(meta->used), COUNTER(meta->gated),
		       COUNTER(a->mm.pcp[0]->counts->count[COUNT_TABLES]),
		       COUNTER(a->mm.splits_unflushed), COUNTER(a->mm.transit_kept),
		       COUNTER(((u16 *)&of_small->word)[BLOCK_FREE_PAGES_SHIFT / 16]),
		       COUNTER(a->mm.gib->movable), COUNTER(a->mm.gib->meta));
}

/* The zone is so large that a CPU may hold a huge page, unless there are very many CPUs. */
TEST_ARENA(mm_account, a_cpus_count_that_is_one_off_is_noticed, arena_usual())
{
	const node_t node = arena_phantom_zone(a)->node;
	struct pcp_zone *mine = a->mm.pcp[cpu_id()]->zone[arena_phantom_zone(a)->index];

	for (unsigned order = 0; order <= BLOCK_ORDER; order += BLOCK_ORDER) {
		struct page *page = mm_page_alloc(&a->mm, order, USE_MOVABLE, PAGE_NODE, node);

		REQUIRE(page);
		mm_page_free(&a->mm, page);
	}
	EXPECT(mine->held > 0);
	EXPECT_EQ(mine->huge_count, mine->high >= BLOCK_FRAMES);
	EXPECT_WATCHED(a, COUNTER(mine->held), COUNTER(mine->moved));
	if (mine->huge_count > 0)
		EXPECT_WATCHED(a, COUNTER(mine->huge_count));
	EXPECT_WATCHED(a, COUNTER(arena_phantom_zone(a)->unopened));
}

/*
 * The account cannot check all of reserved (but for huge mappings), overcommit, boot and turn,
 * because only the pool itself knows them.
 */
TEST_ARENA(mm_account, a_pools_count_that_is_one_off_is_noticed, arena_borrow(MIB(16)))
{
	struct page *page;
	struct pool *pool = &a->pool;

	EXPECT_EQ(pool_grow(pool, hvo_on(), 3), 3);
	page = pool_page_take(pool, NODE_NONE, POOL_ANY);
	REQUIRE(page);
	pool_resize(pool, hvo_on(), 0); /* the page in use becomes surplus */
	EXPECT_EQ(pool_grow(pool, hvo_on(), 2), 2);
	EXPECT_EQ(pool->surplus, 1);
	EXPECT(arena_accounted(a));
	EXPECT_WATCHED(a, COUNTER(pool->pages), COUNTER(pool->free), COUNTER(pool->in_use),
		       COUNTER(pool->surplus), COUNTER(pool->making), COUNTER(pool->node->pages),
		       COUNTER(pool->node->surplus), COUNTER(pool->node->free.count),
		       COUNTER(pool->node->free.tail));
	EXPECT_WATCHED(a, COUNTER(block_page(&a->mm, pool->node->free.head)->refcount));
	/* the links of a wrong page may be wrong, so no page behind it is looked at */
	block_page(&a->mm, pool->node->free.head)->refcount = 1;
	block_page(&a->mm, pool->node->free.tail)->refcount = 1;
	said_begin();
	expect_noticed(a, "two free pages have a reference");
	said_end();
	EXPECT(!said_says("does not match its list*does not match its list"));
	block_page(&a->mm, pool->node->free.head)->refcount = 0;
	block_page(&a->mm, pool->node->free.tail)->refcount = 0;
	pool->reserved = pool->pages + 1;
	expect_noticed(a, "more is promised than there is");
	pool->reserved = 0;
	pool_page_give(pool, page);
	EXPECT_EQ(pool_resize(pool, hvo_on(), 0), 0);
}

/* ---- lists, records, lines, summaries ---- */

TEST_ARENA(mm_account, a_list_that_lies_is_noticed, borrow_all_kinds())
{
	struct page *first = NULL;
	struct block *head = NULL;
	unsigned is;
	struct zone *zone = arena_zone(a, 0);

	for (unsigned order = 0; order < PAGE_ORDERS && !first; order++)
		first = zone->page_list[MIGRATE_MOVABLE][order];
	for (unsigned list = 0; list < BLOCK_ORDERS && !head; list++)
		if (zone->block_list[FREE_BARE][MIGRATE_MOVABLE][list] != BLOCK_NONE)
			head = block_at(&a->mm, zone->block_list[FREE_BARE][MIGRATE_MOVABLE][list]);
	REQUIRE(first && head);
	is = block_look(head).order;
	first->order++;
	expect_noticed(a, "a free page of another order");
	first->order--;
	first->prev = first;
	expect_noticed(a, "a free page linked to itself");
	first->prev = NULL;
	head->prev = 0;
	expect_noticed(a, "a free block behind one that is not before it");
	head->prev = BLOCK_NONE;
	lie(a, head, BLOCK_WORD(.order = (u8)(is ^ (is + 1))),
	    "a free block on the list of another order");
	for (unsigned type = 0; type < MIGRATE_LISTS; type++) {
		EXPECT_WATCHED(a, COUNTER(zone->page_orders[type]));
		for (unsigned class = 0; class < FREE_CLASSES; class ++)
			EXPECT_WATCHED(a, COUNTER(zone->block_lists[class][type]));
	}
}

/*
 * If no cached type was ever believed (pcp.type_cache=), each free page lies on the list of its
 * block's type.
 */
TEST_ARENA(mm_account, a_page_on_a_list_of_another_type_is_noticed, borrow_all_kinds())
{
	struct block *block = block_of(&a->mm, page_to_pfn(held.small));

	REQUIRE(block_look(block).free_pages > 0 && block_look(block).type == MIGRATE_MOVABLE);
	EXPECT_EQ(pcp_stats(&a->mm).stale, 0);
	lie(a, block, BLOCK_WORD(.type = MIGRATE_MOVABLE ^ MIGRATE_RECLAIMABLE),
	    "free pages of a block of another type");
}

TEST_ARENA(mm_account, a_record_or_line_that_lies_is_noticed, borrow_all_kinds())
{
	struct isolation token;
	const u32 huge_index = block_of_page(held.huge);
	struct block *of_huge = block_at(&a->mm, huge_index);
	struct block *of_small = block_of(&a->mm, page_to_pfn(held.small));

	REQUIRE(block_look(of_huge).state == BLOCK_HUGE &&
		block_look(of_small).state == BLOCK_FULL);
	lie(a, of_huge, BLOCK_WORD(.state = BLOCK_HUGE ^ BLOCK_FULL),
	    "a full block whose tails are shared");
	lie(a, of_small, BLOCK_WORD(.state = BLOCK_HUGE ^ BLOCK_FULL),
	    "a huge page whose tails can be written");
	lie(a, of_huge, BLOCK_WORD(.type = BLOCK_ISOLATED),
	    "a block in use that is isolated by nobody");
	REQUIRE(isolate_block(arena_zone(a, 0), huge_index, &token) == 0);
	EXPECT(arena_accounted(a));
	lie(a, of_huge, BLOCK_WORD(.type = BLOCK_ISOLATED), "an isolation of what is not isolated");
	isolate_undo(arena_zone(a, 0), &token);
	held.small->refcount = 0;
	held.small->flags |= PAGE_BUDDY;
	expect_noticed(a, "a page in use that says it is free");
	held.small->refcount = 1;
	held.small->flags &= (u16)~PAGE_BUDDY;
}

/*
 * A frame of the firmware is given out as a movable page, and every counter (reserved, in use,
 * movable) agrees with that. The ranges of the boot still say that the frame is the firmware's.
 */
TEST_ARENA(mm_account, a_frame_of_the_firmware_that_is_given_out_is_noticed,
	   arena_borrow(MIB(16), .firmware = {{MIB(5), KIB(8)}}))
{
	struct zone *zone;
	struct page *page;

	arena_open_all(a);
	EXPECT(arena_accounted(a));
	zone = arena_zone(a, 0);
	page = pfn_page(&a->mm, (a->start + MIB(5)) >> PAGE_SHIFT);
	REQUIRE(page->flags == PAGE_RESERVED);
	page_set_kind(page, 0, 0);
	page->refcount = 1;
	zone->reserved--;
	pcp_count_in_use(zone, 1);
	expect_noticed(a, "a frame of the firmware's in use, with all counters");
	pcp_count_in_use(zone, -1);
	zone->reserved++;
	page->refcount = 0;
	page_set_kind(page, PAGE_RESERVED, 0);
}

/* The summaries, by which ranges are chosen, exist for whole GiB only. */
TEST_ARENA(mm_account, a_summary_that_lies_is_noticed, arena_usual())
{
	struct gib *gib;

	arena_open_all(a);
	gib = gib_of(&a->mm, arena_phantom_block(a));
	EXPECT(gib->whole);
	EXPECT_WATCHED(a, COUNTER(gib->free), COUNTER(gib->movable), COUNTER(gib->meta));
}

/* ---- metadata memory ---- */

static pte_t *line_of(struct arena *a, const struct page *page)
{
	return vmemmap_line(&a->mm, block_of_page(page));
}

TEST_ARENA(mm_account, a_meta_frame_that_nothing_uses_is_noticed, borrow_all_kinds())
{
	static const enum meta_kind kinds[] = {META_LASTING, META_TAILS};
	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
		pfn_t pfn;

		REQUIRE(meta_reserve(&a->mm.node[0], kinds[i], 1) == 0);
		pfn = meta_take(&a->mm.node[0], kinds[i]);
		EXPECT(!arena_accounted(a));
		meta_give(&a->mm, pfn, 0);
		EXPECT(arena_accounted(a));
	}
}

/*
 * One entry maps the frame of another: first a frame of the same block, then a head's frame among
 * private tails.
 */
TEST_ARENA(mm_account, a_meta_frame_that_two_use_is_noticed, borrow_all_kinds())
{
	pte_t *line, kept;

	line = line_of(a, held.small);
	REQUIRE(line && line_of(a, held.huge));
	kept = line[5];
	line[5] = line[4];
	EXPECT(!arena_accounted(a));
	line[5] = line_of(a, held.huge)[0];
	EXPECT(!arena_accounted(a));
	line[5] = kept;
	EXPECT(arena_accounted(a));

	/* No frame is mapped in the line of metadata memory's own block, so none is lost. */
	line = vmemmap_line(&a->mm, arena_block(a));
	REQUIRE(line && block_look_at(&a->mm, arena_block(a)).state == BLOCK_META);
	line[0] = line_of(a, held.huge)[0];
	EXPECT(!arena_accounted(a));
	line[0] = 0;
}

/* A frame is in use although the maps call it free or gated. The counters agree with the maps. */
TEST_ARENA(mm_account, a_meta_frame_in_use_that_is_free_or_gated_is_noticed, borrow_all_kinds())
{
	const pfn_t head = pte_pfn(line_of(a, held.huge)[0]);
	struct meta_block *home = block_of(&a->mm, head)->meta;
	struct meta *meta = &home->node->meta;
	const u64 bit = 1ULL << head % 64;

	home->used_map[head % BLOCK_FRAMES / 64] ^= bit;
	home->used--;
	meta->used--;
	meta->free[home->kind]++;
	EXPECT(!arena_accounted(a));
	meta->free[home->kind]--;
	meta->used++;
	home->used++;
	home->used_map[head % BLOCK_FRAMES / 64] ^= bit;
	EXPECT(arena_accounted(a));

	home->gated_map[head % BLOCK_FRAMES / 64] ^= bit;
	home->gated++;
	meta->gated++;
	EXPECT(!arena_accounted(a));
	meta->gated--;
	home->gated--;
	home->gated_map[head % BLOCK_FRAMES / 64] ^= bit;
}
