/*
 * How many pages a space has. Each CPU counts the leaves that it brought less those that it took
 * (struct space_cpu); the sum is what is present.
 */
#pragma once

#include <arch/pgtable.h>

#include "kernel/lib/types.h"

struct space;

/* Leaves of the space that are present now, by level. */
struct pages_count {
	u64 leaves[3];
};
void pages_count(const struct space *space, struct pages_count *count);

/* This CPU brought `more` leaves, or took them if negative. Context: ordinary. */
void pages_count_leaves(const struct space *space, enum pt_level level, u64 more);

/*
 * Bytes that are present, and the most that were when somebody looked: pages_resident_most(),
 * pages_resident_note(), and calls that unmap more than a few pages.
 */
u64 pages_resident(const struct space *space);
u64 pages_resident_most(struct space *space);
void pages_resident_note(struct space *space);
