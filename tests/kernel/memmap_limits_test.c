/*
 * Struct pages in awkward conditions: made over memory full of garbage, and made when metadata
 * memory has no frames left.
 */
#include "kernel/core/wait.h"
#include "kernel/lib/string.h"
#include "kernel/run/test.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/meta.h"
#include "mm/page/page_alloc.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/buddy.h"
#include "mm/zone/memmap_open.h"
#include "mm/zone/section_memmap.h"
#include "mm/zone/transit.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/chain.h"

/* ---- nothing is read before it is written ---- */

enum { GARBAGE = 0xa5 };

static void spoil(pfn_t pfn, u64 frames)
{
	memset(phys_to_virt(pfn << PAGE_SHIFT), GARBAGE, frames * PAGE_SIZE);
}

static void spoil_meta(const struct arena *a, u32 index)
{
	const struct meta_block *meta = block_at(&a->mm, index)->meta;

	for (unsigned i = 0; i < BLOCK_FRAMES; i++)
		if (!(meta->used_map[i / 64] >> i % 64 & 1))
			spoil(block_pfn(index) + i, 1);
}

/*
 * Spoil the memory where struct pages will lie: the homes of mapped sections, metadata memory's
 * free frames, and blocks into which metadata memory may grow.
 */
static void spoil_arena(struct arena *a)
{
	const u32 first = arena_block(a), end = first + (u32)(a->options.bytes >> BLOCK_SHIFT);

	for (u32 i = first; i < end; i++) {
		const struct block *block = block_at(&a->mm, i);

		if (block_look(block).state == BLOCK_META)
			spoil_meta(a, i);
		else if (block_look(block).state == BLOCK_BARE && i % SECTION_BLOCKS < 8)
			spoil(block_pfn(i), BLOCK_FRAMES);
	}
	for (u64 section = first / SECTION_BLOCKS; section < end / SECTION_BLOCKS; section++)
		for (unsigned z = 0; z < a->mm.zones; z++) {
			const u32 home = section_home(&a->mm.zone[z], section);

			if (home != BLOCK_NONE &&
			    (block_look_at(&a->mm, home).state == BLOCK_BARE ||
			     block_look_at(&a->mm, home).state == BLOCK_UNOPENED))
				spoil(block_pfn(home), BLOCK_FRAMES);
		}
}

/* Compare a struct page with what the boot ranges say about its frame. */
static bool is_right(struct arena *a, pfn_t pfn, const struct page *page)
{
	u8 zone = page->zone; /* a hole keeps the zone of its block, which no code uses */

	switch (memmap_frame_kind(&a->mm, pfn, &zone)) {
	case FRAME_HOLE:
	case FRAME_RESERVED:
		return page->flags == PAGE_RESERVED && page->refcount == 0 && page->zone == zone;
	case FRAME_BOOT:
		return page->flags == PAGE_BOOT && page->refcount == 1 && page->zone == zone;
	default:
		return !(page->flags & ~(PAGE_BUDDY | PAGE_PCP)) && page->refcount == 0 &&
		       page->zone == zone && page_head(page) == page;
	}
}

/* Struct pages lie in frames: if the first one of a frame can be read, all of them can. */
static bool is_there(struct arena *a, pfn_t pfn)
{
	struct page page;

	return pfn % STRUCTS_PER_FRAME != 0 || mm_page_peek(&a->mm, pfn, &page);
}

/*
 * Check the frames of a block that has struct pages of its own. Returns the number of wrong ones.
 */
static u64 check_block(struct arena *a, u32 index)
{
	u64 wrong = 0;

	for (pfn_t pfn = block_pfn(index); pfn < block_pfn(index + 1); pfn++) {
		if (!is_there(a, pfn))
			return wrong + BLOCK_FRAMES;
		if (!is_right(a, pfn, pfn_page(&a->mm, pfn)) && wrong++ == 0)
			test_fail(__FILE__, __LINE__, "frame %llx: flags %x refcount %u zone %u",
				  pfn - block_pfn(arena_block(a)), pfn_page(&a->mm, pfn)->flags,
				  pfn_page(&a->mm, pfn)->refcount, pfn_page(&a->mm, pfn)->zone);
	}
	return wrong;
}

static void check_all(struct arena *a)
{
	u64 seen = 0, wrong = 0;

	for (u32 index = arena_block(a); index < arena_block(a) + (a->options.bytes >> BLOCK_SHIFT);
	     index++) {
		const enum block_state state = block_look_at(&a->mm, index).state;

		if (state != BLOCK_FULL && state != BLOCK_RESERVED)
			continue;
		seen++;
		wrong += check_block(a, index);
	}
	EXPECT_EQ(wrong, 0);
	EXPECT(seen > 0);
	EXPECT(arena_accounted(a));
}

/* Allocate every page and free it. Lists that were built on garbage would not survive that. */
static void use_all(struct arena *a)
{
	struct page *chain = NULL;

	chain_take_all(&chain, &a->mm, 0, 0, NODE_NONE);
	chain_give(&chain, &a->mm);
	pcp_drain_all(&a->mm);
}

/*
 * The arena has a hole and a firmware range off the block grid, boot memory, a node border inside a
 * block, and RAM that ends inside a block.
 */
static void over_garbage(unsigned way)
{
	static struct memmap_opened opened[ARENA_NODES_MAX * 2];
	struct arena *a = arena_borrow(MIB(512), .nodes = 2, .skew = MIB(3), .short_by = KIB(100),
				       .hole = {{MIB(168) + KIB(12), MIB(5)}},
				       .firmware = {{MIB(60) + KIB(4), KIB(20)}},
				       .boot = {{MIB(70), MIB(2)}});

	if (!a)
		return;
	spoil_arena(a);
	memmap_open_all(&a->mm, &memmap_ways[way],
			(struct memmap_threads){.value = 100, .percent = true}, opened);
	check_all(a);
	use_all(a);
	check_all(a);
	arena_return(a);
}

TEST(mm_memmap_open, poisoned_memory_does_not_show_in_mapped_sections)
{
	for (unsigned way = 0; memmap_ways[way].name; way++)
		if (memmap_ways[way].style == SECTION_MAPPED)
			over_garbage(way);
}

TEST(mm_memmap_open, poisoned_memory_does_not_show_on_demand)
{
	over_garbage(WAY_LAZY);
}

/* ---- metadata memory has no frames left ---- */

enum { PATIENCE_MS = 300 };

static void exhaust(struct node *node, u64 reserved[META_KINDS])
{
	for (enum meta_kind kind = 0; kind < META_KINDS; kind++) {
		reserved[kind] = node->meta.free[kind] - node->meta.reserved[kind];
		if (kind == META_LASTING)
			EXPECT_EQ(meta_reserve_emergency(node, reserved[kind]), 0);
		else
			EXPECT_EQ(meta_reserve_now(node, kind, reserved[kind]), 0);
	}
}

static void relieve(struct node *node, const u64 reserved[META_KINDS])
{
	for (enum meta_kind kind = 0; kind < META_KINDS; kind++)
		meta_unreserve(node, kind, reserved[kind]);
}

/*
 * The only free memory is one GiB in one piece and one block. The block becomes metadata memory,
 * and the GiB is split down to one page. Without that block the request is refused and changes
 * nothing.
 */
TEST_ARENA(mm_memmap_open, a_gigabyte_is_split_to_a_page_with_meta_empty_and_one_block_besides,
	   arena_borrow(MIB(4), .phantom = GIB(1)))
{
	struct block_list taken = BLOCK_LIST_INIT;
	u64 reserved[META_KINDS];
	const u64 patience_ms = wait_period_ms;
	struct page *page;

	arena_open_all(a);
	EXPECT_EQ(arena_phantom_zone(a)->free_class[FREE_BARE], order_pages(GIGA_ORDER));
	exhaust(&a->mm.node[0], reserved);
	REQUIRE(block_take(arena_zone(a, 0), FREE_BARE, BLOCK_ORDER, 1, BLOCK_HUGE, &taken) == 1);
	wait_period_ms = PATIENCE_MS; /* this test holds the block, so waiting for it is useless */
	EXPECT(!mm_page_alloc(&a->mm, 0, USE_MOVABLE, PAGE_NODE, 1));
	wait_period_ms = patience_ms;
	EXPECT_EQ(arena_phantom_zone(a)->free_class[FREE_BARE], order_pages(GIGA_ORDER));
	block_list_publish_free(&a->mm, &taken);
	page = mm_page_alloc(&a->mm, 0, USE_MOVABLE, PAGE_NODE, 1);
	relieve(&a->mm.node[0], reserved);
	REQUIRE(page);
	EXPECT_EQ(arena_phantom_zone(a)->free_class[FREE_BARE],
		  order_pages(GIGA_ORDER) - BLOCK_FRAMES);
	EXPECT(arena_accounted(a));
	mm_page_free(&a->mm, page);
}
