/*
 * Accounting: every 4 KiB frame of RAM has one owner, and a walk proves that the counters agree.
 *
 *   free + unopened + per-CPU + pool free + in use + metadata + gated + in transit + bad + reserved
 *   = RAM
 */
#pragma once

#include "mm/mm.h"

struct zone;

/* Read the counters, which is cheap. Exact when all other CPUs are parked. */
void mm_usage_read(struct mm *mm, struct mm_usage *usage);

/*
 * Walk everything (free lists, rings, pools, blocks, struct pages, page tables, metadata maps),
 * owner by owner, and compare the result with the counters. Prints every difference. Returns true
 * if all agree. Other CPUs must be parked or idle.
 */
bool mm_account(struct mm *mm);

/*
 * For the parts of the account: print what is wrong, and count it. account_agree() does so if two
 * counts of `what` differ, in frames of a zone, or with NULL in anything.
 */
extern u32 account_faults;
void account_wrong(const char *fmt, ...) __printf(1, 2);
void account_agree(const char *what, const struct zone *zone, u64 counted, u64 walked);

/*
 * Account for the machine and its pools. No CPU shows free memory to the host for as long as this
 * takes. Context: ordinary.
 */
bool account_machine(void);
