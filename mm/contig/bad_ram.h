/* badram=: ranges of memory that the command line names as faulty. */
#pragma once

#include "mm/contig/bad_frames.h"

/*
 * Parse "START[+SIZE],..." (numbers as on the command line, rounded outwards to pages, SIZE one
 * page if absent) and call take() for each range. Returns 0, or -EINVAL or -ERANGE at the first
 * malformed range; take() was called for the ranges before it.
 */
int bad_ram_parse(const char *text, void (*take)(phys_t start, phys_t end, void *ctx), void *ctx);

/*
 * Reserve the memory that badram= names, so that it has no user. Call after memblock_init() and
 * before anything is allocated.
 */
void bad_ram_reserve(void);
