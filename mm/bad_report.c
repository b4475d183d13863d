/*
 * Bad frames that are reported from where nothing can be done about them: see bad_frames.h.
 *
 *   a machine check, any context         the next CPU that takes or gives back pages, no lock held
 *   EMPTY -> WRITING -> REPORTED         REPORTED -> TAKING -> EMPTY; or REPORTED again, to be tried again
 *
 * Slots change state by compare-and-swap only: nobody waits, so a machine check that interrupts anything here is no harm. A
 * report for which there is no slot is lost, and said to be; the machine has other worries then.
 */
#include "kernel/printk.h"
#include "mm/bad_frames.h"

enum { REPORTS_MAX = 32, TRIES_MAX = 64 };
enum { REPORT_EMPTY, REPORT_WRITING, REPORT_REPORTED, REPORT_TAKING };

static struct report {
	u32 state; /* atomic; the rest is whose it is */
	u32 tries; /* without memory or room for it */
	struct mm *mm;
	pfn_t pfn;
} reports[REPORTS_MAX];

static u32 lost; /* atomic */

/* Only to keep a storm of the same error from filling the list: it may be wrong while others change it. */
static bool is_reported(const struct mm *mm, pfn_t pfn)
{
	for (unsigned i = 0; i < REPORTS_MAX; i++)
		if (atomic_load_acquire(&reports[i].state) == REPORT_REPORTED && atomic_load_relaxed(&reports[i].mm) == mm &&
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

/* False: it was not possible just now. */
static bool take(struct report *report)
{
	const bool known = bad_frame_is_out(report->mm, report->pfn);
	const int err = known ? 0 : mm_mark_bad(report->mm, report->pfn);

	if (known)
		return true;
	if (err == -EAGAIN) /* another CPU is at one of the others */
		return false;
	if (err == -ENOMEM && ++report->tries < TRIES_MAX)
		return false;
	pr_warn("memory: frame %llx failed: %s", (unsigned long long)report->pfn,
		err == 0	? "it is out of use"
		: err == -EBUSY ? "it is in use, and out of use when it is freed"
		: err == -EINVAL ? "it is not memory that is given out"
				 : "too many have: it stays in use");
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
