/*
 * Free memory that is shown to the host: see report.h.
 *
 *   GiB of records   [free run, reported][in use][free run: reported | not | not | reported]
 *                                                                     ^ the largest aligned run of
 *                                                                       blocks without a note
 *
 * The look takes no lock: it finds candidates, and the turn at the zone's lock checks again that
 * they are free. A note that comes or goes meanwhile does no harm, because showing a block twice is
 * allowed, and a block that is in use is never free under the lock.
 */
#include "mm/zone/report.h"

#include <arch/atomic.h>

#include "kernel/core/context.h"
#include "kernel/core/wait.h"
#include "mm/memmap/enter.h"
#include "mm/zone/transit.h"

/* ---- taking ---- */

static bool is_reported(const struct mm *mm, u32 index)
{
	return block_word_is_reported(block_look_at(mm, index));
}

/*
 * The largest order, of at most `most` frames, at which blocks from `index` on are aligned, below
 * `end` and without note.
 */
static unsigned grow_order(const struct mm *mm, u32 index, u32 end, u64 most)
{
	unsigned order = BLOCK_ORDER;
	u32 known = index + 1; /* blocks before it have no note */

	while (order < GIGA_ORDER && IS_ALIGNED(index, order_blocks(order + 1)) &&
	       index + order_blocks(order + 1) <= end && order_pages(order + 1) <= most) {
		for (; known < index + order_blocks(order + 1); known++)
			if (is_reported(mm, known))
				return order;
		order++;
	}
	return order;
}

/*
 * Take the run at `index`, if it is still free, in a class that is shown, and not isolated. Returns
 * its order: less than `order` if the run was cut meanwhile; 0 if there is none.
 */
static unsigned take_run(struct zone *zone, u32 index, unsigned order, enum block_state state)
{
	zone_lock(zone);
	order = block_take_at(zone, index, order, TAKE_HUGE | TAKE_BARE | TAKE_CMA, state);
	zone_unlock(zone);
	return order;
}

/*
 * Look at block `index`. If it is free and has no note, take the run that begins there. Returns the
 * first block after what was looked at.
 */
static u32 look_at_block(struct report *report, u32 index, u64 most)
{
	struct mm *mm = report->mm;
	struct block_word word;
	const u32 head = block_run_head(mm, index, &word);
	const u32 end = word.order ? head + order_blocks(word.order) : index + 1;
	unsigned order;

	if (!(word.flags & BLOCK_FREE) || (word.state != BLOCK_BARE && word.state != BLOCK_HUGE))
		return end;
	if (is_reported(mm, index))
		return word.state == BLOCK_HUGE ? end : index + 1;
	order = word.state == BLOCK_HUGE ? word.order : grow_order(mm, index, end, most);
	order = take_run(block_zone(mm, index), index, order, (enum block_state)word.state);
	if (!order)
		return end;
	report->frames += order_pages(order);
	report->run[report->count++] = (struct report_run){.index = index, .order = (u8)order};
	return index + order_blocks(order);
}

/* Returns false if there may be more in this GiB than was taken. */
static bool look_at_gib(struct report *report, u64 gib, u64 most)
{
	const u32 first = (u32)((report->mm->first_gib + gib) * GIB_BLOCKS),
		  end = first + GIB_BLOCKS;
	u32 index = first;

	if (!atomic_load_acquire(&report->mm->gib[gib].blocks))
		return true;
	while (index < end) {
		if (report->count == REPORT_RUNS || report->frames >= most)
			return false;
		index = look_at_block(report, index, most - report->frames);
	}
	return true;
}

u32 report_take(struct report *report, u64 most)
{
	const u64 gibs = report->mm->gibs;

	context_assert(CONTEXT_ORDINARY);
	for (u64 i = 0; i < MIN(gibs, (u64)REPORT_GIBS); i++) {
		report->gib %= gibs;
		if (!look_at_gib(report, report->gib, most))
			break;
		report->gib++;
		report->looked++;
	}
	if (report->count > 0)
		report->looked = 0;
	return report->count;
}

/* ---- giving back ---- */

/* The owner of a run in transit notes that the host took it. */
static void note_run(struct mm *mm, const struct report_run *run)
{
	const struct block_word head = block_look_at(mm, run->index);
	const u32 noted = head.state == BLOCK_HUGE ? 1 : order_blocks(run->order);

	for (u32 index = run->index; index < run->index + noted; index++) {
		block_change(block_at(mm, index), BLOCK_WORD(.target = 0xff),
			     BLOCK_WORD(.target = BLOCK_REPORTED));
	}
}

void report_give(struct report *report, enum report_result result)
{
	struct mm *mm = report->mm;

	for (u32 i = 0; i < report->count; i++) {
		const struct report_run *run = &report->run[i];

		if (result == REPORT_TAKEN)
			note_run(mm, run);
		block_publish_free(block_zone(mm, run->index), run->index, run->order);
	}
	report->count = 0;
	report->frames = 0;
}

/* ---- one CPU at a time ---- */

static u32 claimed; /* 1: a CPU shows memory */
static u32 paused;  /* calls of report_pause(), less those of report_resume() */

bool report_claim(void)
{
	if (!atomic_cas(&claimed, 0, 1))
		return false;
	if (atomic_load_acquire(&paused) == 0)
		return true;
	report_release();
	return false;
}

void report_release(void)
{
	atomic_store_release(&claimed, 0);
}

void report_pause(void)
{
	struct wait wait = wait_begin(WAIT_TRANSIT, "free memory that is shown to the host");

	context_assert(CONTEXT_ORDINARY);
	atomic_fetch_add(&paused, 1);
	while (atomic_load_acquire(&claimed))
		wait_spin(&wait, CPU_NONE);
}

void report_resume(void)
{
	atomic_fetch_sub(&paused, 1);
}
