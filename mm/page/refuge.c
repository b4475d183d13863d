/*
 * Taking single pages of a given GiB: see refuge.h.
 *
 *   blocks that are in pieces   their free frames, lowest first
 *   then blocks that are free   split, one at a time
 *
 * Only blocks of type MOVABLE are used. Blocks kept for pages that cannot move stay so, and blocks
 * that another CPU isolates are not touched.
 */
#include "mm/page/refuge.h"

#include <arch/check.h>

#include "mm/memmap/memmap.h"
#include "mm/page/page_check.h"
#include "mm/page/page_split.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/buddy.h"
#include "mm/zone/buddy_small.h"
#include "mm/zone/section.h"

/*
 * How well a GiB serves as a refuge: first, that it can never become a 1 GiB page; then, how much
 * emptying it would cost. 0 if it has no room, or was not after the one chosen last.
 */
static u64 gib_key(const void *ctx, u64 number)
{
	const struct refuge *refuge = ctx;
	const struct mm *mm = refuge->zone->mm;
	const struct gib *gib = &mm->gib[number - mm->first_gib];
	const u64 rank = 1 + atomic_load_relaxed(&gib->movable) +
			 (atomic_load_relaxed(&gib->meta) > 0 ? order_pages(GIGA_ORDER) : 0),
		  key = rank << 32 | number;

	if (!gib->whole || number == refuge->avoid || atomic_load_relaxed(&gib->free) == 0)
		return 0;
	return key < refuge->before ? key : 0;
}

/* Choose the best GiB after the one chosen last. */
static bool choose(struct refuge *refuge)
{
	const u64 best = gib_best(refuge->zone, gib_key, refuge);

	if (best == 0)
		return false;
	refuge->before = best;
	refuge->at = (best & ~0U) * order_pages(GIGA_ORDER);
	refuge->end = refuge->at + order_pages(GIGA_ORDER);
	return true;
}

/* Zone lock held. Is the block in pieces and meant for pages that can move? */
static bool has_pieces(const struct zone *zone, u32 index)
{
	const struct block_word word = block_look_any(zone->mm, index);

	return word.zone == zone->index && word.state == BLOCK_FULL && word.free_pages > 0 &&
	       word.type == MIGRATE_MOVABLE;
}

/*
 * Take the next free frame of the block in which `at` lies. `at` is then behind that frame, or
 * behind the block. One cycle of the lock.
 */
static struct page *take_frame(struct refuge *refuge)
{
	struct zone *zone = refuge->zone;
	const pfn_t end = ALIGN_DOWN(refuge->at, BLOCK_FRAMES) + BLOCK_FRAMES;
	struct page *page = NULL;

	zone_lock(zone);
	if (!has_pieces(zone, (u32)(refuge->at >> BLOCK_ORDER)))
		refuge->at = end;
	while (!page && refuge->at < end) {
		page = pfn_page(zone->mm, refuge->at++);
		if (!buddy_take_frame(zone, page))
			page = NULL;
	}
	zone_unlock(zone);
	return page;
}

/* Split any free block of the GiB; `at` is then its first frame. */
static bool split_any(struct refuge *refuge)
{
	struct zone *zone = refuge->zone;
	const u32 first = (u32)((refuge->end >> BLOCK_ORDER) - GIB_BLOCKS);

	for (u32 index = first; index < first + GIB_BLOCKS; index++) {
		const struct block_word word = block_look_any(zone->mm, index);

		if ((word.state != BLOCK_FULL && word.state != BLOCK_BARE) ||
		    word.type != MIGRATE_MOVABLE || buddy_find_run(zone->mm, index) == BLOCK_NONE ||
		    !page_split_block(zone, index, 0))
			continue;
		refuge->at = block_pfn(index);
		return true;
	}
	return false;
}

static struct page *find(struct refuge *refuge)
{
	do {
		while (refuge->at < refuge->end) {
			struct page *page = take_frame(refuge);

			if (page)
				return page;
		}
	} while ((refuge->end > 0 && split_any(refuge)) || choose(refuge));
	return NULL;
}

struct page *refuge_take(struct refuge *refuge)
{
	struct mm *mm = refuge->zone->mm;
	struct page *page = find(refuge);

	if (!page)
		return NULL;
	pcp_count_in_use(refuge->zone, 1);
	check_frames_reused(page_to_pfn(page), 1);
	memmap_form_compound(page, 0);
	if (unlikely(atomic_load_relaxed(&mm->watch)))
		page_watch_allocated(mm, page, CALLER);
	return page;
}
