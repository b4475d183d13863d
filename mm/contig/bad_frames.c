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
#include "mm/page/pcp_drain.h"
#include "mm/zone/buddy.h"
#include "mm/zone/buddy_small.h"
#include "mm/zone/isolate.h"
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

static bool is_out(struct mm *mm, pfn_t pfn)
{
	struct page page;

	return mm_page_peek(mm, pfn, &page) && page.flags & PAGE_BAD;
}

/* ---- its block ---- */

/*
 * Isolate the block, so that pages freed from now on are not given out. A 1 GiB page is isolated
 * whole, because it has one type. If a block cannot be isolated for another reason, its GiB cannot
 * be, either.
 */
static void isolate(struct mm *mm, struct bad_frame *bad, pfn_t pfn)
{
	const u32 index = (u32)(pfn >> BLOCK_ORDER);
	struct zone *zone = frame_zone(mm, pfn);
	u8 state;

	zone_lock(zone);
	state = block_look_at(mm, index).state;
	if (state == BLOCK_BARE || state == BLOCK_HUGE || state == BLOCK_NOHEAD ||
	    state == BLOCK_FULL || state == BLOCK_META)
		if (isolate_now(zone, index, 1, &bad->isolation) == -EBUSY)
			isolate_now(zone, ALIGN_DOWN(index, GIB_BLOCKS), GIB_BLOCKS,
				    &bad->isolation);
	zone_unlock(zone);
}

/* End the isolation, or hand it on to another pending frame of the same blocks. */
static void end_isolation(struct mm *mm, struct bad_frame *bad)
{
	struct isolation *token = &bad->isolation;
	struct zone *zone = block_zone(mm, token->first);

	for (unsigned i = 0; i < BAD_FRAMES_MAX; i++) {
		struct bad_frame *other = &mm->bad.frame[i];

		if (other == bad || other->isolation.count > 0 || !other->pending ||
		    ((mm->bad.word[i] - 1) >> BLOCK_ORDER) - token->first >= token->count)
			continue;
		isolate_move(zone, token, &other->isolation);
		return;
	}
	isolate_undo(zone, token);
}

/*
 * Split the block into small pages if it is free. A huge page that it is part of becomes bare
 * first, or full in a mapped section.
 */
static bool split_free_block(struct mm *mm, u32 index)
{
	struct zone *zone = block_zone(mm, index);
	struct block_word word;
	const u32 head = block_run_head(mm, index, &word);

	if (!(word.flags & BLOCK_FREE))
		return false; /* and metadata memory does not grow for it */
	if (word.state == BLOCK_HUGE &&
	    block_take_in(zone, head, 1, TAKE_HUGE | TAKE_ISOLATED, BLOCK_BARE) == head)
		hvo_bare_run(zone, head);
	return page_split_block(zone, index, TAKE_ISOLATED);
}

/*
 * Take the frame out of use if nobody has it. If not, its block is isolated from now on, unless
 * that is not possible.
 */
static bool take_out(struct mm *mm, struct bad_frame *bad, pfn_t pfn)
{
	const u32 index = (u32)(pfn >> BLOCK_ORDER);
	const u64 section = index / SECTION_BLOCKS;
	bool out;

	if (section_state(mm, section) == SECTION_UNOPENED)
		section_open(mm, section, mm->style);
	if (section_state(mm, section) != SECTION_OPEN)
		return false;
	if (bad->isolation.count == 0)
		isolate(mm, bad, pfn);
	mm_upward.pool_dissolve_page(mm, index);
	pcp_drain_all(mm);
	out = is_out(mm, pfn) || take_from_lists(mm, pfn) ||
	      (bad->isolation.count > 0 && split_free_block(mm, index) && take_from_lists(mm, pfn));
	if (out && bad->isolation.count > 0)
		end_isolation(mm, bad);
	return out;
}

/* ---- pending frames ---- */

/* The number of the slot with this word, or BAD_FRAMES_MAX. */
static unsigned slot_with(const struct mm *mm, u64 word)
{
	unsigned slot = 0;

	while (slot < BAD_FRAMES_MAX && atomic_load_relaxed(&mm->bad.word[slot]) != word)
		slot++;
	return slot;
}

/*
 * Note a frame, once. Returns its slot, or BAD_FRAMES_MAX if there is no room. Nobody waits, so a
 * machine check may interrupt anything here without harm; two of them may note a frame twice, and
 * it is taken out once.
 */
static unsigned note(struct mm *mm, pfn_t pfn)
{
	unsigned slot = slot_with(mm, pfn + 1);

	while (slot == BAD_FRAMES_MAX) {
		slot = slot_with(mm, 0);
		if (slot == BAD_FRAMES_MAX || atomic_cas(&mm->bad.word[slot], 0ULL, pfn + 1))
			break;
		slot = BAD_FRAMES_MAX;
	}
	return slot;
}

/*
 * Only one CPU at a time withdraws frames; the others see that it is being done. WATCH_BAD is set
 * first, and then the lock of the zone or pool is held to see whether a frame is free. A CPU that
 * frees holds the same lock and reads WATCH_BAD afterwards. So one of the two sees the other.
 */
static bool withdrawing_begins(struct mm *mm)
{
	if (!atomic_cas(&mm->bad.withdrawing, 0u, cpu_id() + 1u))
		return false;
	/* all CPUs read this line all the time, so it is written only if that changes it */
	if (!(atomic_load_relaxed(&mm->watch) & WATCH_BAD))
		atomic_fetch_or(&mm->watch, (u32)WATCH_BAD);
	return true;
}

bool bad_frames_pending(const struct mm *mm, pfn_t pfn, u64 frames)
{
	for (unsigned i = 0; i < BAD_FRAMES_MAX; i++) {
		const u64 word = atomic_load_relaxed(&mm->bad.word[i]);

		if (word && word - 1 - pfn < frames)
			return true;
	}
	return false;
}

static void withdrawing_ends(struct mm *mm)
{
	if (!bad_frames_pending(mm, 0, ~0ULL))
		atomic_fetch_and(&mm->watch, ~(u32)WATCH_BAD);
	atomic_store_release(&mm->bad.withdrawing, 0u);
	/* with bad_frames_withdraw(): either it begins, or it is seen here; both are locked */
	if (atomic_exchange(&mm->bad.again, 0u))
		bad_frames_withdraw(mm);
}

/* Does the frame look free? Only then is it worth asking all CPUs for what they hold. */
static bool looks_free(struct mm *mm, pfn_t pfn)
{
	const u32 index = (u32)(pfn >> BLOCK_ORDER);
	const u8 state = section_state(mm, index / SECTION_BLOCKS);
	struct block_word run;
	struct page page, head;

	if (state != SECTION_OPEN)
		return state == SECTION_UNOPENED;
	block_run_head(mm, index, &run);
	if (run.flags & BLOCK_POOL_FREE || buddy_find_run(mm, index) != BLOCK_NONE)
		return true;
	if (!has_small_pages(block_look_at(mm, index)) || !mm_page_peek(mm, pfn, &page))
		return false;
	return mm_page_peek(
		       mm, page_to_pfn((struct page *)((virt_t)pfn_page(mm, pfn) & page.head_mask)),
		       &head) &&
	       head.refcount == 0;
}

/* 0: it is out of use already. -EINVAL: it is not the allocator's. -EBUSY: neither. */
static int judge_frame(struct mm *mm, pfn_t pfn)
{
	u8 zone;

	switch (memmap_frame_kind(mm, pfn, &zone)) {
	case FRAME_HOLE:
	case FRAME_RESERVED:
		return -EINVAL;
	case FRAME_BAD:
		return 0;
	default:
		return is_out(mm, pfn) ? 0 : -EBUSY;
	}
}

/*
 * Take a noted frame out of use. 0: it is. -EINVAL: it is not the allocator's. Both empty the slot.
 * -EBUSY: it stays, pending.
 */
static int settle(struct mm *mm, unsigned slot)
{
	const pfn_t pfn = atomic_load_relaxed(&mm->bad.word[slot]) - 1;
	struct bad_frame *bad = &mm->bad.frame[slot];
	int err = bad->isolation.count > 0 ? -EBUSY : judge_frame(mm, pfn);

	if (err == -EBUSY && take_out(mm, bad, pfn))
		err = 0;
	bad->pending = err == -EBUSY;
	if (!bad->pending)
		atomic_store_release(&mm->bad.word[slot], 0ULL);
	return err;
}

static void say(pfn_t pfn, bool pending, int err)
{
	if (!pending)
		pr_warn("memory: frame %llx failed: %s", pfn,
			err == 0        ? "it is out of use"
			: err == -EBUSY ? "it will be withdrawn when it is free"
					: "it is not memory that the allocator gives out");
	else if (err == 0)
		pr_warn("memory: bad frame %llx was freed and is out of use now", pfn);
}

/*
 * Look at each noted frame once. Returns how many are out of use now. *failed is set if some look
 * free but could not be taken.
 */
static unsigned withdraw_once(struct mm *mm, bool *failed)
{
	unsigned done = 0;

	*failed = false;
	for (unsigned i = 0; i < BAD_FRAMES_MAX; i++) {
		const u64 word = atomic_load_acquire(&mm->bad.word[i]);
		const bool pending = mm->bad.frame[i].pending;
		bool known;
		int err;

		if (!word || (pending && !looks_free(mm, word - 1)))
			continue;
		known = !pending && judge_frame(mm, word - 1) == 0;
		err = settle(mm, i);
		if (!known)
			say(word - 1, pending, err);
		done += err == 0;
		*failed |= pending && err == -EBUSY;
	}
	return done;
}

void bad_frames_withdraw(struct mm *mm)
{
	bool failed;

	if (!withdrawing_begins(mm)) {
		atomic_store_relaxed(&mm->bad.again, 1u);
		if (!withdrawing_begins(mm))
			return;
	}
	/* other frames of a block wait for the frame that isolated it */
	while (withdraw_once(mm, &failed) > 0 && failed)
		;
	atomic_store_relaxed(&mm->bad.wait, failed ? WITHDRAW_AGAIN : 0);
	withdrawing_ends(mm);
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

int mm_mark_bad(struct mm *mm, pfn_t pfn)
{
	int err = judge_frame(mm, pfn);
	unsigned slot;

	if (err != -EBUSY)
		return err;
	if (!withdrawing_begins(mm))
		return -EAGAIN;
	slot = note(mm, pfn);
	if (slot == BAD_FRAMES_MAX)
		err = -ENOMEM;
	else if (!mm->bad.frame[slot].pending)
		err = settle(mm, slot);
	withdrawing_ends(mm);
	return err;
}

int page_mark_bad(pfn_t pfn)
{
	context_assert(CONTEXT_ORDINARY);
	return mm_mark_bad(&mm_kernel, pfn);
}

/*
 * A report for which there is no room is lost, and the log says so; a machine in that state has
 * more serious problems.
 */
void mm_report_bad(struct mm *mm, pfn_t pfn)
{
	if (note(mm, pfn) == BAD_FRAMES_MAX)
		atomic_fetch_add(&mm->bad.lost, 1u);
	atomic_fetch_or(&mm->watch, (u32)WATCH_REPORTED);
}

void bad_frames_take_reported(struct mm *mm)
{
	const u32 lost = atomic_exchange(&mm->bad.lost, 0u);

	atomic_fetch_and(&mm->watch, ~(u32)WATCH_REPORTED);
	bad_frames_withdraw(mm);
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
