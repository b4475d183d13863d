/*
 * Taking bad frames out of use: see bad_frames.h.
 */
#include "mm/bad_frames.h"

#include "kernel/context.h"
#include "kernel/printk.h"
#include "mm/buddy.h"
#include "mm/hvo.h"
#include "mm/isolate.h"
#include "mm/memmap.h"
#include "mm/meta.h"
#include "mm/migratetype.h"
#include "mm/page_alloc.h"
#include "mm/page_split.h"
#include "mm/pcp.h"
#include "mm/section.h"
#include "mm/transit.h"

enum { SETTLE_AGAIN = 256 }; /* frees, after it was tried in vain: it asks all CPUs for what they hold */

/* ---- the frame itself ---- */

/* Zone that owns a frame of an open block: blocks that straddle zones have several. */
static struct zone *frame_zone(struct mm *mm, pfn_t pfn)
{
	const struct block_word word = block_look(block_of(mm, pfn));

	return word.state == BLOCK_RESERVED ? &mm->zone[pfn_page(mm, pfn)->zone] : &mm->zone[word.zone];
}

static bool has_small_pages(struct block_word word)
{
	return (word.state == BLOCK_FULL || word.state == BLOCK_RESERVED) &&
	       !(word.flags & (BLOCK_TRANSIT | BLOCK_POOL));
}

/* From the small lists for good. False if it is not there. */
static bool take_from_lists(struct mm *mm, pfn_t pfn)
{
	struct zone *zone = frame_zone(mm, pfn);
	bool taken;

	zone_lock(zone);
	taken = has_small_pages(block_look(block_of(mm, pfn))) && buddy_take_frame(zone, pfn_page(mm, pfn));
	if (taken) {
		page_set_kind(pfn_page(mm, pfn), PAGE_BAD | PAGE_RESERVED, 0);
		counter_add(&zone->bad, 1);
	}
	zone_unlock(zone);
	return taken;
}

bool bad_frame_is_out(struct mm *mm, pfn_t pfn)
{
	struct page page;

	return mm_page_peek(mm, pfn, &page) && page.flags & PAGE_BAD;
}

/* ---- its block ---- */

/* What is freed from now on is not given out. Whole 1 GiB pages, because they have one type. */
static void isolate(struct mm *mm, struct bad_frame *bad)
{
	const u32 index = (u32)(bad->pfn >> BLOCK_ORDER);
	struct zone *zone = frame_zone(mm, bad->pfn);
	struct block_word head;
	u8 state;

	zone_lock(zone);
	state = block_look_at(mm, index).state;
	block_run_head(mm, index, &head);
	if (state == BLOCK_BARE || state == BLOCK_HUGE || state == BLOCK_NOHEAD || state == BLOCK_FULL || state == BLOCK_META)
		if (isolate_now(zone, index, 1, &bad->isolation) == -EBUSY && head.order == GIGA_ORDER)
			isolate_now(zone, ALIGN_DOWN(index, GIB_BLOCKS), GIB_BLOCKS, &bad->isolation);
	zone_unlock(zone);
}

static bool is_isolated(const struct bad_frame *bad)
{
	return bad->isolation.count > 0;
}

/* Over, or handed on to another pending frame of the same blocks. */
static void end_isolation(struct mm *mm, struct bad_frame *bad)
{
	struct isolation *token = &bad->isolation;
	struct zone *zone = block_zone(mm, token->first);

	for (unsigned i = 0; i < mm->bad.count; i++) {
		struct bad_frame *other = &mm->bad.frame[i];

		if (other == bad || is_isolated(other) || (other->pfn >> BLOCK_ORDER) - token->first >= token->count)
			continue;
		isolate_move(zone, token, &other->isolation);
		return;
	}
	isolate_undo(zone, token);
}

/* Off its list and in transit, if it is free: the block alone, or the 1 GiB page it is part of. BLOCK_NONE if it is not. */
static u32 take_free(struct zone *zone, u32 index)
{
	struct mm *mm = zone->mm;
	u32 run;

	zone_lock(zone);
	run = buddy_find_run(mm, index);
	if (run != BLOCK_NONE) {
		const struct block_word word = block_look_at(mm, run);
		const bool huge = block_free_class(word) == FREE_HUGE;
		const unsigned order = huge ? word.order : BLOCK_ORDER;

		if (!huge)
			run = index;
		buddy_unlink_within(zone, buddy_find_run(mm, index), run, run + order_blocks(order));
		block_begin(zone, run, order, huge ? BLOCK_BARE : BLOCK_FULL);
	}
	zone_unlock(zone);
	return run;
}

/* A free huge run becomes bare, or full in a mapped section, and stays free. */
static void unmake_huge(struct zone *zone, u32 index)
{
	const u32 run = take_free(zone, index);

	if (run != BLOCK_NONE && block_look_at(zone->mm, run).state == BLOCK_HUGE)
		hvo_bare_run(zone, run);
	else if (run != BLOCK_NONE)
		block_publish_free(zone, run, BLOCK_ORDER);
}

/* A free full block becomes small pages. False: it is something else, or not free, and still is. */
static bool split_full(struct zone *zone, u32 index)
{
	const u32 run = take_free(zone, index);

	if (run == index && block_look_at(zone->mm, index).state == BLOCK_FULL) {
		block_publish_split(zone, index, PAGE_ORDERS);
		return true;
	}
	if (run != BLOCK_NONE)
		block_publish_free(zone, run, block_look_at(zone->mm, run).order);
	return false;
}

/* A free bare block becomes small pages. Its struct pages are reserved. */
static bool split_bare(struct zone *zone, u32 index, struct node *node, enum meta_kind kind)
{
	const u32 run = take_free(zone, index);

	if (run == index && block_look_at(zone->mm, index).state == BLOCK_BARE) {
		block_full_from_bare(zone, node, kind, index);
		block_publish_split(zone, index, PAGE_ORDERS);
		return true;
	}
	if (run != BLOCK_NONE)
		block_publish_free(zone, run, block_look_at(zone->mm, run).order);
	return false;
}

/* A free block becomes small pages. 0; -EBUSY: it is not free; -ENOMEM: no frames for its struct pages. */
static int split_free_block(struct mm *mm, u32 index)
{
	struct zone *zone = block_zone(mm, index);
	struct node *node = zone_meta_node(zone);
	enum meta_kind kind;
	u8 state;

	if (buddy_find_run(mm, index) == BLOCK_NONE)
		return -EBUSY;
	state = block_look_at(mm, index).state;
	if (state == BLOCK_HUGE || state == BLOCK_NOHEAD) {
		unmake_huge(zone, index);
		state = block_look_at(mm, index).state;
	}
	if (state == BLOCK_FULL)
		return split_full(zone, index) ? 0 : -EBUSY;
	if (meta_reserve_tails(node, MEMMAP_FRAMES_PER_BLOCK, &kind) < 0)
		return -ENOMEM;
	if (split_bare(zone, index, node, kind))
		return 0;
	meta_unreserve(node, kind, MEMMAP_FRAMES_PER_BLOCK);
	return -EBUSY;
}

/* 0: out of use. -EBUSY: in use, or META's; its block is isolated if it can be. -ENOMEM: free and isolated, but not split. */
static int take_out(struct mm *mm, struct bad_frame *bad)
{
	const u32 index = (u32)(bad->pfn >> BLOCK_ORDER);
	int err;

	if (!is_isolated(bad))
		isolate(mm, bad);
	pcp_drain_all(mm);
	err = take_from_lists(mm, bad->pfn) ? 0 : -EBUSY;
	if (err && is_isolated(bad)) {
		err = split_free_block(mm, index);
		if (!err)
			err = take_from_lists(mm, bad->pfn) ? 0 : -EBUSY;
	}
	if (!err && is_isolated(bad))
		end_isolation(mm, bad);
	return err;
}

/* ---- those that are pending ---- */

/* One CPU at a time; others find that it is being done. */
static bool settling_begins(struct mm *mm)
{
	return atomic_cas(&mm->bad.settling, 0u, 1u);
}

static void settling_ends(struct mm *mm)
{
	if (mm->bad.count == 0)
		atomic_fetch_and(&mm->watch, ~(u32)WATCH_BAD);
	atomic_store_release(&mm->bad.settling, 0u);
}

/* Does it look free? Only then is it worth asking all CPUs for what they hold. */
static bool looks_free(struct mm *mm, const struct bad_frame *bad)
{
	const u32 index = (u32)(bad->pfn >> BLOCK_ORDER);
	struct page page, head;

	if (buddy_find_run(mm, index) != BLOCK_NONE)
		return true;
	if (!has_small_pages(block_look_at(mm, index)) || !mm_page_peek(mm, bad->pfn, &page))
		return false;
	return mm_page_peek(mm, page_to_pfn((struct page *)((virt_t)pfn_page(mm, bad->pfn) & page.head_mask)), &head) &&
	       head.refcount == 0;
}

/* The last takes the place of one that is settled; its isolation goes with it. */
static void move_slot(struct mm *mm, struct bad_frame *from, struct bad_frame *to)
{
	if (from != to && is_isolated(from))
		isolate_move(block_zone(mm, from->isolation.first), &from->isolation, &to->isolation);
	atomic_store_relaxed(&to->pfn, from->pfn);
}

/* One look at each. Returns how many are out of use now; *failed: some look free, but could not be had. */
static unsigned settle_once(struct mm *mm, bool *failed)
{
	struct bad_frames *bad = &mm->bad;
	unsigned done = 0;

	*failed = false;
	for (unsigned i = bad->count; i-- > 0;) {
		if (!looks_free(mm, &bad->frame[i]))
			continue;
		if (take_out(mm, &bad->frame[i]) != 0) {
			*failed = true;
			continue;
		}
		pr_warn("memory: bad frame %llx was freed and is out of use now", (unsigned long long)bad->frame[i].pfn);
		move_slot(mm, &bad->frame[bad->count - 1], &bad->frame[i]);
		atomic_store_relaxed(&bad->count, bad->count - 1);
		done++;
	}
	return done;
}

unsigned bad_frames_settle(struct mm *mm)
{
	bool failed;
	unsigned left;

	if (!settling_begins(mm))
		return atomic_load_relaxed(&mm->bad.count);
	while (settle_once(mm, &failed) > 0 && failed) /* frames of one block wait for the one that isolated it */
		;
	left = mm->bad.count;
	atomic_store_relaxed(&mm->bad.wait, failed ? SETTLE_AGAIN : 0);
	settling_ends(mm);
	return left;
}

bool bad_frames_pending(const struct mm *mm, pfn_t pfn, u64 frames)
{
	for (unsigned i = 0; i < atomic_load_relaxed(&mm->bad.count); i++)
		if (atomic_load_relaxed(&mm->bad.frame[i].pfn) - pfn < frames)
			return true;
	return false;
}

void bad_frames_freed(struct mm *mm, pfn_t pfn, unsigned order)
{
	const u32 wait = atomic_load_relaxed(&mm->bad.wait);

	if (bad_frames_pending(mm, pfn, order_pages(order)))
		atomic_store_relaxed(&mm->bad.wait, 0); /* not free yet; next time it is */
	else if (wait > 0) /* counting may lose a race: it is a pace, not a promise */
		atomic_store_relaxed(&mm->bad.wait, wait - 1);
	else
		bad_frames_settle(mm);
}

/* It is watched from before the look at who has it, so that no free in between goes unseen. */
static int mark(struct mm *mm, pfn_t pfn)
{
	struct bad_frames *bad = &mm->bad;
	struct bad_frame *slot = &bad->frame[bad->count];
	int err;

	if (bad_frame_is_out(mm, pfn))
		return 0;
	for (unsigned i = 0; i < bad->count; i++)
		if (bad->frame[i].pfn == pfn)
			return -EBUSY;
	if (bad->count == BAD_PENDING_MAX)
		return -ENOMEM;
	slot->isolation = (struct isolation){.count = 0};
	atomic_store_relaxed(&slot->pfn, pfn);
	atomic_fetch_or(&mm->watch, (u32)WATCH_BAD);
	err = take_out(mm, slot);
	if (err)
		atomic_store_relaxed(&bad->count, bad->count + 1);
	return err ? -EBUSY : 0;
}

int mm_mark_bad(struct mm *mm, pfn_t pfn)
{
	const u64 section = pfn / (SECTION_BLOCKS * BLOCK_FRAMES);
	enum frame_kind kind;
	int err;
	u8 zone;

	kind = memmap_frame_kind(mm, pfn, &zone);
	if (kind == FRAME_BAD)
		return 0;
	if (kind == FRAME_HOLE || kind == FRAME_RESERVED)
		return -EINVAL;
	if (section_state(mm, section) == SECTION_UNOPENED) {
		err = section_open(mm, section, mm->style);
		if (err == -ENOMEM)
			return err;
	}
	if (section_state(mm, section) != SECTION_OPEN || !settling_begins(mm))
		return -EAGAIN;
	err = mark(mm, pfn);
	settling_ends(mm);
	return err;
}

int page_mark_bad(pfn_t pfn)
{
	context_assert(CONTEXT_ORDINARY);
	return mm_mark_bad(&mm_kernel, pfn);
}
