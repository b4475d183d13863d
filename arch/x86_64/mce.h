/*
 * Machine checks: errors that the hardware itself noticed, in banks of registers.
 *
 *   corrected      counted, named, cleared: when somebody polls, so that a storm costs nothing but its count
 *   uncorrected    interrupt (#MC): named; the run goes on only if the CPU's state is whole (RIPV, no PCC), and the page of the
 *                  error is taken out of use as soon as somebody can (mm/bad_frames.h)
 *
 * Source: Intel SDM vol. 3B, chapter 15 "Machine-check architecture"; AMD APM vol. 2, chapter 9.
 */
#pragma once

#include "kernel/types.h"

struct trap_frame;

struct mce_error {
	unsigned bank;
	u64 status, addr, misc;
};

/* What a bank's status says. Pure. */
bool mce_valid(u64 status);
bool mce_corrected(u64 status);

/* True if the address register names a page of memory that the error made unusable. */
bool mce_names_page(const struct mce_error *error);

/* In words: kind, unit, and what the CPU lost. Always terminated. Pure. */
void mce_describe(const struct mce_error *error, char *buf, size_t size);

/* Every CPU, once traps are caught: banks on. What firmware left in them from before is named first, then cleared. */
void mce_init_cpu(void);

/* The #MC handler. Returns if the interrupted code can go on. */
void mce_handle(struct trap_frame *frame);

/* Read and clear this CPU's banks; call_fn. Counts into mce_totals(). */
void mce_poll(void *unused);

struct mce_totals {
	u64 corrected, uncorrected;
	size_t pages; /* noted: mce_page() */
};
struct mce_totals mce_totals(void);

/* The n-th page that an uncorrected error named, or PFN_NONE. Beyond MCE_PAGES_MAX they are only counted. */
enum { MCE_PAGES_MAX = 64 };
pfn_t mce_page(size_t n);
