/*
 * Leaks: the pages that a program still has when its run ends.
 *
 *   leaks_begin()   the payload, the monitor or the test cases   leaks_check(), then the verdict
 *
 * At the end of a run only the kernel may hold memory that was not in use before it. The kernel
 * itself keeps some page tables for good (of device mappings and of huge mappings); these do not
 * count. Free pages of pools do not count either, because a program that grows a pool and leaves it
 * grown means to. Everything else fails the run, unless end.leaks=ok is on the command line.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Note what is in use. Start-up, once, before the program. From here on the end of the run is
 * checked (kernel/core/verdict.h).
 */
void leaks_begin(void);

/*
 * Wait a bounded time until the other CPUs are idle, account for all frames (mm_account()), and
 * compare what is in use with what leaks_begin() noted. Prints each difference, and with
 * debug.page_owner=on the holders of all pages given out since. Returns false if the run must fail.
 * Ordinary code, no lock held.
 */
bool leaks_check(void);

/*
 * Frames in use, without the kernel's own page tables and those given to leaks_keep(). Exact while
 * other CPUs are idle.
 */
u64 leaks_in_use(void);

/* Declare that `frames` more stay in use for good and are no leak. Any context. */
void leaks_keep(u64 frames);
