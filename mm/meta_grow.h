/* META grows by a block and gives blocks back: inside meta only. */
#pragma once

#include "mm/zone.h"

/*
 * Add a block to the node's META: a free one, or one of a section opened for it, or what is gated flushed free. One CPU grows
 * a node at a time; others wait for it and return 0 so that their caller looks again. No lock held. -ENOMEM: nothing left.
 */
int meta_grow(struct node *node, enum meta_kind kind);

/* Give back blocks of which no frame is used, keeping some frames free. No lock held. */
void meta_trim(struct node *node);
