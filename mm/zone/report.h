/*
 * Free memory that is shown to the host, so that the host can take it back (free page reporting).
 *
 *   zone list --report_take()--> in transit, shown to the host --report_give()--> zone list
 *
 * The block table alone says what is free, so no struct page is read, made or needed. A run of any
 * order is one entry, up to a whole GiB. While the host has it, the run is in transit, so that
 * nobody can be given it. Afterwards its records have the note BLOCK_REPORTED, and it is not shown
 * again until it was in use.
 *
 * Shown are runs of bare blocks and free huge pages. Free blocks that have all their struct pages
 * are not shown: their small pages may be wanted next. Memory that was never opened was never
 * touched, so the host has it already.
 *
 * Source: virtio 1.2, 5.5.6.7 "Free Page Reporting". Alexander Duyck's series for Linux ("mm /
 * virtio: Provide support for free page reporting", 2020) keeps its mark in the struct page of each
 * free page.
 */
#pragma once

#include "mm/memmap/zone.h"

/* The most runs shown at a time. */
enum { REPORT_RUNS = 32 };

struct report_run {
	u32 index;
	u8 order; /* 9 to 18 */
};

/* Runs that are out, and where to look next. Belongs to one caller at a time. */
struct report {
	struct mm *mm;
	u64 gib;    /* of mm->gib[]: where the next look begins */
	u64 looked; /* GiBs looked through since a run was last taken */
	u64 frames; /* of all runs that are out */
	u32 count;
	struct report_run run[REPORT_RUNS];
};

enum report_result {
	REPORT_REFUSED, /* the host did not say that it took the runs: they are shown again */
	REPORT_TAKEN,   /* as after REPORT_REFUSED, contents are unknown from now on */
};

/*
 * Look through up to REPORT_GIBS further GiBs for free runs that were not shown since they were
 * last in use, and take up to REPORT_RUNS runs of up to `most` frames together, in transit. At
 * least one run is taken, if these GiBs have one. `report` must have none out. Returns how many
 * were taken. Takes zone locks, one run in each turn. Context: ordinary.
 */
enum { REPORT_GIBS = 64 };
u32 report_take(struct report *report, u64 most);

/*
 * False once all GiBs were looked through since a run was last taken, or since the caller set
 * `looked` to 0.
 */
static inline bool report_has_more(const struct report *report)
{
	return report->looked < report->mm->gibs;
}

/* Give all runs back to the zone lists, with their notes. */
void report_give(struct report *report, enum report_result result);

/*
 * One CPU at a time shows memory, and nobody during an audit. report_claim() returns false if
 * another CPU has the claim, or report_pause() was called more often than report_resume().
 * report_pause() waits until no run is out. Context of report_pause(): ordinary.
 */
bool report_claim(void);
void report_release(void);
void report_pause(void);
void report_resume(void);
