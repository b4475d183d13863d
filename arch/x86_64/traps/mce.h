/*
 * Machine checks: errors that the hardware itself noticed, in banks of registers.
 *
 *   corrected    Counted, printed and cleared when a caller polls, so that a storm costs nothing
 *                but its count. The CPU that watches polls once a second (the banks of memory
 *                controllers are those of a package), others before they halt idle
 *                (cpu_idle_look()), and all for the machine page.
 *   uncorrected  Reported by an interrupt (#MC) and printed. The run goes on only if the CPU's
 *                state is whole (RIPV, no PCC) and no code needs the page (no AR). The page of the
 *                error is taken out of use as soon as the context allows it
 *                (mm/contig/bad_frames.h).
 *
 * Source: Intel SDM vol. 3B, chapter 15 "Machine-check architecture"; AMD APM vol. 2, chapter 9
 * (9.3.3 "Machine Check Architecture Extensions").
 */
#pragma once

#include "kernel/lib/types.h"

struct trap_frame;

struct mce_error {
	unsigned bank;
	u64 status, addr, misc;
	bool amd;     /* the layout is AMD's */
	bool counted; /* the status has a count of corrected errors (Intel, MCG_CAP[10]) */
};

/*
 * Switch the banks on. Errors that firmware left in them are printed first, then cleared. Every
 * CPU, once traps are set up.
 */
void mce_init_cpu(void);

/*
 * The #MC handler. Returns if the interrupted code can go on. All CPUs may be here at once, and one
 * that finds an error of a shared bank decides for all.
 */
void mce_handle(struct trap_frame *frame);

/*
 * Read and clear this CPU's banks, except of errors that interrupt, and count into mce_totals. CPUs
 * share banks, so one reads at a time: two would report the same error. Any context. Returns false
 * at a bank while one is being read, on another CPU or by what an NMI interrupted.
 */
bool mce_poll(void);

/* The same, waiting for others, but not for ever. A call_fn, for call_cpus(). Not in an NMI. */
void mce_poll_all(void *unused);

/*
 * For cases. mce_reader: the number of the CPU that reads a bank, plus 1, or 0. mce_turn_spins: how
 * often it is checked. Then the handler reads without a turn, and mce_poll_all() leaves the bank.
 */
extern u32 mce_reader, mce_turn_spins;

extern struct mce_totals {
	u64 corrected, uncorrected;
	u64 pages; /* that uncorrected errors named */
} mce_totals;
