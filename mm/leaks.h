/*
 * Leaks: the pages that a program still has when its run ends.
 *
 *   leaks_begin()   the payload, the monitor or the test cases   leaks_check(), then the verdict
 *
 * At the end of a run nothing but the kernel may hold memory that was not in use before it. The
 * kernel itself keeps some page tables for good (of device mappings and of huge mappings); these do
 * not count, nor do free pages of pools: a program that grows a pool and leaves it grown meant to.
 * Everything else fails the run, unless leaks=ok is on the command line.
 */
#pragma once

#include "kernel/types.h"

/*
 * Note what is in use. Start-up, once, before the program. From here on the end of the run is
 * checked (kernel/verdict.h).
 */
void leaks_begin(void);

/*
 * Wait a bounded time until the other CPUs are idle, account for all frames (mm_account()), and
 * compare what is in use with what leaks_begin() noted. Prints each difference, and with
 * page_owner=on the holders of all pages given out since. Returns false if the run must fail.
 * Ordinary code, no lock held.
 */
bool leaks_check(void);

/* Frames in use by anybody but the kernel's own page tables. Exact while other CPUs are idle. */
u64 leaks_in_use(void);

/* `frames` more stay in use for good, and that is no leak. Any context. */
void leaks_keep(u64 frames);
