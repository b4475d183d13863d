/*
 * The account of metadata memory (mm/debug/account_meta.c). It must notice a frame that is lost,
 * used twice, or used and free, even if every counter agrees with every map. The cases break the
 * state of an arena and restore it.
 */
#include "kernel/run/test.h"
#include "mm/debug/account.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/vmemmap.h"
#include "mm/page/page_alloc.h"
#include "tests/kernel/arena.h"

/* Borrow an arena with a block of small pages, a huge page, and metadata memory of both kinds. */
static struct arena *borrow_with_pages(struct page **small, struct page **huge)
{
	struct arena *a = arena_borrow(MIB(16));

	if (!a)
		return NULL;
	*small = mm_page_alloc(&a->mm, 0, USE_MOVABLE, 0, 0);
	*huge = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, 0);
	EXPECT(*small && *huge);
	EXPECT(arena_accounted(a));
	return a;
}

static pte_t *line_of(struct arena *a, const struct page *page)
{
	return vmemmap_line(&a->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER));
}

TEST(mm_account, a_meta_frame_that_nothing_uses_is_noticed)
{
	static const enum meta_kind kinds[] = {META_LASTING, META_TAILS};
	struct page *small, *huge;
	struct arena *a = borrow_with_pages(&small, &huge);

	if (!a)
		return;
	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
		pfn_t pfn;

		REQUIRE(meta_reserve_now(&a->mm.node[0], kinds[i], 1) == 0);
		pfn = meta_take(&a->mm.node[0], kinds[i]);
		EXPECT(!arena_accounted(a));
		meta_give(&a->mm, pfn, 0);
		EXPECT(arena_accounted(a));
	}
	arena_return(a);
}

/*
 * One entry maps the frame of another: first a frame of the same block, then a head's frame among
 * private tails.
 */
TEST(mm_account, a_meta_frame_that_two_use_is_noticed)
{
	struct page *small, *huge;
	struct arena *a = borrow_with_pages(&small, &huge);
	pte_t *line, kept;

	if (!a)
		return;
	line = line_of(a, small);
	REQUIRE(line && line_of(a, huge));
	kept = line[5];
	line[5] = line[4];
	EXPECT(!arena_accounted(a));
	line[5] = line_of(a, huge)[0];
	EXPECT(!arena_accounted(a));
	line[5] = kept;
	EXPECT(arena_accounted(a));

	/* No frame is mapped in the line of metadata memory's own block, so none is lost. */
	line = vmemmap_line(&a->mm, arena_block(a));
	REQUIRE(line && block_look_at(&a->mm, arena_block(a)).state == BLOCK_META);
	line[0] = line_of(a, huge)[0];
	EXPECT(!arena_accounted(a));
	line[0] = 0;
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* A frame is in use although the maps call it free or gated. The counters agree with the maps. */
TEST(mm_account, a_meta_frame_in_use_that_is_free_or_gated_is_noticed)
{
	struct page *small, *huge;
	struct arena *a = borrow_with_pages(&small, &huge);
	struct meta_block *home;
	struct meta *meta;
	pfn_t head;
	u64 bit;

	if (!a)
		return;
	head = pte_pfn(line_of(a, huge)[0]);
	home = block_of(&a->mm, head)->meta;
	meta = &home->node->meta;
	bit = 1ULL << head % 64;

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
	EXPECT(arena_accounted(a));
	arena_return(a);
}
