/*
 * Ranges found by reading struct pages, as Linux found them before 2023, after it, and today: see
 * contig.h.
 *
 *   page by page   [p][p][p][p] ...                       vanilla, skip, revert, strict: until one
 *                                                         page shows that the range is unsuitable
 *   by steps       [run of 1024 ][page of 512 ][p][p] ... step: over a free run, a free chunk or a
 *                                                         compound page at once
 *
 * Only mapped sections are read, where every struct page exists. The zone's lock is taken for each
 * block.
 *
 * Source: Gorman, "mm: page_alloc: Assume huge tail pages are valid when allocating contiguous
 * pages", 2023-04; for the steps Wang, "mm: page_alloc: optimize pfn_range_valid_contig()", and
 * Price, "page_alloc: allow migration of smaller hugepages during contig_alloc", both in Linux 7.0,
 * from their descriptions.
 */
#include "mm/contig/contig_read.h"
#include "mm/memmap/enter.h"
#include "mm/zone/section.h"

/* The records of a block and of the run or page around it. */
struct readable {
	struct block_word word, head;
	u32 run; /* first block of that run or page */
};

/*
 * May a search read the struct pages of this block? Its section must be mapped, and it must not be
 * in transit. Zone lock held.
 */
static bool is_readable(const struct zone *zone, u32 index, struct readable *block)
{
	if (section_state(zone->mm, index / SECTION_BLOCKS) != SECTION_OPEN ||
	    !block_at(zone->mm, index))
		return false;
	block->run = block_run_head(zone->mm, index, &block->head);
	block->word = block->run == index ? block->head : block_look_at(zone->mm, index);
	return (block->word.flags & BLOCK_MAPPED) && block->word.zone == zone->index &&
	       block->word.state != BLOCK_META && !(block->head.flags & BLOCK_TRANSIT);
}

u32 contig_next_that(struct contig_scan *scan, const struct contig_search *search,
		     contig_suits_fn *suits)
{
	const u32 blocks = order_blocks(scan->order);
	const u64 first = ALIGN_UP(DIV_ROUND_UP(scan->zone->start_pfn, BLOCK_FRAMES), (u64)blocks);
	const u64 end = scan->zone->end_pfn >> BLOCK_ORDER;

	for (u64 index = MAX(first, scan->after); index + blocks <= end; index += blocks) {
		scan->after = index + blocks;
		if (suits(scan, search, (u32)index))
			return (u32)index;
	}
	return BLOCK_NONE;
}

/* ---- page by page ---- */

/*
 * Look at one struct page. Returns false if the range is unsuitable. A tail is part of the page
 * that its head describes.
 */
static bool page_suits(struct contig_scan *scan, const struct contig_search *search,
		       const struct page *page, const struct readable *block)
{
	struct page_kind kind = page_kind(page);

	scan->stats->scanned++;
	if (kind.zone != scan->zone->index || (kind.flags & PAGE_RESERVED))
		return false;
	if (block->head.flags & BLOCK_FREE)
		return true; /* tails may be left over from a page that no longer exists */
	if (kind.flags & PAGE_TAIL) {
		page = page_head(page);
		kind = page_kind(page);
	}
	if (search->skips_used && atomic_load_relaxed(&page->refcount) > 0)
		return false;
	if (!(kind.flags & PAGE_HUGETLB))
		return true;
	return !search->skips_huge && !(search->skips_same && kind.order >= scan->order &&
					block_word_type(block->word) != MIGRATE_CMA);
}

/*
 * Look at all of one block in one turn at the lock. The block stays in its state for that time, so
 * its struct pages and their heads are there.
 */
static bool block_suits(struct contig_scan *scan, const struct contig_search *search, u32 index)
{
	const struct page *pages = block_page(scan->zone->mm, index);
	struct readable block;
	bool suits;

	zone_lock(scan->zone);
	suits = is_readable(scan->zone, index, &block);
	for (unsigned i = 0; i < BLOCK_FRAMES && suits; i++)
		suits = page_suits(scan, search, &pages[i], &block);
	zone_unlock(scan->zone);
	return suits;
}

static bool every_page_suits(struct contig_scan *scan, const struct contig_search *search,
			     u32 first)
{
	for (u32 index = first; index < first + order_blocks(scan->order); index++)
		if (!block_suits(scan, search, index))
			return false;
	return true;
}

u32 contig_next_by_reading(struct contig_scan *scan, const struct contig_search *search)
{
	return contig_next_that(scan, search, every_page_suits);
}

/* ---- by steps ---- */

/* Frames from `pfn` to the end of the page headed by `head`. */
static u64 rest_of_page(const struct page *head, struct page_kind kind, pfn_t pfn)
{
	const u64 pages = kind.flags & PAGE_COMPOUND ? order_pages(kind.order) : 1;
	const u64 offset = pfn - page_to_pfn(head);

	/* a tail on a per-CPU list may be left over from a page that no longer exists */
	return offset < pages ? pages - offset : 1;
}

/* A page that is in no free run. Returns the frames to its end, or 0 if the range is unsuitable. */
static u64 step_over_page(struct contig_scan *scan, pfn_t pfn)
{
	const struct page *page = pfn_page(scan->zone->mm, pfn);
	struct page_kind kind = page_kind(page);

	if (kind.zone != scan->zone->index || (kind.flags & PAGE_RESERVED))
		return 0;
	if (kind.flags & PAGE_BUDDY)
		return order_pages(kind.order);
	if (kind.flags & PAGE_TAIL) {
		page = page_head(page);
		kind = page_kind(page);
	}
	if (kind.flags & PAGE_HUGETLB) {
		scan->passed_huge |= !scan->admits_huge;
		return scan->admits_huge && kind.order < scan->order ? rest_of_page(page, kind, pfn)
								     : 0;
	}
	if (atomic_load_relaxed(&page->refcount) > 0 && !(kind.flags & PAGE_MOVABLE))
		return 0;
	return rest_of_page(page, kind, pfn);
}

/*
 * Each step counts as one struct page read. A free run of blocks is one step, although its record
 * is read and not its struct page.
 */
static u64 step_over(struct contig_scan *scan, pfn_t pfn)
{
	const u32 index = (u32)(pfn >> BLOCK_ORDER);
	struct readable block;

	if (!is_readable(scan->zone, index, &block) || block_word_type(block.word) == MIGRATE_CMA)
		return 0;
	scan->stats->scanned++;
	if (block.head.flags & BLOCK_FREE)
		return block_pfn(block.run + order_blocks(block.head.order)) - pfn;
	return step_over_page(scan, pfn);
}

static bool every_step_suits(struct contig_scan *scan, const struct contig_search *search,
			     u32 first)
{
	const pfn_t end = block_pfn(first) + order_pages(scan->order);
	pfn_t pfn = block_pfn(first);
	u64 step = 1;

	while (step > 0 && pfn < end) { /* one turn at the lock for each block that is reached */
		const pfn_t border = ALIGN_DOWN(pfn, BLOCK_FRAMES) + BLOCK_FRAMES;

		zone_lock(scan->zone);
		for (; step > 0 && pfn < border; pfn += step)
			step = step_over(scan, pfn);
		zone_unlock(scan->zone);
	}
	return step > 0;
}

/* Make two passes: ranges with a huge page are used only if there are no other ranges. */
u32 contig_next_by_steps(struct contig_scan *scan, const struct contig_search *search)
{
	u32 first = contig_next_that(scan, search, every_step_suits);

	if (first == BLOCK_NONE && scan->passed_huge && !scan->admits_huge) {
		scan->admits_huge = true;
		scan->after = 0;
		first = contig_next_that(scan, search, every_step_suits);
	}
	return first;
}

/* ---- references that nobody needs ---- */

static void count_block(struct page *pages)
{
	for (unsigned i = 0; i < BLOCK_FRAMES; i++)
		atomic_store_release(&pages[i].refcount, 1);
}

/* Returns how many lost their reference. */
static u64 freeze_block(struct page *pages)
{
	u64 frozen = 0;

	for (unsigned i = 0; i < BLOCK_FRAMES; i++)
		frozen += atomic_cas(&pages[i].refcount, 1u, 0u);
	return frozen;
}

u64 contig_count_and_freeze(struct mm *mm, u32 first, u32 count)
{
	u64 frozen = 0;

	for (u32 index = first; index < first + count; index++)
		if (block_look_at(mm, index).state == BLOCK_FULL)
			count_block(block_page(mm, index));
	for (u32 index = first; index < first + count; index++)
		if (block_look_at(mm, index).state == BLOCK_FULL)
			frozen += freeze_block(block_page(mm, index));
	return frozen;
}
