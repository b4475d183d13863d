/*
 * Free huge pages that are block records and nothing else, so each costs only 32 bytes, even as
 * many as a machine with a TiB has. A pool of mode `on` takes them and gives them back unchanged.
 * No page may be used, because no struct page describes it.
 */
#pragma once

#include "tests/kernel/arena.h"

/*
 * Borrow an arena with `pages` free huge pages of 2 MiB in its phantom, rounded up to whole GiB.
 * Returns NULL as arena_borrow() does.
 */
struct arena *huge_records_borrow(u64 pages);

/*
 * Make all pages bare again, check the account of the arena, and return it. The pool must have no
 * pages.
 */
void huge_records_return(struct arena *a);
