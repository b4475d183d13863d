/* Maps of metadata blocks. */
#include "tests/prove/prove.h"

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
