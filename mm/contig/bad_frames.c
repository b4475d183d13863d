/*
 * Taking bad frames out of use: see bad_frames.h.
 */
#include "mm/contig/bad_frames.h"

#include <arch/atomic.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/context.h"
#include "kernel/core/printk.h"
#include "mm/contig/contig.h"
#include "mm/hvo/hvo_unshare.h"
#include "mm/memmap/memmap.h"
#include "mm/page/page_alloc.h"
#include "mm/page/page_split.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/buddy.h"
#include "mm/zone/buddy_small.h"
#include "mm/zone/isolate.h"
#include "mm/zone/migratetype.h"
#include "mm/zone/section.h"
#include "mm/zone/transit.h"

/*
 * frees to let pass after an attempt in vain, because an attempt asks all CPUs for what they hold
 */
enum { WITHDRAW_AGAIN = 256 };

/* ---- the frame itself ---- */

/* The zone that owns a frame of an open block. A block that straddles zones has several. */
static struct zone *frame_zone(struct mm *mm, pfn_t pfn)
{
	const struct block_word word = block_look(block_of(mm, pfn));

	return word.state == BLOCK_RESERVED ? &mm->zone[pfn_page(mm, pfn)->zone]
					    : &mm->zone[word.zone];
}

static bool has_small_pages(struct block_word word)
{
	return (word.state == BLOCK_FULL || word.state == BLOCK_RESERVED) &&
	       !(word.flags & (BLOCK_TRANSIT | BLOCK_POOL));
}

/* Take a frame off the small lists for good. False if it is not there. */
static bool take_from_lists(struct mm *mm, pfn_t pfn)
{
	struct zone *zone = frame_zone(mm, pfn);
	bool taken;

	zone_lock(zone);
	taken = has_small_pages(block_look(block_of(mm, pfn))) &&
		buddy_take_frame(zone, pfn_page(mm, pfn));
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

/*
 * Isolate the block, so that pages freed from now on are not given out. A 1 GiB page is isolated
 * whole, because it has one type.
 */
static void isolate(struct mm *mm, struct bad_frame *bad)
{
	const u32 index = (u32)(bad->pfn >> BLOCK_ORDER);
	struct zone *zone = frame_zone(mm, bad->pfn);
	struct block_word head;
	u8 state;

	zone_lock(zone);
	state = block_look_at(mm, index).state;
	block_run_head(mm, index, &head);
	if (state == BLOCK_BARE || state == BLOCK_HUGE || state == BLOCK_NOHEAD ||
	    state == BLOCK_FULL || state == BLOCK_META)
		if (isolate_now(zone, index, 1, &bad->isolation) == -EBUSY &&
		    head.order == GIGA_ORDER)
			isolate_now(zone, ALIGN_DOWN(index, GIB_BLOCKS), GIB_BLOCKS,
				    &bad->isolation);
	zone_unlock(zone);
}

static bool is_isolated(const struct bad_frame *bad)
{
	return bad->isolation.count > 0;
}

/* End the isolation, or hand it on to another pending frame of the same blocks. */
static void end_isolation(struct mm *mm, struct bad_frame *bad)
{
	struct isolation *token = &bad->isolation;
	struct zone *zone = block_zone(mm, token->first);

	for (unsigned i = 0; i < mm->bad.count; i++) {
		struct bad_frame *other = &mm->bad.frame[i];

		if (other == bad || is_isolated(other) ||
		    (other->pfn >> BLOCK_ORDER) - token->first >= token->count)
			continue;
		isolate_move(zone, token, &other->isolation);
		return;
	}
	isolate_undo(zone, token);
}

/*
 * If the block is free, take it off its list and into transit: the block alone, or the 1 GiB page
 * that it is part of. BLOCK_NONE if it is not free.
 */
static u32 take_free(struct zone *zone, u32 index)
{
	struct mm *mm = zone->mm;
	struct block_word word;
	u32 head, run = BLOCK_NONE;

	zone_lock(zone);
	head = block_run_head(mm, index, &word);
	if (word.flags & BLOCK_FREE) {
		const bool huge = block_free_class(word) == FREE_HUGE;
		const unsigned order = huge ? word.order : BLOCK_ORDER;

		run = huge ? head : index;
		buddy_unlink_within(zone, head, run, run + order_blocks(order));
		block_begin(zone, run, order, huge ? BLOCK_BARE : BLOCK_FULL);
	}
	zone_unlock(zone);
	return run;
}

/*
 * Split a free block into small pages. Returns 0; -EBUSY if the block is not free; -ENOMEM if there
 * are no frames for its struct pages.
 */
static int split_free_block(struct mm *mm, u32 index)
{
	struct zone *zone = block_zone(mm, index);
	struct block_list list = BLOCK_LIST_INIT;
	u32 run = take_free(zone, index);
	int err;

	if (run != BLOCK_NONE && block_look_at(mm, run).state == BLOCK_HUGE) {
		hvo_bare_run(zone, run); /* it is free again: bare, or full in a mapped section */
		run = take_free(zone, index);
	}
	if (run == BLOCK_NONE)
		return -EBUSY;
	block_list_push(mm, &list, run);
	err = block_look_at(mm, run).state == BLOCK_HUGE ? -ENOMEM : contig_make_full(zone, &list);
	if (err)
		block_list_publish_free(mm, &list);
	else
		block_publish_split(zone, block_list_pop(mm, &list), PAGE_ORDERS);
	return err;
}

/* The head of the pool's page with this block, if the page is free in its pool; else BLOCK_NONE. */
static u32 free_in_pool(struct mm *mm, u32 index, unsigned *order)
{
	struct block_word head;
	const u32 run = block_run_head(mm, index, &head);

	*order = head.order;
	return run != BLOCK_NONE && (head.flags & BLOCK_POOL_FREE) ? run : BLOCK_NONE;
}

/*
 * Returns 0 if the frame is out of use. -EBUSY means that it is in use or metadata memory's; its
 * block is isolated if that is possible. -ENOMEM means that the block is free and isolated, but
 * could not be split.
 */
static int take_out(struct mm *mm, struct bad_frame *bad)
{
	const u32 index = (u32)(bad->pfn >> BLOCK_ORDER);
	unsigned order;
	u32 pooled;
	int err;

	if (!is_isolated(bad))
		isolate(mm, bad);
	pooled = free_in_pool(mm, index, &order);
	if (pooled != BLOCK_NONE)
		mm_upward.pool_dissolve_page(mm, pooled, order);
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

/* ---- pending frames ---- */

static void watch(struct mm *mm, u32 bits)
{
	atomic_fetch_or(&mm->watch, bits);
}

static void watch_no_more(struct mm *mm, u32 bits)
{
	atomic_fetch_and(&mm->watch, ~bits);
}

/* Only one CPU at a time withdraws frames; the others see that it is being done. */
static bool withdrawing_begins(struct mm *mm)
{
	return atomic_cas(&mm->bad.withdrawing, 0u, 1u);
}

static void withdrawing_ends(struct mm *mm)
{
	if (mm->bad.count == 0)
		watch_no_more(mm, WATCH_BAD);
	atomic_store_release(&mm->bad.withdrawing, 0u);
	/* with bad_frames_withdraw(): either it begins, or it is seen here; both are locked */
	if (atomic_exchange(&mm->bad.again, 0u))
		bad_frames_withdraw(mm);
}

/* Does the frame look free? Only then is it worth asking all CPUs for what they hold. */
static bool looks_free(struct mm *mm, const struct bad_frame *bad)
{
	const u32 index = (u32)(bad->pfn >> BLOCK_ORDER);
	struct page page, head;
	unsigned order;

	if (buddy_find_run(mm, index) != BLOCK_NONE ||
	    free_in_pool(mm, index, &order) != BLOCK_NONE)
		return true;
	if (!has_small_pages(block_look_at(mm, index)) || !mm_page_peek(mm, bad->pfn, &page))
		return false;
	return mm_page_peek(mm,
			    page_to_pfn((struct page *)((virt_t)pfn_page(mm, bad->pfn) &
							page.head_mask)),
			    &head) &&
	       head.refcount == 0;
}

/*
 * The last pending frame takes the slot of one that is withdrawn, and its isolation moves with it.
 */
static void move_slot(struct mm *mm, struct bad_frame *from, struct bad_frame *to)
{
	if (from != to && is_isolated(from))
		isolate_move(block_zone(mm, from->isolation.first), &from->isolation,
			     &to->isolation);
	atomic_store_relaxed(&to->pfn, from->pfn);
}

/*
 * Look at each pending frame once. Returns how many are out of use now. *failed is set if some look
 * free but could not be taken.
 */
static unsigned withdraw_once(struct mm *mm, bool *failed)
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
		pr_warn("memory: bad frame %llx was freed and is out of use now",
			bad->frame[i].pfn);
		move_slot(mm, &bad->frame[bad->count - 1], &bad->frame[i]);
		atomic_store_relaxed(&bad->count, bad->count - 1);
		done++;
	}
	return done;
}

unsigned bad_frames_withdraw(struct mm *mm)
{
	bool failed;
	unsigned left;

	if (!withdrawing_begins(mm)) {
		atomic_store_relaxed(&mm->bad.again, 1u);
		if (!withdrawing_begins(mm))
			return atomic_load_relaxed(&mm->bad.count);
	}
	/* other frames of a block wait for the frame that isolated it */
	while (withdraw_once(mm, &failed) > 0 && failed)
		;
	left = mm->bad.count;
	atomic_store_relaxed(&mm->bad.wait, failed ? WITHDRAW_AGAIN : 0);
	withdrawing_ends(mm);
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
		/* not free yet; it will be at the next free */
		atomic_store_relaxed(&mm->bad.wait, 0);
	else if (wait > 0) /* the count may lose a race; it sets a pace and guarantees nothing */
		atomic_store_relaxed(&mm->bad.wait, wait - 1);
	else
		bad_frames_withdraw(mm);
}

/* WATCH_BAD is set before the look at who has the frame, so that no free in between goes unseen. */
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
	watch(mm, WATCH_BAD);
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
	if (section_state(mm, section) != SECTION_OPEN || !withdrawing_begins(mm))
		return -EAGAIN;
	err = mark(mm, pfn);
	withdrawing_ends(mm);
	return err;
}

int page_mark_bad(pfn_t pfn)
{
	context_assert(CONTEXT_ORDINARY);
	return mm_mark_bad(&mm_kernel, pfn);
}

/* ---- reports from contexts in which nothing can be done about them ---- */

/*
 * A report is a word: frame + 1, and above it the attempts that failed for lack of memory or room.
 * Slots change by compare-and-swap only, and whoever swaps 0 in owns the report. Nobody waits, so a
 * machine check may interrupt anything here without harm. A report for which there is no slot is
 * lost, and the log says so; a machine in that state has more serious problems.
 */
enum { REPORT_TRIES_SHIFT = 48, REPORT_TRIES_MAX = 64 };
#define REPORT_TRY (1ULL << REPORT_TRIES_SHIFT)

void mm_report_bad(struct mm *mm, pfn_t pfn)
{
	for (unsigned i = 0; i < BAD_REPORTS_MAX; i++) {
		u64 *slot = &mm->bad.reported[i];

		if (atomic_load_relaxed(slot) % REPORT_TRY != pfn + 1 &&
		    !atomic_cas(slot, 0ULL, pfn + 1))
			continue;
		watch(mm, WATCH_REPORTED);
		return;
	}
	atomic_fetch_add(&mm->bad.lost, 1u);
}

/*
 * Returns 0, or the report to try again: another CPU is working on a frame, or there is no room or
 * memory and that has not lasted too long.
 */
static u64 take_reported(struct mm *mm, u64 report)
{
	const pfn_t pfn = report % REPORT_TRY - 1;
	const bool known = bad_frame_is_out(mm, pfn);
	const int err = known ? 0 : mm_mark_bad(mm, pfn);

	if (err == -EAGAIN)
		return report;
	if (err == -ENOMEM && report / REPORT_TRY + 1 < REPORT_TRIES_MAX)
		return report + REPORT_TRY;
	if (!known)
		pr_warn("memory: frame %llx failed: %s", pfn,
			err == 0        ? "it is out of use"
			: err == -EBUSY ? "it will be withdrawn when it is free"
			: err == -EINVAL
				? "it is not memory that the allocator gives out"
				: "it stays in use, because too many frames are pending or "
				  "memory is short");
	return 0;
}

void bad_frames_take_reported(struct mm *mm)
{
	const u32 lost = atomic_exchange(&mm->bad.lost, 0u);
	bool again = false;

	watch_no_more(mm, WATCH_REPORTED);
	for (unsigned i = 0; i < BAD_REPORTS_MAX; i++) {
		u64 *slot = &mm->bad.reported[i];
		u64 report = atomic_load_relaxed(slot);

		if (!report || !atomic_cas(slot, report, 0ULL))
			continue;
		report = take_reported(mm, report);
		again |= report != 0;
		if (report && !atomic_cas(slot, 0ULL, report)) /* another report has come */
			mm_report_bad(mm, report % REPORT_TRY - 1);
	}
	if (again)
		watch(mm, WATCH_REPORTED);
	if (lost)
		pr_warn("memory: %u reports of bad frames were lost", lost);
}

/* ---- badram= ---- */

static const char *bad_ram;
OPTION_TEXT(badram, bad_ram, "memory that is kept out of use, e.g. badram=0x12345000,3G+2M");

int bad_ram_parse(const char *text, void (*take)(phys_t start, phys_t end, void *ctx), void *ctx)
{
	while (*text) {
		u64 start, size = 1;
		int err = parse_u64(&text, &start);

		if (!err && *text == '+') {
			text++;
			err = parse_u64(&text, &size);
		}
		if (err)
			return err;
		if ((*text && *text != ',') || size == 0)
			return -EINVAL;
		if (start >= PHYS_LIMIT || size > PHYS_LIMIT - start)
			return -ERANGE;
		take(ALIGN_DOWN(start, PAGE_SIZE), ALIGN_UP(start + size, PAGE_SIZE), ctx);
		text += *text == ',';
	}
	return 0;
}

static void reserve(phys_t start, phys_t end, void *ctx)
{
	(void)ctx;
	pr_warn("memory: %llx-%llx is named by badram= and is kept out of use", start, end);
	memblock_reserve(start, end, OWNER_BAD);
}

void bad_ram_reserve(void)
{
	char why[256];

	if (!bad_ram || bad_ram_parse(bad_ram, reserve, NULL) == 0)
		return;
	format(why, sizeof(why),
	       "badram=%s, from its mistake on, is malformed (expected START[+SIZE],...)", bad_ram);
	cmdline_refuse(&cmdline_machine, why);
}
