/*
 * Writing struct pages, and the kinds of frames according to the boot ranges: see memmap.h.
 *
 * Each struct page is one cache line, written once, whole, in its final state. A section's worth of
 * them is streamed past the caches. At 3 ns a struct page that is as fast as a non-temporal clear
 * and twice as fast as plain stores, rep movsq or rep stosb, which all read the line first or keep
 * it (`make bench WHAT=native`: BENCH probe name=clear, memmap_ns beside ns). A few frames at a
 * time are written with plain stores, because they are about to be used.
 */
#include "mm/memmap/memmap.h"

#include <arch/stream.h>

/*
 * Kinds of struct page differ in the first 16 bytes only; the rest is zero. Unrolled, because a
 * loop would take three more instructions for each store.
 */
static inline void page_write(struct page *page, u64 head_mask, u64 state)
{
	u64 *word = (u64 *)page;

	word[0] = head_mask;
	word[1] = state;
#pragma GCC unroll 6
	for (unsigned i = 2; i < 8; i++)
		word[i] = 0;
}

static inline void pages_write(struct page *pages, u64 count, u64 head_mask, u64 state)
{
#pragma GCC unroll 4
	for (u64 i = 0; i < count; i++)
		page_write(&pages[i], head_mask, state);
}

void memmap_init_pages(struct page *pages, u64 count, u8 zone)
{
	pages_write(pages, count, head_mask_of(0), page_state(0, 0, zone, 0));
}

void memmap_stream_pages(struct page *pages, u64 count, u8 zone)
{
	for (u64 i = 0; i < count; i++)
		stream_line(&pages[i], head_mask_of(0), page_state(0, 0, zone, 0));
}

const struct memmap_make memmap_makes[] = {
	[MAKE_PLAIN] = {.name = "plain",
			.write = memmap_init_pages,
			.step = 1u << (MAKE_STEP_ORDER - BLOCK_ORDER)},
	[MAKE_STREAM] = {.name = "stream", .write = memmap_stream_pages, .step = SECTION_BLOCKS},
	{.name = NULL},
};

/*
 * Two stores per tail. The other fields have no meaning in a tail, and what a holder keeps in them
 * must survive.
 */
static void form_tails(struct page *pages, u64 count, unsigned order, u8 zone)
{
	const u64 head_mask = head_mask_of(order), state = page_state(PAGE_TAIL, order, zone, 0);

#pragma GCC unroll 4
	for (u64 i = 0; i < count; i++) {
		atomic_store_relaxed(&pages[i].head_mask, head_mask);
		atomic_store_relaxed(&pages[i].state, state);
	}
}

/*
 * Three stores for each page. The owner says that no one has held the page yet; the other words
 * mean something only after somebody has written them.
 */
void memmap_form_free(struct page *pages, u64 count, u8 zone)
{
#pragma GCC unroll 4
	for (u64 i = 0; i < count; i++) {
		pages[i].head_mask = head_mask_of(0);
		pages[i].state = page_state(0, 0, zone, 0);
		pages[i].owner = 0;
	}
}

void memmap_init_head_frame(struct page *frame, unsigned order, u8 zone)
{
	page_write(frame, head_mask_of(0),
		   page_state(PAGE_COMPOUND | PAGE_OPTIMISED | PAGE_HUGETLB, order, zone, 0));
	/* the loop's own instructions would be a third of the whole */
#pragma GCC unroll 63
	for (unsigned i = 1; i < STRUCTS_PER_FRAME; i++)
		form_tails(&frame[i], 1, order, zone);
}

void memmap_init_tail_frame(struct page *frame, unsigned order, u8 zone)
{
	pages_write(frame, STRUCTS_PER_FRAME, head_mask_of(order),
		    page_state(PAGE_TAIL, order, zone, 0));
}

void memmap_form_compound(struct page *page, unsigned order)
{
	form_tails(page + 1, order_pages(order) - 1, order, page->zone);
	page->head_mask = head_mask_of(0);
	page_set_kind(page, order ? PAGE_COMPOUND : 0, order);
	atomic_store_release(&page->refcount, 1);
}

/* First range of a sorted list that ends above `phys`, or NULL. */
static const struct memblock_range *range_after(const struct memblock_list *list, phys_t phys)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (list->range[middle].end <= phys)
			low = middle + 1;
		else
			high = middle;
	}
	return low < list->count ? &list->range[low] : NULL;
}

u8 memmap_zone_of(const struct mm *mm, pfn_t pfn, node_t node)
{
	return mm->node[node].zone[pfn < (GIB(4) >> PAGE_SHIFT) ? ZONE_DMA32 : ZONE_NORMAL];
}

enum frame_kind memmap_frame_kind(const struct mm *mm, pfn_t pfn, u8 *zone)
{
	const phys_t phys = pfn << PAGE_SHIFT;
	const struct memblock_range *memory = range_after(mm->memory, phys), *reserved;

	if (!memory || memory->start > phys)
		return FRAME_HOLE;
	*zone = memmap_zone_of(mm, pfn, memory->node);
	reserved = range_after(mm->reserved, phys);
	if (!reserved || reserved->start > phys)
		return FRAME_FREE;
	if (reserved->owner == OWNER_BAD)
		return FRAME_BAD;
	return reserved->owner == OWNER_BOOT ? FRAME_BOOT : FRAME_RESERVED;
}

/* The first edge of a range of the list between `pfn` and `end`, or `end`. */
static pfn_t edge_after(const struct memblock_list *list, pfn_t pfn, pfn_t end)
{
	const struct memblock_range *range = range_after(list, pfn << PAGE_SHIFT);
	phys_t edge;

	if (!range)
		return end;
	edge = range->start > pfn << PAGE_SHIFT ? range->start : range->end;
	return MIN(edge >> PAGE_SHIFT, end);
}

pfn_t memmap_frames_alike(const struct mm *mm, pfn_t pfn, pfn_t end)
{
	return edge_after(mm->reserved, pfn, edge_after(mm->memory, pfn, end));
}

enum block_plan memmap_block_plan(const struct mm *mm, u32 index, u8 *zone)
{
	const phys_t start = block_pfn(index) << PAGE_SHIFT, end = start + (1ULL << BLOCK_SHIFT);
	const struct memblock_range *memory = range_after(mm->memory, start), *reserved;

	*zone = ZONE_NONE;
	if (!memory || memory->start >= end)
		return PLAN_ABSENT;
	*zone = memmap_zone_of(mm, MAX(start, memory->start) >> PAGE_SHIFT, memory->node);
	if (memory->start > start || memory->end < end)
		return PLAN_MIXED;
	reserved = range_after(mm->reserved, start);
	if (!reserved || reserved->start >= end)
		return PLAN_FREE;
	for (; reserved < mm->reserved->range + mm->reserved->count && reserved->start < end;
	     reserved++)
		if (reserved->owner != OWNER_BOOT)
			return PLAN_MIXED;
	return PLAN_BOOT;
}
