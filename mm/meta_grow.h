/* META grows by a block and gives blocks back: inside meta only. */
#pragma once

#include "mm/zone.h"

/*
 * Bring META nearer to `count` available frames: by what gated frames are done, by one block (free, or of a section opened for
 * it), or when no block is left by a round that frees the gated. One CPU grows a node at a time; others wait for it, but
 * not those that grow another node. 0: look again; -ENOMEM: nothing left, or this CPU is growing META just now. No lock held.
 */
int meta_grow(struct node *node, enum meta_kind kind, u64 count);

/* After the emergency frames were used: make them whole again, unless somebody is at it. No lock held. */
void meta_top_up(struct node *node);

/*
 * A block that is in no list of META any more, or was to hold a section's struct pages and does not: free again. In transit until it
 * is. No lock held.
 */
void meta_leave_block(struct zone *zone, u32 index);

/* Give back blocks of which no frame is used, keeping some frames free. No lock held. */
void meta_trim(struct node *node);
