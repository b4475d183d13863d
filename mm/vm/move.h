/*
 * Moving and resizing mappings. Both ranges are busy until the one round has ended. Context:
 * ordinary.
 */
#pragma once

#include "kernel/lib/types.h"

struct space;

/*
 * Move the pages of [from, from + old_size), which one area has whole, to [to, to + new_size), in
 * place of what was mapped there; with MOVE_LEAVES the old area stays, empty. mapping_resize()
 * gives the area another end, and with `may_move` other addresses if there is no room. New pages
 * show what follows in the object, or zeros. Making a mapping smaller only needs an area at `from`.
 * Returns the first address; -EINVAL for a range that is not possible, overlaps, or has pages of a
 * pool; -EFAULT if no one area has the old range; or -ENOMEM.
 */
enum move_old { MOVE_UNMAPS, MOVE_LEAVES };
s64 mapping_move(struct space *space, u64 from, u64 old_size, u64 to, u64 new_size,
		 enum move_old how);
s64 mapping_resize(struct space *space, u64 from, u64 old_size, u64 new_size, bool may_move);
