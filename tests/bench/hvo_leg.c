/*
 * The start of a leg of the benchmark of the HVO series (Kravetz 2023). Sections are closed and
 * opened anew, and blocks are brought to the requested state. See hvo_bench.c for the states.
 */
#include "kernel/core/verdict.h"
#include "mm/page/page_split.h"
#include "tests/bench/hvo_bench.h"
#include "tests/kernel/mm_test.h"

/* Pages of the benchmark's size that are free in one class. */
static u64 free_of_class(enum free_class class)
{
	const unsigned order = hvo_pool()->order;
	u64 pages = 0;

	for (unsigned z = 0; z < mm_kernel.zones; z++) {
		const struct zone *zone = &mm_kernel.zone[z];

		if (order == BLOCK_ORDER) {
			pages += zone->free_class[class] / BLOCK_FRAMES;
			continue;
		}
		for (unsigned type = 0; type < MIGRATE_TYPES; type++)
			pages += buddy_count_runs(zone, class, type, order);
	}
	return pages;
}

/* Open sections in the mode's style until `pages` are free in it, or memory ends. */
static void open_for(const struct hvo_mode *mode, u64 pages)
{
	const enum section_style style = mode->mapped ? SECTION_MAPPED : SECTION_ON_DEMAND;
	const enum free_class class = mode->mapped ? FREE_MAPPED : FREE_BARE;

	for (unsigned z = mm_kernel.zones; z-- > 0;)
		while (free_of_class(class) < pages &&
		       section_open_next(&mm_kernel.zone[z], style) == 0)
			;
}

/* Is each mapped section under one leaf, as it was initialised? */
static bool under_leaves(void)
{
	for (u64 section = section_first(&mm_kernel); section < section_end(&mm_kernel); section++)
		if (section_state(&mm_kernel, section) == SECTION_OPEN &&
		    section_style(&mm_kernel, section) == SECTION_MAPPED &&
		    !vmemmap_is_leaf(&mm_kernel, section))
			return false;
	return true;
}

/* Memory is fresh if no huge block is left and, for the baselines, all is under leaves. */
static const char *leg_source(const struct hvo_mode *mode)
{
	return free_of_class(FREE_HUGE) > 0 || (mode->mapped && !under_leaves()) ? "again"
										 : "fresh";
}

/*
 * Reset memory for a leg. False if no page is free in the state that this mode starts from; on
 * small machines no section can be closed.
 */
static bool leg_reset(struct leg *leg)
{
	const enum free_class class = leg->mode->mapped ? FREE_MAPPED : FREE_BARE;
	u64 start;

	sections_close_all(&mm_kernel);
	start = clock_ns();
	open_for(leg->mode, leg->pages);
	leg->debt_open_ns = clock_ns() - start;
	leg->source = leg_source(leg->mode);
	if (free_of_class(class) < leg->pages)
		leg->pages = free_of_class(class) * 15 / 16; /* leaves what metadata memory needs */
	if (leg->pages == 0 && hvo_pool()->order == GIGA_ORDER)
		leg->pages = free_of_class(class);
	return leg->pages > 0;
}

/* Give struct pages to the blocks that every zone keeps back for callers that may not wait. */
static void split_rest(struct zone *zone)
{
	const u64 end = DIV_ROUND_UP(zone->end_pfn, (u64)BLOCK_FRAMES);

	for (u64 index = zone->start_pfn / BLOCK_FRAMES; index < end; index++)
		if (block_look_any(&mm_kernel, (u32)index).state == BLOCK_BARE)
			page_split_block(zone, (u32)index, 0);
}

/*
 * Allocate `pages` pages' worth of order-0 pages and write each. Then allocate all other memory in
 * larger pieces, which are not written. Free it all and drain. Every block of the machine is then
 * full and free again. It has to be every block, because a pool takes bare ones first.
 */
static void recycle(u64 pages)
{
	struct page *chain = NULL;

	pages *= order_pages(hvo_pool()->order);
	for (u64 i = 0; i < pages && chain_take(&chain, &mm_kernel, 1, 0, 0, NODE_NONE); i++)
		*(volatile u64 *)page_address(chain) = i;
	chain_take_all(&chain, &mm_kernel, BLOCK_ORDER - 1, 0, NODE_NONE);
	chain_give(&chain, &mm_kernel);
	pcp_drain_all(&mm_kernel);
	for (unsigned z = 0; z < mm_kernel.zones; z++)
		split_rest(&mm_kernel.zone[z]);
}

/* Bring memory from the reset state to the leg's source. */
static void leg_prepare(struct leg *leg, unsigned source)
{
	if (leg->source[0] != 'f')
		return; /* could not be reset and stays as it is */
	if (source == SOURCE_RECYCLED) {
		/* room for a block with the heads: no other block will be bare */
		open_for(leg->mode, leg->pages + 1);
		recycle(leg->pages);
	}
	if (source == SOURCE_AGAIN) {
		const u64 grown = pool_grow(hvo_pool(), leg->mode, leg->pages);

		pool_shrink(hvo_pool(), leg->mode, grown);
	}
	leg->source = hvo_source_names[source];
}

/*
 * Is memory in the state that the leg is about? Huge blocks, and leaves that were split, are left
 * by `again` only. Growth in recycled memory makes bare blocks of its own when metadata memory is
 * given back.
 */
static bool leg_holds(const struct leg *leg, unsigned source)
{
	const bool again = source == SOURCE_AGAIN, shares = leg->mode->make != hvo_form;

	if (!again && free_of_class(FREE_HUGE) > 0)
		return false;
	if (leg->mode->mapped)
		return free_of_class(FREE_MAPPED) >= leg->pages &&
		       under_leaves() == !(again && shares);
	if (again)
		return free_of_class(FREE_HUGE) >= MAX(leg->pages, 1);
	return source == SOURCE_FRESH || free_of_class(FREE_BARE) == 0;
}

bool hvo_leg_begin(struct leg *leg, unsigned source)
{
	static u64 most[SOURCES][2]; /* blocks, because benchmarks of one boot may differ in size */
	const u64 asked = leg->pages;

	leg_work_prepare(&leg->work);
	if (!leg_reset(leg)) {
		print("  # %s: skipped: no memory of this machine can be opened %s\n",
		      leg->mode->name, leg->mode->mapped ? "mapped" : "on demand");
		verdict_count(0, 0, 1);
		return false;
	}
	leg_prepare(leg, source);
	/*
	 * Where memory was short, some pages came from mapped sections that no leg can close,
	 * because metadata memory lies in them. Those do not stay huge.
	 */
	if (source == SOURCE_AGAIN && !leg->mode->mapped && leg->pages < asked)
		leg->pages = MIN(leg->pages, free_of_class(FREE_HUGE));
	if (strcmp(leg->source, hvo_source_names[source]) != 0) {
		verdict_count(0, 0, 1); /* measured all the same; the table says so */
	} else if (!leg_holds(leg, source)) {
		pr_err("hvo: %s: memory is not %s: %llu pages bare, %llu huge", leg->mode->name,
		       leg->source, free_of_class(FREE_BARE), free_of_class(FREE_HUGE));
		verdict_count(0, 1, 0);
	}
	leg_work_warm(&leg->work, &most[source][leg->mode->mapped],
		      leg->pages * order_blocks(hvo_pool()->order));
	return true;
}
