/*
 * Taking single pages of a given GiB: see refuge.h.
 *
 *   blocks that are in pieces   all free frames of one, then of the next
 *   then blocks that are free   split, one at a time
 *
 * Only blocks of type MOVABLE are used. Blocks kept for pages that cannot move stay so, and blocks
 * that another CPU isolates are not touched.
 */
#include "mm/page/refuge.h"

#include <arch/check.h>

#include "kernel/lib/string.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/upward.h"
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
	refuge->next = (u32)best * GIB_BLOCKS;
	refuge->end = refuge->next + GIB_BLOCKS;
	return true;
}

/* Is the block in pieces and meant for pages that can move? */
static bool has_pieces(const struct zone *zone, u32 index)
{
	const struct block_word word = block_look_any(zone->mm, index);

	return word.zone == zone->index && word.state == BLOCK_FULL && word.free_pages > 0 &&
	       word.type == MIGRATE_MOVABLE;
}

/* Take all free frames of the next block; they count as in use. False if it has none to take. */
static bool take_pieces(struct refuge *refuge)
{
	struct zone *zone = refuge->zone;
	const u32 index = refuge->next++;
	u64 taken = 0;

	if (!has_pieces(zone, index))
		return false;
	pcp_warm_block(zone, index);
	zone_lock(zone);
	if (has_pieces(zone, index))
		taken = buddy_take_pieces(zone, index, MIGRATE_MOVABLE, refuge->map);
	zone_unlock(zone);
	pcp_count_in_use(zone, (s64)taken);
	refuge->index = index;
	refuge->word = 0;
	return taken > 0;
}

/* Split any free block of the GiB; it is then the next. */
static bool split_any(struct refuge *refuge)
{
	struct zone *zone = refuge->zone;

	for (u32 index = refuge->end - GIB_BLOCKS; index < refuge->end; index++) {
		const struct block_word word = block_look_any(zone->mm, index);

		if ((word.state != BLOCK_FULL && word.state != BLOCK_BARE) ||
		    word.type != MIGRATE_MOVABLE || buddy_find_run(zone->mm, index) == BLOCK_NONE ||
		    !page_split_block(zone, index, 0))
			continue;
		refuge->next = index;
		return true;
	}
	return false;
}

/* Take frames of another block, if one has any. */
static bool take_more(struct refuge *refuge)
{
	do {
		while (refuge->next < refuge->end)
			if (take_pieces(refuge))
				return true;
	} while ((refuge->end > 0 && split_any(refuge)) || choose(refuge));
	return false;
}

/* Take one of the frames that were taken already. */
static struct page *pop(struct refuge *refuge)
{
	for (; refuge->word < PCP_WORDS; refuge->word++) {
		const u64 bits = refuge->map[refuge->word];

		if (!bits)
			continue;
		refuge->map[refuge->word] = bits & (bits - 1);
		return block_page(refuge->zone->mm, refuge->index) + refuge->word * 64 +
		       __builtin_ctzll(bits);
	}
	return NULL;
}

/* One of the frames that were taken may have been found bad: all go back, so that it can go. */
static void take_again(struct refuge *refuge)
{
	struct mm *mm = refuge->zone->mm;

	if (pcp_give_back_map(refuge->zone, refuge->index, refuge->map) > 0)
		refuge->next = refuge->index;
	memset(refuge->map, 0, sizeof(refuge->map));
	if (atomic_load_relaxed(&mm->watch) & WATCH_REPORTED)
		mm_upward.take_reported(mm);
}

struct page *refuge_take(struct refuge *refuge)
{
	struct zone *zone = refuge->zone;
	struct page *page;

	if (unlikely(atomic_load_relaxed(&zone->mm->watch) & (WATCH_BAD | WATCH_REPORTED)))
		take_again(refuge);
	page = pop(refuge);
	if (!page && take_more(refuge))
		page = pop(refuge);
	if (!page)
		return NULL;
	check_frames_reused(page_to_pfn(page), 1);
	memmap_form_single(page, page_state(0, 0, (u8)zone->index, 1));
	if (unlikely(atomic_load_relaxed(&zone->mm->watch)))
		page_watch_allocated(zone->mm, page, CALLER);
	return page;
}

void refuge_end(struct refuge *refuge)
{
	pcp_give_back_map(refuge->zone, refuge->index, refuge->map);
}
