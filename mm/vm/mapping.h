/*
 * Operations on whole ranges of a space. Each function that takes translations away makes one
 * round. Addresses and sizes are multiples of 4 KiB. Context: ordinary.
 */
#pragma once

#include "kernel/lib/types.h"
#include "mm/vm/area_tree.h"
#include "mm/vm/pages.h"

/*
 * Map `area` (its range without flags of placement) where mapping_place says. Takes over the
 * reference to area->object in every case. Returns the first address or a negative errno.
 */
enum mapping_place {
	MAPPING_ANYWHERE,  /* area->start is a wish, 0: none */
	MAPPING_FIXED,     /* exactly there, in place of what was mapped */
	MAPPING_NO_REPLACE /* exactly there, -EEXIST if something is mapped */
};
s64 mapping_make(struct space *space, struct area *area, enum mapping_place place);

/* Unmap a range, whatever is in it. Returns 0, -EINVAL for a part of a pool's page, or -ENOMEM. */
s64 mapping_remove(struct space *space, u64 start, u64 end);

/* Unmap everything, when nobody works in the space any more. Frees the areas, too. */
void mapping_remove_all(struct space *space);

/*
 * Give a range other rights. Returns 0, -ENOMEM for a hole (nothing was changed) or for lack of
 * memory, or -EACCES for an object that may not be written; then the part before it is changed.
 */
s64 mapping_protect(struct space *space, u64 start, u64 end, u8 rights);

/*
 * Change all areas of [start, end), and their pages. All stay busy until the one round in which old
 * translations end: otherwise another call could change them once more and return while those still
 * serve. (Sixteen ranges with holes between them take a round.) Holes are passed over. Returns 0;
 * -EINVAL for a part of a page of a pool, or for guards in a pool's or shared memory; -ENOMEM; or
 * -EACCES for an object that may not be written. After an error the memory below that place has
 * been changed, but with `whole` nothing has. -EINTR: pages_clear() or pages_guard() ended early.
 */
enum change_pages {
	CHANGE_NO_PAGES,
	CHANGE_RIGHTS,
	CHANGE_TO_GUARDS,
	CHANGE_CONTENTS, /* they become zero; this and the next need no memory */
	CHANGE_NO_GUARDS,
};
struct area_change {
	enum change_pages pages;
	u8 rights;                          /* with CHANGE_RIGHTS */
	u16 set, clear;                     /* flags */
	const struct memory_policy *policy; /* NULL: stays */
	bool whole;
	struct page **spare; /* frames for tables of pieces (taken.h) */
};
s64 mapping_change(struct space *space, u64 start, u64 end, const struct area_change *how);

/*
 * Touch every page of the range, up to the first that cannot be: 0; -ENOMEM for a hole or for lack
 * of memory; -EINVAL where the area has not the right; -EFAULT beyond an object or at a guard; or
 * -EINTR.
 */
s64 mapping_populate(struct space *space, u64 start, u64 end, bool write);

/* Whole pages, not empty, between the space's borders? */
bool mapping_range_ok(const struct space *space, u64 start, u64 end);
