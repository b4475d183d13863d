/* The part of the fault benchmark about pages that idle CPUs cleared before: fault_ahead.c. */
#pragma once

#include "mm/hugetlb/pool.h"

/*
 * Touch `pages` free pages of the pool, of which idle CPUs clear up to `bound` before, several
 * times: as they are, after the pool shrank and grew again, and 1 GiB pages as demoted ones.
 * Nothing else clears ahead meanwhile (prezero_pause()). Prints rows. Returns false if a page was
 * not faulted in exactly once. Records follow when fault_ahead_record() is called.
 */
bool fault_ahead_run(struct pool *pool, u64 pages, u64 bound);
void fault_ahead_record(void); /* print the records of all runs since the last call */
