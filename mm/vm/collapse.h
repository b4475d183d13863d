/*
 * Small pages that become huge ones (MADV_COLLAPSE).
 *
 * For up to eight ranges of 2 MiB at a time: a huge page is found for each, if need be by moving
 * other pages of the space (movable.h); the ranges become busy and lose their tables; one round;
 * the contents are copied; and a 2 MiB leaf takes the place of each table. Nobody sees old
 * contents, because a touch waits for as long as its area is busy.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Collapse the 2 MiB ranges that lie whole in [start, end), whatever space->huge says. Ranges that
 * are huge already stay. Returns 0 if all are huge now; -EINVAL if one cannot be (not private
 * anonymous memory of one area, forbidden by MADV_NOHUGEPAGE, or nothing is there); -ENOMEM if no
 * huge page could be had; the others are collapsed nevertheless. Context: ordinary, with no pin and
 * no busy range.
 */
struct space;
s64 collapse_range(struct space *space, u64 start, u64 end);
