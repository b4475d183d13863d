/*
 * What a space has, by its areas and its page tables, for cases that know what it should have. They
 * look at ranges that nobody else changes, so they need no pin.
 */
#pragma once

#include "tests/kernel/space_model.h"

/* The leaf of an address, or 0. */
pte_t space_leaf(const struct space *space, u64 at);

/*
 * What is wrong with the area and the leaf of an address, where the model has this page, or NULL.
 * An area that a report makes busy for a moment is waited for.
 */
const char *space_page_wrong(struct space *space, u64 at, const struct space_page *want);

/*
 * What is wrong with the leaves of [start, end), or NULL. Each must lie in areas with its rights,
 * and none may be claimed. They are counted in `leaves`, by level. *where is the wrong address.
 */
const char *space_leaves_wrong(const struct space *space, u64 start, u64 end, u64 leaves[3],
			       u64 *where);
