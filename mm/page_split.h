/*
 * Whole blocks become single frames on a zone's small lists, with struct pages of their own.
 *
 *   full, mapped   [512 struct pages]                                      -> two chunks of order 8 on the small lists
 *   bare           eight frames of META, written once -> [512 struct pages] -> the same
 *   unopened, huge opened, or made bare, first
 *
 * No lock held, unless said otherwise.
 */
#pragma once

#include "mm/zone.h"

/*
 * Put another block's worth of frames on the zone's small lists, for a request of `order`. False if the zone has no block left;
 * may_wait: rounds and openings are allowed, else only what has its struct pages is split.
 */
bool page_split_some(struct zone *zone, unsigned order, enum migratetype type, bool may_wait);

/* For those who may not wait: split before it is needed, up to zone->ready. Bounded: what it cannot do now the next caller tries. */
void page_split_ahead(struct zone *zone, enum migratetype type);

/*
 * Bare to full: eight frames of struct pages, written once, shown when they are ready. They are reserved, of this kind; the
 * block is in transit and the caller's.
 */
void block_full_from_bare(struct zone *zone, struct node *node, enum meta_kind kind, u32 index);

/*
 * A full block in transit goes to the small lists, unless another CPU has meanwhile split one for the same need (a chunk of at
 * least `order` is there; PAGE_ORDERS: split it anyway): then it stays whole and free, or two halves of it would keep its section from
 * ever being closed.
 */
void block_publish_split(struct zone *zone, u32 index, unsigned order);
