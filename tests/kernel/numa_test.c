/*
 * Metadata lies on the node of what it describes, on whatever nodes this machine has, even if there
 * is only one. The guests that the suite starts for this include nodes without memory and nodes
 * without CPUs.
 */
#include "mm/memmap/vmemmap.h"
#include "mm/zone/section.h"
#include "tests/kernel/test.h"

static node_t frame_node(pfn_t pfn)
{
	for (size_t i = 0; i < memblock_memory.count; i++)
		if (memblock_memory.range[i].start <= pfn << PAGE_SHIFT &&
		    pfn << PAGE_SHIFT < memblock_memory.range[i].end)
			return memblock_memory.range[i].node;
	return NODE_NONE;
}

TEST(mm_numa, meta_blocks_lie_on_their_node)
{
	unsigned seen = 0;

	for (node_t n = 0; n < node_count; n++) {
		for (unsigned kind = 0; kind < META_KINDS; kind++) {
			for (const struct meta_block *m = mm_kernel.node[n].meta.list[kind]; m;
			     m = m->next, seen++)
				EXPECT_EQ(frame_node(block_pfn(m->block)), n);
		}
	}
	EXPECT(seen > 0);
}

/* The frame that holds a huge page's head, or in mapped sections all its struct pages. */
static pfn_t head_frame(const struct page *page)
{
	const u32 block = (u32)(page_pfn(page) / BLOCK_FRAMES);

	if (section_style(&mm_kernel, block / SECTION_BLOCKS) == SECTION_MAPPED)
		return block_pfn(section_memmap(&mm_kernel, block / SECTION_BLOCKS));
	return pte_pfn(pte_load(vmemmap_line(&mm_kernel, block)));
}

TEST(mm_numa, struct_pages_lie_with_what_they_describe)
{
	for (node_t n = 0; n < node_count; n++) {
		struct page *page = page_alloc(BLOCK_ORDER, USE_MOVABLE, PAGE_NODE, n);

		if (!page)
			continue; /* the node has no memory, or too little */
		EXPECT_EQ(frame_node(head_frame(page)), mm_kernel.node[n].meta_node);
		page_free(page);
	}
}
