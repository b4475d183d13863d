/* Payloads that succeed but leave something behind: leaks.c. */
#pragma once

#include "kernel/lib/types.h"

/*
 * Leave something behind, by name. Counts one pass. False if there is no such name.
 *
 *   "leak-page"  3 pages of order 0 and one of order 3
 *   "leak-huge"  a huge mapping of 3 touched pages of 2 MiB
 *   "leak-map"   a huge mapping that was never touched
 *   "leak-pool"  2 pages of a pool, and 3 promised
 *   "leak-work"  a function on CPU 1 that does not end
 *   "leak-none"  nothing: as many pages are taken and all given back, but pools stay grown
 */
bool payload_leaks(const char *name);
