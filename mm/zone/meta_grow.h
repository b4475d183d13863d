/* META grows by whole blocks and gives blocks back. For META's and the sections' code only. */
#pragma once

#include "mm/memmap/zone.h"

/*
 * Bring META nearer to `count` available frames: by releasing gated frames that are done, by adding
 * one block (free, or of a section opened for it), or, when no block is left, by a round that frees
 * the gated frames.
 *
 * One CPU grows a node's META at a time. Others wait for it, except CPUs that are growing another
 * node's META. Returns 0 if the caller should look again, or -ENOMEM if nothing is left or this CPU
 * is growing META at this moment. No lock held.
 */
int meta_grow(struct node *node, enum meta_kind kind, u64 count);

/*
 * Restore the emergency frames after some were used, unless another CPU is growing this META. No
 * lock held.
 */
void meta_top_up(struct node *node);

/*
 * Free a block in state META that is in no list of META any more, or that was chosen to hold a
 * section's struct pages and will not. It is in transit until it is free. No lock held.
 */
void meta_leave_block(struct zone *zone, u32 index);

/* Give back blocks of which no frame is used, keeping some frames free. No lock held. */
void meta_trim(struct node *node);

/*
 * Add a block that the caller owns, already in state META, to the node's META with its first `used`
 * frames in use. A block of kind MEMMAP is marked BLOCK_MEMMAP as long as it belongs to META. Its
 * maps are kept in META frames. 0 or -ENOMEM.
 */
int meta_add_block(struct node *node, u32 index, enum meta_kind kind, unsigned used);

/*
 * Take a block of any kind out of META again. 0 if exactly `own` of its frames are in use besides
 * gated ones, and META's reservations can do without it; else -EBUSY with nothing changed. Frames
 * that are still gated go with the block, so the caller completes a round before it uses any of
 * them. The caller owns the block afterwards.
 */
int meta_remove_block(struct node *node, u32 index, unsigned own);

/*
 * Start-up: the 2 MiB at `phys`, zeroed and reserved by the caller, become the node's first META
 * block. Its first frames hold its own maps and, if its GiB has none yet, the block records. False
 * only if the block could not be added.
 */
bool meta_init_node(struct node *node, phys_t phys);
