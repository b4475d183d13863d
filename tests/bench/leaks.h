/* Payloads that end well but for what they leave behind: leaks.c. */
#pragma once

#include "kernel/types.h"

/*
 * "leak-page": 3 pages of order 0 and one of order 3; "leak-huge": a huge mapping of 3 touched
 * pages of 2 MiB; "leak-map": one that was never touched; "leak-pool": 2 pages of a pool, 3
 * promised; "leak-work": a function on CPU 1 that goes on; "leak-none": as much, all given back,
 * but pools stay grown. Counts one pass. False: no such name.
 */
bool payload_leaks(const char *name);
