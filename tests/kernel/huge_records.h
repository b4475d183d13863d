/*
 * Free huge pages that are block records and nothing else, so that as many as a machine of a TiB
 * has cost 32 bytes each. A pool of mode `on` takes them and gives them back as they are; nobody
 * may use one, because no struct page describes it.
 */
#pragma once

#include "tests/kernel/arena.h"

/*
 * An arena with `pages` free huge pages of 2 MiB or more, whole GiB, in its phantom. NULL as
 * arena_borrow().
 */
struct arena *huge_records_borrow(u64 pages);

/* They are bare again, all of them: the pool has none. The arena is accounted for, and returned. */
void huge_records_return(struct arena *a);
