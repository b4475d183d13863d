/*
 * How many pages a program has. Each thread's record counts the leaves that its CPU brought less
 * those that it took; the sum over all records is what is present.
 */
#pragma once

#include <arch/pgtable.h>

#include "kernel/lib/types.h"

/* Leaves of the program that are present now, by level, all threads together. */
struct pages_count {
	u64 leaves[3];
};
void pages_count(struct pages_count *count);

/* This CPU's thread brought `more` leaves, or took them if negative. Context: ordinary. */
void pages_count_leaves(enum pt_level level, u64 more);

/*
 * Bytes that are present, and the most that were when somebody looked: pages_resident_most(),
 * pages_resident_note(), and calls that unmap more than a few pages. pages_count_begin(): a program
 * starts.
 */
u64 pages_resident(void);
u64 pages_resident_most(void);
void pages_resident_note(void);
void pages_count_begin(void);
