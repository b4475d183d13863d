/* Maps of metadata blocks, and lists of boot memory. */
#include "tests/prove/prove.h"

#include "mm/map/memblock.h"
MOVER(move_ranges, struct memblock_range)
#define memmove move_ranges
#include "mm/map/memblock.c"
#undef memmove
#include "mm/memmap/meta.c"

static struct meta meta;
static struct meta_block block;

static void any_block(void)
{
	__CPROVER_havoc_object(&block);
	__CPROVER_havoc_object(&meta);
	block.kind = META_LASTING;
	block.used = 0;
	for (unsigned i = 0; i < 8; i++)
		block.used = (u16)(block.used + __builtin_popcountll(block.used_map[i]));
	block.block = ANY(u32);
}

PROVE(meta_run, "9", "a-run-over-the-end-of-a-word", "any map, a run of up to 8 frames")
{
	const unsigned count = 1 + ANY_BELOW(unsigned, 8), w = ANY_BELOW(unsigned, 8),
		       bit = ANY_BELOW(unsigned, 64);
	u64 was, offset;
	pfn_t pfn;

	any_block();
	was = block.used_map[w];
	pfn = block_take_run(&meta, &block, count);
	if (pfn == PFN_NONE) {
		prove(block.used_map[w] == was);
		prove(bit + count > 64 || (was >> bit & ((1ULL << count) - 1)) != 0);
		return;
	}
	offset = pfn - block_pfn(block.block);
	prove(offset + count <= BLOCK_FRAMES);
	prove((block.used_map[w] >> bit & 1) ==
	      (w * 64 + bit >= offset && w * 64 + bit < offset + count ? 1 : was >> bit & 1));
	if (w * 64 + bit >= offset && w * 64 + bit < offset + count)
		prove(!(was >> bit & 1));
}

PROVE(memory_lists, "5", "what-is-cut-off-stays", "lists of up to 2 ranges, any range")
{
	struct memblock_range room[4];
	struct memblock_list list = {.range = room, .count = ANY_BELOW(size_t, 3), .max = 4};
	struct memblock_range range = {
		.start = ANY(u64), .end = ANY(u64), .node = ANY_BELOW(u32, 2)};
	const phys_t at = ANY(u64);
	const bool adds = ANY_BOOL;
	bool was = false, is = false;

	for (size_t i = 0; i < 2; i++) {
		assume(room[i].start < room[i].end);
		assume(i == 0 || room[i].start >= room[i - 1].end);
		was |= i < list.count && at >= room[i].start && at < room[i].end;
	}
	assume(range.start < range.end);
	prove(adds ? memblock_list_add(&list, range)
		   : memblock_list_subtract(&list, range.start, range.end));
	prove(list.count <= 4);
	for (size_t i = 0; i < list.count; i++) {
		prove(room[i].start < room[i].end && (i == 0 || room[i].start >= room[i - 1].end));
		is |= at >= room[i].start && at < room[i].end;
	}
	prove(is == (at >= range.start && at < range.end ? adds : was));
}
