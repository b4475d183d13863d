/*
 * Operations of calls on whole ranges of the program's memory. Each function that takes
 * translations away makes one round. Addresses and sizes are multiples of 4 KiB, inside
 * [USER_START, USER_END). Context: ordinary.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/program/area_tree.h"
#include "kernel/program/pages.h"

/*
 * Map `area` (its range without flags of placement) where mapping_place says. Takes over the
 * reference to area->file in every case. Returns the first address or a negative errno.
 */
enum mapping_place {
	MAPPING_ANYWHERE,  /* area->start is a wish, 0: none */
	MAPPING_FIXED,     /* exactly there; what was mapped goes */
	MAPPING_NO_REPLACE /* exactly there, -EEXIST if something is mapped */
};
s64 mapping_make(struct area *area, enum mapping_place place);

/* Unmap a range, whatever is in it. Returns 0, -EINVAL for a part of a pool's page, or -ENOMEM. */
s64 mapping_remove(u64 start, u64 end);

/* Unmap everything, when the program has ended and no thread is left. Frees the areas, too. */
void mapping_remove_all(void);

/*
 * Give a range other rights. Returns 0, -ENOMEM for a hole (nothing was changed) or for lack of
 * memory, or -EACCES for a file that may not be written; what comes before is then changed.
 */
s64 mapping_protect(u64 start, u64 end, u8 rights);

/*
 * Areas that a call changes. They stay busy until the round in which their old translations end:
 * otherwise another call could change them once more and return while those still serve.
 */
enum { CHANGES_MAX = 16 };
struct changes {
	struct pages_taken taken;
	struct area area[CHANGES_MAX];
	unsigned count;
};
void changes_add(struct changes *changes, const struct area *area);
void changes_end(struct changes *changes);

/* Touch every page of the range: 0, or -ENOMEM as soon as a page cannot be brought. */
s64 mapping_populate(u64 start, u64 end, bool write);

/* Is a range possible: whole pages, not empty, in the program's part? */
bool mapping_range_ok(u64 start, u64 end);
