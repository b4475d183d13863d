/*
 * Bad frames reported from contexts in which nothing can be done about them: see bad_frames.h.
 *
 *   a machine check, any context         the next CPU that allocates or frees pages, no lock held
 *   EMPTY -> WRITING -> REPORTED         REPORTED -> TAKING -> EMPTY; or REPORTED again, for
 *                                        another attempt
 *
 * Slots change state by compare-and-swap only. Nobody waits, so a machine check may interrupt
 * anything here without harm. A report for which there is no slot is lost, and the log says so; a
 * machine in that state has more serious problems.
 */
#include "mm/contig/bad_report.h"

#include "kernel/core/printk.h"
#include "mm/contig/bad_frames.h"

enum { REPORTS_MAX = 32, TRIES_MAX = 64 };
enum { REPORT_EMPTY, REPORT_WRITING, REPORT_REPORTED, REPORT_TAKING };

static struct report {
	u32 state; /* atomic; the other fields belong to the CPU that set WRITING or TAKING */
	u32 tries; /* attempts that failed for lack of memory or room */
	struct mm *mm;
	pfn_t pfn;
} reports[REPORTS_MAX];

static u32 lost; /* atomic */

/*
 * This only keeps a storm of the same error from filling the list. The answer may be wrong while
 * other CPUs change it.
 */
static bool is_reported(const struct mm *mm, pfn_t pfn)
{
	for (unsigned i = 0; i < REPORTS_MAX; i++)
		if (atomic_load_acquire(&reports[i].state) == REPORT_REPORTED &&
		    atomic_load_relaxed(&reports[i].mm) == mm &&
		    atomic_load_relaxed(&reports[i].pfn) == pfn)
			return true;
	return false;
}

void mm_report_bad(struct mm *mm, pfn_t pfn)
{
	if (is_reported(mm, pfn))
		return;
	for (unsigned i = 0; i < REPORTS_MAX; i++) {
		struct report *report = &reports[i];

		if (!atomic_cas(&report->state, (u32)REPORT_EMPTY, (u32)REPORT_WRITING))
			continue;
		atomic_store_relaxed(&report->mm, mm);
		atomic_store_relaxed(&report->pfn, pfn);
		report->tries = 0;
		atomic_store_release(&report->state, (u32)REPORT_REPORTED);
		atomic_fetch_or(&mm->watch, (u32)WATCH_REPORTED);
		return;
	}
	atomic_fetch_add(&lost, 1);
}

/* False if the frame could not be taken just now. */
static bool take(struct report *report)
{
	const bool known = bad_frame_is_out(report->mm, report->pfn);
	const int err = known ? 0 : mm_mark_bad(report->mm, report->pfn);

	if (known)
		return true;
	if (err == -EAGAIN) /* another CPU is working on another frame */
		return false;
	if (err == -ENOMEM && ++report->tries < TRIES_MAX)
		return false;
	pr_warn("memory: frame %llx failed: %s", report->pfn,
		err == 0         ? "it is out of use"
		: err == -EBUSY  ? "it will be withdrawn when it is free"
		: err == -EINVAL ? "it is not memory that the allocator gives out"
				 : "it stays in use, because too many frames are pending or memory "
				   "is short");
	return true;
}

void bad_frames_take_reported(struct mm *mm)
{
	const u32 before = atomic_exchange(&lost, 0);
	bool again = false;

	atomic_fetch_and(&mm->watch, ~(u32)WATCH_REPORTED);
	for (unsigned i = 0; i < REPORTS_MAX; i++) {
		struct report *report = &reports[i];
		bool done;

		if (atomic_load_relaxed(&report->state) != REPORT_REPORTED ||
		    !atomic_cas(&report->state, (u32)REPORT_REPORTED, (u32)REPORT_TAKING))
			continue;
		done = report->mm == mm && take(report);
		again |= report->mm == mm && !done;
		atomic_store_release(&report->state, (u32)(done ? REPORT_EMPTY : REPORT_REPORTED));
	}
	if (again)
		atomic_fetch_or(&mm->watch, (u32)WATCH_REPORTED);
	if (before)
		pr_warn("memory: %u reports of bad frames were lost", before);
}
