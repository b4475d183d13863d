/*
 * Contiguous ranges: emptied, taken, handed out as single pages, freed. See contig.h.
 *
 * contig_take() brings a mixture of bare blocks, full blocks and free huge pages. Huge ones are
 * made bare (or full, in mapped sections) with one round for all of them. After that a range needs
 * only frames for the struct pages of its bare blocks, and these are reserved for all blocks before
 * the first is changed.
 */
#include "mm/contig/contig.h"

#include <arch/check.h>

#include "kernel/core/context.h"
#include "kernel/core/reason_set.h"
#include "mm/contig/bad_frames.h"
#include "mm/hvo/hvo_unshare.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/meta.h"
#include "mm/page/page_alloc.h"
#include "mm/page/page_check.h"
#include "mm/page/page_split.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/buddy.h"
#include "mm/zone/isolate.h"
#include "mm/zone/migratetype.h"
#include "mm/zone/transit.h"

struct contig_stats contig_totals;

/*
 * The blocks were just unlinked and lose their isolation bits. The token of the isolation ends with
 * the last block. Zone lock held.
 */
static void begin_piece(struct zone *zone, u32 index, unsigned order, struct block_list *list)
{
	for (u32 i = index; i < index + order_blocks(order); i++) {
		struct block *block = block_at(zone->mm, i);
		struct block_word word = block_look(block);

		word.type &= (u8)~BLOCK_ISOLATED;
		block_put(block, word);
	}
	block_begin(zone, index, order, BLOCK_BARE);
	block_list_push(zone->mm, list, index);
}

/*
 * Take what is free from `index` on, below `end`: up to a slice of it, or a 1 GiB page. The blocks
 * are no longer isolated then. One turn at the lock. Returns the first block after them, or `index`
 * if that block is not free.
 */
static u32 take_slice(struct zone *zone, u32 index, u32 end, struct block_list *list)
{
	const u32 stop = MIN(index + LOCK_SLICE, end);

	zone_lock(zone);
	while (index < stop) {
		const u32 head = buddy_find_run(zone->mm, index);
		struct block_word word;
		bool giga;
		u32 next;

		if (head == BLOCK_NONE)
			break;
		word = block_look_at(zone->mm, head);
		giga = word.state == BLOCK_HUGE && word.order == GIGA_ORDER;
		next = buddy_unlink_within(zone, head, index, giga ? end : stop);
		if (giga)
			begin_piece(zone, index, GIGA_ORDER, list);
		for (; !giga && index < next; index++)
			begin_piece(zone, index, BLOCK_ORDER, list);
		index = next;
	}
	zone_unlock(zone);
	return index;
}

/*
 * Either every block is free and is now taken and no longer isolated, or nothing is taken. The
 * token covers the range until all of it is taken, so meanwhile nobody isolates a part of it or
 * closes a section of it.
 */
static int take_all(struct zone *zone, struct isolation *token, struct block_list *list)
{
	const u32 end = token->first + token->count;
	struct block_list taken = BLOCK_LIST_INIT;
	u32 index, next = token->first;

	if (!isolate_test(zone, token->first, token->count))
		return -EBUSY;
	do {
		index = next;
		next = take_slice(zone, index, end, &taken);
	} while (next > index && next < end);
	if (next < end) { /* a block with a bad frame was withdrawn from the range meanwhile */
		block_list_publish_free(zone->mm, &taken);
		return -EBUSY;
	}
	zone_lock(zone);
	isolate_end(zone, token);
	zone_unlock(zone);
	block_list_splice(zone->mm, list, &taken);
	return 0;
}

/* Was a frame of the range found bad since it was isolated? Only its holder can split its block. */
static bool found_bad(struct mm *mm, u32 first, u32 count)
{
	return unlikely(atomic_load_relaxed(&mm->watch) & (WATCH_BAD | WATCH_REPORTED)) &&
	       bad_frames_pending(mm, block_pfn(first), count * (u64)BLOCK_FRAMES);
}

int contig_take(struct zone *zone, u32 first, u32 count, const struct migrate_how *how,
		struct block_list *list, struct contig_stats *stats)
{
	struct isolation token;
	int err = isolate_range(zone, first, count, &token);
	bool bad;

	stats->candidates++;
	if (err)
		return err;
	pcp_drain_all(zone->mm);
	err = migrate_range(zone, first, count, how, &stats->moved);
	bad = !err && found_bad(zone->mm, first, count);
	if (!err)
		err = bad || fail_here(&zone->mm->fail, FAIL_TAKE) ? -EBUSY
								   : take_all(zone, &token, list);
	if (err)
		isolate_undo(zone, &token);
	if (unlikely(bad))
		bad_frames_withdraw(zone->mm);
	return err;
}

/* ---- one state for all blocks ---- */

int contig_unhuge(struct mm *mm, struct block_list *list)
{
	struct block_list huge = BLOCK_LIST_INIT, rest = BLOCK_LIST_INIT, done = BLOCK_LIST_INIT;

	block_list_drain(mm, index, list)
		block_list_push(mm, block_look_at(mm, index).state == BLOCK_HUGE ? &huge : &rest,
				index);
	hvo_unshare(mm, &hvo_modes[HVO_ON], &huge, &done);
	block_list_drain(mm, index, &done)
		block_cut(block_zone(mm, index), index, &rest);
	*list = rest;
	if (huge.count == 0)
		return 0;
	block_list_splice(mm, list, &huge);
	return -ENOMEM;
}

/*
 * Give all pieces that contig_take() brought their struct pages; each is then an order-9 piece in
 * transit. Returns 0 or -ENOMEM; after -ENOMEM the pieces are as far as they came and still belong
 * to the caller.
 */
static int contig_make_full(struct zone *zone, struct block_list *list)
{
	struct mm *mm = zone->mm;
	enum meta_kind kind = META_LASTING;
	u64 bare = 0;

	if (contig_unhuge(mm, list) < 0)
		return -ENOMEM;
	block_list_foreach(mm, index, list)
		bare += block_look_at(mm, index).state == BLOCK_BARE;
	if (bare &&
	    meta_reserve_tails(zone_meta_node(zone), bare * MEMMAP_FRAMES_PER_BLOCK, &kind) < 0)
		return -ENOMEM;
	block_list_foreach(mm, index, list)
		if (block_look_at(mm, index).state == BLOCK_BARE)
			block_full_from_bare(zone, zone_meta_node(zone), kind, index);
	return 0;
}

/* ---- ranges of single pages ---- */

/* Full blocks in transit become single pages with one reference each. */
static void hand_out(struct zone *zone, struct block_list *list)
{
	struct mm *mm = zone->mm;
	const bool watched = atomic_load_relaxed(&mm->watch);

	pcp_count_in_use(zone, (s64)(list->count * BLOCK_FRAMES));
	block_list_drain(mm, index, list) {
		struct page *pages = block_page(mm, index);

		check_frames_reused(block_pfn(index), BLOCK_FRAMES);
		for (unsigned i = 0; i < BLOCK_FRAMES; i++) {
			memmap_form_single(&pages[i], page_state(0, 0, (u8)zone->index, 1));
			if (unlikely(watched))
				page_watch_allocated(mm, &pages[i], CALLER);
		}
		/* the block heads no page */
		block_change(block_at(mm, index), BLOCK_WORD(.order = 0xff), BLOCK_WORD(0));
		block_publish_used(zone, index, BLOCK_ORDER);
	}
}

int contig_take_range(struct zone *zone, u32 first, u32 count, enum migrate_giga giga,
		      struct contig_stats *stats)
{
	struct block_list list = BLOCK_LIST_INIT;
	int err =
		contig_take(zone, first, count, &(struct migrate_how){.giga = giga}, &list, stats);

	if (err)
		return err;
	err = contig_make_full(zone, &list);
	if (err)
		block_list_publish_free(zone->mm, &list);
	else
		hand_out(zone, &list);
	return err;
}

/* Convert a range of frames to whole blocks; -EINVAL if it does not consist of them. */
static int blocks_of_range(pfn_t first, u64 frames, u32 *index, u32 *count)
{
	if (!IS_ALIGNED(first, BLOCK_FRAMES) || !IS_ALIGNED(frames, BLOCK_FRAMES) || frames == 0 ||
	    first + frames < first || (first + frames) >> BLOCK_ORDER >= BLOCK_NONE)
		return -EINVAL;
	*index = (u32)(first >> BLOCK_ORDER);
	*count = (u32)(frames >> BLOCK_ORDER);
	return 0;
}

int mm_contig_alloc_range(struct mm *mm, pfn_t first, u64 frames)
{
	struct contig_stats stats = {0};
	struct zone *zone;
	u32 index, count;
	int err = blocks_of_range(first, frames, &index, &count);

	if (err)
		return err;
	err = migratetype_range_zone(mm, index, count, &zone);
	if (err)
		return err;
	err = contig_take_range(zone, index, count, MIGRATE_MOVE_GIGA, &stats);
	meta_end_batch_all(mm);
	return err;
}

/*
 * Returns true if all 512 frames are single pages with one reference, and drops these references.
 */
static bool unreference_block(struct mm *mm, u32 index)
{
	struct page *pages = block_page(mm, index);

	if (atomic_load_relaxed(&mm->watch) || block_look_at(mm, index).free_pages > 0)
		return false;
	for (unsigned i = 0; i < BLOCK_FRAMES; i++)
		if (pages[i].refcount != 1 || page_kind(&pages[i]).flags)
			return false;
	for (unsigned i = 0; i < BLOCK_FRAMES; i++)
		atomic_store_relaxed(&pages[i].refcount, 0);
	return true;
}

void mm_contig_free_range(struct mm *mm, pfn_t first, u64 frames)
{
	for (pfn_t pfn = first; pfn < first + frames; pfn += BLOCK_FRAMES) {
		const u32 index = (u32)(pfn >> BLOCK_ORDER);
		struct zone *zone = block_zone(mm, index);

		if (unreference_block(mm, index)) {
			pcp_count_in_use(zone, -(s64)BLOCK_FRAMES);
			block_free(zone, index, BLOCK_ORDER);
		} else {
			for (unsigned i = 0; i < BLOCK_FRAMES; i++)
				mm_page_free(mm, pfn_page(mm, pfn + i));
		}
	}
}

int contig_alloc_range(pfn_t first, u64 frames)
{
	context_assert(CONTEXT_ORDINARY);
	return reason_of_error(mm_contig_alloc_range(&mm_kernel, first, frames), REASON_BAD_RANGE);
}

void contig_free_range(pfn_t first, u64 frames)
{
	context_assert(CONTEXT_ORDINARY);
	mm_contig_free_range(&mm_kernel, first, frames);
}

int contig_declare_cma(pfn_t first, u64 frames)
{
	context_assert(CONTEXT_ORDINARY);
	return reason_of_error(mm_contig_declare_cma(&mm_kernel, first, frames), REASON_BAD_RANGE);
}

struct page *contig_alloc(unsigned order, node_t node)
{
	struct page *page;

	context_assert(CONTEXT_ORDINARY);
	page = mm_contig_alloc(&mm_kernel, order, node);
	if (!page)
		reason_set(order > GIGA_ORDER ? REASON_BAD_ORDER : REASON_NO_MEMORY);
	return page;
}

int mm_contig_declare_cma(struct mm *mm, pfn_t first, u64 frames)
{
	u32 index, count;
	struct zone *zone;
	int err = blocks_of_range(first, frames, &index, &count);

	if (!err)
		err = migratetype_range_zone(mm, index, count, &zone);
	if (err)
		return err;
	/* frames that CPUs hold of the range would be given out as the old type */
	pcp_disable(zone);
	err = migratetype_set(mm, index, count, MIGRATE_CMA);
	pcp_enable(zone);
	return err;
}
