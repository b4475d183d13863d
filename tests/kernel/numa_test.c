/*
 * Nodes: every promise about locality, on whatever nodes this machine has, even if there is only
 * one. The guests that the suite starts for this include nodes without memory and nodes without
 * CPUs.
 */
#include <arch/boot.h>
#include <arch/pgtable.h>

#include "kernel/core/percpu.h"
#include "kernel/run/test.h"
#include "mm/map/memblock.h"
#include "mm/memmap/vmemmap.h"
#include "mm/memmap/zone.h"
#include "mm/zone/section.h"
#include "tests/kernel/cpus.h"

static u64 node_available(node_t node)
{
	u64 frames = 0;

	for (unsigned kind = 0; kind < ZONE_KINDS; kind++) {
		const u8 index = mm_kernel.node[node].zone[kind];
		const struct zone *zone = index == ZONE_NONE ? NULL : &mm_kernel.zone[index];

		for (unsigned c = 0; zone && c < FREE_CLASSES; c++)
			frames += zone->free_class[c];
		frames += zone ? zone->free_small + zone->unopened : 0;
	}
	return frames;
}

/*
 * The node from which memory for `node` comes while nothing is exhausted: the nearest node that has
 * any.
 */
static node_t nearest_with_memory(node_t node)
{
	const node_t *fallback = mm_kernel.node[node].fallback;
	node_t i = 0;

	while (i + 1 < mm_kernel.nodes && node_available(fallback[i]) == 0)
		i++;
	return fallback[i];
}

static node_t page_node(const struct page *page)
{
	return mm_kernel.zone[page->zone].node;
}

static node_t frame_node(pfn_t pfn)
{
	for (size_t i = 0; i < memblock_memory.count; i++)
		if (memblock_memory.range[i].start <= pfn << PAGE_SHIFT &&
		    pfn << PAGE_SHIFT < memblock_memory.range[i].end)
			return memblock_memory.range[i].node;
	return NODE_NONE;
}

/* ---- the nodes that firmware describes ---- */

TEST(mm_numa, all_ram_and_all_cpus_belong_to_a_node)
{
	u64 bytes = 0;
	cpu_t cpu;

	EXPECT_EQ(mm_kernel.nodes, node_count);
	for (node_t n = 0; n < node_count; n++)
		bytes += memblock_node_bytes(n);
	EXPECT_EQ(bytes, memblock_totals().ram_bytes);
	cpumask_foreach(cpu, &cpus_online)
		EXPECT(cpu_data(cpu)->node < node_count);
}

TEST(mm_numa, zones_lie_on_their_nodes)
{
	for (unsigned z = 0; z < mm_kernel.zones; z++) {
		const struct zone *zone = &mm_kernel.zone[z];

		EXPECT(zone->node < node_count);
		EXPECT_EQ(mm_kernel.node[zone->node].zone[zone->kind], z);
		EXPECT(zone->ram > 0);
		EXPECT_EQ(frame_node(zone->start_pfn), zone->node);
		EXPECT_EQ(frame_node(zone->end_pfn - 1), zone->node);
	}
}

TEST(mm_numa, distance_to_itself_is_least)
{
	for (node_t n = 0; n < node_count; n++) {
		EXPECT_EQ(arch_node_distance(n, n), 10);
		for (node_t to = 0; to < node_count; to++)
			EXPECT(arch_node_distance(n, to) >= 10);
	}
}

/* ---- fallback ---- */

static unsigned times_in(const node_t *list, node_t node)
{
	unsigned times = 0;

	for (node_t i = 0; i < node_count; i++)
		times += list[i] == node;
	return times;
}

TEST(mm_numa, fallback_is_every_node_once_nearest_first)
{
	for (node_t n = 0; n < node_count; n++) {
		const node_t *fallback = mm_kernel.node[n].fallback;

		EXPECT_EQ(fallback[0], n);
		for (node_t i = 0; i < node_count; i++)
			EXPECT_EQ(times_in(fallback, i), 1);
		for (node_t i = 1; i < node_count; i++)
			EXPECT(arch_node_distance(n, fallback[i - 1]) <=
			       arch_node_distance(n, fallback[i]));
	}
}

TEST(mm_numa, meta_is_the_nodes_own_or_the_nearest_ones)
{
	for (node_t n = 0; n < node_count; n++) {
		const struct node *node = &mm_kernel.node[n];
		node_t i = 0;

		/* A smaller node may not have had a free block. */
		if (memblock_node_bytes(n) >= MIB(64))
			EXPECT_EQ(node->meta_node, n);
		while (mm_kernel.node[node->fallback[i]].meta.blocks == 0)
			i++;
		EXPECT_EQ(node->meta_node, node->fallback[i]);
	}
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

/* ---- allocation ---- */

TEST(mm_numa, pages_come_from_the_node_asked_for_or_the_nearest)
{
	for (node_t n = 0; n < node_count; n++) {
		struct page *page = page_alloc(0, USE_MOVABLE, 0, n);

		REQUIRE(page);
		EXPECT_EQ(page_node(page), nearest_with_memory(n));
		EXPECT_EQ(frame_node(page_pfn(page)), page_node(page));
		page_free(page);
	}
}

TEST(mm_numa, this_node_or_nothing)
{
	for (node_t n = 0; n < node_count; n++) {
		struct page *page = page_alloc(0, USE_MOVABLE, PAGE_NODE, n);

		if (memblock_node_bytes(n) == 0)
			EXPECT(!page);
		if (nearest_with_memory(n) == n)
			EXPECT(page && page_node(page) == n);
		if (page)
			page_free(page);
	}
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

static void allocate_here(void *arg)
{
	*(struct page **)arg = page_alloc(0, USE_MOVABLE, 0, NODE_NONE);
}

/* One CPU of each node allocates without naming a node. */
TEST(mm_numa, a_cpu_allocates_on_its_own_node)
{
	cpu_t cpu;
	node_t last = this_cpu()->node;

	cpumask_foreach(cpu, &cpus_online) {
		struct page *page = NULL;

		if (cpu_data(cpu)->node == last || !cpus_wait_idle() ||
		    work_start(cpu, allocate_here, &page) < 0)
			continue;
		work_wait(cpu, 0);
		REQUIRE(page);
		last = cpu_data(cpu)->node;
		EXPECT_EQ(page_node(page), nearest_with_memory(last));
		page_free(page);
	}
	struct page *mine = page_alloc(0, USE_MOVABLE, 0, NODE_NONE);

	REQUIRE(mine);
	EXPECT_EQ(page_node(mine), nearest_with_memory(this_cpu()->node));
	page_free(mine);
}
