/* The buddy with shorter runs, as Linux's has them: for searches that are compared with Linux's. */
#pragma once

#include "mm/zone/buddy.h"

/*
 * Lower or raise zone->max_order, the limit up to which runs of blocks merge. Free runs are split
 * or merged again, in the block table only. No lock held.
 */
void buddy_set_max_order(struct mm *mm, unsigned order);
