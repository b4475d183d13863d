/* Bad frames reported from contexts in which nothing can be done about them. */
#pragma once

#include "mm/contig/bad_frames.h"

/*
 * mm_report_bad() does the work of mm_mark_bad() later; it may be called in any context, machine
 * checks included, and before mm_init().
 *
 * bad_frames_take_reported() does what was reported and logs it. It is called while WATCH_REPORTED
 * is set where pages are allocated or freed, and by code that needs the reports done. No lock held.
 */
void mm_report_bad(struct mm *mm, pfn_t pfn);
void bad_frames_take_reported(struct mm *mm);
