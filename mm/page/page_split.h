/*
 * Whole blocks become single frames on a zone's small lists, with struct pages of their own.
 *
 *   full, mapped   [512 struct pages] -> two chunks of order 8 on the small lists
 *   bare           eight frames of metadata memory, written once -> [512 struct pages] -> the same
 *   huge           seven frames more -> [512 struct pages] -> the same; a batch has one round
 *   unopened       opened first
 *
 * No lock held, unless said otherwise.
 */
#pragma once

#include "mm/memmap/zone.h"

/*
 * Put another block's worth of frames on the zone's small lists, for a request of `order`. Returns
 * false if the zone has no block left. With may_wait, rounds and openings are allowed; without it
 * only a block that already has its struct pages is split.
 */
bool page_split_some(struct zone *zone, unsigned order, enum migratetype type, bool may_wait);

/*
 * For pages that cannot be moved, placed by GiB, where page_split_some() has no more: taint
 * another GiB (zone/gigablock.h), or split free huge pages. Then ask again. False if neither was
 * possible.
 */
bool page_split_tainting(struct zone *zone, bool may_wait);

/*
 * Split ahead of need, up to zone->ready, for callers that may not wait. The work is bounded; the
 * next caller tries what could not be done now.
 */
void page_split_ahead(struct zone *zone, enum migratetype type);

/*
 * Split one block if it is free and full or bare, and not CMA's or isolated unless `also` says so
 * (enum block_source). Returns false if it is not, or if metadata memory has no frames for the
 * struct pages of a bare one.
 */
bool page_split_block(struct zone *zone, u32 index, unsigned also);

/*
 * Turn a bare block into a full one: eight frames of struct pages are written once and mapped when
 * they are ready. The frames are reserved, of `kind`. The block is in transit and the caller's.
 */
void block_full_from_bare(struct zone *zone, struct node *node, enum meta_kind kind, u32 index);
